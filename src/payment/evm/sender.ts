/**
 * Sends transactions of one account, one after another, and replaces one that the chain does not take up.
 *
 * An account's transactions are numbered: two of one number are one too many, and one that is stuck holds up all that
 * come after it. What is stuck is replaced by the next that is sent, at a higher fee; whoever wanted the other finds
 * that it did not happen, and sends it again.
 * Source: EIP-1559; reference/payment.md §7.14.
 * @module
 */

import { ethereumAddress } from "../../arweave/signers/ethereum.ts";
import { type Trouble, trouble } from "../../chain/http.ts";
import type { Clock } from "../../lib/clock.ts";
import { isJsonObject, type JsonValue } from "../../lib/json.ts";
import { createTurns } from "../../lib/queue.ts";
import { secp256k1 } from "../../lib/secp256k1.ts";
import type { UserAddress } from "../addresses.ts";
import type { Asking } from "./asking.ts";
import { isRevert } from "./authorization-chain.ts";
import type { Asked } from "./json-rpc.ts";
import { signTransaction } from "./transaction.ts";
import { readQuantity } from "./values.ts";
import { writeHexBytes } from "./words.ts";

/** A call of a contract. */
export type ContractCall = Readonly<{ to: UserAddress; data: Uint8Array }>;

/** What came of sending. */
export type SendOutcome =
  /** A server has it; whether it is carried out, the chain will tell. */
  | Readonly<{ kind: "sent"; transaction: string }>
  /** The contract would refuse it; nothing was sent. */
  | Readonly<{ kind: "reverts"; reason: string }>
  /** Nothing was sent. */
  | Trouble
  /** It may have been sent. */
  | Readonly<{ kind: "unknown"; transaction: string; reason: string }>;

/** Sends from one account. */
export type EvmSender = Readonly<{
  /** The account, which pays for the gas. */
  address: UserAddress;
  /**
   * Sends a call.
   * @param onSending - Waited for before the transaction leaves; when it rejects, it does not.
   */
  send: (
    call: ContractCall,
    onSending: (transaction: string) => Promise<void>,
    signal: AbortSignal,
  ) => Promise<SendOutcome>;
}>;

/** What it is made of. */
export type EvmSenderOptions = Readonly<{
  asking: Asking;
  chainId: bigint;
  /** 32 bytes in [1, n). */
  privateKey: Uint8Array;
  clock: Clock;
}>;

/** A transaction that no block has taken up for so long is stuck. Milliseconds. */
const stuckMs = 60_000;

/** Senders that may wait for their turn. */
const waitingMax = 1_000;

/** The number and the fee of a transaction that was sent, and when. Unix milliseconds. */
type Sent = Readonly<{ at: number; feeMax: bigint; tipMax: bigint }>;

type Fees = Readonly<{ feeMax: bigint; tipMax: bigint }>;

type Draft = Readonly<{ call: ContractCall; gasMax: bigint; fees: Fees }>;

type Numbered = Fees & Readonly<{ nonce: bigint }>;

/** Opens the sending. Its address is that of the key. */
export function createEvmSender(options: EvmSenderOptions): EvmSender {
  const { asking, chainId, privateKey, clock } = options;
  const address = addressOfKey(privateKey);
  const turns = createTurns(1, waitingMax);
  const sent = new Map<bigint, Sent>();
  // What waits first may be another process's: then only that it stays so tells that it is stuck.
  let front: Readonly<{ nonce: bigint; since: number }> = { nonce: -1n, since: 0 };

  async function sendNumbered(
    draft: Draft,
    onSending: (transaction: string) => Promise<void>,
    signal: AbortSignal,
  ): Promise<SendOutcome> {
    const numbered = await numberFor(draft.fees, signal);
    if (numbered.kind === "trouble") return numbered;
    const { nonce, feeMax, tipMax } = numbered.value;
    const { gasMax, call } = draft;
    const signed = signTransaction({ chainId, nonce, feeMax, tipMax, gasMax, ...call }, privateKey);
    await onSending(signed.hash);
    sent.set(nonce, { at: clock(), feeMax, tipMax });
    const answer = await asking.call("eth_sendRawTransaction", [signed.raw], signal);
    if (answer.kind === "ok" || isKnown(answer)) return { kind: "sent", transaction: signed.hash };
    const reason = answer.kind === "error" ? answer.message : answer.detail;
    return { kind: "unknown", transaction: signed.hash, reason };
  }

  /** Takes the number after the last, or that of one that is stuck, at a fee for which servers replace it. */
  async function numberFor(fees: Fees, signal: AbortSignal): Promise<Asked<Numbered>> {
    const [mined, known] = await Promise.all([
      asking.ask("eth_getTransactionCount", [address, "latest"], readQuantity, signal),
      asking.ask("eth_getTransactionCount", [address, "pending"], readQuantity, signal),
    ]);
    if (mined.kind === "trouble") return mined;
    if (known.kind === "trouble") return known;
    for (const nonce of sent.keys()) if (nonce < mined.value) sent.delete(nonce);
    const first = sent.get(mined.value);
    const isWaiting = first !== undefined || known.value > mined.value;
    if (!isWaiting) return { kind: "ok", value: { ...fees, nonce: mined.value } };
    if (front.nonce !== mined.value) front = { nonce: mined.value, since: first?.at ?? clock() };
    if (clock() - (first?.at ?? front.since) > stuckMs)
      return { kind: "ok", value: { ...raised(fees, first), nonce: mined.value } };
    // Servers tell each other of what waits, and forget it: the next number is after all that either knows.
    const last = [...sent.keys()].reduce(
      (after, nonce) => (nonce >= after ? nonce + 1n : after),
      known.value,
    );
    return { kind: "ok", value: { ...fees, nonce: last } };
  }

  return {
    address,
    send: async (call, onSending, signal) => {
      const gas = await estimateGas(asking, address, call, signal);
      if (gas.kind !== "ok") return gas;
      const fees = await askFees(asking, signal);
      if (fees.kind === "trouble") return fees;
      // Blocks may have changed by then: what is not used is not paid for.
      const gasMax = (gas.value * 5n) / 4n;
      const turn = turns.take(signal);
      if (turn === undefined) return trouble("busy", `${waitingMax} transactions wait already`);
      const endTurn = await turn;
      try {
        return await sendNumbered({ call, gasMax, fees: fees.value }, onSending, signal);
      } finally {
        endTurn();
      }
    },
  };
}

/** The address of a private key. */
function addressOfKey(privateKey: Uint8Array): UserAddress {
  return ethereumAddress(secp256k1.publicKeyOf(privateKey)) as UserAddress;
}

type Estimate =
  | Readonly<{ kind: "ok"; value: bigint }>
  | Readonly<{ kind: "reverts"; reason: string }>
  | Trouble;

async function estimateGas(
  asking: Asking,
  from: UserAddress,
  { to, data }: ContractCall,
  signal: AbortSignal,
): Promise<Estimate> {
  const answer = await asking.call("eth_estimateGas", [{ from, to, data: writeHexBytes(data) }], signal);
  if (answer.kind === "trouble") return answer;
  if (answer.kind === "error")
    return isRevert(answer.code, answer.message)
      ? { kind: "reverts", reason: answer.message }
      : trouble("status", `eth_estimateGas: ${answer.code} ${answer.message}`);
  const value = readQuantity(answer.value);
  return value === undefined
    ? trouble("malformed", "eth_estimateGas: the answer cannot be read")
    : { kind: "ok", value };
}

/** A fee that stays enough while the chain's doubles, which takes it six full blocks at least. */
async function askFees(asking: Asking, signal: AbortSignal): Promise<Asked<Fees>> {
  const [base, tip] = await Promise.all([
    asking.ask("eth_getBlockByNumber", ["latest", false], readBaseFee, signal),
    asking.ask("eth_maxPriorityFeePerGas", [], readQuantity, signal),
  ]);
  if (base.kind === "trouble") return base;
  if (tip.kind === "trouble") return tip;
  return { kind: "ok", value: { feeMax: base.value * 2n + tip.value, tipMax: tip.value } };
}

/** Servers replace a transaction for a tenth more of both; one whose fee is not known is met with much more. */
function raised({ feeMax, tipMax }: Fees, before: Sent | undefined): Fees {
  if (before === undefined) return { feeMax: feeMax * 2n + 1n, tipMax: tipMax * 2n + 1n };
  const tip = larger(tipMax, (before.tipMax * 5n) / 4n + 1n);
  return { tipMax: tip, feeMax: larger(larger(feeMax, (before.feeMax * 5n) / 4n + 1n), tip) };
}

function larger(left: bigint, right: bigint): bigint {
  return left > right ? left : right;
}

function readBaseFee(value: JsonValue): bigint | undefined {
  return isJsonObject(value) ? readQuantity(value["baseFeePerGas"]) : undefined;
}

/** A server that has the transaction already says so as an error. */
function isKnown(answer: Readonly<{ kind: string; message?: string }>): boolean {
  return (
    answer.kind === "error" && /already known|known transaction|already imported/i.test(answer.message ?? "")
  );
}
