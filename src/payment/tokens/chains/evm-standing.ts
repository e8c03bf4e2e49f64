/**
 * Whether a block of an EVM chain is still there.
 * @module
 */
import type { Trouble } from "../../../lib/http-client.ts";
import type { EvmChain } from "../../evm/chain.ts";
import type { BlockRef, Standing } from "../sight.ts";
import { confirmationsOf } from "./evm-look.ts";

/** Asks what stands at a block's height. */
export async function standingOf(
  evm: EvmChain,
  { height, hash }: BlockRef,
  signal: AbortSignal,
): Promise<Standing | Trouble> {
  const kept = await evm.blockHash(height, signal);
  if (kept.kind === "trouble") return kept;
  if (kept.value === undefined) return { kind: "unknown" };
  const latest = await evm.latest(signal);
  if (latest.kind === "trouble") return latest;
  const confirmations = confirmationsOf(height, latest.value);
  return { kind: kept.value === hash ? "stands" : "replaced", confirmations };
}
