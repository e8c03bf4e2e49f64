/**
 * Payments as the ledger keeps them once they are made: rows only, for tests of what is read of them.
 * @module
 */
import type { UserAddress } from "../../../src/payment/addresses.ts";
import type { Tx } from "../../../src/store/ledger/ledger-database.ts";

/** What a test says of a payment; the rest is made up. */
export type StoredPayment = Readonly<{
  id: string;
  address: UserAddress;
  /** Unix milliseconds. */
  at: number;
  winc: bigint;
  amount?: bigint;
  quantity?: bigint;
  token?: string;
  message?: string;
  state?: string;
}>;

/** Keeps a payment by card. */
export async function keepCard(tx: Tx, payment: StoredPayment): Promise<void> {
  await storeQuote(tx, payment, payment.address);
}

/** Keeps a gift that the address has redeemed. */
export async function keepGift(tx: Tx, payment: StoredPayment): Promise<void> {
  const { id, address, at, winc, message = null, state = "redeemed" } = payment;
  await storeQuote(tx, { ...payment, state: "paid" }, null);
  await tx.run(
    "INSERT INTO gifts (id, quote_id, message, state, redeemed_by, redeemed_at, redeemed_winc) " +
      "VALUES (?, ?, ?, ?, ?, ?, ?)",
    `gift of ${id}`,
    id,
    message,
    state,
    address,
    BigInt(at),
    winc,
  );
}

/** Keeps a payment in a token. */
export async function keepToken(tx: Tx, payment: StoredPayment): Promise<void> {
  const { id, address, at, winc, quantity = 5n, token = "native", state = "credited" } = payment;
  await tx.run(
    "INSERT INTO token_payments (id, token, transaction_id, part, state, sender, destination, destination_type, " +
      "quantity, winc, fees, block_height, seen_at, credited_at, credits) " +
      "VALUES (?, ?, ?, 0, ?, 'sender', ?, 'native', ?, ?, '[]', 77, ?, ?, 1)",
    id,
    token,
    id,
    state,
    address,
    quantity.toString(),
    winc,
    BigInt(at),
    BigInt(at),
  );
}

async function storeQuote(tx: Tx, payment: StoredPayment, address: string | null): Promise<void> {
  const { id, at, winc, amount = 500n, state = "paid" } = payment;
  await tx.run(
    "INSERT INTO quotes (id, method, address, address_type, gift_id, currency, payment_amount, quoted_amount, winc, " +
      "promo_codes, created_at, expires_at, state, payment_id, credited_at, credited_winc, promo_winc, taken_back_winc) " +
      "VALUES (?, 'payment-intent', ?, 'native', ?, 'usd', ?, ?, ?, '[]', 0, 0, ?, ?, ?, ?, 0, 0)",
    id,
    address,
    address === null ? `gift of ${id}` : null,
    amount,
    amount,
    winc,
    state,
    `payment of ${id}`,
    BigInt(at),
    winc,
  );
}
