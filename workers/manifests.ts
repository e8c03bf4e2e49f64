/**
 * Thread entry: builds indexes of manifests.
 * Source: docs/decisions/090-manifest-indexes.md.
 * @module
 */
import {
  type BuildIndexJob,
  type BuildIndexResult,
  createIndexBuilder,
  type LeaveIndexJob,
} from "../src/store/manifests/manifest-index-build.ts";
import { giveWay } from "../src/threads/give-way.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

// The clients of a build wait for a second, those of all other requests for milliseconds.
giveWay();

const builder = createIndexBuilder();

/** Goes on with a build. */
export function buildIndex(job: BuildIndexJob): BuildIndexResult {
  return builder.buildIndex(job);
}

/** Drops a build. */
export function leaveIndex(job: LeaveIndexJob): void {
  builder.leaveIndex(job);
}
