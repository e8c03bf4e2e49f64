/**
 * docs/metrics.md against the program: what it tells to read instead of a peer's metric is served.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { openUploadStack, type UploadStack } from "./support/upload-stack.ts";

const page = readFileSync(resolve(import.meta.dir, "../docs/metrics.md"), "utf8");
/** Rows of three cells: metrics of the peer, and what is served instead. */
const rows = [...page.matchAll(/^\| (`[^|]+) \| ([^|]+) \|[^|\n]*\|$/gm)];
/** Rows of two cells: metrics of this program, and labels. */
const ownRows = [...page.matchAll(/^\| (`[^|]+) \| [^|\n]+ \|$/gm)];
const namesIn = (text = "") => [...text.matchAll(/`([a-z0-9]+(?:_[a-z0-9*]+)+)`/g)].map(([, name]) => name ?? "");
/** Labels that the page names beside metrics. */
const labels = new Set(["status_code", "queue_name"]);

let stack: UploadStack;
let served: ReadonlySet<string>;
beforeAll(async () => {
  stack = await openUploadStack({ environment: { SOLVENCY_PUBLISH_MS: "86400000" } });
  const text = await (await fetch(`${stack.content}/metrics`)).text();
  served = new Set([...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name ?? ""));
}, 60_000);
afterAll(() => stack.close());

test("what is to be read instead is served", () => {
  expect(rows.length).toBeGreaterThan(10);
  const instead = rows.flatMap(([, , here]) => namesIn(here)).filter((name) => !labels.has(name));
  expect(instead.filter((name) => !served.has(name))).toEqual([]);
});

test("what the page describes is served", () => {
  const described = ownRows.flatMap(([, names]) => namesIn(names)).filter((name) => !labels.has(name));
  expect(described.length).toBeGreaterThan(8);
  // Of the wallet, only what is known: nothing was spent yet.
  expect(described.filter((name) => !served.has(name))).toEqual([]);
});

test("a look-up counts at each source that was named, and in memory the second time", async () => {
  const unknownId = "A".repeat(43);
  for (let times = 0; times < 2; times++) expect((await fetch(`${stack.content}/raw/${unknownId}`)).status).toBe(404);
  const text = await (await fetch(`${stack.content}/metrics`)).text();
  for (const source of ["nodes", "memory"])
    expect(text).toContain(`root_tx_lookup_total{source="${source}",status="not_found"} 1\n`);
  // This program knows no gateways and no files.
  for (const source of ["gateways", "cdb64", "graphql"])
    expect(text).not.toContain(`root_tx_lookup_total{source="${source}"`);
});

test("what is said to be missing is", () => {
  const missing = rows.flatMap(([, peers]) => namesIn(peers));
  const isServed = (name: string) =>
    [...served].some((each) => (name.endsWith("*") ? each.startsWith(name.slice(0, -1)) : each === name));
  expect(missing.filter(isServed)).toEqual([]);
});
