/**
 * `POST /account/balance/{token}`: payers report what they sent.
 *
 * The body is JSON whatever its type says: published clients send none.
 * Source: docs/reference/payment.md#reports.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { TokenPayments } from "../../payment/tokens/token-payments.ts";
import { readJsonBody } from "../body.ts";
import { limits } from "../limits.ts";
import { jsonResponse } from "../responses.ts";
import { accountParameters } from "./parameters.ts";
import type { ReportGuard } from "./report-guard.ts";
import { noStore } from "./signer.ts";
import { submittedResponse } from "./token-records.ts";
import { readTokenReport } from "./token-report.ts";

/** What the route asks. */
export type TokenRoutesOptions = Readonly<{
  payments: Pick<TokenPayments, "submit">;
  reportGuard: ReportGuard;
}>;

/** Creates the route. */
export function createTokenRoutes({ payments, reportGuard }: TokenRoutesOptions): AnyElysia {
  return new Elysia({ strictPath: true }).post(
    "/account/balance/:token",
    async ({ params, request }) => {
      const id = readTokenReport(await readJsonBody(request, limits.paymentBytesMax));
      const token = accountParameters.token.read(params.token);
      if (token === undefined) throw new Failure("token_not_supported", { token: params.token });
      const submitted = await reportGuard.guarded(request, () => payments.submit(token, id, request.signal));
      const { status, body } = submittedResponse(submitted, params.token);
      return jsonResponse(body, status, noStore);
    },
    { parse: "none" },
  );
}
