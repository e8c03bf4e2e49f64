/**
 * The cursor of a transaction or data item as text.
 * @module
 */
import { transactionCursorBytes } from "../../src/graphql/cursor.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import type { Place } from "../../src/store/index/place.ts";

export function writeTransactionCursor(place: Place): string {
  return encodeBase64url(transactionCursorBytes(place));
}
