/**
 * Promo codes in the admin API: the list, a new code, the end of a code.
 * Source: docs/reference/payment.md#actions-of-operators; docs/price-rules.md.
 * @module
 */
import { writeJson } from "../../lib/json.ts";
import { anyObjectSchema, lineSchema, refined } from "../../lib/value-schema.ts";
import type { OperatorPromos, PromoLine } from "../../payment/operator/operator-promos.ts";
import { readTime } from "../../store/ledger/ledger-database.ts";
import { type AdminDescription, type AdminEndpoint, adminFields, get, post } from "../admin-endpoints.ts";
import { bodyOf, needed } from "../body-fields.ts";
import { failureResponses, json, record, type Schema, textSchema } from "../reference/openapi-types.ts";
import { jsonResponse } from "../responses.ts";
import { actionFields, actionRecord, nullableText, sampleAction } from "./operator-account-routes.ts";
import { isoDate } from "./payment-records.ts";

type RuleFields = Readonly<Record<string, string | number>>;

const ruleFormat = refined(
  anyObjectSchema,
  (value): value is RuleFields => Object.values(value).every((each) => ["string", "number"].includes(typeof each)),
  "A row of `promoCodes` of the price rules; `operator` multiplies the charge unless it says `add`.",
);

const addBody = bodyOf({ promo: needed(ruleFormat, "malformed_input"), ...actionFields });
const codeFormat = lineSchema(1, 64);
const endBody = bodyOf({ code: needed(codeFormat, "malformed_input"), ...actionFields });

const nullableCount: Schema = { ...nullableText, description: "Decimal text; null is unlimited." };
const done = (kind: string) => ({
  200: json(
    "What was done; the same for every repetition with the key.",
    record({ kind: { type: "string", enum: [kind] }, code: textSchema, ...actionRecord }),
  ),
  ...failureResponses("malformed_input", "payment_rejected", "idempotency_conflict", "busy", "database_unavailable"),
});

const descriptions = {
  list: {
    summary: "List the promo codes of the price rules and of the ledger, with their uses",
    responses: {
      200: json(
        "The codes.",
        record({
          promos: {
            type: "array",
            items: record({
              code: textSchema,
              name: textSchema,
              description: textSchema,
              operator: { type: "string", enum: ["multiply", "add"] },
              operatorMagnitude: textSchema,
              startsAt: nullableText,
              endsAt: nullableText,
              targetUserGroup: { type: "string", enum: ["all", "new"] },
              maxUses: nullableCount,
              minimumPaymentAmount: { ...textSchema, description: "US cents." },
              maximumDiscountAmount: nullableCount,
              source: { type: "string", enum: ["rules", "ledger"] },
              uses: { ...textSchema, description: "Payments with the code." },
              state: { type: "string", enum: ["active", "ended", "later", "used up"] },
            }),
          },
        }),
      ),
      ...failureResponses("busy", "database_unavailable"),
    },
  },
  add: {
    summary: "Add a promo code, in force from the response on",
    body: addBody,
    example: {
      promo: { code: "AN-EXAMPLE", name: "An example", description: "10 % off", operatorMagnitude: "0.9" },
      ...sampleAction,
      idempotencyKey: "an-example-of-a-code",
    },
    responses: done("promo_add"),
  },
  end: {
    summary: "End a promo code of the ledger now",
    description:
      "A payment that was quoted before still gets its discount. Codes of the price rules end in their file.",
    body: endBody,
    example: { code: "AN-EXAMPLE", ...sampleAction, idempotencyKey: "the-end-of-an-example" },
    responses: done("promo_end"),
  },
} as const satisfies Readonly<Record<string, AdminDescription>>;

/** The endpoints of promo codes. */
export function createPromoEndpoints(promos: OperatorPromos): AdminEndpoint[] {
  return [
    get("/promos", descriptions.list, async () => jsonResponse({ promos: (await promos.list()).map(promoRecord) })),
    post("/promos/add", descriptions.add, async (request) => {
      const { promo, ...order } = addBody.read(await adminFields(request));
      return jsonResponse(await promos.add({ ...order, rule: writeJson({ operator: "multiply", ...promo }) }));
    }),
    post("/promos/end", descriptions.end, async (request) =>
      jsonResponse(await promos.end(endBody.read(await adminFields(request)))),
    ),
  ];
}

function promoRecord({ rule, source, uses, state }: PromoLine) {
  const { code, name, description, operator, magnitude, startsAt, endsAt } = rule;
  return {
    code,
    name,
    description,
    operator,
    operatorMagnitude: magnitude.text,
    startsAt: startsAt === 0n ? null : isoDate(readTime(startsAt)),
    endsAt: endsAt === undefined ? null : isoDate(readTime(endsAt)),
    targetUserGroup: rule.group,
    maxUses: rule.usesMax?.toString() ?? null,
    minimumPaymentAmount: rule.usdCentsMin.toString(),
    maximumDiscountAmount: rule.discountUsdCentsMax?.toString() ?? null,
    source,
    uses: uses.toString(),
    state,
  };
}
