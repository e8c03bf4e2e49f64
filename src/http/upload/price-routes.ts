/**
 * What an upload costs, as bare numbers of winc; whatever it is paid with, the price is the same.
 * Source: docs/reference/upload.md#routes.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { Prices } from "../../payment/prices/price-types.ts";
import { textResponse } from "../responses.ts";
import { pathParameters } from "./parameters.ts";

/** What the routes ask. */
export type PriceRoutesOptions = Readonly<{ prices: Pick<Prices, "bytes"> }>;

const gibibyte = 2n ** 30n;
const ofMinutes = { "Cache-Control": "public, max-age=60" } as const;

/** Creates the routes. */
export function createUploadPriceRoutes({ prices }: PriceRoutesOptions): AnyElysia {
  const priceOf = async (size: bigint, request: Request): Promise<Response> => {
    const { winc } = await prices.bytes(size, request.signal);
    return textResponse(winc.toString(), 200, ofMinutes);
  };
  return new Elysia({ strictPath: true })
    .get("/price/:token", ({ params, request }) => {
      // Digits are bytes, a token's word is one GiB; no token begins like a number.
      const size = /^[-+.]?\d/.test(params.token) ? sizeOf(params.token) : undefined;
      if (size === undefined) refuseUnknown(params.token);
      return priceOf(size ?? gibibyte, request);
    })
    .get("/price/:token/:size", ({ params, request }) => {
      refuseUnknown(params.token);
      return priceOf(sizeOf(params.size), request);
    });
}

function refuseUnknown(token: string): void {
  if (pathParameters.token.read(token) === undefined)
    throw new Failure("token_not_supported", { token: token.slice(0, 100) });
}

function sizeOf(text: string): bigint {
  const size = pathParameters.size.read(text);
  if (size === undefined) throw new Failure("invalid_byte_count", { text: text.slice(0, 100) });
  return size;
}
