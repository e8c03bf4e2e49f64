/**
 * The observation of a transaction that may pay us, in one form for every chain.
 * @module
 */
import type { Fault } from "../../lib/http-client.ts";
import { isJsonObject, readJson } from "../../lib/json.ts";
import { type AddressType, readAddress, type Token, type TypedAddress, type UserAddress } from "../addresses.ts";

/** The payment of one sender in one transaction. A transaction of several senders has one for each. */
export type TokenTransfer = Readonly<{
  sender: UserAddress;
  /** Smallest unit, 0 or more. */
  amount: bigint;
  /** Text with which the sender names another account; not checked. */
  destination: string | undefined;
}>;

/** The block of a transaction. */
export type BlockRef = Readonly<{ height: number; hash: string }>;

/** A transaction as it presents itself, for saying why it is rejected. */
export type Outline = Readonly<{
  /** The recipient that it names; "" for none. */
  target: string;
  /** The amount, smallest unit. */
  amount: bigint;
}>;

/** The observation of a transaction on its chain. */
export type Observation =
  | Readonly<{ kind: "absent" }>
  /** Known to nodes and in no block. Of some it shows only in the block what they pay: no `transfers`. */
  | Readonly<{ kind: "waiting"; transfers: readonly TokenTransfer[] | undefined; outline: Outline }>
  | MinedObservation;

/** The observation of a mined transaction. */
export type MinedObservation = Readonly<{
  kind: "mined";
  block: BlockRef;
  /** 1 for a transaction in the newest block. */
  confirmations: number;
  /** Whether the chain carried it out. */
  succeeded: boolean;
  /** Its payments to us, in the chain's order; at most `sendersMax`. */
  transfers: readonly TokenTransfer[];
  outline: Outline;
}>;

/** Whether a block that held a payment is still the chain's. */
export type TransferStatus =
  | Readonly<{ kind: "unchanged"; confirmations: number }>
  /** Another block is at its height; the confirmations are those of the other block. */
  | Readonly<{ kind: "replaced"; confirmations: number }>
  /** Nothing is known of its height: the chain may be behind, or shorter. */
  | Readonly<{ kind: "unknown" }>;

/** The payments that one step of a scan found. */
export type Found = Readonly<{
  kind: "found";
  /** Canonical transaction ids, each once; the same one may be found again by a later step. */
  ids: readonly string[];
  /** The cursor of the next step, once these are stored. */
  cursor: string;
  /** Whether the next step has work at once. */
  hasMore: boolean;
}>;

/** One token on one chain. Calls reject with the signal's reason when aborted, with nothing else. */
export type TokenChain = Readonly<{
  token: Token;
  /** The format of its senders' addresses. */
  addressType: AddressType;
  /** The address of payments; it names the watch together with the token. */
  address: string;
  /** Confirmations at which a payment is credited, 1 or more. */
  confirmations: number;
  /** Confirmations at which a credited payment is no longer watched. */
  finalConfirmations: number;
  /** @param id - canonical. */
  look: (id: string, signal: AbortSignal) => Promise<Observation | Fault>;
  status: (block: BlockRef, signal: AbortSignal) => Promise<TransferStatus | Fault>;
  /**
   * Looks for payments that nobody reported, a bounded step at a time.
   * @param cursor - Where the last step ended; `undefined` begins at the chain's tip. One that cannot be read too.
   */
  scan: (cursor: string | undefined, signal: AbortSignal) => Promise<Found | Fault>;
  /** The height from which on payments are ours, as a cursor has it: when it was begun, nothing below was sold. */
  beginsAt: (cursor: string) => number | undefined;
}>;

/** Senders of one transaction that are credited; honest transactions have fewer. */
const sendersMax = 100;

/**
 * Sums up what each sender pays, in the order in which they first appear.
 *
 * @param destination - Whom the transaction names; it counts only where there is one sender.
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

// Senders may name an account that is credited in place of their own.
//
// The chain's own: a tag. EVM: text as calldata, after the arguments of an ERC-20 transfer. Solana: a memo.
// Source: docs/reference/payment.md#destinations.

/** The tag of a native payment. */
export const destinationTag = "Turbo-Credit-Destination-Address";

const destinationText = /^turboCreditDestinationAddress=([A-Za-z0-9_-]{1,64})\0*$/;

/** Longer texts are ignored. Bytes. */
const textSizeMax = 256;

const decoder = new TextDecoder("utf-8", { fatal: true });

/** The address that a memo names, if it names one. */
export function destinationInText(text: string): string | undefined {
  return destinationText.exec(text)?.[1];
}

/** The address that calldata names, if it is text that names one. */
export function destinationInBytes(bytes: Uint8Array): string | undefined {
  if (bytes.length === 0 || bytes.length > textSizeMax) return undefined;
  try {
    return destinationInText(decoder.decode(bytes));
  } catch {
    return undefined; // Calldata need not be text.
  }
}

/** The account to credit: the one that is named, where that is an address, else the sender's. */
export function creditedAccount(
  { sender, destination }: TokenTransfer,
  senderType: TypedAddress["type"],
): TypedAddress {
  const named = destination === undefined ? undefined : readAddress(destination);
  return named ?? { address: sender, type: senderType };
}

// The height at which the scan for payments began, in the cursors of every chain.

/** The height below which no payment is ours. @returns `undefined` when nothing has begun. */
export function beginningOf(cursor: string): number | undefined {
  const mark = readJson(cursor);
  const from = isJsonObject(mark) ? mark["from"] : undefined;
  return typeof from === "number" ? from : undefined;
}
