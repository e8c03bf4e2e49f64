/**
 * Fetch metadata of a browser's request.
 * Source: Fetch Metadata Request Headers (W3C).
 * @module
 */
import type { FetchMetadata } from "../gateway/isolation.ts";

/** Reads the metadata that isolates content (gateway/isolation.ts). */
export function readFetchMetadata(headers: Headers): FetchMetadata {
  return {
    destination: headers.get("sec-fetch-dest"),
    otherFetchMetadata: headers.has("sec-fetch-mode") || headers.has("sec-fetch-site"),
    accept: headers.get("accept"),
    serviceWorker: headers.get("service-worker"),
  };
}
