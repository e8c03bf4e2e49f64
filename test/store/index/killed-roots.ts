/**
 * The roots that the killed writer writes, by number.
 * @module
 */
import type { RootSpec } from "../../../src/store/root-spec.ts";
import { madeId } from "../../chain/data-node.ts";

/** Bytes of each root: not a multiple of anything. */
export const killedRootBytes = 1_300_007;

/** The root of a number. */
export function killedRoot(number: number): RootSpec {
  return { id: madeId(number), dataRoot: madeId(number + 1_000_000), size: killedRootBytes };
}
