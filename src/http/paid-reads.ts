/**
 * Paid reading beyond the rate limits by x402: a client at its limit receives a price, pays, and continues.
 *
 * Only GET and HEAD of the gateway's own paths are sold. A payment on a request within the limits is not settled.
 * Source: docs/decisions/086-paid-reading.md; docs/reference/payment.md#x402.
 * @module
 */
import { Failure } from "../failures.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { createTokenBuckets } from "../lib/token-buckets.ts";
import type { PaidReading } from "../payment/x402/paid-reading.ts";
import type { X402Payment } from "../payment/x402/x402-payment-reader.ts";
import { clientClosedStatus, reportsDisconnect } from "./client-disconnect.ts";
import type { PublicUrl } from "./public-url.ts";
import { type EmptyBucket, type RateLimiter, rateLimitedResponse, tokenBytes, tokensOf } from "./rate-limiter.ts";
import type { RequestContext } from "./request-context.ts";
import { failureResponse } from "./responses.ts";
import {
  type RejectedPayment,
  rejectedPayment,
  x402PaymentOf,
  x402RequiredResponse,
  x402SettledHeaders,
} from "./x402-responses.ts";

export type Admission = Readonly<{
  /** The response to a request that is not admitted. */
  rejected?: Response | undefined;
  /** The client whose allowance pays for the response. */
  reader?: string;
  /** Headers of the response to a settled payment. */
  headers?: Readonly<Record<string, string>>;
}>;

export type PaidReads = Readonly<{
  /** @param request - As routes see it. @param method - As it arrived. */
  admit: (request: Request, method: string, context: RequestContext) => Promise<Admission>;
  /** Takes the cost of a response from the allowance, and the rest from the rate limit. */
  charge: (reader: string, context: RequestContext, response: Response) => Promise<void>;
}>;

export type PaidReadsOptions = Readonly<{
  limiter: RateLimiter;
  reading: PaidReading;
  /** Address at which the client reaches the gateway. */
  publicUrl: PublicUrl;
  seed: number;
  clock: Clock;
  log: Log;
}>;

/** Payments that one client may try: each is a request to the chain. */
const attempts = { capacity: 10, refillPerSecond: 0.2, countMax: 100_000 } as const;

export function createPaidReads(options: PaidReadsOptions): PaidReads {
  const { limiter, reading, publicUrl, seed, clock, log } = options;
  const tries = createTokenBuckets({ ...attempts, seed, clock });

  /** The 402 response with the price; 429 when no price is available. */
  async function required(request: Request, empty: EmptyBucket, rejected?: RejectedPayment): Promise<Response> {
    const limited = rateLimitedResponse(empty);
    try {
      const quote = await reading.quote(request.signal);
      const resource = {
        url: `${publicUrl(request)}/`,
        description: `${reading.bytes} bytes beyond the limit`,
        mimeType: "application/octet-stream",
      };
      const { message } = await limited.json();
      const required = { terms: reading.terms, quote, resource, error: message };
      const response = x402RequiredResponse(rejected === undefined ? required : { ...required, rejected });
      response.headers.set("Retry-After", limited.headers.get("Retry-After") ?? "1");
      return response;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      log.warn("no price for paid reading", { error });
      return rateLimitedResponse(empty);
    }
  }

  async function paid(request: Request, empty: EmptyBucket, payment: X402Payment): Promise<Admission> {
    if (tries.waitMs(empty.client) > 0) return { rejected: rateLimitedResponse(empty) };
    tries.take(empty.client, 1);
    try {
      const settled = await reading.pay(empty.client, payment, `${publicUrl(request)}/`, request.signal);
      // A repeated payment whose allowance is used up buys no other one.
      if (reading.left(empty.client) === 0) return { rejected: await required(request, empty) };
      return { reader: empty.client, headers: x402SettledHeaders(payment, reading.terms, settled) };
    } catch (error) {
      if (reportsDisconnect(error, request.signal))
        return { rejected: new Response(null, { status: clientClosedStatus }) };
      if (!(error instanceof Failure)) throw error;
      if (error.code !== "settlement_failed") return { rejected: failureResponse(error) };
      return { rejected: await required(request, empty, rejectedPayment(payment, error)) };
    }
  }

  return {
    admit: async (request, method, context) => {
      if (!isRead(method, context.target.path)) return { rejected: limiter.reject(method, context) };
      const empty = limiter.takeOrEmptyBucket(method, context);
      if (empty === undefined) return {};
      if (reading.left(empty.client) > 0) return { reader: empty.client };
      let payment: X402Payment | undefined;
      try {
        payment = x402PaymentOf(request);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        return { rejected: failureResponse(error) };
      }
      if (payment === undefined) return { rejected: await required(request, empty) };
      return await paid(request, empty, payment);
    },
    charge: async (reader, context, response) => {
      const tokens = Math.max(1, tokensOf(context, response));
      const uncovered = await unpaidBytes(options, reader, tokens * tokenBytes);
      limiter.debit(reader, Math.ceil(uncovered / tokenBytes));
    },
  };
}

/** Whether requests of this kind are sold; the other services have their own payments. */
function isRead(method: string, path: string): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  return !path.startsWith("/payment/") && !path.startsWith("/upload/");
}

/** @returns Bytes that the allowance did not cover: all of them when the ledger cannot be written. */
async function unpaidBytes({ reading, log }: PaidReadsOptions, reader: string, bytes: number): Promise<number> {
  try {
    return await reading.take(reader, bytes);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    log.warn("paid reading could not be recorded", { error });
    return bytes;
  }
}
