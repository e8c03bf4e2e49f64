/**
 * The real index in the test's own thread, behind the calls that indexing makes.
 * @module
 */
import { deserialize } from "bun:jsc";
import type { IndexCalls } from "../../src/indexing/index-calls.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { openIndexReader } from "../../src/store/index-reader.ts";
import { openIndexWriter } from "../../src/store/index-writer.ts";

/** Opens an index file for writing and reading. */
export function openDirectIndex(path: string, clock: Clock) {
  const writer = openIndexWriter(path, { clock });
  const reader = openIndexReader(path);
  const calls: IndexCalls = {
    addBlock: async (rows) => writer.addBlock(deserialize(rows)),
    addItems: async ({ rows, ...batch }) => writer.addItems({ ...batch, rows: deserialize(rows) }),
    rollback: async (...parts) => writer.rollback(...parts),
    addMissingTransaction: async (...parts) => writer.addMissingTransaction(...parts),
    setWeaveLayout: async (...parts) => writer.setWeaveLayout(...parts),
    postponeMissing: async (...parts) => writer.postponeMissing(...parts),
    addPending: async (...parts) => writer.addPending(...parts),
    removePending: async (...parts) => writer.removePending(...parts),
    expirePending: async (...parts) => writer.expirePending(...parts),
    queueBundles: async (...parts) => writer.queueBundles(...parts),
    takeBundle: async () => writer.takeBundle(),
    skipBundle: async (...parts) => writer.skipBundle(...parts),
    finishBundle: async (...parts) => writer.finishBundle(...parts),
    failBundle: async (...parts) => writer.failBundle(...parts),
    pruneItems: async (...parts) => writer.pruneItems(...parts),
    checkpoint: async () => writer.checkpoint(),
  };
  return {
    calls,
    writer,
    reader,
    close: () => {
      reader.close();
      writer.close();
    },
  };
}
