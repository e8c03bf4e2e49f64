/**
 * Token payments over a ledger, scripted chains and a price that tests set.
 * @module
 */
import { expect } from "bun:test";
import { type Winc, winc } from "../../../src/arweave/winston.ts";
import { Failure } from "../../../src/failures.ts";
import { readAddress, type UserAddress } from "../../../src/payment/addresses.ts";
import type { PaymentPrice, Prices } from "../../../src/payment/prices/price-types.ts";
import type { TokenChain } from "../../../src/payment/tokens/token-chain.ts";
import { keepMark, paymentsOf, type TokenPayment } from "../../../src/payment/tokens/token-payment-store.ts";
import { createTokenPayments, type TokenPayments } from "../../../src/payment/tokens/token-payments.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import type { LedgerDatabase } from "../../../src/store/ledger/ledger-database.ts";
import { user } from "../../../src/store/ledger/transfers.ts";
import { openTestPayment, type TestPayment } from "../../support/payment.ts";
import { createRecordingLog } from "../../support/recording-log.ts";

/** What a smallest unit is worth, and whether it is known. */
export type TestPrice = { perUnit: bigint; isKnown: boolean; asked: number };

/** Everything that a test of token payments needs. */
export type TokenFixture = Readonly<{
  payment: TestPayment;
  price: TestPrice;
  prices: Pick<Prices, "token">;
  payments: TokenPayments;
  /** Payments as another process has them, over a ledger of its own. */
  otherPayments: (database: LedgerDatabase) => TokenPayments;
  stored: (chain: TokenChain, id: string) => Promise<TokenPayment[]>;
  balance: (address: UserAddress) => Promise<bigint>;
  /** What the checker finds wrong. */
  findings: () => Promise<unknown[]>;
  lines: Record<string, unknown>[];
  close: () => Promise<void>;
}>;

/** Is never aborted. */
export const never = new AbortController().signal;

/** The least time between two looks. Milliseconds. */
export const lookAgainMs = 1_000;

/** A mark whose watch began before all blocks; no chain can scan from it. */
const begun = "begun";

/** Opens it, with a watch over the address of each chain. */
export async function openTokenFixture(
  chains: readonly TokenChain[],
  options: Readonly<{ excluded?: readonly string[] }> = {},
): Promise<TokenFixture> {
  const payment = await openTestPayment();
  await payment.database.write(async (tx) => {
    for (const { token, address } of chains) await keepMark(tx, token, address, begun, 0);
  });
  const price: TestPrice = { perUnit: 2n, isKnown: true, asked: 0 };
  const { log, lines } = createRecordingLog(payment.clock.now);
  const prices = { token: async (_token: string, amount: bigint) => priceOf(price, amount) };
  const create = (ledger: LedgerDatabase) =>
    createTokenPayments({
      ledger,
      prices,
      chains: chains.map((chain) => ({
        ...chain,
        beginsAt: (cursor) => (cursor === begun ? 0 : chain.beginsAt(cursor)),
      })),
      log,
      lookAgainMs,
      excluded: new Set(options.excluded ?? []),
      clock: payment.clock.now,
      random: () => payment.random.below(1_000) / 1_000,
      makeId: payment.makeId,
      firstObservation: { attempts: 2, firstMs: 1, longestMs: 1 },
    });
  return {
    payment,
    price,
    prices,
    payments: create(payment.database),
    otherPayments: create,
    stored: (chain, id) => payment.database.read((tx) => paymentsOf(tx, chain.token, id)),
    balance: (address) => payment.held(user(address)),
    findings: () => checkLedger(payment.database),
    lines,
    close: payment.close,
  };
}

/** An Ethereum address, from a number. */
export function ethereumAddressOf(number: number): UserAddress {
  const read = readAddress(`0x${number.toString(16).padStart(40, "0")}`, "ethereum");
  if (read === undefined) throw new Error(`${number} makes no address`);
  return read.address;
}

/** The failure that a promise rejects with: its code, and its reason. */
export async function rejectionOf(promise: Promise<unknown>): Promise<readonly [string, unknown]> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Failure) return [error.code, error.context["reason"]];
    throw error;
  }
  throw new Error("it was not rejected");
}

function priceOf(price: TestPrice, amount: bigint): PaymentPrice {
  price.asked += 1;
  if (!price.isKnown) throw new Failure("fiat_oracle_unavailable", {});
  const worth: Winc = winc(amount * price.perUnit);
  if (worth < 1n) throw new Failure("price_amount_invalid", { reason: "Crypto payment amount is too small!" });
  const fee = { name: "fee", description: "", operator: "multiply", operatorMagnitude: "1" } as const;
  return {
    winc: worth,
    adjustments: [],
    fees: [{ ...fee, adjustmentAmount: -3n }],
    actualPaymentAmount: worth,
    quotedPaymentAmount: worth,
  };
}

/** What tests of a chain do with its payments. */
export function tokenSteps(fixture: TokenFixture, chain: TokenChain) {
  let cursor: string | undefined;
  return {
    submit: (id: string) => fixture.payments.submit(chain.token, id, never),
    follow: async () => {
      fixture.payment.clock.advance(lookAgainMs);
      return await fixture.payments.follow(chain, 100, never);
    },
    /** A step of the watcher. */
    look: async () => {
      const found = await chain.scan(cursor, never);
      if (found.kind === "fault") throw new Error(found.detail);
      expect(await fixture.payments.take(chain, found.ids, never)).toBeUndefined();
      cursor = found.cursor;
      return found;
    },
  };
}
