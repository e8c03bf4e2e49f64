/**
 * All benches, in the order of the table.
 * @module
 */
import type { Bench } from "./harness.ts";
import { headerBench, verifyBench } from "./items.ts";
import { startBench } from "./start.ts";
import { unbundleBench } from "./unbundle.ts";

export const benches: readonly Bench[] = [headerBench, verifyBench, unbundleBench, startBench];
