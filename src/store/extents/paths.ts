/**
 * Giving away the path of a cached file, for the kernel to send: only while all that will be sent was compared with
 * its checksums since the file last changed.
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import type { ByteSpan } from "../../lib/range.ts";
import type { ExtentFiles, FileIdentity } from "./extent-files.ts";
import { extentCallBytesMax, type Reading, stepsOf } from "./extent-reads.ts";
import type { Root } from "./extent-roots.ts";

/** What one call compares at most, in about 40 ms when the system has it in memory. */
export const comparedBytesMax = 64 * 2 ** 20;

/**
 * A file that changed so lately may change again within the same tick of its change time, unseen: what was compared
 * then is compared again next time. Kernels tick every 1 to 10 ms.
 */
const settledAfterMs = 50;

/** Paths of roots' files. */
export type Paths = Readonly<{
  /** Undefined when the span is not present, is being written, or is too much to be compared now. */
  give: (root: Root, span: ByteSpan) => Promise<string | undefined>;
}>;

/** Makes the paths of a cache. */
export function createPaths(parts: { files: ExtentFiles; reading: Reading; clock: Clock }): Paths {
  const { files, reading, clock } = parts;

  /** Compares spans that were not compared since the file became what it is. Answers whether all of them are right. */
  async function compareAll(root: Root, spans: readonly ByteSpan[], identity: FileIdentity): Promise<boolean> {
    for (const piece of spans.flatMap(callsOf)) {
      if ((await reading.compare(root, piece)) === undefined) return false;
      if (root.identity !== identity) return false; // it changed, and another call compares anew
      for (const step of stepsOf(piece)) root.steps.setChecked(step);
    }
    const after = await files.identity(root.name);
    return !root.isGone && after !== undefined && isSame(identity, after);
  }

  return {
    async give(root, span) {
      if (root.steps.missing(span).length > 0) return undefined;
      const found = await files.identity(root.name);
      if (found === undefined) {
        await reading.compare(root, { start: span.start, end: span.start + 1 }); // finds out what stands there
        return undefined;
      }
      const identity = settleIdentity(root, found);
      const rest = root.steps.unchecked(span);
      if (rest.reduce((sum, { start, end }) => sum + end - start, 0) > comparedBytesMax) return undefined;
      if (rest.length > 0 && !(await compareAll(root, rest, identity))) return undefined;
      if (clock() - Number(identity.changedNs / 1_000_000n) < settledAfterMs) root.isUnsettled = true;
      root.handedOutAt = clock();
      return files.path(root.name);
    },
  };
}

/** Notes what the file is now; what was compared of it holds only if it is what it was. */
function settleIdentity(root: Root, found: FileIdentity): FileIdentity {
  if (root.identity !== undefined && !root.isUnsettled && isSame(root.identity, found)) return root.identity;
  root.steps.clearChecked();
  root.identity = found;
  root.isUnsettled = false;
  return found;
}

function callsOf({ start, end }: ByteSpan): ByteSpan[] {
  const count = Math.ceil((end - start) / extentCallBytesMax);
  return Array.from({ length: count }, (_, index) => ({
    start: start + index * extentCallBytesMax,
    end: Math.min(end, start + (index + 1) * extentCallBytesMax),
  }));
}

function isSame(one: FileIdentity, other: FileIdentity): boolean {
  return one.inode === other.inode && one.size === other.size && one.changedNs === other.changedNs;
}
