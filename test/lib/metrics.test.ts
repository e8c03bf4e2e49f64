/**
 * Metrics in the Prometheus text format.
 * @module
 */
import { expect, test } from "bun:test";
import { addProcessMetrics, createMetrics } from "../../src/lib/metrics.ts";

test("counts, gauges and histograms are written under their names and labels", async () => {
  const metrics = createMetrics();
  metrics.counter({ name: "errors_total", help: "Errors." }).inc(3);
  metrics.gauge({ name: "queue_length", help: "Queues." }).set(5);
  metrics
    .histogram({ name: "seconds", help: "Times.", labels: ["path"], buckets: [0.1, 1] })
    .series({ path: '/"x\\' })
    .observe(0.5);
  let stored = 7;
  metrics.countOf({ name: "stored_total", help: "Stored elsewhere.", read: () => stored });
  const first = await metrics.text();
  expect(first).toContain("errors_total 3");
  expect(first).toContain("queue_length 5");
  expect(first).toContain('seconds_bucket{le="1",path="/\\"x\\\\"} 1');
  expect(first).toContain("stored_total 7");
  metrics.gaugesOf({
    name: "jobs",
    help: "By name.",
    label: "name",
    values: ["a"],
    read: () => ({ a: stored, b: 1, c: 1 }),
  });
  stored = 9;
  expect(await metrics.text()).toContain('jobs{name="a"} 9');
  expect(await metrics.text()).toContain("stored_total 9");
  expect(await metrics.text()).toContain('jobs{name="other"} 2');
});

test("the process reports its CPU time, memory, files and event loop", async () => {
  const metrics = createMetrics();
  addProcessMetrics(metrics);
  const stats = new Map(
    (await metrics.text())
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => [line.split(" ")[0], Number(line.split(" ")[1])]),
  );
  expect(stats.get("process_resident_memory_bytes")).toBeGreaterThan(1e6);
  expect(stats.get("process_cpu_seconds_total")).toBeGreaterThan(0);
  expect([...stats.values()].every(Number.isFinite)).toBe(true);
});
