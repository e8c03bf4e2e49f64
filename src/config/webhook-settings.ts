/**
 * The settings of webhooks, rows of the one table.
 * @module
 */
import { list, setting, text, url, webhookSecret } from "./setting-readers.ts";

export const webhookSettings = {
  WEBHOOK_TARGET_SERVERS: setting({
    read: list(url),
    fallback: [],
    unit: "URLs",
    effect: "Servers that are told by POST what the index gains, separated by commas.",
  }),
  WEBHOOK_INDEX_FILTER: setting({
    read: text,
    fallback: '{"never":true}',
    unit: "JSON filter",
    effect: "Which transactions and data items webhooks tell of.",
  }),
  WEBHOOK_BLOCK_FILTER: setting({
    read: text,
    fallback: '{"never":true}',
    unit: "JSON filter",
    effect: "Which blocks webhooks tell of; attributes are a block's fields.",
  }),
  WEBHOOK_SECRET: setting({
    read: webhookSecret,
    unit: "text, or `whsec_` and base64",
    effect: "Key that signs webhooks by HMAC-SHA-256, in the headers of Standard Webhooks.",
    secret: true,
  }),
} as const;
