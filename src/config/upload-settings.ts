/**
 * Settings of the upload service.
 * @module
 */
import { sizeText } from "../lib/quantity-text.ts";
import {
  baseUrl,
  count,
  duration,
  flag,
  list,
  port,
  positive,
  positiveSize,
  setting,
  size,
  text,
} from "./setting-readers.ts";

export const uploadSettings = {
  UPLOAD_PORT: setting({
    read: port,
    fallback: 3002,
    unit: "port",
    effect: "Port of the upload service; 0 picks a free port.",
  }),
  UPLOAD_PUBLIC_URL: setting({
    read: baseUrl,
    unit: "URL",
    effect: "URL under which clients reach the upload service, for x402 responses.",
  }),
  WALLET_FILE: setting({
    read: text,
    unit: "file",
    effect:
      "Key (JWK) of the wallet that posts bundles and pays for them; unset switches uploads off; " +
      "`dev` creates and stores one.",
  }),
  RECEIPT_WALLET_FILE: setting({
    read: text,
    unit: "file",
    effect: "Key (JWK) that signs receipts; unset is the wallet that posts bundles.",
  }),
  FREE_UPLOAD_BYTES: setting({
    read: size,
    fallback: 0,
    dev: 16 * 2 ** 20,
    unit: "size",
    write: sizeText,
    effect: "Largest item that is uploaded free of charge.",
  }),
  UPLOAD_BYTES_MAX: setting({
    read: positiveSize,
    fallback: 10 * 2 ** 30,
    unit: "size",
    write: sizeText,
    effect: "Largest item that is accepted.",
  }),
  UPLOAD_DISK_BYTES_MAX: setting({
    read: positiveSize,
    fallback: 100 * 2 ** 30,
    unit: "size",
    write: sizeText,
    effect:
      "Maximum disk space of items that are not permanent yet; uploads beyond it respond 503. Unpaid parts may use " +
      "half of it, or the size of the largest item.",
  }),
  UPLOAD_FREE_BYTES_MIN: setting({
    read: size,
    fallback: 2 ** 30,
    unit: "size",
    write: sizeText,
    effect: "Disk space that stays free; below it, uploads respond 503.",
  }),
  UPLOAD_BUNDLE_WAIT_MS: setting({
    read: duration,
    fallback: 60_000,
    dev: 2_000,
    unit: "milliseconds",
    effect: "Maximum time that an item waits for other items of its bundle.",
  }),
  UPLOAD_LOOK_MS: setting({
    read: duration,
    fallback: 30_000,
    dev: 250,
    unit: "milliseconds",
    effect: "Interval between checks of a posted bundle on the chain.",
  }),
  UPLOAD_CONFIRMATIONS: setting({
    read: positive,
    fallback: 18,
    dev: 1,
    unit: "blocks",
    effect: "Depth at which a bundle is permanent; 1 is as soon as it is mined.",
  }),
  UPLOAD_ALLOWED_ADDRESSES: setting({
    read: list(text),
    fallback: [],
    unit: "addresses",
    effect: "Signers that upload free of charge, separated by commas.",
  }),
  UPLOAD_BLOCKED_ADDRESSES: setting({
    read: list(text),
    fallback: [],
    unit: "addresses",
    effect: "Signers whose items are rejected, separated by commas.",
  }),
  UPLOAD_PAGE: setting({
    read: flag,
    fallback: false,
    dev: true,
    unit: "true or false",
    effect:
      "Whether the gateway serves a page for uploads at `/svc/upload`. It needs MOUNT_SERVICES, and content on its " +
      "own origins (CONTENT_ISOLATION).",
  }),
  UPLOAD_CONFIRM_WINC: setting({
    read: count,
    fallback: 100_000_000_000,
    unit: "winc",
    effect: "Price above which `cairn upload` asks for confirmation on a terminal.",
  }),
} as const;
