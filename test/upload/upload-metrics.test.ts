/**
 * Metrics of uploads: accepted items, unfinished items by state, ended items, and the age of the oldest.
 * @module
 */
import { expect, test } from "bun:test";
import { createMetrics } from "../../src/lib/metrics.ts";
import { createPlanner } from "../../src/upload/pipeline/plan-bundles.ts";
import { createUploadMetrics } from "../../src/upload/upload-metrics.ts";
import { openBundleFixture, quickRules, storeName } from "./pipeline/bundle-fixture.ts";

test("the metrics follow items through their states", async () => {
  let now = 1_000_000;
  const fixture = await openBundleFixture({ clock: () => now });
  const { database: ledger, makeId } = fixture;
  const clock = () => now;
  const metrics = createMetrics();
  const stats = createUploadMetrics(metrics, { ledger, storeName, clock });
  const read = async () => {
    now += 2_000;
    const lines = (await metrics.text()).split("\n").filter((line) => line.startsWith("upload_"));
    return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]));
  };

  const empty = await read();
  expect(empty.get('upload_items{state="waiting"}')).toBe(0);
  expect(empty.get('upload_oldest_seconds{state="waiting"}')).toBe(0);

  const items = fixture.sign([10, 20, 30]);
  await fixture.take(items);
  for (const { bytes } of items) stats.onTaken(bytes.length);
  await fixture.take(fixture.sign([40]), { store: "another" });
  const bytes = items.reduce((sum, each) => sum + each.bytes.length, 0);
  const waiting = await read();
  expect(waiting.get("upload_items_taken_total")).toBe(3);
  expect(waiting.get("upload_bytes_taken_total")).toBe(bytes);
  expect(waiting.get('upload_items{state="waiting"}')).toBe(3);
  expect(waiting.get('upload_bytes{state="waiting"}')).toBe(bytes);
  expect(waiting.get('upload_oldest_seconds{state="waiting"}')).toBe(2);

  const rules = { ...quickRules.plan, waitMs: 0 };
  await createPlanner({ ledger, storeName, rules, makeId, clock }).look();
  const planned = await read();
  expect(planned.get('upload_items{state="waiting"}')).toBe(0);
  expect(planned.get('upload_items{state="planned"}')).toBe(3);
  expect(planned.get('upload_bundles{state="planned"}')).toBe(1);
  expect(planned.get('upload_oldest_seconds{state="planned"}')).toBe(4);

  stats.onEnded("permanent", 3);
  stats.onEnded("failed", 1);
  const ended = await read();
  expect(ended.get('upload_items_ended_total{state="permanent"}')).toBe(3);
  expect(ended.get('upload_items_ended_total{state="failed"}')).toBe(1);
  await fixture.close();
});
