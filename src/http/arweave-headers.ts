/**
 * Owner, signature and tags of content as `X-Arweave-…` response headers. Signers choose names and values freely, so
 * each is validated and their total size is limited.
 * Source: RFC 9110 §5.1, §5.5 (field names and values); docs/operating.md, "Headers of tags".
 * @module
 */
import type { SignedContent } from "../gateway/signed-content.ts";

/** Bytes of all these headers, names included: proxies reject heads of more than 8 to 16 KiB. */
export const arweaveHeaderBytesMax = 8_192;

/** Tags of one response. */
const tagsMax = 100;

/** Characters of a tag's name as part of a header's name. */
const nameLengthMax = 128;

/** Characters of a tag's value. */
const valueLengthMax = 4_096;

const tagPrefix = "X-Arweave-Tag-";

/** Own headers with the same prefix as those of tags: a tag may not imitate them. */
const reservedNames: ReadonlySet<string> = new Set(["count"]);

/** Bytes of a header line besides name and value: ": " and the line end. */
const lineBytes = 4;

/** Printable Latin-1 without spaces at the ends, which a reader of headers would remove. */
const valuePattern = /^(?:[\x21-\x7e\xa1-\xff](?:[\x20-\x7e\xa0-\xff]*[\x21-\x7e\xa1-\xff])?)?$/;

/** Whether a header, its name in lower case, is one of these. */
export function isArweaveHeader(name: string): boolean {
  return name.startsWith("x-arweave-");
}

/** Bytes that these headers take in a response that has them. */
export function arweaveHeaderBytes(headers: Headers): number {
  let bytes = 0;
  for (const [name, value] of headers) if (isArweaveHeader(name)) bytes += lineLength(name, value);
  return bytes;
}

/**
 * Sets the headers. What does not fit or cannot be a header is left out; of tags `X-Arweave-Tags-Truncated: true` says
 * so, and `X-Arweave-Tag-Count` is always the number of all of them.
 */
export function setArweaveHeaders(headers: Headers, signed: SignedContent): void {
  let bytesLeft = arweaveHeaderBytesMax - lineLength("X-Arweave-Tags-Truncated", "true");
  const add = (name: string, value: string): boolean => {
    const bytes = lineLength(name, value);
    if (bytes > bytesLeft) return false;
    bytesLeft -= bytes;
    headers.append(name, value);
    return true;
  };
  for (const [name, value] of fixedFields(signed)) add(`X-Arweave-${name}`, value);
  const sent = signed.tags.slice(0, tagsMax).filter(({ name, value }) => {
    const field = fieldName(name);
    if (field === undefined || value.length > valueLengthMax || !valuePattern.test(value)) return false;
    return add(`${tagPrefix}${field}`, value);
  });
  if (sent.length < signed.tags.length) headers.set("X-Arweave-Tags-Truncated", "true");
}

function fixedFields(signed: SignedContent): readonly (readonly [string, string])[] {
  const { ownerAddress, owner, signature, signatureType, target, anchor, tags } = signed;
  const fields = [
    ["Owner-Address", ownerAddress],
    ["Tag-Count", String(tags.length)],
    ["Signature-Type", String(signatureType ?? "")],
    ["Target", target],
    ["Anchor", anchor],
    ["Signature", signature],
    ["Owner", owner],
  ] as const;
  return fields.filter(([, value]) => value !== "" && valuePattern.test(value));
}

/** A tag's name as part of a header's name; undefined when nothing of it is left, or it is one of ours. */
function fieldName(name: string): string | undefined {
  if (name.length > nameLengthMax) return undefined;
  const field = name.replace(/[^A-Za-z0-9_]+/g, "-").replace(/^-|-$/g, "");
  return field === "" || reservedNames.has(field.toLowerCase()) ? undefined : field;
}

function lineLength(name: string, value: string): number {
  return name.length + value.length + lineBytes;
}
