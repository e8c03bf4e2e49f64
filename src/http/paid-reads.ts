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
import type { X402Payment } from "../payment/x402/x402.ts";
import { clientClosedStatus, reportsDisconnect } from "./client-disconnect.ts";
import type { PublicUrl } from "./public-url.ts";
import { type EmptyBucket, type RateLimiter, rateLimitedResponse, tokenBytes, tokensOf } from "./rate-limiter.ts";
import type { RequestContext } from "./request-context.ts";
import { failureResponse } from "./responses.ts";
import { x402PaymentOf, x402RequiredResponse, x402SettledHeaders } from "./x402-responses.ts";

export type Admission = Readonly<{
  /** It does not. */
  rejected?: Response | undefined;
  /** The reader whose allowance pays for the response. */
  reader?: string;
  /** Of the response, where a payment was settled for it. */
  headers?: Readonly<Record<string, string>>;
}>;

/** Lets requests in, within the limits or for what was paid. */
export type PaidReads = Readonly<{
  /** @param request - As routes see it. @param method - As it came. */
  admit: (request: Request, method: string, context: RequestContext) => Promise<Admission>;
  /** Takes what a response costs from what was paid, and the rest as any other response's. */
  charge: (reader: string, context: RequestContext, response: Response) => Promise<void>;
}>;

/** What it is made of. */
export type PaidReadsOptions = Readonly<{
  limiter: RateLimiter;
  reading: PaidReading;
  /** Where a caller reaches the gateway. */
  publicUrl: PublicUrl;
  seed: number;
  clock: Clock;
  log: Log;
}>;

/** Payments that one reader may try: each is a question to the chain. */
const attempts = { capacity: 10, refillPerSecond: 0.2, countMax: 100_000 } as const;

/** Creates it. */
export function createPaidReads(options: PaidReadsOptions): PaidReads {
  const { limiter, reading, publicUrl, seed, clock, log } = options;
  const tries = createTokenBuckets({ ...attempts, seed, clock });

  /** Tells what to pay; without a price, only that the limit is reached. */
  async function required(
    request: Request,
    lack: EmptyBucket,
    rejected?: Readonly<{ version: 1 | 2; payer: string; reason: string }>,
  ): Promise<Response> {
    const limited = rateLimitedResponse(lack);
    try {
      const quote = await reading.quote(request.signal);
      const resource = {
        url: `${publicUrl(request)}/`,
        description: `${reading.bytes} bytes beyond the limit`,
        mimeType: "application/octet-stream",
      };
      const { message } = await limited.json();
      const failed = rejected === undefined ? {} : { rejected };
      const response = x402RequiredResponse({
        terms: reading.terms,
        quote,
        resource,
        error: message,
        ...failed,
      });
      response.headers.set("Retry-After", limited.headers.get("Retry-After") ?? "1");
      return response;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      log.warn("paid reading has no price", { error });
      return rateLimitedResponse(lack);
    }
  }

  async function paid(request: Request, lack: EmptyBucket, payment: X402Payment): Promise<Admission> {
    if (tries.waitMs(lack.client) > 0) return { rejected: rateLimitedResponse(lack) };
    tries.take(lack.client, 1);
    try {
      const settled = await reading.pay(lack.client, payment, `${publicUrl(request)}/`, request.signal);
      // A payment whose allowance is used up buys nothing again.
      if (reading.left(lack.client) === 0) return { rejected: await required(request, lack) };
      return { reader: lack.client, headers: x402SettledHeaders(payment, reading.terms, settled) };
    } catch (error) {
      if (reportsDisconnect(error, request.signal))
        return { rejected: new Response(null, { status: clientClosedStatus }) };
      if (!(error instanceof Failure)) throw error;
      if (error.code !== "settlement_failed") return { rejected: failureResponse(error) };
      const { version, authorization } = payment;
      const rejected = { version, payer: authorization.from, reason: String(error.context["reason"]) };
      return { rejected: await required(request, lack, rejected) };
    }
  }

  return {
    admit: async (request, method, context) => {
      if (!isRead(method, context.target.path)) return { rejected: limiter.reject(method, context) };
      const lack = limiter.takeOrEmptyBucket(method, context);
      if (lack === undefined) return {};
      if (reading.left(lack.client) > 0) return { reader: lack.client };
      let payment: X402Payment | undefined;
      try {
        payment = x402PaymentOf(request);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        return { rejected: failureResponse(error) };
      }
      if (payment === undefined) return { rejected: await required(request, lack) };
      return await paid(request, lack, payment);
    },
    charge: async (reader, context, response) => {
      const tokens = Math.max(1, tokensOf(context, response));
      const uncovered = await unpaidBytes(options, reader, tokens * tokenBytes);
      limiter.debit(reader, Math.ceil(uncovered / tokenBytes));
    },
  };
}

/** Whether a request is sold; the other services take payments of their own. */
function isRead(method: string, path: string): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  return !path.startsWith("/payment/") && !path.startsWith("/upload/");
}

/** @returns Bytes that nobody has paid for: all of them where the ledger cannot be written. */
async function unpaidBytes({ reading, log }: PaidReadsOptions, reader: string, bytes: number): Promise<number> {
  try {
    return await reading.take(reader, bytes);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    log.warn("paid reading could not be written down", { error });
    return bytes;
  }
}
