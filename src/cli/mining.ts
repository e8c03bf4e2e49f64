/**
 * How the development chain mines, read from its setting: also where the settings are only checked, which must not load
 * the chain.
 * @module
 */

import { badSettings } from "../app/complaints.ts";
import type { MiningMode } from "../dev/devnet/mining.ts";

/** Reads DEVNET_MINING. @throws Misuse with its complaint. */
export function readMining(text: string): MiningMode {
  if (text === "auto" || text === "manual") return text;
  if (/^[1-9]\d{0,8}$/.test(text)) return { intervalMs: Number(text) };
  throw badSettings([`DEVNET_MINING must be auto, manual or milliseconds, got ${JSON.stringify(text)}`]);
}
