/**
 * The interface of a signature scheme for data items: its sizes, its verification, its signers.
 *
 * A message is the 48-byte deep hash of a data item; each scheme wraps it in its own way before signing.
 * Source: ANS-104 §2.2 (signature types and their meta).
 * @module
 */

/** The number of a signature type on the wire. */
export type SignatureType = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 101;

/**
 * The valid encodings of one signature; one can be derived from another without the key. `unique`: there is one.
 * `by-message`: too many to enumerate; owner and message identify the signature instead. A function: lists all
 * encodings of a signature, the canonical one first.
 */
export type SignatureEncodings =
  | "unique"
  | "by-message"
  | ((signature: Uint8Array) => readonly [Uint8Array, ...Uint8Array[]]);

/** A signature scheme. Sizes are in bytes. */
export type SignatureScheme = Readonly<{
  type: SignatureType;
  name: string;
  signatureSize: number;
  ownerSize: number;
  encodings: SignatureEncodings;
  /** Verifies a signature. Owner and signature have the scheme's sizes. Never throws. */
  verify(message: Uint8Array, owner: Uint8Array, signature: Uint8Array): Verdict;
  /** The owner's address on the chain that the scheme comes from. */
  nativeAddress(owner: Uint8Array): string;
}>;

/** A key with its scheme. */
export type Signer = Readonly<{
  scheme: SignatureScheme;
  owner: Uint8Array;
  /** Signs the 48-byte deep hash; returns `scheme.signatureSize` bytes. */
  sign(message: Uint8Array): Uint8Array;
}>;

/** The result of a verification; a reason is one lower-case sentence. */
export type Verdict = Readonly<{ valid: true }> | Readonly<{ valid: false; reason: string }>;

/** The shared verdict of success, so that verifying many items allocates none. */
export const valid: Verdict = { valid: true };

/** A verdict of failure. */
export function invalid(reason: string): Verdict {
  return { valid: false, reason };
}
