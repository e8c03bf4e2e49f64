/**
 * Look-ups in large manifests, opened: the folder of their indexes and the threads that build them.
 * @module
 */

import type { Config } from "../config/settings.ts";
import { createLargeManifests, type LargeManifests } from "../gateway/large-manifests.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import { openManifestIndexes } from "../store/manifests/manifest-indexes.ts";
import type { DataFolder } from "./data-folder.ts";
import { systemRandomBytes } from "./random.ts";
import { openManifestThreads } from "./threads.ts";

/** What they are opened with. */
export type LargeManifestsSetup = Readonly<{
  config: Config;
  folder: DataFolder;
  log: Log;
  closers: Closers;
}>;

/** Opens them; they are closed by `closers`. */
export function openLargeManifests({ config, folder, log, closers }: LargeManifestsSetup): LargeManifests {
  const indexes = openManifestIndexes({
    folder: folder.manifests,
    bytesMax: config.MANIFEST_INDEX_BYTES_MAX,
    clock: systemClock,
    log,
  });
  closers.add("manifest indexes", indexes.close);
  const builders = openManifestThreads(closers);
  const manifests = createLargeManifests({
    indexes,
    builders,
    log,
    randomBytes: systemRandomBytes,
    clock: systemClock,
  });
  closers.add("builds of manifest indexes", manifests.close);
  return manifests;
}
