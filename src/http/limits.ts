/**
 * The largest bodies of requests, in one table; the API reference shows it.
 * Source: docs/reference/gateway.md#limits; docs/reference/node-api.md#conventions.
 * @module
 */
import { bodyBytesMax as graphqlBytesMax } from "../graphql/query-limits.ts";

/** Bytes; a larger body gets 413. */
export const limits = {
  /** JSON of administration. */
  adminBytesMax: 8 * 2 ** 20,
  /** A query, its variables included. */
  graphqlBytesMax,
  /** A signed transaction; one of format 1 carries its data. */
  transactionBytesMax: 15 * 2 ** 20,
  /** A chunk with its proof, as JSON. */
  chunkBytesMax: 750_000,
  /** A frame response. */
  frameBytesMax: 64 * 2 ** 10,
  /** JSON of the payment service. */
  paymentBytesMax: 64 * 2 ** 10,
  /** What the card provider reports. */
  webhookBytesMax: 2 ** 20,
  /** Request line and headers of a request without cookies; more gets 431. */
  headerBytesMax: 16 * 2 ** 10,
  /** The same with cookies: some 30 cookies of the largest size. The runtime itself responds 431. */
  headerBytesWithCookiesMax: 128 * 2 ** 10,
} as const;
