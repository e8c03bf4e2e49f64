/**
 * One-shot SHA-2 of bytes at hand, in the runtime's fastest form (measured: 1.4 × node:crypto on 48 bytes).
 * @module
 */

/** The SHA-256 of bytes, 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  const hash = new Uint8Array(32);
  Bun.SHA256.hash(bytes, hash);
  return hash;
}

/** The SHA-384 of bytes, 48 bytes. */
export function sha384(bytes: Uint8Array): Uint8Array {
  const hash = new Uint8Array(48);
  Bun.SHA384.hash(bytes, hash);
  return hash;
}
