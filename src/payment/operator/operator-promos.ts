/**
 * Promo codes that an operator adds and ends while the program runs, beside those of the price rules.
 *
 * A code is stored in the ledger, in the format of the price rules, so that every process of the ledger knows it at
 * once. An ended code stays, with its end: its uses still belong to it, and it is not added again.
 * Source: docs/reference/payment.md#actions-of-operators; docs/price-rules.md.
 * @module
 */
import { Failure, rejected } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { LedgerDatabase, Tx } from "../../store/ledger/ledger-database.ts";
import { canonicalCode, type PromoRule } from "../prices/price-rules.ts";
import { readPromoRule } from "../prices/price-rules-reader.ts";
import { storedPromo, storedPromos } from "../top-ups/promo.ts";
import { type ActionOrder, performOnce } from "./operator-actions.ts";

/** A code of the list. */
export type PromoLine = Readonly<{
  rule: PromoRule;
  /** `rules`: of the price rules' file, which alone can change it. */
  source: "rules" | "ledger";
  /** Payments with it. */
  uses: bigint;
  state: "active" | "ended" | "later" | "used up";
}>;

export type OperatorPromos = Readonly<{
  /** All codes, in the order of their canonical spelling; at most `promosMax` and those of the rules. */
  list: () => Promise<readonly PromoLine[]>;
  /**
   * Adds a code, once for its key.
   *
   * @param rule - JSON, in the format of `promoCodes` of the price rules.
   * @throws Failure `payment_rejected` with the reason; `idempotency_conflict`.
   */
  add: (order: ActionOrder & Readonly<{ rule: string }>) => Promise<JsonObject>;
  /** Ends a code now, once for its key. @throws As `add`. */
  end: (order: ActionOrder & Readonly<{ code: string }>) => Promise<JsonObject>;
}>;

/** Codes in the ledger. */
const promosMax = 10_000;

type OperatorPromosParts = Readonly<{ ledger: LedgerDatabase; rules: readonly PromoRule[]; clock: Clock }>;

export function createOperatorPromos({ ledger, rules, clock }: OperatorPromosParts): OperatorPromos {
  const ruleOf = new Map(rules.map((rule) => [spelling(rule.code), rule]));
  return {
    list: async () => {
      const now = BigInt(clock());
      return await ledger.read(async (tx) => {
        const uses = await usesByCode(tx);
        const line = (source: PromoLine["source"]) => (rule: PromoRule) => {
          const used = uses.get(spelling(rule.code)) ?? 0n;
          return { rule, source, uses: used, state: stateOf(rule, used, now) };
        };
        const stored = await storedPromos(tx, promosMax);
        const all = [...rules.map(line("rules")), ...stored.map(line("ledger"))];
        return all.toSorted((left, right) => (spelling(left.rule.code) < spelling(right.rule.code) ? -1 : 1));
      });
    },
    add: (order) => {
      const rule = readRule(order.rule);
      if (ruleOf.has(spelling(rule.code))) throw rejected(`The price rules have the promo code '${rule.code}'`);
      return ledger.write((tx) => add(tx, order, rule, clock()));
    },
    end: (order) => {
      if (ruleOf.has(spelling(order.code)))
        throw rejected(`The promo code '${order.code}' belongs to the price rules: end it in PAYMENT_RULES_FILE`);
      return ledger.write((tx) => end(tx, order, clock()));
    },
  };
}

async function add(
  tx: Tx,
  { rule: text, ...order }: ActionOrder & Readonly<{ rule: string }>,
  { code }: PromoRule,
  at: number,
): Promise<JsonObject> {
  return await performOnce(tx, { kind: "promo_add", subject: text, winc: 0n, ...order, at }, async () => {
    const count = await tx.get<{ codes: bigint }>("SELECT COUNT(*) AS codes FROM promo_codes");
    if ((count?.codes ?? 0n) >= promosMax) throw rejected(`The ledger has ${promosMax} promo codes, and takes no more`);
    const isNew = await tx.run(
      "INSERT INTO promo_codes (code, rule, added_at) VALUES (?, ?, ?) ON CONFLICT (code) DO NOTHING",
      ...[spelling(code), text, BigInt(at)],
    );
    if (isNew === 0) throw rejected(`The promo code '${code}' exists already; an ended code is not added again`);
    return { kind: "promo_add", code, at, ...order };
  });
}

async function end(
  tx: Tx,
  { code, ...order }: ActionOrder & Readonly<{ code: string }>,
  at: number,
): Promise<JsonObject> {
  return await performOnce(tx, { kind: "promo_end", subject: spelling(code), winc: 0n, ...order, at }, async () => {
    const rule = await storedPromo(tx, code);
    if (rule === undefined) throw rejected(`No promo code found with code '${code.slice(0, 64)}'`);
    if (rule.endsAt !== undefined && rule.endsAt <= BigInt(at))
      throw rejected(`The promo code '${rule.code}' has ended`);
    await tx.run("UPDATE promo_codes SET ended_at = ? WHERE code = ?", BigInt(at), spelling(code));
    return { kind: "promo_end", code: rule.code, at, ...order };
  });
}

/** @throws Failure `payment_rejected` with the reason. */
function readRule(text: string): PromoRule {
  try {
    return readPromoRule(text);
  } catch (error) {
    const reason = error instanceof Failure ? error.context["reason"] : undefined;
    throw typeof reason === "string" ? rejected(reason) : error;
  }
}

async function usesByCode(tx: Tx): Promise<Map<string, bigint>> {
  const rows = await tx.all<{ code: string; uses: bigint }>("SELECT code, uses FROM promo_counts");
  return new Map(rows.map(({ code, uses }) => [code, uses]));
}

function stateOf({ startsAt, endsAt, usesMax }: PromoRule, uses: bigint, now: bigint): PromoLine["state"] {
  if (endsAt !== undefined && endsAt <= now) return "ended";
  if (usesMax !== undefined && uses >= usesMax) return "used up";
  return startsAt > now ? "later" : "active";
}

function spelling(code: string): string {
  return canonicalCode(code) ?? code;
}
