/**
 * The order of places on the chain, and transactions' texts with their data put back.
 * @module
 */
import { encodeBase64url } from "../../src/lib/base64url.ts";
import type { Place } from "../../src/store/index/place.ts";

/** Orders places as the chain does: negative when `a` comes before `b`. */
export function comparePlaces(a: Place, b: Place): number {
  return a.height - b.height || a.txIndex - b.txIndex || a.offset - b.offset;
}

/** Puts data back where `cutData` took it; the result is the text as it was. */
export function spliceData(cut: Readonly<{ text: string; dataAt: number | null }>, data: Uint8Array): string {
  if (cut.dataAt === null) return cut.text;
  return cut.text.slice(0, cut.dataAt) + encodeBase64url(data) + cut.text.slice(cut.dataAt);
}
