/**
 * The root that a path claims, whatever it is worth: real paths come without theirs.
 * @module
 */
import { branchId, leafId } from "../../src/arweave/merkle.ts";

/** The id of a path's first branch or leaf; `undefined` when it is too short for either. */
export function rootOfPath(path: Uint8Array): Uint8Array | undefined {
  if (path.length === 64) return leafId(path.subarray(0, 32), path.subarray(32));
  if (path.length < 96) return undefined;
  const isMarked = path.length >= 128 && path.subarray(0, 32).every((byte) => byte === 0);
  const branch = path.subarray(isMarked ? 32 : 0);
  return branchId(branch.subarray(0, 32), branch.subarray(32, 64), branch.subarray(64, 96));
}
