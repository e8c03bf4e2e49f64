/**
 * Payments by x402 as they come with uploads: settled for one upload, and known again when they are sent again.
 *
 * A payment can be read off the chain by anybody once it has settled. So it is bound to what it was sent for, and who
 * sends it again is told what came of it, and can do nothing else with it.
 * Source: docs/reference/upload.md#paying-with-the-request.
 * @module
 */
import { Failure } from "../../failures.ts";
import { uploadPurpose, type X402, type X402Payment, type X402Settled } from "../../payment/x402/x402.ts";

/** A payment that came with an upload. */
export type X402Sent = Readonly<{
  payment: X402Payment;
  /** Address of what is paid for, absolute. */
  resource: string;
}>;

/** What became of an upload; what is refused before its payment has settled is thrown. */
export type X402Outcome<Result> =
  /** `settled` is undefined where nothing was asked for, or the item was there already. */
  | Readonly<{ kind: "done"; response: Result; settled: X402Settled | undefined }>
  /** The payment has settled all the same: the payer has the credits. */
  | Readonly<{ kind: "refused"; error: unknown; settled: X402Settled }>;

/** An upload that a payment is for: the whole item's size, bytes, and a name that no other upload has. */
export type X402Upload = Readonly<{ size: number; id: string }>;

/** Whose credits pay once a payment has settled: its payer's own. */
export const listOrSigner = { paidBy: [], directive: "list-or-signer" } as const;

/** Settles the payment of an upload. @throws Failure as `X402.settle` does. */
export function settleUpload(
  x402: X402,
  { size, id }: X402Upload,
  { payment, resource }: X402Sent,
  signal: AbortSignal,
): Promise<X402Settled> {
  const want = { kind: "bytes", size: BigInt(size) } as const;
  return x402.settle({ payment, want, purpose: uploadPurpose(id), resource }, signal);
}

/** Names a payment: its nonce is used once by its payer. */
export function paymentName({ terms }: X402, { authorization }: X402Payment): string {
  return `x402:${terms.network.name}:${terms.network.asset.address}:${authorization.from}:${authorization.nonce}`;
}

/** What is said of a payment that has settled, and buys nothing more than it has. */
export function usedBefore(): Failure {
  return new Failure("settlement_failed", {
    reason: "the payment was used for another upload, or credited to its payer",
  });
}
