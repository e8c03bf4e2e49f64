/**
 * The settings of the upload service, rows of the one table.
 * @module
 */
import { count, duration, list, port, positive, setting, text, url } from "./setting-readers.ts";

export const uploadSettings = {
  UPLOAD_PORT: setting({
    read: port,
    fallback: 3002,
    unit: "port",
    effect: "Port of the upload service; 0 takes a free one.",
  }),
  UPLOAD_PUBLIC_URL: setting({
    read: url,
    unit: "URL",
    effect: "Address under which clients reach the upload service: in x402 answers.",
  }),
  WALLET_FILE: setting({
    read: text,
    unit: "file",
    effect:
      "Key (JWK) of the wallet that pays for bundles and posts them; unset turns uploads off, " +
      "under `dev` one is made and kept.",
  }),
  RECEIPT_WALLET_FILE: setting({
    read: text,
    unit: "file",
    effect: "Key (JWK) that signs receipts; unset is the wallet that posts bundles.",
  }),
  UPLOAD_BYTES_MAX: setting({
    read: positive,
    fallback: 10 * 2 ** 30,
    unit: "bytes",
    effect: "Largest item that is taken.",
  }),
  UPLOAD_DISK_BYTES_MAX: setting({
    read: positive,
    fallback: 100 * 2 ** 30,
    unit: "bytes",
    effect:
      "Disk that items may take which are not permanent yet; beyond it uploads are answered 503. Parts that nobody " +
      "has paid for may take half of it, or as much as the largest item.",
  }),
  UPLOAD_FREE_BYTES_MIN: setting({
    read: count,
    fallback: 2 ** 30,
    unit: "bytes",
    effect: "Disk that stays free; below it uploads are answered 503.",
  }),
  UPLOAD_BUNDLE_WAIT_MS: setting({
    read: duration,
    fallback: 60_000,
    dev: 2_000,
    unit: "milliseconds",
    effect: "Longest that an item waits for others to be bundled with.",
  }),
  UPLOAD_LOOK_MS: setting({
    read: duration,
    fallback: 30_000,
    dev: 250,
    unit: "milliseconds",
    effect: "How often a bundle that waits for the chain is looked for.",
  }),
  UPLOAD_CONFIRMATIONS: setting({
    read: positive,
    fallback: 18,
    dev: 1,
    unit: "blocks",
    effect: "Depth at which a bundle counts as permanent; 1 is as soon as it is mined.",
  }),
  UPLOAD_ALLOWED_ADDRESSES: setting({
    read: list(text),
    fallback: [],
    unit: "addresses",
    effect: "Signers who upload free of charge, separated by commas.",
  }),
  UPLOAD_BLOCKED_ADDRESSES: setting({
    read: list(text),
    fallback: [],
    unit: "addresses",
    effect: "Signers whose items are refused, separated by commas.",
  }),
} as const;
