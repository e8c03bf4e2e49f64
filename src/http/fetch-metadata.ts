/**
 * What a browser says about why it asks.
 * Source: Fetch Metadata Request Headers (W3C).
 * @module
 */
import type { FetchMetadata } from "../gateway/isolation.ts";

/** Reads the facts by which content is kept apart (gateway/isolation.ts). */
export function readFetchMetadata(headers: Headers): FetchMetadata {
  return {
    destination: headers.get("sec-fetch-dest"),
    otherFetchMetadata: headers.has("sec-fetch-mode") || headers.has("sec-fetch-site"),
    accept: headers.get("accept"),
    serviceWorker: headers.get("service-worker"),
  };
}
