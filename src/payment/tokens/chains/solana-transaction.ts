/**
 * A Solana transaction as `getTransaction` gives it (`jsonParsed`): what it moved, by whom, and its memos.
 *
 * Amounts are taken from instructions, which name the sender, and held to the balances before and after, which are the
 * chain's own word: what a program moves in other ways is nobody's payment.
 * Source: https://solana.com/docs/rpc/http/gettransaction; docs/reference/payment.md#sources-of-payments.
 * @module
 */
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../../lib/json.ts";
import { readAddress, type UserAddress } from "../../addresses.ts";
import { destinationInText } from "../destinations.ts";
import { bySender, type MinedSight, type Outline } from "../sight.ts";

/** A transaction, read. */
export type SolanaTransaction = Readonly<{
  /** The first of its signatures: the only one that names it. */
  id: string;
  slot: number;
  succeeded: boolean;
  accounts: readonly string[];
  /** Lamports of each account, before and after. */
  before: readonly bigint[];
  after: readonly bigint[];
  tokensBefore: readonly TokenBalance[];
  tokensAfter: readonly TokenBalance[];
  /** Those of programs that were called included. */
  instructions: readonly Instruction[];
}>;

type TokenBalance = Readonly<{ account: string; mint: string; owner: string; amount: bigint }>;
type Instruction = Readonly<{ program: string; parsed: JsonValue }>;
type Move = Readonly<{ from: string; to: string; amount: bigint }>;

/** What a transaction pays. */
export type SolanaPayment = Pick<MinedSight, "transfers" | "outline">;

/** More instructions than fit a transaction, whose programs may call others. */
const instructionsMax = 1_000;

/** Reads a transaction; `undefined` when it cannot be read. */
export function readSolanaTransaction(value: JsonValue): SolanaTransaction | undefined {
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

/** What a transaction pays an address in the chain's coin. */
export function coinsPaid(transaction: SolanaTransaction, address: string): SolanaPayment {
  const moves = transaction.instructions.flatMap((each) => coinMove(each) ?? []);
  const index = transaction.accounts.indexOf(address);
  const gained = (transaction.after[index] ?? 0n) - (transaction.before[index] ?? 0n);
  return payment(transaction, moves, new Set([address]), gained);
}

/** What a transaction pays an owner in a token. */
export function tokensPaid(transaction: SolanaTransaction, owner: string, mint: string): SolanaPayment {
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
  // What a transaction that failed meant to move shows in its instructions alone.
  const isTrue = !transaction.succeeded || sum(received) <= gained;
  const sent = received.flatMap(({ from, amount }) => {
    const sender = senderOf(from, transaction);
    return sender === undefined ? [] : { sender, amount };
  });
  return { transfers: isTrue ? bySender(sent, memoOf(transaction)) : [], outline };
}

/** Accounts of programs hold no keys: whoever signed first for the transaction is credited in their place. */
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

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return isJsonArray(value) ? value : [];
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

/** A whole number, 0 or more, as the server writes it: an integer, or decimal text. */
function amountOf(value: JsonValue | undefined): bigint {
  if (typeof value === "bigint") return value < 0n ? 0n : value;
  if (typeof value === "number") return Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : 0n;
  return typeof value === "string" && /^\d{1,20}$/.test(value) ? BigInt(value) : 0n;
}
