/**
 * Modules of the runtime that load its streams, which take 4 to 8 ms of a start (measured): each is loaded at its first
 * use. Nothing that the start runs imports them in another way (test/tidy.test.ts).
 * @module
 */

let crypto: typeof import("node:crypto") | undefined;
let zlib: typeof import("node:zlib") | undefined;

/** node:crypto, for keys and their signatures; hashes and randomness are at hand without it (lib/hash.ts). */
export function nodeCrypto(): typeof import("node:crypto") {
  crypto ??= process.getBuiltinModule("node:crypto");
  return crypto;
}

/** node:zlib. */
export function nodeZlib(): typeof import("node:zlib") {
  zlib ??= process.getBuiltinModule("node:zlib");
  return zlib;
}
