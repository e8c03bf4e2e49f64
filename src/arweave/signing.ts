/**
 * The identity of an act of signing: what stays the same under every encoding of one signature.
 *
 * An item's id is the hash of its signature's bytes. Some signature types allow several encodings of one signature,
 * which anybody can derive without the key, so one act of signing can have several ids. Whatever is charged, approved
 * or revoked once per act of signing is identified by the signing id, never by the item's id alone.
 * Source: docs/reference/signatures.md.
 * @module
 */
import { sha256 } from "../lib/hash.ts";
import type { ItemHeader } from "./data-item.ts";
import { type Id, idFromBytes } from "./id.ts";
import { signatureLayout } from "./signature.ts";

/** An act of signing. */
export type Signing = Readonly<{
  /** The same for every encoding of the signature, and for no other act of signing. */
  id: Id;
  /**
   * The ids that the item can have. Complete where the encodings can be enumerated; otherwise (type 6) only the id of
   * the encoding at hand.
   */
  itemIds: readonly Id[];
}>;

type SignedHeader = Pick<ItemHeader, "id" | "signatureType" | "signature">;

const messageSigningPrefix = new TextEncoder().encode("cairn signing by message");

/**
 * Identifies the act of signing by an item's header, as far as that can: for type 6 only the verified content does
 * (`signingOfItem`), and the header finds the same encoding alone.
 */
export function signingOfHeader({ id, signatureType, signature }: SignedHeader): Signing {
  const encodings = signatureLayout(signatureType)?.encodings ?? "unique";
  if (typeof encodings === "string") return { id, itemIds: [id] };
  const ids = encodings(signature).map((encoding) => idFromBytes(sha256(encoding)));
  return { id: ids[0] ?? id, itemIds: ids };
}

/**
 * Identifies the act of signing of an item whose signature was verified.
 *
 * @param message - The 48-byte deep hash that was signed.
 */
export function signingOfItem(header: SignedHeader & Pick<ItemHeader, "owner">, message: Uint8Array): Signing {
  if (!isSignedByMessage(header.signatureType)) return signingOfHeader(header);
  const identity = Buffer.concat([messageSigningPrefix, header.owner, message]);
  return { id: idFromBytes(sha256(identity)), itemIds: [header.id] };
}

/** Whether only the verified content of an item identifies the act of signing (type 6). */
export function isSignedByMessage(signatureType: number): boolean {
  return signatureLayout(signatureType)?.encodings === "by-message";
}

/** Whether items of a signature type can have several ids. */
export function isMalleable(signatureType: number): boolean {
  return (signatureLayout(signatureType)?.encodings ?? "unique") !== "unique";
}
