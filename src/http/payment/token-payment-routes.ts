/**
 * `POST /account/balance/{token}`: payers report transactions that they sent.
 *
 * The body is parsed as JSON whatever its content type: published clients send none.
 * Source: docs/reference/payment.md#reports.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { anyObjectSchema, stringSchema } from "../../lib/value-schema.ts";
import { tokenText } from "../../payment/addresses.ts";
import type { TokenPayments } from "../../payment/tokens/token-payments.ts";
import { bodyOf, needed } from "../body-fields.ts";
import { pathParameter } from "../parameter.ts";
import { failureResponses, json, record, ref, textSchema } from "../reference/openapi-types.ts";
import { readJsonBody } from "../request-body.ts";
import { limits } from "../request-limits.ts";
import { jsonResponse, noStore } from "../responses.ts";
import { described, type RouteDescription } from "../route-schema.ts";
import type { FailedAttemptGuard } from "./client-guards.ts";
import { submittedResponse } from "./payment-records.ts";

export type TokenRoutesOptions = Readonly<{
  payments: Pick<TokenPayments, "submit">;
  reportGuard: FailedAttemptGuard;
}>;

const report = bodyOf({ tx_id: needed(stringSchema({ minLength: 1 }), "missing_tx_id") });

/** Validated after the body, whose faults come first. */
const tokenParameter = pathParameter("token", tokenText, "native", "The token that was sent.");

const ofReport: RouteDescription = {
  tag: "Token payments",
  summary: "Report a payment",
  description:
    "A transfer to one of the addresses of `/info`. The price is fixed when the payment is first seen, for an hour " +
    "if no block has it by then; the credits come when it is confirmed, reported or not. They go to the account " +
    "that the transfer names (a tag `Turbo-Credit-Destination-Address`; calldata or a memo " +
    "`turboCreditDestinationAddress=…`), or to its sender. Earlier payments than the service accepts are rejected.",
  parameters: [tokenParameter],
  body: { type: "application/json", schema: report.schema, example: { tx_id: "A".repeat(43) } },
  responses: {
    ...failureResponses(
      "malformed_json",
      ...report.failures,
      "token_not_supported",
      "transaction_not_found",
      "too_large",
      "too_many_requests",
      "transaction_fault",
    ),
    200: json("It is credited.", record({ message: textSchema, creditedTransaction: ref("CreditedTransaction") })),
    202: json(
      "It waits for confirmations.",
      record({ message: textSchema, pendingTransaction: ref("PendingTransaction") }),
    ),
    400: json("It failed, or a reorg removed it, or the report is rejected for the reason given.", {
      oneOf: [record({ message: textSchema, failedTransaction: ref("FailedTransaction") }), textSchema],
    }),
    403: json("Payments of this sender are not accepted.", textSchema),
  },
};

export function createTokenRoutes({ payments, reportGuard }: TokenRoutesOptions): AnyElysia {
  return new Elysia({ strictPath: true }).post(
    "/account/balance/:token",
    async ({ params, request }) => {
      const id = readTokenReport(await readJsonBody(request, limits.paymentBytesMax));
      const token = tokenText.read(params.token);
      if (token === undefined) throw new Failure("token_not_supported", { token: params.token });
      const submitted = await reportGuard.guarded(request, () => payments.submit(token, id, request.signal));
      const { status, body } = submittedResponse(submitted, params.token);
      return jsonResponse(body, status, noStore);
    },
    { parse: "none", detail: described(ofReport) },
  );
}

/** The id of the reported transaction. @throws Failure `missing_tx_id`, also for a body that is not an object. */
export function readTokenReport(body: unknown): string {
  return report.read(anyObjectSchema.is(body) ? body : {}).tx_id;
}
