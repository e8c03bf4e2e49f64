/**
 * Following a payment to its end: read the chain, send the authorization, credit the payer.
 *
 * A follower decides by the ledger's row within the transaction that changes the row, so several may run at once: two
 * requests, the watch, another process. A facilitator's response is a hint; only the chain is trusted.
 * @module
 */
import { sleep } from "../../lib/stop.ts";
import type { AuthorizationChain, AuthorizationStatus } from "../evm/authorization-chain.ts";
import type { Asked } from "../evm/json-rpc.ts";
import {
  createStepWriter,
  rejectedStep,
  type StepWriterOptions,
  stepOf,
  type X402Stored,
} from "./x402-payment-store.ts";
import type { Settler } from "./x402-settlers.ts";

type FollowingOptions = StepWriterOptions &
  Readonly<{
    chain: Pick<AuthorizationChain, "look">;
    settle: Settler;
    /** Confirmations at which a block is final. */
    finalConfirmations: number;
    patience?: Patience;
  }>;

/** Waits for a sent payment. Milliseconds. */
export type Patience = Readonly<{
  /** After a confirmed sending. */
  sentMs: number;
  /** After an unknown outcome. */
  unknownMs: number;
  /** Between two requests to the chain. */
  pauseMs: number;
}>;

/**
 * Follows a payment that the caller has leased (`takeX402`) or just stored: reads the chain, takes the next step, and
 * sets the time of the next check.
 *
 * @returns Why no step was possible; `undefined` after a step or while the payment waits.
 * @throws Failure of the ledger; the signal's reason.
 */
export type FollowX402 = (payment: X402Stored, signal: AbortSignal) => Promise<string | undefined>;

const patienceDefault: Patience = { sentMs: 12_000, unknownMs: 3_000, pauseMs: 250 };

export function createX402Following(options: FollowingOptions): FollowX402 {
  const { chain } = options;
  const { take, putOff, begin } = createStepWriter(options);
  const patience = options.patience ?? patienceDefault;

  const look = (
    { authorization, fromHeight }: X402Stored,
    transaction: string | undefined,
    signal: AbortSignal,
  ): Promise<Asked<AuthorizationStatus>> => chain.look(authorization, { transaction, fromHeight }, signal);

  const byChain = (status: AuthorizationStatus) => (stored: X402Stored) =>
    stepOf(stored, status, options.finalConfirmations);

  /** Its status on the chain, or the fault of the request: then the check is postponed. */
  async function statusOf(payment: X402Stored, signal: AbortSignal) {
    const status = await look(payment, payment.transaction, signal);
    if (status.kind === "ok") return status.value;
    await putOff(payment);
    return status.detail;
  }

  async function send(payment: X402Stored, signal: AbortSignal): Promise<string | undefined> {
    const carried = await options.settle(payment, (transaction) => begin(payment, transaction), signal);
    switch (carried.kind) {
      case "withheld":
        return undefined;
      case "untried":
        await putOff(payment);
        return carried.reason;
      case "rejected":
        return await rejected(payment, carried.reason, signal);
      case "sent":
        return await waitFor(payment, carried.transaction, patience.sentMs, signal);
      case "unknown":
        options.log.warn("outcome of an x402 payment unknown", { payment: payment.id, reason: carried.reason });
        return await waitFor(payment, carried.transaction, patience.unknownMs, signal);
    }
  }

  /** Records a rejection, unless the chain or an earlier attempt contradicts it. */
  async function rejected(payment: X402Stored, reason: string, signal: AbortSignal): Promise<string | undefined> {
    const status = await statusOf(payment, signal);
    if (typeof status === "string") return status;
    const decide = byChain(status);
    await take(payment, (stored) => rejectedStep(stored, decide(stored), reason, payment.attempts));
    return undefined;
  }

  async function waitFor(
    payment: X402Stored,
    transaction: string | undefined,
    ms: number,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const until = performance.now() + ms;
    for (;;) {
      const status = await look(payment, transaction, signal);
      if (status.kind === "ok" && status.value.kind !== "unused") {
        await take(payment, byChain(status.value));
        return undefined;
      }
      if (performance.now() >= until) {
        await putOff(payment, transaction);
        return status.kind === "fault" ? status.detail : undefined;
      }
      await sleep(patience.pauseMs, signal);
    }
  }

  return async (payment, signal) => {
    const status = await statusOf(payment, signal);
    if (typeof status === "string") return status;
    const step = await take(payment, byChain(status));
    return step.kind === "send" ? await send(payment, signal) : undefined;
  };
}
