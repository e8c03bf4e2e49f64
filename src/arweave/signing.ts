/**
 * The identity of a signing: an id that all encodings of one signature share.
 *
 * An item's id is the hash of its signature's bytes. Some signature types allow several encodings of one signature,
 * which can be derived without the key. One signing can therefore have several item ids. Charges, approvals and
 * revocations happen once for each signing, so they use the signing id, not the item's id.
 * Source: docs/reference/signatures.md.
 * @module
 */
import { sha256 } from "../lib/hash.ts";
import type { ItemHeader } from "./data-item.ts";
import { type Id, idFromBytes } from "./id.ts";
import { signatureLayout } from "./signature.ts";

/** A signing and its item ids. */
export type Signing = Readonly<{
  /** The same for every encoding of the signature, and different for every other signing. */
  id: Id;
  /**
   * The possible ids of the item. Complete where the encodings can be enumerated; otherwise (type 6) only the id of
   * the given encoding.
   */
  itemIds: readonly Id[];
}>;

type SignedHeader = Pick<ItemHeader, "id" | "signatureType" | "signature">;

const messageSigningPrefix = new TextEncoder().encode("cairn signing by message");

/**
 * Identifies the signing by an item's header. For type 6 the header identifies only one encoding; the verified content
 * identifies the signing (`signingOfItem`).
 */
export function signingOfHeader({ id, signatureType, signature }: SignedHeader): Signing {
  const encodings = signatureLayout(signatureType)?.encodings ?? "unique";
  if (typeof encodings === "string") return { id, itemIds: [id] };
  const ids = encodings(signature).map((encoding) => idFromBytes(sha256(encoding)));
  return { id: ids[0] ?? id, itemIds: ids };
}

/**
 * Identifies the signing of an item with a verified signature.
 *
 * @param message - The signed 48-byte deep hash.
 */
export function signingOfItem(header: SignedHeader & Pick<ItemHeader, "owner">, message: Uint8Array): Signing {
  if (!isSignedByMessage(header.signatureType)) return signingOfHeader(header);
  const identity = Buffer.concat([messageSigningPrefix, header.owner, message]);
  return { id: idFromBytes(sha256(identity)), itemIds: [header.id] };
}

/** Whether only the verified content of an item identifies the signing (type 6). */
export function isSignedByMessage(signatureType: number): boolean {
  return signatureLayout(signatureType)?.encodings === "by-message";
}

/** Whether items of a signature type can have several ids. */
export function isMalleable(signatureType: number): boolean {
  return (signatureLayout(signatureType)?.encodings ?? "unique") !== "unique";
}
