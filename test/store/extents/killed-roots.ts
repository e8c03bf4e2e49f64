/**
 * The roots that the killed writer writes, by number.
 * @module
 */
import { join } from "node:path";
import { systemClock } from "../../../src/lib/clock.ts";
import { silentLog } from "../../../src/lib/log.ts";
import { type Extents, openExtents } from "../../../src/store/extents/extents.ts";
import type { RootSpec } from "../../../src/store/root-spec.ts";
import { madeId } from "../../chain/data-node.ts";

/** Bytes of each root: not a multiple of a step or chunk. */
export const killedRootBytes = 1_300_007;

/** The root of a number. */
export function killedRoot(number: number): RootSpec {
  return { id: madeId(number), dataRoot: madeId(number + 1_000_000), size: killedRootBytes };
}

/** Opens the content cache in a folder. */
export function openKilledExtents(folder: string, bytesMax = 64 * 2 ** 20): Extents {
  return openExtents({
    folder: join(folder, "content"),
    mapPath: join(folder, "content.sqlite"),
    bytesMax,
    freeBytesMin: 0,
    clock: systemClock,
    log: silentLog,
  });
}
