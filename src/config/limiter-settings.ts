/**
 * The settings of the rate limiter, rows of the one table.
 * @module
 */
import { flag, list, positive, setting, text } from "./setting-readers.ts";

export const limiterSettings = {
  ENABLE_RATE_LIMITER: setting({
    read: flag,
    fallback: false,
    unit: "true or false",
    effect:
      "Whether clients and resources have limits, over all services together; a token is a KiB of answer, a request " +
      "costs one at least.",
  }),
  RATE_LIMITER_IP_TOKENS_PER_BUCKET: setting({
    read: positive,
    fallback: 100_000,
    unit: "tokens",
    effect: "What one client address may take at once.",
  }),
  RATE_LIMITER_IP_REFILL_PER_SEC: setting({
    read: positive,
    fallback: 20,
    unit: "tokens",
    effect: "What a client address gets back in a second.",
  }),
  RATE_LIMITER_RESOURCE_TOKENS_PER_BUCKET: setting({
    read: positive,
    fallback: 1_000_000,
    unit: "tokens",
    effect: "What may be taken of one resource at once, by all clients together.",
  }),
  RATE_LIMITER_RESOURCE_REFILL_PER_SEC: setting({
    read: positive,
    fallback: 100,
    unit: "tokens",
    effect: "What a resource gets back in a second.",
  }),
  RATE_LIMITER_PAYMENT: setting({
    read: flag,
    fallback: false,
    unit: "true or false",
    effect:
      "Whether readers who have reached a limit are asked for a payment by x402 (402 in place of 429), and read on " +
      "for it; needs ENABLE_RATE_LIMITER and X402_PAY_TO.",
  }),
  RATE_LIMITER_PAYMENT_BYTES: setting({
    read: positive,
    fallback: 10 * 2 ** 20,
    unit: "bytes",
    effect: "What one payment lets a client address read beyond the limits.",
  }),
  RATE_LIMITER_PAYMENT_PRICE: setting({
    read: positive,
    fallback: 1_000,
    unit: "millionths of a dollar",
    effect: "What one payment for reading is; 1000 or more.",
  }),
  RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST: setting({
    read: list(text),
    fallback: [],
    unit: "addresses",
    effect: "Clients without a limit, separated by commas; addresses or CIDR blocks.",
  }),
} as const;
