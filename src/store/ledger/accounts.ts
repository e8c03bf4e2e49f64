/**
 * The names of accounts: who or what holds credits.
 *
 * Credits come from a provider, whose account goes below zero by what it brought; they go to a user, wait in escrow
 * or on hold, and end as revenue. The sum over all accounts is always zero.
 * @module
 */
import { assert } from "../../lib/assert.ts";

/** The name of an account; made only here. */
export type Account = string & { readonly __brand: "Account" };

/** Words before the colon; accounts of the first four kinds hold what is someone's, so they cannot go below zero. */
const guardedKinds = ["user", "escrow", "held", "gift"] as const;
const kinds = [...guardedKinds, "provider"] as const;

/** What an address holds; the address is canonical. */
export const user = (address: string): Account => named("user", address);
/** What an approval sets aside for the approved address. */
export const escrow = (approvalId: string): Account => named("escrow", approvalId);
/** What a reservation holds until the upload is posted. */
export const held = (reservationId: string): Account => named("held", reservationId);
/** What a gift holds until it is redeemed. */
export const gift = (giftId: string): Account => named("gift", giftId);
/** Where credits come from that were paid for: `stripe`, `x402`, or a token. */
export const provider = (name: string): Account => named("provider", name);

/** What uploads, and reading beyond the limits, have cost. */
export const revenue = "revenue" as Account;
/** Where credits come from that nobody paid for: promotions and free allowances. */
export const promo = "promo" as Account;
/** Corrections by an operator. */
export const adjustment = "adjustment" as Account;

/**
 * The account that goes on where one that is nobody's is full: an amount has 64 bits, and what an operator takes in has
 * no end.
 *
 * @param part - 2 or more; the account itself is the first part.
 */
export function continuation(account: Account, part: bigint): Account {
  assert(!isGuarded(account) && part >= 2n, "what is nobody's goes on in further accounts");
  return `${account}${partMark}${part}` as Account;
}

/** The names between which those of an account's continuations lie, both exclusive, by their bytes. */
export function continuationBounds(account: Account): readonly [above: string, below: string] {
  return [`${account}${partMark}`, `${account}${String.fromCharCode(partMark.charCodeAt(0) + 1)}`];
}

/** In no name of a provider. */
const partMark = "#";

/** Tells whether credits of the account are someone's, so that it is not to go below zero. */
export function isGuarded(account: Account): boolean {
  return guardedKinds.some((kind) => account.startsWith(`${kind}:`));
}

function named(kind: (typeof kinds)[number], name: string): Account {
  assert(name !== "", "an account has a name");
  return `${kind}:${name}` as Account;
}
