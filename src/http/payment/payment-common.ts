/**
 * Parts that several routes of the payment service share: schemas, headers of signed requests, and ledger errors.
 * Source: docs/reference/payment.md#routes; docs/reference/payment.md#signed-requests.
 * @module
 */
import { Failure, type FailureCode } from "../../failures.ts";
import { nonceLengthMax, type SignedRequest } from "../../payment/access/signed-request.ts";
import { accountText, type UserAddress } from "../../payment/addresses.ts";
import type { Parameter } from "../parameter.ts";
import { inHeader, patterns, ref, type Schema, textSchema } from "../reference/openapi-types.ts";
import { contextOf } from "../request-context.ts";
import { type QueryParameter, requiredQuery } from "../route-schema.ts";

/** A valid address without an owner. */
const sampleAccount = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A";

/** An account in a query. @param invalid - The failure of a text that is not an address. */
export function accountQuery(
  name: string,
  description: string,
  invalid: FailureCode = "invalid_paying_address",
  missing?: () => Failure,
): QueryParameter<UserAddress> {
  return requiredQuery(
    name,
    { description, example: sampleAccount },
    {
      schema: accountText.schema,
      parse: accountText.read,
      invalid: () => new Failure(invalid, {}),
      ...(missing === undefined ? {} : { missing }),
    },
  );
}

export const winc: Schema = { type: "string", pattern: patterns.digits, description: "Winc." };
export const signedWinc: Schema = { type: "string", pattern: "^-?[0-9]+$", description: "Winc." };
export const dateTime: Schema = { type: "string", format: "date-time" };
export const adjustments: Schema = { type: "array", items: ref("Adjustment") };
export const largeInteger: Schema = {
  oneOf: [
    { type: "integer", minimum: 0 },
    { type: "string", pattern: patterns.digits },
  ],
  description: "As text from 2^53 up.",
};

/** The headers of a signed request; signed-request.ts validates them together, each against the others. */
export const signatureHeaders: readonly Parameter[] = [
  inHeader("x-signature", textSchema, "Base64url. Over the nonce, or over method, space, path with query and nonce."),
  inHeader("x-nonce", { type: "string", minLength: 1, maxLength: nonceLengthMax }, "Never used before with this key."),
  inHeader("x-public-key", textSchema, "Base64url; of Ethereum keys also hexadecimal after 0x."),
  inHeader("x-signature-type", { type: "integer", enum: [1, 3, 4], default: 1 }, "1 Arweave, 3 Ethereum, 4 Solana."),
];

/** The signed parts of a request: method and path as the client sent them, and the body. */
export function signedRequestOf(request: Request, body?: Uint8Array): SignedRequest {
  const { headOnly, target } = contextOf(request);
  const query = target.query === "" ? "" : `?${target.query}`;
  return {
    headers: request.headers,
    method: headOnly ? "HEAD" : request.method,
    pathWithQuery: `${target.path}${query}`,
    body,
  };
}

/**
 * Waits for the ledger, and converts its faults to the failure of the endpoint.
 *
 * @throws Failure `code` instead of `database_unavailable` and `busy`.
 */
export async function fromLedger<Result>(code: FailureCode, response: Promise<Result>): Promise<Result> {
  try {
    return await response;
  } catch (error) {
    const isFault = error instanceof Failure && (error.code === "database_unavailable" || error.code === "busy");
    throw isFault ? new Failure(code, error.context, error) : error;
  }
}
