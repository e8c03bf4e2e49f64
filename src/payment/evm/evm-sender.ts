/**
 * Sends transactions of one account, one after another.
 *
 * An unmined transaction is replaced by the next one; the caller of the replaced transaction finds it unmined and
 * sends it again.
 * Source: EIP-1559; docs/reference/payment.md#x402.
 * @module
 */
import { keccak_256 as keccak256 } from "@noble/hashes/sha3.js";
import { ethereumAddress } from "../../arweave/signers/ethereum.ts";
import type { Clock } from "../../lib/clock.ts";
import { type Fault, fault } from "../../lib/http-client.ts";
import { isJsonObject, type JsonValue } from "../../lib/json.ts";
import { secp256k1 } from "../../lib/secp256k1.ts";
import { createSemaphore } from "../../lib/semaphore.ts";
import type { UserAddress } from "../addresses.ts";
import { isRevert } from "./authorization-chain.ts";
import type { EvmClient } from "./evm-chain.ts";
import { joinBytes, readQuantity, writeHexBytes } from "./evm-values.ts";
import type { Asked } from "./json-rpc.ts";

/** A call of a contract. */
type ContractCall = Readonly<{
  to: UserAddress;
  data: Uint8Array;
  /** Gas limit. */
  gasMax?: bigint;
}>;

/** The outcome of sending. */
type SendOutcome =
  /** A server accepted it; the chain shows its success. */
  | Readonly<{ kind: "sent"; transaction: string }>
  /** Possibly sent. */
  | Readonly<{ kind: "unknown"; transaction: string; reason: string }>
  /** Not sent: the contract would reject it. */
  | Readonly<{ kind: "reverts"; reason: string }>
  /** Not sent: `onSending` returned false. */
  | Readonly<{ kind: "withheld" }>
  /** Not sent. */
  | Fault;

/** Awaited before a transaction is sent; when it returns false or rejects, the transaction is not sent. */
type OnSending = (transaction: string) => Promise<boolean>;

/** Sends from one account. */
export type EvmSender = Readonly<{
  /** The account that pays for the gas. */
  address: UserAddress;
  /** Sends a call. Rejects with the error of `onSending`, or the signal's reason. */
  send: (call: ContractCall, onSending: OnSending, signal: AbortSignal) => Promise<SendOutcome>;
}>;

type EvmSenderOptions = Readonly<{
  client: EvmClient;
  chainId: bigint;
  /** 32 bytes in [1, n). */
  privateKey: Uint8Array;
  /** Cost limit of a transaction, wei, while the fee of blocks at most doubles; unlimited by default. */
  costMax?: bigint | undefined;
  clock: Clock;
}>;

/** Calls in the queue. */
const waitingMax = 1_000;

/** A transaction without its nonce. */
type Draft = Readonly<{ call: ContractCall; gasMax: bigint; fees: Fees }>;

/** Creates a sender for the key's account. */
export function createEvmSender(options: EvmSenderOptions): EvmSender {
  const { client, chainId, privateKey, costMax, clock } = options;
  const address = ethereumAddress(secp256k1.publicKeyOf(privateKey)) as UserAddress;
  const numbering = createNumbering(clock);
  const semaphore = createSemaphore(1, waitingMax);

  async function sendInOrder(draft: Draft, onSending: OnSending, signal: AbortSignal): Promise<SendOutcome> {
    const counts = await askCounts(client, address, signal);
    if (counts.kind === "fault") return counts;
    const numbered = numbering.next(draft.fees, counts.value);
    const { call, gasMax } = draft;
    const cost = gasMax * numbered.feeMax;
    if (costMax !== undefined && cost > costMax)
      return fault("busy", `gas costs up to ${cost} wei, above the limit of ${costMax}`);
    const { raw, hash } = signTransaction({ chainId, ...numbered, ...call, gasMax }, privateKey);
    if (!(await onSending(hash))) return { kind: "withheld" };
    numbering.sent(numbered);
    const response = await client.call("eth_sendRawTransaction", [raw], signal);
    if (response.kind === "ok") return { kind: "sent", transaction: hash };
    const reason = response.kind === "error" ? response.message : response.detail;
    return isKnown(reason) ? { kind: "sent", transaction: hash } : { kind: "unknown", transaction: hash, reason };
  }

  return {
    address,
    send: async (call, onSending, signal) => {
      const gas = await estimateGas(client, address, call, signal);
      if (gas.kind !== "ok") return gas;
      if (call.gasMax !== undefined && gas.value > call.gasMax)
        return { kind: "reverts", reason: `the call needs ${gas.value} gas, above the limit of ${call.gasMax}` };
      const fees = await askFees(client, signal);
      if (fees.kind === "fault") return fees;
      // Earlier calls of a block may raise the gas that it needs; unused gas is not paid for.
      const gasMax = (gas.value * 5n) / 4n;
      const waiting = semaphore.take(signal);
      if (waiting === undefined) return fault("busy", `the queue of ${waitingMax} transactions is full`);
      const release = await waiting;
      try {
        return await sendInOrder({ call, gasMax, fees: fees.value }, onSending, signal);
      } finally {
        release();
      }
    },
  };
}

type Estimate = Readonly<{ kind: "ok"; value: bigint }> | Readonly<{ kind: "reverts"; reason: string }> | Fault;

async function estimateGas(
  client: EvmClient,
  from: UserAddress,
  { to, data }: ContractCall,
  signal: AbortSignal,
): Promise<Estimate> {
  const response = await client.call("eth_estimateGas", [{ from, to, data: writeHexBytes(data) }], signal);
  if (response.kind === "fault") return response;
  if (response.kind === "error")
    return isRevert(response.code, response.message)
      ? { kind: "reverts", reason: response.message }
      : fault("status", `eth_estimateGas: ${response.code} ${response.message}`);
  const value = readQuantity(response.value);
  return value === undefined ? fault("malformed", "eth_estimateGas: invalid response") : { kind: "ok", value };
}

/** A fee that suffices while the chain's fee doubles, which takes at least six full blocks. */
async function askFees(client: EvmClient, signal: AbortSignal): Promise<Asked<Fees>> {
  const [base, tip] = await Promise.all([
    client.ask("eth_getBlockByNumber", ["latest", false], readBaseFee, signal),
    client.ask("eth_maxPriorityFeePerGas", [], readQuantity, signal),
  ]);
  if (base.kind === "fault") return base;
  if (tip.kind === "fault") return tip;
  return { kind: "ok", value: { feeMax: base.value * 2n + tip.value, tipMax: tip.value } };
}

async function askCounts(client: EvmClient, address: UserAddress, signal: AbortSignal): Promise<Asked<Counts>> {
  const [mined, known] = await Promise.all([
    client.ask("eth_getTransactionCount", [address, "latest"], readQuantity, signal),
    client.ask("eth_getTransactionCount", [address, "pending"], readQuantity, signal),
  ]);
  if (mined.kind === "fault") return mined;
  if (known.kind === "fault") return known;
  return { kind: "ok", value: { mined: mined.value, known: known.value } };
}

function readBaseFee(value: JsonValue): bigint | undefined {
  return isJsonObject(value) ? readQuantity(value["baseFeePerGas"]) : undefined;
}

/** A server with the transaction reports an error. */
function isKnown(reason: string): boolean {
  return /already known|known transaction|already imported/i.test(reason);
}

// The nonce and the fee of the next transaction of an account.
//
// Nonces are consecutive, so one unmined transaction delays all later ones. The next transaction replaces it, at a
// higher fee.

/** Wei for a unit of gas. */
type Fees = Readonly<{
  /** Highest price, including the tip. */
  feeMax: bigint;
  /** The largest tip for the block's producer. */
  tipMax: bigint;
}>;

/** A nonce, and the fees of its transaction. */
type Numbered = Fees & Readonly<{ nonce: bigint }>;

/** The number of an account's transactions at a server. */
type Counts = Readonly<{
  /** In blocks. */
  mined: bigint;
  /** Including pending ones. */
  known: bigint;
}>;

/** Nonces for one account, one at a time. */
export type Numbering = Readonly<{
  /** The next nonce, or the nonce of a stuck transaction with fees for which servers replace it. */
  next: (fees: Fees, counts: Counts) => Numbered;
  /** Records a sent transaction. */
  sent: (numbered: Numbered) => void;
}>;

/** A transaction that stays unmined for this time is stuck. Milliseconds. */
export const stuckMs = 60_000;

type Sent = Fees & Readonly<{ at: number }>;

export function createNumbering(clock: Clock): Numbering {
  const waiting = new Map<bigint, Sent>();
  // The first pending transaction may be another process's: it counts as stuck when it stays pending.
  let front: Readonly<{ nonce: bigint; since: number }> | undefined;

  function waitingSince(mined: bigint): number {
    const own = waiting.get(mined);
    if (own !== undefined) return own.at;
    if (front?.nonce !== mined) front = { nonce: mined, since: clock() };
    return front.since;
  }

  return {
    next: (fees, { mined, known }) => {
      for (const nonce of waiting.keys()) if (nonce < mined) waiting.delete(nonce);
      const first = waiting.get(mined);
      if (first === undefined && known <= mined) return { ...fees, nonce: mined };
      if (clock() - waitingSince(mined) > stuckMs) return { ...raised(fees, first), nonce: mined };
      // Servers drop pending transactions and differ: the nonce is above every known one.
      const after = [...waiting.keys()].map((nonce) => nonce + 1n);
      return { ...fees, nonce: after.reduce(larger, known) };
    },
    sent: ({ nonce, feeMax, tipMax }) => {
      waiting.set(nonce, { feeMax, tipMax, at: clock() });
    },
  };
}

/** Servers replace a transaction for a tenth more of both fees; unknown fees are replaced by twice today's. */
function raised({ feeMax, tipMax }: Fees, before: Fees | undefined): Fees {
  if (before === undefined) return { feeMax: feeMax * 2n + 1n, tipMax: tipMax * 2n + 1n };
  const tip = larger(tipMax, (before.tipMax * 5n) / 4n + 1n);
  const fee = larger(feeMax, (before.feeMax * 5n) / 4n + 1n);
  return { tipMax: tip, feeMax: larger(fee, tip) };
}

function larger(left: bigint, right: bigint): bigint {
  return left > right ? left : right;
}

// Signed transactions: type 2, with a fee that follows the chain's.
// Source: EIP-1559, EIP-2718.

/** A transaction that calls a contract. */
type UnsignedTransaction = Readonly<{
  chainId: bigint;
  /** The number of earlier transactions of the sender. */
  nonce: bigint;
  /** Highest price of a unit of gas, including the tip. Wei. */
  feeMax: bigint;
  /** The largest tip for the block's producer. Wei. */
  tipMax: bigint;
  /** Gas limit. */
  gasMax: bigint;
  to: UserAddress;
  data: Uint8Array;
}>;

/** A transaction to send. */
type SignedTransaction = Readonly<{
  /** `0x` and hex: for `eth_sendRawTransaction`. */
  raw: string;
  /** Its id on the chain, known before it is sent. */
  hash: string;
}>;

const typeByte = Uint8Array.of(2);

/** Signs a transaction deterministically. @param privateKey - 32 bytes in [1, n). */
export function signTransaction(transaction: UnsignedTransaction, privateKey: Uint8Array): SignedTransaction {
  const { chainId, nonce, feeMax, tipMax, gasMax, to, data } = transaction;
  const fields: RlpValue[] = [
    ...[chainId, nonce, tipMax, feeMax, gasMax].map(rlpNumber),
    Uint8Array.fromHex(to.slice(2)),
    rlpNumber(0n), // no coins
    data,
    [],
  ];
  const hash = keccak256(joinBytes([typeByte, writeRlp(fields)]));
  const { signature, recovery } = secp256k1.sign(hash, privateKey);
  const parts = [BigInt(recovery), numberOf(signature.subarray(0, 32)), numberOf(signature.subarray(32, 64))];
  const whole = joinBytes([typeByte, writeRlp([...fields, ...parts.map(rlpNumber)])]);
  return { raw: writeHexBytes(whole), hash: writeHexBytes(keccak256(whole)) };
}

function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${bytes.toHex()}`);
}

// RLP, the encoding of transactions: byte strings, and lists of them.
// Source: the Ethereum yellow paper, appendix B.

/** A byte string, or a list. */
export type RlpValue = Uint8Array | readonly RlpValue[];

/** A string shorter than this has its size in its first byte. */
const shortSizeMax = 55;

export function writeRlp(value: RlpValue): Uint8Array {
  if (value instanceof Uint8Array) {
    const [first = 0x80] = value;
    return value.length === 1 && first < 0x80 ? value : joinBytes([headOf(0x80, value.length), value]);
  }
  const body = joinBytes(value.map(writeRlp));
  return joinBytes([headOf(0xc0, body.length), body]);
}

/** An integer as a byte string: big-endian, without leading zeros; 0 is empty. */
export function rlpNumber(value: bigint): Uint8Array {
  if (value === 0n) return new Uint8Array();
  const digits = value.toString(16);
  return Uint8Array.fromHex(digits.padStart(digits.length + (digits.length % 2), "0"));
}

function headOf(base: number, size: number): Uint8Array {
  if (size <= shortSizeMax) return Uint8Array.of(base + size);
  const sizeBytes = rlpNumber(BigInt(size));
  return joinBytes([Uint8Array.of(base + shortSizeMax + sizeBytes.length), sizeBytes]);
}
