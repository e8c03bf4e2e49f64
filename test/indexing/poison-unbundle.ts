/**
 * The unbundling thread for tests of poison: a bundle whose id is named dies or hangs, every other is done as
 * always.
 * @module
 */
import { readFileSync } from "node:fs";
import { type UnbundleJob, type UnbundleResult, unbundle as unbundleAlways } from "../../workers/unbundle.ts";

/** Reads one batch, unless the bundle's first item carries the poison. */
export function unbundle(job: UnbundleJob): UnbundleResult {
  const text = readFileSync(job.path).toString("latin1");
  if (text.includes("poison: die")) process.exit(3);
  while (text.includes("poison: hang")) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
  return unbundleAlways(job);
}
