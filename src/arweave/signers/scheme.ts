/**
 * What one way of signing a data item is: its sizes on the wire, how it is checked, how it signs.
 *
 * A message is the 48-byte deep hash of a data item; each scheme wraps it in its own way before signing.
 *
 * The outcome of checking a signature: valid, or a reason for people.
 * Source: ANS-104 §2.2 (signature types and their meta).
 * @module
 */

/** The number of a signature type on the wire. */
export type SignatureType = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 101;

/**
 * The encodings under which one signature is valid, and which anybody can derive from each other without the key.
 * `unique`: there is one. `by-message`: too many to enumerate; owner and message identify the signature instead. A
 * function: lists all encodings of a signature, the canonical one first.
 */
export type SignatureEncodings =
  | "unique"
  | "by-message"
  | ((signature: Uint8Array) => readonly [Uint8Array, ...Uint8Array[]]);

/** One way of signing. Sizes are in bytes. */
export type SignatureScheme = Readonly<{
  type: SignatureType;
  name: string;
  signatureSize: number;
  ownerSize: number;
  encodings: SignatureEncodings;
  /** Checks a signature. Owner and signature have the scheme's sizes. Never throws. */
  verify(message: Uint8Array, owner: Uint8Array, signature: Uint8Array): Verdict;
  /** The owner's address on the chain where this way of signing is at home. */
  nativeAddress(owner: Uint8Array): string;
}>;

/** Somebody who can sign: a key, and the scheme it is used with. */
export type Signer = Readonly<{
  scheme: SignatureScheme;
  owner: Uint8Array;
  /** Signs the 48-byte deep hash; gives `scheme.signatureSize` bytes. */
  sign(message: Uint8Array): Uint8Array;
}>;

/** The outcome of a check; a reason is one lower-case sentence. */
export type Verdict = Readonly<{ valid: true }> | Readonly<{ valid: false; reason: string }>;

/** The one verdict of success, so that checking many items allocates none. */
export const valid: Verdict = { valid: true };

/** A verdict of failure. */
export function invalid(reason: string): Verdict {
  return { valid: false, reason };
}
