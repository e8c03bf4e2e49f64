/**
 * What a transfer that was just seen is credited with, or why it is not.
 *
 * The order of the checks and their texts are the peer's: quantity, sender, target, price.
 * Source: docs/reference/payment.md#reports; docs/reference/payment.md#prices-of-payments-in-tokens.
 * @module
 */
import { Failure } from "../../failures.ts";
import { amountMax } from "../../store/ledger/ledger-database.ts";
import type { PaymentPrice, Prices } from "../prices/prices.ts";
import { creditedAccount } from "./destinations.ts";
import type { Outline, TokenChain, TokenTransfer } from "./sight.ts";
import type { Offer } from "./token-payment-store.ts";

/** A transfer and its place among those of its transaction. */
export type PlacedTransfer = Readonly<{ part: number; transfer: TokenTransfer }>;

/** What can be credited, and why the first of the rest cannot. */
export type Offered = Readonly<{ offers: readonly Offer[]; refusal: Failure | undefined }>;

/** Prices transfers. @throws Failure `fiat_oracle_unavailable`. */
export type Offering = (
  chain: TokenChain,
  transactionId: string,
  transfers: readonly PlacedTransfer[],
  signal: AbortSignal,
) => Promise<Offered>;

/** Creates the pricing of transfers. @param parts.excluded - Senders that are refused, canonical. */
export function createOffering(
  parts: Readonly<{ prices: Pick<Prices, "token">; excluded: ReadonlySet<string> }>,
): Offering {
  async function offerFor(
    chain: TokenChain,
    transactionId: string,
    { part, transfer }: PlacedTransfer,
    signal: AbortSignal,
  ): Promise<Offer | Failure> {
    const { sender, amount } = transfer;
    if (amount <= 0n) return noQuantity();
    // What we send ourselves is no payment.
    if (parts.excluded.has(sender) || sender === chain.address) return excludedSender(transactionId, sender);
    const price = await priceOf(parts.prices, chain, amount, signal);
    if (price instanceof Failure) return price;
    if (price.winc > amountMax)
      return new Failure("payment_rejected", { reason: "The amount is larger than an account can hold" });
    const { address, type } = creditedAccount(transfer, chain.addressType);
    const account = { sender, destination: address, destinationType: type };
    return {
      token: chain.token,
      transactionId,
      part,
      ...account,
      quantity: amount,
      winc: price.winc,
      fees: price.fees,
    };
  }

  return async (chain, transactionId, transfers, signal) => {
    const offers: Offer[] = [];
    let refusal: Failure | undefined;
    for (const placed of transfers) {
      const offer = await offerFor(chain, transactionId, placed, signal);
      if (offer instanceof Failure) refusal ??= offer;
      else offers.push(offer);
    }
    return { offers, refusal };
  };
}

/** Why a transaction is refused that pays us nothing. */
export function strayRefusal(transactionId: string, { target, amount }: Outline): Failure {
  if (amount <= 0n) return noQuantity();
  const reason = `Payment transaction '${transactionId}' has wrong target address '${target}'`;
  return new Failure("payment_rejected", { reason });
}

/** Why a transaction is refused that was made before anything was sold for payments to the address. */
export function earlyRefusal(transactionId: string): Failure {
  const reason = `Payment transaction '${transactionId}' was made before payments were taken here`;
  return new Failure("payment_rejected", { reason });
}

/** Why a transaction is refused of which nobody can tell yet whom it pays. */
export function unminedRefusal(transactionId: string): Failure {
  const reason = `Transaction with id '${transactionId}' has not been mined yet!`;
  return new Failure("payment_rejected", { reason });
}

async function priceOf(
  prices: Pick<Prices, "token">,
  chain: TokenChain,
  amount: bigint,
  signal: AbortSignal,
): Promise<PaymentPrice | Failure> {
  try {
    return await prices.token(chain.token, amount, signal);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "price_amount_invalid") throw error;
    return new Failure("payment_rejected", { reason: error.context["reason"] }, error);
  }
}

function noQuantity(): Failure {
  return new Failure("payment_rejected", { reason: "Transaction quantity must be greater than 0" });
}

function excludedSender(transactionId: string, sender: string): Failure {
  const reason = `Payment transaction '${transactionId}' has sender that is on the excluded address list: '${sender}'`;
  return new Failure("sender_excluded", { reason });
}
