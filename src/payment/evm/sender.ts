/**
 * Sends transactions of one account, one after another.
 *
 * One that the chain does not take up is replaced by the next that is sent; whoever wanted it finds that it did not
 * happen, and sends it again.
 * Source: EIP-1559; docs/reference/payment.md#x402.
 * @module
 */
import { ethereumAddress } from "../../arweave/signers/ethereum.ts";
import type { Clock } from "../../lib/clock.ts";
import { type Fault, fault } from "../../lib/http-client.ts";
import { isJsonObject, type JsonValue } from "../../lib/json.ts";
import { secp256k1 } from "../../lib/secp256k1.ts";
import { createSemaphore } from "../../lib/semaphore.ts";
import type { UserAddress } from "../addresses.ts";
import type { Asking } from "./asking.ts";
import { isRevert } from "./authorization-chain.ts";
import type { Asked } from "./json-rpc.ts";
import { type Counts, createNumbering, type Fees } from "./numbering.ts";
import { signTransaction } from "./transaction.ts";
import { readQuantity } from "./values.ts";
import { writeHexBytes } from "./words.ts";

/** A call of a contract. */
export type ContractCall = Readonly<{
  to: UserAddress;
  data: Uint8Array;
  /** The most gas that it may need. */
  gasMax?: bigint;
}>;

/** What came of sending. */
export type SendOutcome =
  /** A server has it; whether it is carried out, the chain will tell. */
  | Readonly<{ kind: "sent"; transaction: string }>
  /** It may have been sent. */
  | Readonly<{ kind: "unknown"; transaction: string; reason: string }>
  /** The contract would refuse it; nothing was sent. */
  | Readonly<{ kind: "reverts"; reason: string }>
  /** `onSending` said no; nothing was sent. */
  | Readonly<{ kind: "withheld" }>
  /** Nothing was sent. */
  | Fault;

/** Is waited for before a transaction leaves; when it says no, or rejects, the transaction does not. */
export type OnSending = (transaction: string) => Promise<boolean>;

/** Sends from one account. */
export type EvmSender = Readonly<{
  /** The account, which pays for the gas. */
  address: UserAddress;
  /** Sends a call. Rejects with what `onSending` rejects with, or the signal's reason. */
  send: (call: ContractCall, onSending: OnSending, signal: AbortSignal) => Promise<SendOutcome>;
}>;

/** What it is made of. */
export type EvmSenderOptions = Readonly<{
  asking: Asking;
  chainId: bigint;
  /** 32 bytes in [1, n). */
  privateKey: Uint8Array;
  /** The most that a transaction may cost, wei, while the fee of blocks at most doubles; unset is no limit. */
  costMax?: bigint | undefined;
  clock: Clock;
}>;

/** Calls that may wait for their turn. */
const waitingMax = 1_000;

/** A transaction but for its number. */
type Draft = Readonly<{ call: ContractCall; gasMax: bigint; fees: Fees }>;

/** Creates the sending from the key's account. */
export function createEvmSender(options: EvmSenderOptions): EvmSender {
  const { asking, chainId, privateKey, costMax, clock } = options;
  const address = ethereumAddress(secp256k1.publicKeyOf(privateKey)) as UserAddress;
  const numbering = createNumbering(clock);
  const semaphore = createSemaphore(1, waitingMax);

  async function sendInOrder(draft: Draft, onSending: OnSending, signal: AbortSignal): Promise<SendOutcome> {
    const counts = await askCounts(asking, address, signal);
    if (counts.kind === "trouble") return counts;
    const numbered = numbering.next(draft.fees, counts.value);
    const { call, gasMax } = draft;
    const cost = gasMax * numbered.feeMax;
    if (costMax !== undefined && cost > costMax)
      return fault("busy", `gas is too dear: up to ${cost} wei, ${costMax} are allowed`);
    const { raw, hash } = signTransaction({ chainId, ...numbered, ...call, gasMax }, privateKey);
    if (!(await onSending(hash))) return { kind: "withheld" };
    numbering.sent(numbered);
    const response = await asking.call("eth_sendRawTransaction", [raw], signal);
    if (response.kind === "ok") return { kind: "sent", transaction: hash };
    const reason = response.kind === "error" ? response.message : response.detail;
    return isKnown(reason) ? { kind: "sent", transaction: hash } : { kind: "unknown", transaction: hash, reason };
  }

  return {
    address,
    send: async (call, onSending, signal) => {
      const gas = await estimateGas(asking, address, call, signal);
      if (gas.kind !== "ok") return gas;
      if (call.gasMax !== undefined && gas.value > call.gasMax)
        return { kind: "reverts", reason: `it needs ${gas.value} gas, at most ${call.gasMax} is paid for` };
      const fees = await askFees(asking, signal);
      if (fees.kind === "trouble") return fees;
      // Other calls may come before it in a block and make it dearer; what is not used is not paid for.
      const gasMax = (gas.value * 5n) / 4n;
      const turn = semaphore.take(signal);
      if (turn === undefined) return fault("busy", `${waitingMax} transactions wait already`);
      const release = await turn;
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
  asking: Asking,
  from: UserAddress,
  { to, data }: ContractCall,
  signal: AbortSignal,
): Promise<Estimate> {
  const response = await asking.call("eth_estimateGas", [{ from, to, data: writeHexBytes(data) }], signal);
  if (response.kind === "trouble") return response;
  if (response.kind === "error")
    return isRevert(response.code, response.message)
      ? { kind: "reverts", reason: response.message }
      : fault("status", `eth_estimateGas: ${response.code} ${response.message}`);
  const value = readQuantity(response.value);
  return value === undefined ? fault("malformed", "eth_estimateGas: the answer cannot be read") : { kind: "ok", value };
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

async function askCounts(asking: Asking, address: UserAddress, signal: AbortSignal): Promise<Asked<Counts>> {
  const [mined, known] = await Promise.all([
    asking.ask("eth_getTransactionCount", [address, "latest"], readQuantity, signal),
    asking.ask("eth_getTransactionCount", [address, "pending"], readQuantity, signal),
  ]);
  if (mined.kind === "trouble") return mined;
  if (known.kind === "trouble") return known;
  return { kind: "ok", value: { mined: mined.value, known: known.value } };
}

function readBaseFee(value: JsonValue): bigint | undefined {
  return isJsonObject(value) ? readQuantity(value["baseFeePerGas"]) : undefined;
}

/** A server that has the transaction already says so as an error. */
function isKnown(reason: string): boolean {
  return /already known|known transaction|already imported/i.test(reason);
}
