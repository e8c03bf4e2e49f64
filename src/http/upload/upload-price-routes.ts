/**
 * Prices of uploads, as bare numbers of winc; the price is the same in every token.
 * Source: docs/reference/upload.md#routes.
 * @module
 */
import { type AnyElysia, Elysia, t } from "elysia";
import { Failure } from "../../failures.ts";
import { type Token, tokenText } from "../../payment/addresses.ts";
import { byteCountText } from "../../payment/amounts.ts";
import type { Prices } from "../../payment/prices/price-types.ts";
import { failureResponses, text } from "../reference/openapi-types.ts";
import { textResponse } from "../responses.ts";
import { described, parsedText, type RouteDescription } from "../route-schema.ts";
import { pathParameters } from "./upload-schemas.ts";

export type PriceRoutesOptions = Readonly<{ prices: Pick<Prices, "bytes"> }>;

const gibibyte = 2n ** 30n;
const cachedMinute = { "Cache-Control": "public, max-age=60" } as const;

const tokenParameter = parsedText(
  { description: "A token.", example: "arweave" },
  { schema: tokenText.schema, parse: tokenText.read, invalid: unknownToken },
);
const sizeParameter = parsedText(
  { description: "Bytes.", example: "1048576" },
  { schema: byteCountText.schema, parse: byteCountText.read, invalid: invalidSize },
);

const tag = "Prices";
const responses = {
  ...failureResponses("token_not_supported", "invalid_byte_count", "pricing_oracle_unavailable"),
  200: text("Winc, in digits."),
};

const ofTokenOrSize: RouteDescription = {
  tag,
  summary: "Price of one GiB, or of a number of bytes",
  parameters: [pathParameters.tokenOrSize],
  responses,
};

const ofSize: RouteDescription = {
  tag,
  summary: "Price of a number of bytes",
  description: "The same in every token. The bytes are those of the whole item, header and payload.",
  responses,
};

export function createUploadPriceRoutes({ prices }: PriceRoutesOptions): AnyElysia {
  const priceOf = async (size: bigint, request: Request): Promise<Response> => {
    const { winc } = await prices.bytes(size, request.signal);
    return textResponse(winc.toString(), 200, cachedMinute);
  };
  return new Elysia({ strictPath: true })
    .get("/price/:token", ({ params, request }) => priceOf(sizeOf(params.token), request), {
      detail: described(ofTokenOrSize),
    })
    .get("/price/:token/:size", ({ params, request }) => priceOf(params.size, request), {
      params: t.Object({ token: tokenParameter, size: sizeParameter }),
      detail: described(ofSize),
    });
}

/** Digits are a number of bytes, a token is one GiB; no token begins like a number. */
function sizeOf(text: string): bigint {
  const isNumber = /^[-+.]?\d/.test(text);
  const size: bigint | Token | undefined = isNumber ? byteCountText.read(text) : tokenText.read(text);
  if (size === undefined) throw isNumber ? invalidSize(text) : unknownToken(text);
  return typeof size === "bigint" ? size : gibibyte;
}

function unknownToken(token: string): Failure {
  return new Failure("token_not_supported", { token: token.slice(0, 100) });
}

function invalidSize(size: string): Failure {
  return new Failure("invalid_byte_count", { text: size.slice(0, 100) });
}
