/**
 * Writing down what the content cache holds: the data first, then the rows that say so, in small steps.
 * After a crash the rows say less than the files hold, never more; what they do not say is fetched again.
 * @module
 */
import type { Log } from "../../lib/log.ts";
import type { ExtentFiles } from "./extent-files.ts";
import type { ExtentMap, RootChange } from "./extent-map.ts";
import { type Root, type Roots, takeChange } from "./extent-roots.ts";

/** The writer of what is unwritten. */
export type Flush = Readonly<{
  /** Writes all that is unwritten now. Returns false when some of it could not be written; it stays unwritten. */
  run: () => Promise<boolean>;
  /** Ends the regular writing. */
  stop: () => void;
}>;

/** Roots of one step: one database transaction of a few milliseconds. */
const rootsPerStep = 50;

/** What one crash may cost to be fetched again. */
const flushEveryMs = 1_000;

/** Starts writing regularly. */
export function startFlush(parts: { map: ExtentMap; roots: Roots; files: ExtentFiles; log: Log }): Flush {
  const { map, roots, files, log } = parts;
  let running: Promise<boolean> | undefined;
  const timer = setInterval(() => void once(), flushEveryMs);
  timer.unref();

  /** One writing at a time; failures are logged, not thrown: the next round tries again. */
  function once(): Promise<boolean> {
    running ??= writeAll()
      .catch((error: unknown) => {
        log.error("the content map could not be written", { error });
        return false;
      })
      .finally(() => {
        running = undefined;
      });
    return running;
  }

  async function writeAll(): Promise<boolean> {
    roots.saveForgotten();
    roots.saveUses();
    let isWhole = true;
    for (let left = roots.unwritten(Number.MAX_SAFE_INTEGER).length; left > 0; left -= rootsPerStep) {
      isWhole = (await writeSome(roots.unwritten(rootsPerStep))) && isWhole;
      if (!isWhole) return false;
    }
    return isWhole;
  }

  async function writeSome(some: readonly Root[]): Promise<boolean> {
    const ends = some.map((root) => roots.use(root));
    // Taken before the files are synced: what is marked meanwhile belongs to the next round.
    const taken = some.map((root) => ({ root, change: takeChange(root) }));
    const synced = await Promise.all(taken.map(({ root, change }) => (change.pages.length === 0 ? true : sync(root))));
    const ready = taken.filter(({ root }, index) => synced[index] === true && !root.isGone);
    const isSaved = save(ready.map(({ change }) => change));
    for (const { root, change } of taken) {
      if ((isSaved && ready.some((part) => part.root === root)) || root.isGone) continue;
      root.isChanged = true;
      root.steps.returnDirty(change.pages);
    }
    for (const end of ends) end();
    return isSaved && ready.length === some.filter((root) => !root.isGone).length;
  }

  async function sync(root: Root): Promise<boolean> {
    const result = await files.sync(root.name);
    if (result.kind === "lost") roots.forget(root.name);
    if (result.kind === "fault") log.error("a content file could not be synced", { code: result.code });
    return result.kind === "synced";
  }

  function save(changes: readonly RootChange[]): boolean {
    try {
      roots.saveForgotten();
      map.save(changes);
      return true;
    } catch (error) {
      log.error("the content map could not be written", { error }); // a full disk, mostly; the next round tries again
      return false;
    }
  }

  return {
    async run() {
      await running; // what became unwritten after it began is not in it
      return once();
    },
    stop: () => clearInterval(timer),
  };
}
