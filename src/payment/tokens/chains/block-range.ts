/**
 * Which blocks of an EVM chain to look through next, and how far they have been.
 *
 * Only blocks that are confirmed are looked through, so that what is found can be credited. When the last of them was
 * replaced all the same, the mark goes back as far as blocks are ever replaced; finding a payment twice does nothing.
 * @module
 */
import { type Fault, fault } from "../../../lib/http-client.ts";
import { isJsonObject, readJson, writeJson } from "../../../lib/json.ts";
import type { EvmChain } from "../../evm/evm-chain.ts";
import type { Found } from "../token-chain.ts";

/** Blocks to look through, heights inclusive; `first` > `last`: none. */
type BlockRange = Readonly<{
  kind: "range";
  /** Blocks below are none of ours: they were there before payments were taken. */
  from: number;
  first: number;
  /** The newest confirmed block. */
  last: number;
}>;

/** Confirmations for crediting a payment and for the end of watching it. */
export type Depths = Readonly<{ confirmations: number; finalConfirmations: number }>;

type Mark = Readonly<{ from: number; height: number; hash: string }>;

/** Finds the next range. A cursor that is absent or cannot be read begins after the newest block. */
export async function nextRange(
  evm: EvmChain,
  { confirmations, finalConfirmations }: Depths,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<BlockRange | Found | Fault> {
  const latest = await evm.latest(signal);
  if (latest.kind === "fault") return latest;
  const last = latest.value - confirmations + 1;
  const mark = readMark(cursor);
  if (cursor === undefined || mark === undefined) {
    const from = latest.value + 1;
    return { kind: "range", from, first: from, last };
  }
  const { from, height } = mark;
  // The server is behind, or the chain has become shorter: either way there will be more.
  if (last < height) return { kind: "found", ids: [], cursor, hasMore: false };
  const stored = height < 0 ? noHash : await evm.blockHash(height, signal);
  if (stored.kind === "fault") return stored;
  const done = stored.value === mark.hash ? height : height - finalConfirmations;
  return { kind: "range", from, first: Math.max(done + 1, from), last };
}

/** Says what was found in blocks of a range. @param reached - The last block that was looked through. */
export async function foundUpTo(
  evm: EvmChain,
  range: BlockRange,
  reached: number,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<Found | Fault> {
  const hash = reached < 0 ? noHash : await evm.blockHash(reached, signal);
  if (hash.kind === "fault") return hash;
  if (hash.value === undefined) return fault("status", `there is no block ${reached} any more`);
  const mark: Mark = { from: range.from, height: reached, hash: hash.value };
  return { kind: "found", ids: [...new Set(ids)], cursor: writeJson(mark), hasMore: reached < range.last };
}

/** A chain that is younger than its confirmations has no block to begin at. */
const noHash = { kind: "ok", value: "" } as const;

function readMark(cursor: string | undefined): Mark | undefined {
  const mark = cursor === undefined ? undefined : readJson(cursor);
  if (!isJsonObject(mark)) return undefined;
  const { from, height, hash } = mark;
  return typeof from === "number" && typeof height === "number" && typeof hash === "string"
    ? { from, height, hash }
    : undefined;
}
