/**
 * Payments on Solana, in its coin and in tokens, once they are final.
 *
 * A final transaction is never reverted, so a credited payment is not watched. Unreported payments are found by the
 * signatures of the receiving accounts, from the newest back to the last known signature.
 * Source: https://solana.com/docs/rpc; docs/reference/payment.md#sources-of-payments.
 * @module
 */
import { type Fault, fault } from "../../../lib/http-client.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, readJson, writeJson } from "../../../lib/json.ts";
import { readAddress, type Token, type UserAddress } from "../../addresses.ts";
import type { Asked, JsonRpc } from "../../evm/json-rpc.ts";
import {
  beginningOf,
  bySender,
  destinationInText,
  type Found,
  listOf,
  type MinedObservation,
  type Observation,
  type Outline,
  objectOf,
  type TokenChain,
  textOf,
} from "../token-chain.ts";

type SolanaChainOptions = Readonly<{
  token: Token;
  /** The owner's address. */
  address: string;
  /** The token's mint; undefined for the coin. */
  mint: string | undefined;
  rpc: JsonRpc;
  /** Hash of the first block of the expected cluster. */
  genesisHash: string;
}>;

/** Creates the chain of the coin or of a token. */
export function createSolanaChain(options: SolanaChainOptions): TokenChain {
  const { token, address, mint } = options;
  const server = createSolanaServer(options.rpc, options.genesisHash);
  const paid = (transaction: SolanaTransaction): SolanaPayment =>
    mint === undefined ? coinsPaid(transaction, address) : tokensPaid(transaction, address, mint);
  const receivers = async (signal: AbortSignal): Promise<Asked<readonly string[]>> =>
    mint === undefined ? { kind: "ok", value: [address] } : await server.tokenAccounts(address, mint, signal);
  return {
    token,
    addressType: "solana",
    address,
    confirmations: 1,
    finalConfirmations: 1,
    look: (id, signal) => lookAt(server, paid, id, signal),
    status: () => Promise.resolve({ kind: "unchanged", confirmations: 1 }),
    beginsAt: beginningOf,
    scan: async (cursor, signal) => {
      const accounts = await receivers(signal);
      if (accounts.kind === "fault") return accounts;
      return await sweepSignatures(server, accounts.value, cursor, signal);
    },
  };
}

async function lookAt(
  server: SolanaServer,
  paid: (transaction: SolanaTransaction) => SolanaPayment,
  id: string,
  signal: AbortSignal,
): Promise<Observation | Fault> {
  const final = await server.transaction(id, "finalized", signal);
  if (final.kind === "fault") return final;
  if (final.value !== undefined) {
    const { slot, succeeded } = final.value;
    const block = { height: slot, hash: "" };
    return { kind: "mined", block, confirmations: 1, succeeded, ...paid(final.value) };
  }
  const confirmed = await server.transaction(id, "confirmed", signal);
  if (confirmed.kind === "fault") return confirmed;
  return confirmed.value === undefined ? { kind: "absent" } : { kind: "waiting", ...paid(confirmed.value) };
}

// Calls to a Solana server, with parsed responses.
//
// No call succeeds before the server has proven its cluster: coins of a test cluster look the same.
// Source: https://solana.com/docs/rpc.

/** One transaction of an account. */
type Entry = Readonly<{ signature: string; slot: number; succeeded: boolean }>;

/** A server. Calls reject only with the signal's reason. */
type SolanaServer = Readonly<{
  slot: (signal: AbortSignal) => Promise<Asked<number>>;
  /**
   * The transaction with this first signature. A transaction has one signature for each signer, and a server may find
   * it by any of them: by another signature it is absent, because otherwise it would be several payments.
   */
  transaction: (
    id: string,
    commitment: "finalized" | "confirmed",
    signal: AbortSignal,
  ) => Promise<Asked<SolanaTransaction | undefined>>;
  tokenAccounts: (owner: string, mint: string, signal: AbortSignal) => Promise<Asked<readonly string[]>>;
  /** Newest first. */
  entries: (
    account: string,
    bounds: Readonly<{ limit: number; before?: string; until?: string }>,
    signal: AbortSignal,
  ) => Promise<Asked<readonly Entry[]>>;
}>;

/** Token accounts of one owner; one is usual. */
const tokenAccountsMax = 16;

const finalized = { commitment: "finalized" } as const;

/** @param genesisHash - Hash of the first block of the expected cluster. */
function createSolanaServer(rpc: JsonRpc, genesisHash: string): SolanaServer {
  let isProven = false;

  async function prove(signal: AbortSignal): Promise<Fault | undefined> {
    if (isProven) return undefined;
    const read = (value: JsonValue) => (typeof value === "string" ? value : undefined);
    const found = await rpc.ask({ method: "getGenesisHash", params: [], read }, signal);
    if (found.kind === "fault") return found;
    if (found.value !== genesisHash)
      return fault("wrong", `${rpc.host} follows the cluster ${found.value}, expected ${genesisHash}`);
    isProven = true;
    return undefined;
  }

  async function ask<Value>(
    method: string,
    params: readonly JsonValue[],
    read: (value: JsonValue) => Value | undefined,
    signal: AbortSignal,
  ): Promise<Asked<Value>> {
    return (await prove(signal)) ?? (await rpc.ask({ method, params, read }, signal));
  }

  return {
    slot: (signal) => ask("getSlot", [finalized], (value) => (typeof value === "number" ? value : undefined), signal),
    transaction: async (id, commitment, signal) => {
      const how = { commitment, encoding: "jsonParsed", maxSupportedTransactionVersion: 0 };
      const response = await ask("getTransaction", [id, how], readOrNone, signal);
      if (response.kind === "fault") return response;
      const { found } = response.value;
      return { kind: "ok", value: found?.id === id ? found : undefined };
    },
    tokenAccounts: (owner, mint, signal) => {
      const params = [owner, { mint }, { ...finalized, encoding: "jsonParsed" }];
      return ask("getTokenAccountsByOwner", params, readTokenAccounts, signal);
    },
    entries: (account, bounds, signal) =>
      ask("getSignaturesForAddress", [account, { ...finalized, ...bounds }], readEntries, signal),
  };
}

function readOrNone(value: JsonValue): Readonly<{ found: SolanaTransaction | undefined }> | undefined {
  if (value === null) return { found: undefined };
  const found = readSolanaTransaction(value);
  return found === undefined ? undefined : { found };
}

function readTokenAccounts(value: JsonValue): readonly string[] | undefined {
  const list = isJsonObject(value) ? value["value"] : undefined;
  if (!isJsonArray(list)) return undefined;
  const accounts = list.flatMap((each) => {
    const account = isJsonObject(each) ? each["pubkey"] : undefined;
    return typeof account === "string" ? account : [];
  });
  return accounts.slice(0, tokenAccountsMax);
}

function readEntries(value: JsonValue): readonly Entry[] | undefined {
  if (!isJsonArray(value)) return undefined;
  const entries = value.filter(isJsonObject).flatMap(({ signature, slot, err }) => {
    if (typeof signature !== "string" || typeof slot !== "number") return [];
    return { signature, slot, succeeded: err === null };
  });
  return entries.length === value.length ? entries : undefined;
}

// The scan of the signatures of accounts, from the newest back to the last known one, a page at a time.

/** Signatures of one page. */
const signaturesMax = 100;

/** Scans the next signatures of accounts. @param cursor - Without a cursor the scan begins after the newest ones. */
async function sweepSignatures(
  server: SolanaServer,
  accounts: readonly string[],
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<Found | Fault> {
  const sweep = readSweep(cursor);
  if (sweep === undefined) return await beginSweep(server, accounts, signal);
  return await goOn(server, accounts, sweep, signal);
}

/** The cursor of the scan through the signatures of one account. */
type AccountMark = Readonly<{
  /** The newest signature of a complete sweep. */
  done?: string;
  /** The newest and the oldest signature of the current sweep. */
  head?: string;
  before?: string;
}>;

type Sweep = Readonly<{
  /** Slots below are not scanned: they precede the first accepted payment. */
  from: number;
  accounts: ReadonlyMap<string, AccountMark>;
}>;

async function beginSweep(
  server: SolanaServer,
  accounts: readonly string[],
  signal: AbortSignal,
): Promise<Found | Fault> {
  const slot = await server.slot(signal);
  if (slot.kind === "fault") return slot;
  const marks = new Map<string, AccountMark>();
  for (const account of accounts) {
    const newest = await server.entries(account, { limit: 1 }, signal);
    if (newest.kind === "fault") return newest;
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
    if (entries.kind === "fault") return entries;
    const ours = entries.value.filter(({ slot }) => slot >= from);
    for (const { signature, succeeded } of ours) if (succeeded) ids.add(signature);
    const isWhole = entries.value.length < signaturesMax || ours.length < entries.value.length;
    marks.set(account, nextMark(mark, entries.value, isWhole));
  }
  const hasMore = [...marks.values()].some(({ before }) => before !== undefined);
  return { kind: "found", ids: [...ids], cursor: writeSweep({ from, accounts: marks }), hasMore };
}

/** @param isWhole - Whether the sweep has reached the known signatures. */
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

// A Solana transaction from `getTransaction` (`jsonParsed`): its transfers, their senders, and its memos.
//
// Amounts come from instructions, which name the sender, and are checked against the balances before and after. A
// transfer that a program makes without such an instruction is not a payment.
// Source: https://solana.com/docs/rpc/http/gettransaction; docs/reference/payment.md#sources-of-payments.

/** A parsed transaction. */
type SolanaTransaction = Readonly<{
  /** The first of its signatures, which is its id. */
  id: string;
  slot: number;
  succeeded: boolean;
  accounts: readonly string[];
  /** Lamports of each account, before and after. */
  before: readonly bigint[];
  after: readonly bigint[];
  tokensBefore: readonly TokenBalance[];
  tokensAfter: readonly TokenBalance[];
  /** Includes the instructions of called programs. */
  instructions: readonly Instruction[];
}>;

type TokenBalance = Readonly<{ account: string; mint: string; owner: string; amount: bigint }>;
type Instruction = Readonly<{ program: string; parsed: JsonValue }>;
type Move = Readonly<{ from: string; to: string; amount: bigint }>;

/** A payment of a transaction. */
type SolanaPayment = Pick<MinedObservation, "transfers" | "outline">;

/** More instructions than fit in a transaction, including calls between programs. */
const instructionsMax = 1_000;

/** Parses a transaction; `undefined` for an invalid one. */
function readSolanaTransaction(value: JsonValue): SolanaTransaction | undefined {
  const { slot, meta, transaction } = objectOf(value);
  const { message: messageValue, signatures } = objectOf(transaction);
  const message = objectOf(messageValue);
  const id = textOf(listOf(signatures)[0]);
  const { err, preBalances, postBalances, preTokenBalances, postTokenBalances, innerInstructions } = objectOf(meta);
  const accounts = listOf(message["accountKeys"]).map((key) => textOf(objectOf(key)["pubkey"]));
  const inner = listOf(innerInstructions).flatMap((each) => listOf(objectOf(each)["instructions"]));
  const instructions = [...listOf(message["instructions"]), ...inner];
  if (typeof slot !== "number" || !isJsonObject(meta) || err === undefined) return undefined;
  if (id === "" || accounts.length === 0) return undefined;
  if (instructions.length > instructionsMax) return undefined;
  return {
    id,
    slot,
    succeeded: err === null,
    accounts,
    before: listOf(preBalances).map(amountOf),
    after: listOf(postBalances).map(amountOf),
    tokensBefore: readTokenBalances(preTokenBalances, accounts),
    tokensAfter: readTokenBalances(postTokenBalances, accounts),
    instructions: instructions.map((each) => {
      const { program, parsed } = objectOf(each);
      return { program: textOf(program), parsed: parsed ?? null };
    }),
  };
}

/** The payment of a transaction to an address in the chain's coin. */
function coinsPaid(transaction: SolanaTransaction, address: string): SolanaPayment {
  const moves = transaction.instructions.flatMap((each) => coinMove(each) ?? []);
  const index = transaction.accounts.indexOf(address);
  const gained = (transaction.after[index] ?? 0n) - (transaction.before[index] ?? 0n);
  return payment(transaction, moves, new Set([address]), gained);
}

/** The payment of a transaction to an owner in a token. */
function tokensPaid(transaction: SolanaTransaction, owner: string, mint: string): SolanaPayment {
  const isOurs = (balance: TokenBalance) => balance.owner === owner && balance.mint === mint;
  const stored = [...transaction.tokensBefore, ...transaction.tokensAfter].filter(isOurs);
  const gained = sum(transaction.tokensAfter.filter(isOurs)) - sum(transaction.tokensBefore.filter(isOurs));
  const moves = transaction.instructions.flatMap((each) => tokenMove(each) ?? []);
  return payment(transaction, moves, new Set(stored.map(({ account }) => account)), gained);
}

function payment(
  transaction: SolanaTransaction,
  moves: readonly Move[],
  receivers: ReadonlySet<string>,
  gained: bigint,
): SolanaPayment {
  const [first] = moves;
  const received = moves.filter(({ to }) => receivers.has(to));
  const shown = received[0] ?? first;
  const outline: Outline = { target: shown?.to ?? "", amount: shown?.amount ?? 0n };
  // Only the instructions of a failed transaction show its intended transfers.
  const isTrue = !transaction.succeeded || sum(received) <= gained;
  const sent = received.flatMap(({ from, amount }) => {
    const sender = senderOf(from, transaction);
    return sender === undefined ? [] : { sender, amount };
  });
  return { transfers: isTrue ? bySender(sent, memoOf(transaction)) : [], outline };
}

/** Accounts of programs have no keys: the first signer of the transaction is credited in their place. */
function senderOf(from: string, { accounts }: SolanaTransaction): UserAddress | undefined {
  return (readAddress(from, "solana") ?? readAddress(accounts[0] ?? "", "solana"))?.address;
}

function memoOf({ instructions }: SolanaTransaction): string | undefined {
  const memos = instructions.filter(({ program }) => program === "spl-memo").map(({ parsed }) => textOf(parsed));
  return memos.map(destinationInText).find((destination) => destination !== undefined);
}

function coinMove({ program, parsed }: Instruction): Move | undefined {
  const { type, info } = objectOf(parsed);
  if (program !== "system" || (type !== "transfer" && type !== "transferWithSeed")) return undefined;
  const { source, destination, lamports } = objectOf(info);
  return { from: textOf(source), to: textOf(destination), amount: amountOf(lamports) };
}

function tokenMove({ program, parsed }: Instruction): Move | undefined {
  const { type, info } = objectOf(parsed);
  if (program !== "spl-token" || (type !== "transfer" && type !== "transferChecked")) return undefined;
  const { authority, multisigAuthority, destination, amount, tokenAmount } = objectOf(info);
  const moved = amount ?? objectOf(tokenAmount)["amount"];
  return { from: textOf(authority ?? multisigAuthority), to: textOf(destination), amount: amountOf(moved) };
}

function readTokenBalances(value: JsonValue | undefined, accounts: readonly string[]): TokenBalance[] {
  return listOf(value).map((each) => {
    const { accountIndex, mint, owner, uiTokenAmount } = objectOf(each);
    return {
      account: (typeof accountIndex === "number" ? accounts[accountIndex] : undefined) ?? "",
      mint: textOf(mint),
      owner: textOf(owner),
      amount: amountOf(objectOf(uiTokenAmount)["amount"]),
    };
  });
}

function sum(amounts: readonly Readonly<{ amount: bigint }>[]): bigint {
  return amounts.reduce((total, { amount }) => total + amount, 0n);
}

/** An integer, 0 or more, written as a number or as decimal text. */
function amountOf(value: JsonValue | undefined): bigint {
  if (typeof value === "bigint") return value < 0n ? 0n : value;
  if (typeof value === "number") return Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : 0n;
  return typeof value === "string" && /^\d{1,20}$/.test(value) ? BigInt(value) : 0n;
}
