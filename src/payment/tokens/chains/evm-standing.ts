/**
 * Whether a block of an EVM chain is still there.
 * @module
 */
import type { Fault } from "../../../lib/http-client.ts";
import type { EvmChain } from "../../evm/chain.ts";
import type { BlockRef, Standing } from "../sight.ts";
import { confirmationsOf } from "./evm-look.ts";

/** Asks what stands at a block's height. */
export async function standingOf(
  evm: EvmChain,
  { height, hash }: BlockRef,
  signal: AbortSignal,
): Promise<Standing | Fault> {
  const stored = await evm.blockHash(height, signal);
  if (stored.kind === "trouble") return stored;
  if (stored.value === undefined) return { kind: "unknown" };
  const latest = await evm.latest(signal);
  if (latest.kind === "trouble") return latest;
  const confirmations = confirmationsOf(height, latest.value);
  return { kind: stored.value === hash ? "stands" : "replaced", confirmations };
}
