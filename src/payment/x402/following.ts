/**
 * Following a payment to its end: asking the chain, carrying the authorization out, crediting the payer.
 *
 * Whoever follows decides by the ledger's row as it is in the transaction that changes it, so any number may: two
 * requests, the loop, another process. What a facilitator says is a hint; what the chain says counts.
 * @module
 */
import { sleep } from "../../lib/stop.ts";
import type { AuthorizationChain, AuthorizationStanding } from "../evm/authorization-chain.ts";
import type { Asked } from "../evm/json-rpc.ts";
import type { Settler } from "./settler.ts";
import { createStepWriter, type StepWriterOptions } from "./step-writer.ts";
import { refusedStep, stepOf } from "./steps.ts";
import type { X402Stored } from "./x402-payment-store.ts";

/** What following needs. */
export type FollowingOptions = StepWriterOptions &
  Readonly<{
    chain: Pick<AuthorizationChain, "look">;
    settle: Settler;
    /** From here on the chain never goes back. */
    finalConfirmations: number;
    patience?: Patience;
  }>;

/** How long a payment that is on its way is waited for. Milliseconds. */
export type Patience = Readonly<{
  /** When it is said to be sent. */
  sentMs: number;
  /** When nobody knows. */
  unknownMs: number;
  /** Between two questions to the chain. */
  pauseMs: number;
}>;

/**
 * Follows a payment that its caller has taken (`takeX402`) or just kept: asks the chain, does what is to be done, and
 * notes when it is to be looked at again.
 *
 * @returns Why it could not be brought on; `undefined` when it was, or has to wait.
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
  ): Promise<Asked<AuthorizationStanding>> => chain.look(authorization, { transaction, fromHeight }, signal);

  const byChain = (standing: AuthorizationStanding) => (stored: X402Stored) =>
    stepOf(stored, standing, options.finalConfirmations);

  /** Where it stands on the chain, or why that could not be asked: then it is put off. */
  async function standingOf(payment: X402Stored, signal: AbortSignal) {
    const standing = await look(payment, payment.transaction, signal);
    if (standing.kind === "ok") return standing.value;
    await putOff(payment);
    return standing.detail;
  }

  async function send(payment: X402Stored, signal: AbortSignal): Promise<string | undefined> {
    const carried = await options.settle(payment, (transaction) => begin(payment, transaction), signal);
    switch (carried.kind) {
      case "withheld":
        return undefined;
      case "untried":
        await putOff(payment);
        return carried.reason;
      case "refused":
        return await refused(payment, carried.reason, signal);
      case "sent":
        return await waitFor(payment, carried.transaction, patience.sentMs, signal);
      case "unknown":
        options.log.warn("it is not known whether a payment was carried out", {
          payment: payment.id,
          reason: carried.reason,
        });
        return await waitFor(payment, carried.transaction, patience.unknownMs, signal);
    }
  }

  /** A refusal counts unless the chain, or an attempt before, says otherwise. */
  async function refused(payment: X402Stored, reason: string, signal: AbortSignal): Promise<string | undefined> {
    const standing = await standingOf(payment, signal);
    if (typeof standing === "string") return standing;
    const decide = byChain(standing);
    await take(payment, (stored) => refusedStep(stored, decide(stored), reason, payment.attempts));
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
      const standing = await look(payment, transaction, signal);
      if (standing.kind === "ok" && standing.value.kind !== "unused") {
        await take(payment, byChain(standing.value));
        return undefined;
      }
      if (performance.now() >= until) {
        await putOff(payment, transaction);
        return standing.kind === "trouble" ? standing.detail : undefined;
      }
      await sleep(patience.pauseMs, signal);
    }
  }

  return async (payment, signal) => {
    const standing = await standingOf(payment, signal);
    if (typeof standing === "string") return standing;
    const step = await take(payment, byChain(standing));
    return step.kind === "send" ? await send(payment, signal) : undefined;
  };
}
