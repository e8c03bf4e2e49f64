/**
 * Conditional requests: entity tags, If-Match, If-None-Match and If-Range.
 * Source: RFC 9110 §8.8.3 (entity tags), §13.1.1, §13.1.2 and §13.1.5 (preconditions);
 * docs/reference/gateway.md#caching.
 * @module
 */

/** Tags that are read of one header; further tags are ignored. */
const tagsPerHeaderMax = 64;

// One tag of a list with its comma, or an empty place in the list.
const listedTag = /[ \t]*(W\/)?("[\x21\x23-\x7e\x80-\uffff]*")[ \t]*(?:,|$)|[ \t]*,/y;

/**
 * The entity tag of content: its id, which always names the same bytes; marked while the bytes are unverified.
 */
export function contentTag(id: string, verified: boolean): string {
  return verified ? `"${id}"` : `"${id}.u"`;
}

/**
 * Whether If-None-Match contains the tag, so that the response is 304. Tags are compared weakly; `*` matches any.
 *
 * @param header - The header's value; `null` when absent. An invalid list matches up to the first error.
 */
export function matchesTag(header: string | null, tag: string): boolean {
  return header !== null && listHas(header, (found) => found.tag === tag);
}

/**
 * Whether If-Match allows the response: it is absent, `*`, or contains the tag. Tags are compared strongly.
 */
export function allowsTag(header: string | null, tag: string): boolean {
  return header === null || listHas(header, (found) => found.tag === tag && !found.isWeak);
}

function listHas(header: string, isWanted: (found: Readonly<{ tag: string; isWeak: boolean }>) => boolean): boolean {
  if (header.trim() === "*") return true;
  listedTag.lastIndex = 0;
  for (let count = 0; count < tagsPerHeaderMax && listedTag.lastIndex < header.length; count++) {
    const match = listedTag.exec(header);
    if (match === null) return false;
    const [, weak, tag] = match;
    if (tag !== undefined && isWanted({ tag, isWeak: weak !== undefined })) return true;
  }
  return false;
}

/**
 * The Range header; null when If-Range does not match the tag. Tags are compared strongly. A date never matches,
 * because content has no date.
 */
export function effectiveRange(range: string | null, ifRange: string | null, tag: string): string | null {
  return ifRange === null || ifRange.trim() === tag ? range : null;
}
