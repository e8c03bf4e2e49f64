/**
 * Going through the signatures of accounts, from the newest back to the last one that was seen, a page at a time.
 * @module
 */
import type { Fault } from "../../../lib/http-client.ts";
import { isJsonObject, type JsonObject, readJson, writeJson } from "../../../lib/json.ts";
import type { Found } from "../sight.ts";
import type { Entry, SolanaServer } from "./solana-server.ts";

/** Signatures asked for at once. */
const signaturesMax = 100;

/** Goes a step further through the signatures of accounts. @param cursor - Unset begins after the newest ones. */
export async function sweepSignatures(
  server: SolanaServer,
  accounts: readonly string[],
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<Found | Fault> {
  const sweep = readSweep(cursor);
  if (sweep === undefined) return await beginSweep(server, accounts, signal);
  return await goOn(server, accounts, sweep, signal);
}

/** How far the signatures of one account were looked through. */
type AccountMark = Readonly<{
  /** The newest signature of a sweep that is complete. */
  done?: string;
  /** Of the sweep under way: the newest signature, and the oldest one so far. */
  head?: string;
  before?: string;
}>;

type Sweep = Readonly<{
  /** Slots below are none of ours: they were there before payments were taken. */
  from: number;
  accounts: ReadonlyMap<string, AccountMark>;
}>;

async function beginSweep(
  server: SolanaServer,
  accounts: readonly string[],
  signal: AbortSignal,
): Promise<Found | Fault> {
  const slot = await server.slot(signal);
  if (slot.kind === "trouble") return slot;
  const marks = new Map<string, AccountMark>();
  for (const account of accounts) {
    const newest = await server.entries(account, { limit: 1 }, signal);
    if (newest.kind === "trouble") return newest;
    const [entry] = newest.value;
    marks.set(account, entry === undefined ? {} : { done: entry.signature });
  }
  return {
    kind: "found",
    ids: [],
    cursor: writeSweep({ from: slot.value + 1, accounts: marks }),
    hasMore: false,
  };
}

async function goOn(
  server: SolanaServer,
  accounts: readonly string[],
  { from, accounts: old }: Sweep,
  signal: AbortSignal,
): Promise<Found | Fault> {
  const ids = new Set<string>();
  const marks = new Map<string, AccountMark>();
  for (const account of accounts) {
    const mark = old.get(account) ?? {};
    const { done: until, before } = mark;
    const bounds = { limit: signaturesMax, ...(before && { before }), ...(until && { until }) };
    const entries = await server.entries(account, bounds, signal);
    if (entries.kind === "trouble") return entries;
    const ours = entries.value.filter(({ slot }) => slot >= from);
    for (const { signature, succeeded } of ours) if (succeeded) ids.add(signature);
    const isWhole = entries.value.length < signaturesMax || ours.length < entries.value.length;
    marks.set(account, nextMark(mark, entries.value, isWhole));
  }
  const hasMore = [...marks.values()].some(({ before }) => before !== undefined);
  return { kind: "found", ids: [...ids], cursor: writeSweep({ from, accounts: marks }), hasMore };
}

/** @param isWhole - Whether the sweep has come to what was seen before. */
function nextMark(mark: AccountMark, entries: readonly Entry[], isWhole: boolean): AccountMark {
  const newest = mark.head ?? entries[0]?.signature ?? mark.done;
  if (newest === undefined) return {};
  if (isWhole) return { done: newest };
  const oldest = entries.at(-1)?.signature;
  return { ...mark, head: newest, ...(oldest && { before: oldest }) };
}

function writeSweep({ from, accounts }: Sweep): string {
  return writeJson({ from, accounts: Object.fromEntries(accounts) });
}

function readSweep(cursor: string | undefined): Sweep | undefined {
  const sweep = cursor === undefined ? undefined : readJson(cursor);
  if (!isJsonObject(sweep) || typeof sweep["from"] !== "number" || !isJsonObject(sweep["accounts"])) return undefined;
  const accounts = new Map<string, AccountMark>();
  for (const [account, mark] of Object.entries(sweep["accounts"]))
    if (isJsonObject(mark)) accounts.set(account, readAccountMark(mark));
  return { from: sweep["from"], accounts };
}

function readAccountMark({ done, head, before }: JsonObject): AccountMark {
  return {
    ...(typeof done === "string" && { done }),
    ...(typeof head === "string" && { head }),
    ...(typeof before === "string" && { before }),
  };
}
