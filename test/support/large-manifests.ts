/**
 * Look-ups in large manifests as the program has them, whose indexes are built without threads.
 * @module
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLargeManifests, type LargeManifests } from "../../src/gateway/large-manifests.ts";
import type { Log } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import {
  type BuildIndexJob,
  createIndexBuilder,
  type LeaveIndexJob,
} from "../../src/store/manifests/manifest-index-build.ts";
import { type ManifestIndexes, openManifestIndexes } from "../../src/store/manifests/manifest-indexes.ts";
import type { Pool, Workers } from "../../src/threads/pool.ts";
import { asRun } from "./pools.ts";
import { createRecordingLog } from "./recording-log.ts";

/** Large manifests of a test. */
export type TestManifests = LargeManifests & Readonly<{ folder: string; indexes: ManifestIndexes }>;

/** What a test chooses. */
export type TestManifestsOptions = Readonly<{
  /** By default a new folder, which is removed at the end. */
  folder?: string;
  bytesMax?: number;
  clock?: () => number;
  log?: Log;
  builders?: readonly ManifestBuilder[];
}>;

/** Opens them. */
export function openTestManifests(options: TestManifestsOptions = {}): TestManifests {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), "cairn-manifests-"));
  const clock = options.clock ?? Date.now;
  const log = options.log ?? createRecordingLog(clock).log;
  const indexes = openManifestIndexes({ folder, bytesMax: options.bytesMax ?? 2 ** 30, clock, log });
  const builders = options.builders ?? [inlineBuilder(), inlineBuilder()];
  const randomBytes = (size: number) => crypto.getRandomValues(new Uint8Array(size));
  const manifests = createLargeManifests({ indexes, builders, randomBytes, clock, log });
  return {
    folder,
    indexes,
    resolve: manifests.resolve,
    close: async () => {
      await manifests.close();
      await indexes.close();
      if (options.folder === undefined) removeFolder(folder);
    },
  };
}

/** The calls of a thread that builds indexes. */
export type ManifestBuilder = Pick<Pool<Workers["manifests"]>, "run">;

/** A thread's jobs, run in this thread. */
export function inlineBuilder(): ManifestBuilder {
  const { buildIndex, leaveIndex } = createIndexBuilder();
  return {
    run: asRun<Workers["manifests"]>(async (name, job) => {
      await Bun.sleep(0);
      return name === "buildIndex" ? buildIndex(job as BuildIndexJob) : leaveIndex(job as LeaveIndexJob);
    }),
  };
}
