/**
 * Indexing as the program runs it: the index in a thread of its own, threads that verify and unbundle, the
 * real content cache, nodes over sockets; in one folder, so that it can be opened again on what was left
 * there.
 * @module
 */
import { join } from "node:path";
import { readFilter } from "../../src/arweave/filter.ts";
import { openGateways } from "../../src/chain/gateways.ts";
import { openNode } from "../../src/chain/node.ts";
import { createNodes } from "../../src/chain/nodes.ts";
import { openRootFiles } from "../../src/chain/root-files.ts";
import { openRootQueries } from "../../src/chain/root-queries.ts";
import { checksIn, openContent } from "../../src/content/content.ts";
import { type IndexingOptions, openIndexing } from "../../src/indexing/indexing.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLog } from "../../src/lib/log.ts";
import { openExtents } from "../../src/store/extents/extents.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { createIndexWriterCalls } from "../../src/store/index/index-writer-calls.ts";
import { openPool } from "../../src/threads/pool.ts";
import { createRandom } from "../support/random.ts";
import { until } from "../support/until.ts";

/** What a test chooses; the rest is as in the program. */
export type WholeOptions = Readonly<{
  folder: string;
  nodeUrls: readonly string[];
  unbundleFilter?: string;
  indexFilter?: string;
}> &
  Partial<Pick<IndexingOptions, "start" | "stop" | "hooks" | "times" | "isMempoolWatched" | "clock">>;

const always = '{"always":true}';
const timeouts = { firstByteMs: 2_000, stallMs: 2_000, totalMs: 10_000 };

/** Opens it all and begins. */
export async function openWhole(options: WholeOptions) {
  const random = createRandom(1).next;
  const parts = { clock: systemClock, random, log: silentLog };
  const pool = { threads: 1, queueMax: 1_000, timeoutMs: 60_000, idleMs: 60_000 };
  const verify = openPool({ entry: "verify", ...pool });
  const contentThread = openPool({ entry: "content", ...pool });
  const unbundle = openPool({ entry: "unbundle", ...pool });
  const indexThread = openPool({ entry: "index", ...pool, idleMs: Number.POSITIVE_INFINITY });
  const path = join(options.folder, "index.sqlite");
  await indexThread.run("open", { path });
  const index = createIndexWriterCalls(path, (job) => indexThread.run("write", job));
  const reader = openIndexReader(path);
  const nodes = createNodes(
    options.nodeUrls.map((url) => openNode(url, timeouts)),
    parts,
  );
  const extents = openExtents({
    folder: join(options.folder, "content"),
    mapPath: join(options.folder, "content.sqlite"),
    bytesMax: 2 ** 30,
    freeBytesMin: 0,
    clock: systemClock,
    log: silentLog,
  });
  const content = openContent({
    reader,
    blockList: {
      isBlockedId: () => false,
      isBlockedDigest: () => false,
      isBlockedWithin: () => false,
      hasBlockedDigests: () => false,
      has: () => false,
      version: () => 0,
    },
    extents,
    nodes,
    chunkNodes: nodes,
    gateways: openGateways([], parts),
    rootFiles: openRootFiles([], {
      ...parts,
      openContent: (id, signal) => content.openIndexFile(id, signal),
    }),
    rootQueries: openRootQueries([], parts),
    checks: checksIn(verify, contentThread),
  });
  const indexing = openIndexing({
    start: 0,
    stop: undefined,
    isMempoolWatched: false,
    hooks: { onBlock: () => undefined, onItems: () => undefined, onRollback: () => undefined },
    clock: systemClock,
    ...options,
    times: { followMs: 10, retryMs: 10, queueMs: 20, mempoolMs: 20, ...options.times },
    nodes,
    verify,
    unbundle,
    index,
    reader,
    content,
    unbundleFilter: readFilter(options.unbundleFilter ?? always),
    indexFilter: readFilter(options.indexFilter ?? always),
    random,
    log: silentLog,
  });
  return {
    indexing,
    reader,
    content,
    close: async () => {
      await indexing.close();
      await content.close();
      nodes.close();
      reader.close();
      await indexThread.run("close", { path });
      await Promise.all([verify.close(), contentThread.close(), unbundle.close(), indexThread.close()]);
      await extents.close();
    },
  };
}

/** All of it, open. */
export type Whole = Awaited<ReturnType<typeof openWhole>>;

/** Waits until something is so; says what the state is when it does not come. */
export async function untilWhole(what: string, isSo: () => boolean, whole: Whole, ms = 60_000): Promise<void> {
  await until(isSo, () => `${what}: ${JSON.stringify([whole.indexing.status(), whole.reader.counts()])}`, ms);
}
