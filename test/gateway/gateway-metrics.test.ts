/**
 * Metrics of rare events: forks, and chunks that nodes accept or reject.
 * @module
 */
import { expect, test } from "bun:test";
import { Failure } from "../../src/failures.ts";
import { countChunks, createForkMetrics, createPostMetrics } from "../../src/gateway/gateway-metrics.ts";
import type { FoundChunk } from "../../src/gateway/weave-chunks.ts";
import { createMetrics } from "../../src/lib/metrics.ts";

/** The metrics by their names with labels. */
async function shown(metrics: ReturnType<typeof createMetrics>): Promise<Record<string, string>> {
  const lines = (await metrics.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), line.split(" ").at(-1) ?? ""]));
}

test("a fork is as deep as the number of blocks that it rolls back", async () => {
  const metrics = createMetrics();
  const forks = createForkMetrics(metrics, 100);
  expect(await shown(metrics)).toEqual({ forks_total: "0", last_fork_depth: "0" });
  forks.onRollback(98);
  expect(await shown(metrics)).toEqual({ forks_total: "1", last_fork_depth: "3" });
  for (const height of [98, 99]) forks.onBlock(height);
  forks.onRollback(99);
  expect(await shown(metrics)).toEqual({ forks_total: "2", last_fork_depth: "1" });
});

test("a chunk counts once for each node, and once for its sender", async () => {
  const metrics = createMetrics();
  const note = createPostMetrics(
    metrics,
    ["a", "b", "c", "d"].map((url) => ({ url })),
  );
  const body = new Uint8Array(0);
  note("/tx", [{ peer: "a", kind: "response", response: { status: 200, body } }]);
  note("/chunk", [
    { peer: "a", kind: "response", response: { status: 200, body } },
    { peer: "b", kind: "response", response: { status: 400, body } },
    { peer: "c", kind: "fault", fault: { kind: "fault", reason: "timeout", detail: "" } },
    { peer: "d", kind: "skipped", reason: "it has not responded yet" },
  ]);
  note("/chunk", [{ peer: "a", kind: "response", response: { status: 400, body } }]);
  const of = (peer: string, status: string) =>
    `arweave_chunk_post_total{endpoint="${peer}",status="${status}",role="trusted"}`;
  expect(await shown(metrics)).toEqual({
    [of("a", "success")]: "1",
    [of("a", "fail")]: "1",
    [of("b", "fail")]: "1",
    [of("c", "timeout")]: "1",
    [of("d", "skipped")]: "1",
    'arweave_chunk_broadcast_total{status="success"}': "1",
    'arweave_chunk_broadcast_total{status="fail"}': "1",
  });
});

test("a requested chunk counts as found, absent or failed", async () => {
  const metrics = createMetrics();
  const none = new Uint8Array(0);
  const chunk: FoundChunk = {
    served: { chunk: none, dataPath: none, txPath: none },
    end: 1n,
    verified: true,
    stable: true,
    transaction: undefined,
    dataStart: 0,
  };
  const responses: Readonly<Record<string, () => Promise<FoundChunk>>> = {
    1: () => Promise.resolve(chunk),
    2: () => Promise.reject(new Failure("not_found")),
    3: () => Promise.reject(new Failure("source_failed")),
  };
  const at = (offset: bigint) => responses[String(offset)]?.() ?? Promise.reject(new Error("no such row"));
  const chunks = countChunks({ at, atForGateway: at }, metrics);
  const { signal } = new AbortController();
  await Promise.allSettled([1n, 2n, 2n, 3n].map((offset) => chunks.at(offset, signal)));
  await chunks.atForGateway(1n, signal);
  expect(await shown(metrics)).toEqual({
    'get_chunk_total{status="success"}': "2",
    'get_chunk_total{status="not_found"}': "2",
    'get_chunk_total{status="error"}': "1",
  });
});
