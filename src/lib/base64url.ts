/**
 * Base64url without padding, in canonical form only: two texts are equal exactly when their bytes are, so a text can be
 * a key.
 * Source: RFC 4648 §5, §3.5 (canonical encoding).
 * @module
 */

export function encodeBase64url(bytes: Uint8Array): string {
  // Half the time of a Buffer's toString, which needs a view first (measured).
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

/**
 * Decodes canonical base64url.
 *
 * @returns The bytes, or `undefined` for padding, other characters, an impossible length, or trailing bits that are not
 *   zero.
 */
export function decodeBase64url(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, "base64url");
  // The decoder skips unknown characters and accepts +, / and padding; encoding again detects them.
  return bytes.toString("base64url") === text ? bytes : undefined;
}

/** The decoded size of base64url text; exact for canonical text. */
export function decodedSize(text: string): number {
  return Math.floor((text.length * 3) / 4);
}

/** The length of the base64url text of a number of bytes, without padding. */
export function encodedSize(bytes: number): number {
  return Math.ceil((bytes * 4) / 3);
}
