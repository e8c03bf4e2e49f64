/**
 * Promo codes: eligibility, and the count of uses.
 *
 * A code is looked up for a price and counted when the payment is credited, in the same transaction: an unpaid quote
 * uses nothing up.
 * Source: docs/reference/payment.md#promo-codes; docs/reference/threats.md (L5).
 * @module
 */
import { Failure, rejected } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import { type LedgerDatabase, readTime, type Tx } from "../../store/ledger/ledger-database.ts";
import type { UserAddress } from "../addresses.ts";
import { canonicalCode, type PromoRule } from "../prices/price-rules.ts";
import { readPromoRule } from "../prices/price-rules-reader.ts";

/** A payment that used codes. */
export type PromoUse = Readonly<{
  address: UserAddress;
  /** The adjustments' `promoCode`s. */
  codes: readonly string[];
  /** Id of the payment's record. */
  paymentId: string;
  /** Unix milliseconds. */
  at: bigint;
}>;

/**
 * Counts the codes of a payment that is being credited, all of them or none. Must run before the payment is recorded
 * as paid.
 *
 * @returns Whether they were counted. False when another payment of the user, or the last use of the code, came first:
 *   the payment then buys winc × charged / quoted, rounded down.
 */
export type CountPromo = (tx: Tx, use: PromoUse) => Promise<boolean>;

/** Promo codes. */
export type Promos = Readonly<{
  /**
   * Finds the rules of codes that an account may use now; the size of the payment is not checked.
   * @param codes - In any spelling; repeated codes count once.
   * @returns In the order of the codes.
   * @throws Failure `payment_rejected` with the reason; its context `isUnknownCode` is true for an unknown code.
   */
  find: (address: UserAddress, codes: readonly string[]) => Promise<readonly PromoRule[]>;
  count: CountPromo;
}>;

export type PromosOptions = Readonly<{
  database: Pick<LedgerDatabase, "read">;
  rules: readonly PromoRule[];
  /** Whether an account has ever paid by card. */
  hasPaid: (tx: Tx, address: UserAddress) => Promise<boolean>;
  clock: Clock;
}>;

/** Codes of one payment: each costs a ledger query. */
const codesMax = 5;

export function createPromos({ database, rules, hasPaid, clock }: PromosOptions): Promos {
  const ruleOf = new Map(rules.map((rule) => [canonicalCode(rule.code), rule]));

  /** The rule of a code: of the price rules, or of the ledger. */
  const ruleNamed = async (tx: Tx, code: string) => ruleOf.get(canonicalCode(code)) ?? (await storedPromo(tx, code));
  /** The rules of codes; a rule that starts later is unknown. */
  const named = async (tx: Tx, codes: readonly string[], now: bigint): Promise<PromoRule[]> => {
    const found = new Map<string, PromoRule>();
    for (const code of codes) {
      const rule = await ruleNamed(tx, code);
      if (rule === undefined || rule.startsAt > now) throw unknown(code);
      found.set(spellingOf(code), rule);
    }
    return [...found.values()];
  };
  /** Why an account may not use a rule; undefined when it may. */
  const objectionTo = async (tx: Tx, address: UserAddress, rule: PromoRule): Promise<string | undefined> => {
    const uses = await usesOf(tx, rule.code);
    if (rule.usesMax !== undefined && uses >= rule.usesMax)
      return `The promo code '${rule.code}' has already been used the maximum number of times (${rule.usesMax})`;
    const isUsed = await hasUsed(tx, address, rule.code);
    if (isUsed || (rule.group === "new" && (await hasPaid(tx, address))))
      return `The user '${address}' is ineligible for the promo code '${rule.code}'`;
    return undefined;
  };

  return {
    find: async (address, codes) => {
      if (codes.length > codesMax) throw rejected(`At most ${codesMax} promo codes can be used at once`);
      const now = BigInt(clock());
      return await database.read(async (tx) => {
        const wanted = await named(tx, codes, now);
        const late = wanted.find(({ endsAt }) => endsAt !== undefined && endsAt <= now);
        if (late?.endsAt !== undefined)
          throw rejected(`The promo code '${late.code}' expired on '${new Date(readTime(late.endsAt)).toISOString()}'`);
        const objections = await inOrder(wanted, (rule) => objectionTo(tx, address, rule));
        const objection = objections.find((each) => each !== undefined);
        if (objection !== undefined) throw rejected(objection);
        return wanted;
      });
    },
    count: async (tx, { address, codes: written, paymentId, at }) => {
      const codes = new Set(written.map(spellingOf));
      for (const code of codes) {
        const rule = await ruleNamed(tx, code);
        // A code that was removed from the rules after the quote is still honoured, once for a user.
        const objects = rule === undefined ? await hasUsed(tx, address, code) : await objectionTo(tx, address, rule);
        if (objects === true || typeof objects === "string") return false;
      }
      for (const code of codes) await note(tx, { address, code, paymentId, at });
      return true;
    },
  };
}

type PromoRow = Readonly<{ rule: string; ended_at: bigint | null }>;

/** The code of the ledger, with the end that an operator gave it. @param code - In any spelling. */
export async function storedPromo(tx: Tx, code: string): Promise<PromoRule | undefined> {
  const canonical = canonicalCode(code);
  if (canonical === undefined) return undefined;
  const row = await tx.get<PromoRow>("SELECT rule, ended_at FROM promo_codes WHERE code = ?", canonical);
  return row && readStored(row);
}

/** The codes of the ledger. */
export async function storedPromos(tx: Tx, limit: number): Promise<PromoRule[]> {
  const rows = await tx.all<PromoRow>("SELECT rule, ended_at FROM promo_codes ORDER BY code LIMIT ?", BigInt(limit));
  return rows.map(readStored);
}

function readStored({ rule: text, ended_at: ended }: PromoRow): PromoRule {
  const rule = readPromoRule(text);
  const isEarlier = ended !== null && (rule.endsAt === undefined || ended < rule.endsAt);
  return isEarlier ? { ...rule, endsAt: ended } : rule;
}

async function hasUsed(tx: Tx, address: UserAddress, code: string): Promise<boolean> {
  const sql = "SELECT at FROM promo_uses WHERE address = ? AND code = ?";
  return (await tx.get<{ at: bigint }>(sql, address, spellingOf(code))) !== undefined;
}

async function usesOf(tx: Tx, code: string): Promise<bigint> {
  const sql = "SELECT uses FROM promo_counts WHERE code = ?";
  return (await tx.get<{ uses: bigint }>(sql, spellingOf(code)))?.uses ?? 0n;
}

async function note(
  tx: Tx,
  use: Readonly<{ address: string; code: string; paymentId: string; at: bigint }>,
): Promise<void> {
  await tx.run(
    "INSERT INTO promo_uses (address, code, payment_id, at) VALUES (?, ?, ?, ?)",
    ...[use.address, use.code, use.paymentId, use.at],
  );
  await tx.run(
    "INSERT INTO promo_counts (code, uses) VALUES (?, 1) " +
      "ON CONFLICT (code) DO UPDATE SET uses = promo_counts.uses + 1",
    use.code,
  );
}

/** A code as stored; a quoted code may be invalid by now. */
function spellingOf(code: string): string {
  return canonicalCode(code) ?? code;
}

async function inOrder<Item, Result>(items: readonly Item[], ask: (item: Item) => Promise<Result>): Promise<Result[]> {
  const responses: Result[] = [];
  for (const item of items) responses.push(await ask(item));
  return responses;
}

function unknown(code: string): Failure {
  const reason = `No promo code found with code '${code.slice(0, 64)}'`;
  return new Failure("payment_rejected", { reason, isUnknownCode: true });
}
