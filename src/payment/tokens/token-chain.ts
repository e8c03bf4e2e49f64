/**
 * The interface of a token on a chain: observations of transactions, scans, and named destinations.
 * @module
 */
import type { Fault } from "../../lib/http-client.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, readJson } from "../../lib/json.ts";
import { type AddressType, readAddress, type Token, type TypedAddress, type UserAddress } from "../addresses.ts";

/** The payment of one sender in one transaction. A transaction of several senders has one for each. */
export type TokenTransfer = Readonly<{
  sender: UserAddress;
  /** Smallest unit, 0 or more. */
  amount: bigint;
  /** The destination account that the sender names; not validated. */
  destination: string | undefined;
}>;

/** The block of a transaction. */
export type BlockRef = Readonly<{ height: number; hash: string }>;

/** The outline of a transaction, for the reason of a rejection. */
export type Outline = Readonly<{
  /** The recipient; "" for none. */
  target: string;
  /** The amount, smallest unit. */
  amount: bigint;
}>;

/** The observation of a transaction on its chain. */
export type Observation =
  | Readonly<{ kind: "absent" }>
  /** Known to nodes and in no block. `transfers` is absent when only the block will show them. */
  | Readonly<{ kind: "waiting"; transfers: readonly TokenTransfer[] | undefined; outline: Outline }>
  | MinedObservation;

/** The observation of a mined transaction. */
export type MinedObservation = Readonly<{
  kind: "mined";
  block: BlockRef;
  /** 1 for a transaction in the newest block. */
  confirmations: number;
  /** Whether the transaction succeeded. */
  succeeded: boolean;
  /** Its payments to the watched address, in the chain's order; at most `sendersMax`. */
  transfers: readonly TokenTransfer[];
  outline: Outline;
}>;

/** Whether the block of a payment is still on the chain. */
export type TransferStatus =
  | Readonly<{ kind: "unchanged"; confirmations: number }>
  /** Another block is at its height; the confirmations are those of the other block. */
  | Readonly<{ kind: "replaced"; confirmations: number }>
  /** The height is unknown: the server may be behind, or the chain shorter. */
  | Readonly<{ kind: "unknown" }>;

/** The payments that one step of a scan found. */
export type Found = Readonly<{
  kind: "found";
  /** Canonical transaction ids, each once; a later step may find one again. */
  ids: readonly string[];
  /** The cursor of the next step, once these are stored. */
  cursor: string;
  /** Whether the next step has more work already. */
  hasMore: boolean;
}>;

/** One token on one chain. Calls reject with the signal's reason when aborted, with nothing else. */
export type TokenChain = Readonly<{
  token: Token;
  /** The format of its senders' addresses. */
  addressType: AddressType;
  /** The address of payments; the watch is identified by the token and the address. */
  address: string;
  /** Confirmations at which a payment is credited, 1 or more. */
  confirmations: number;
  /** Confirmations at which a credited payment is no longer watched. */
  finalConfirmations: number;
  /** @param id - canonical. */
  look: (id: string, signal: AbortSignal) => Promise<Observation | Fault>;
  status: (block: BlockRef, signal: AbortSignal) => Promise<TransferStatus | Fault>;
  /**
   * Scans for unreported payments, a bounded step at a time.
   * @param cursor - The end of the last step. Without a valid cursor the scan begins at the chain's tip.
   */
  scan: (cursor: string | undefined, signal: AbortSignal) => Promise<Found | Fault>;
  /** The height at which the scan of a cursor began: earlier payments are not credited. */
  beginsAt: (cursor: string) => number | undefined;
}>;

/** Credited senders of one transaction; ordinary transactions have fewer. */
const sendersMax = 100;

/**
 * Sums up what each sender pays, in the order in which they first appear.
 *
 * @param destination - The named destination; it is used only for a single sender.
 */
export function bySender(
  moves: readonly Readonly<{ sender: UserAddress; amount: bigint }>[],
  destination: string | undefined,
): readonly TokenTransfer[] {
  const amounts = new Map<UserAddress, bigint>();
  for (const { sender, amount } of moves) amounts.set(sender, (amounts.get(sender) ?? 0n) + amount);
  const named = amounts.size === 1 ? destination : undefined;
  return [...amounts].slice(0, sendersMax).map(([sender, amount]) => ({
    sender,
    amount,
    destination: named,
  }));
}

/**
 * The tag by which the sender of a native payment names another account to credit.
 *
 * EVM: text as calldata, after the arguments of an ERC-20 transfer. Solana and KYVE: a memo.
 * Source: docs/reference/payment.md#destinations.
 */
export const destinationTag = "Turbo-Credit-Destination-Address";

const destinationText = /^turboCreditDestinationAddress=([A-Za-z0-9_-]{1,64})\0*$/;

/** Longer texts are ignored. Bytes. */
const textSizeMax = 256;

const decoder = new TextDecoder("utf-8", { fatal: true });

/** The address in a memo, if any. */
export function destinationInText(text: string): string | undefined {
  return destinationText.exec(text)?.[1];
}

/** The address in calldata, if the calldata is text with an address. */
export function destinationInBytes(bytes: Uint8Array): string | undefined {
  if (bytes.length === 0 || bytes.length > textSizeMax) return undefined;
  try {
    return destinationInText(decoder.decode(bytes));
  } catch {
    return undefined; // Calldata need not be text.
  }
}

/** The account to credit: the named account if it is a valid address, else the sender. */
export function creditedAccount(
  { sender, destination }: TokenTransfer,
  senderType: TypedAddress["type"],
): TypedAddress {
  const named = destination === undefined ? undefined : readAddress(destination);
  return named ?? { address: sender, type: senderType };
}

/**
 * The height at which a scan began, in the cursor of any chain; earlier payments are not credited.
 *
 * @returns `undefined` before the start.
 */
export function beginningOf(cursor: string): number | undefined {
  const mark = readJson(cursor);
  const from = isJsonObject(mark) ? mark["from"] : undefined;
  return typeof from === "number" ? from : undefined;
}

/** A member of a server's JSON response, as the next two functions; empty in place of another type. */
export function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

export function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return isJsonArray(value) ? value : [];
}

export function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

/** Confirmations for crediting a payment and for the end of watching it. */
export type Depths = Readonly<{ confirmations: number; finalConfirmations: number }>;
