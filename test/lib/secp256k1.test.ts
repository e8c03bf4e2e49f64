/**
 * The native and the pure secp256k1 give the same results, and reject the same input.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { compressPoint, hasLowS, pureSecp256k1, secp256k1, secp256k1Implementation } from "../../src/lib/secp256k1.ts";

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const key = new Uint8Array(32).fill(7);
const hash = new Uint8Array(32).fill(9);
const signed = secp256k1.sign(hash, key);
const publicKey = secp256k1.publicKeyOf(key);

const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });
const privateKeys = bytes32.filter((bytes) => {
  const number = BigInt(`0x${bytes.toHex()}`);
  return number > 0n && number < order;
});

describe("secp256k1", () => {
  test("is native where an addon is shipped", () => {
    const shipped = ["linux-x64", "darwin-arm64", "win32-x64"].includes(`${process.platform}-${process.arch}`);
    expect(secp256k1Implementation()).toBe(shipped ? "native" : "pure");
  });

  test("gives the same keys, signatures and recovered keys in both implementations", () => {
    const property = fc.property(privateKeys, bytes32, (privateKey, message) => {
      const one = secp256k1.sign(message, privateKey);
      const other = pureSecp256k1.sign(message, privateKey);
      expect(one.signature).toEqual(other.signature);
      expect(one.recovery).toBe(other.recovery);
      expect(hasLowS(one.signature)).toBe(true);

      const owner = secp256k1.publicKeyOf(privateKey);
      expect(pureSecp256k1.publicKeyOf(privateKey)).toEqual(owner);
      for (const implementation of [secp256k1, pureSecp256k1]) {
        expect(implementation.verify(one.signature, message, owner)).toBe(true);
        expect(implementation.recover(one.signature, one.recovery, message)).toEqual(owner);
      }
    });
    fc.assert(property, { numRuns: 50 });
  });

  test("writes a key in 33 bytes as both implementations read it", () => {
    const property = fc.property(privateKeys, (privateKey) => {
      const owner = compressPoint(secp256k1.publicKeyOf(privateKey));
      const { signature } = secp256k1.sign(hash, privateKey);
      expect([owner.length, secp256k1.verify(signature, hash, owner)]).toEqual([33, true]);
      expect(pureSecp256k1.verify(signature, hash, owner)).toBe(true);
    });
    fc.assert(property, { numRuns: 20 });
  });

  test("gives the same result for random signatures", () => {
    const any64 = fc.uint8Array({ minLength: 64, maxLength: 64 });
    const property = fc.property(any64, fc.integer({ min: 0, max: 3 }), bytes32, (signature, recovery, message) => {
      expect(secp256k1.recover(signature, recovery, message)).toEqual(
        pureSecp256k1.recover(signature, recovery, message),
      );
      expect(secp256k1.verify(signature, message, publicKey)).toBe(pureSecp256k1.verify(signature, message, publicKey));
    });
    fc.assert(property, { numRuns: 300 });
  });

  const highS = withS(signed.signature, order - numberOf(signed.signature.subarray(32)));
  const zero = new Uint8Array(64);
  const invalid: readonly (readonly [string, Uint8Array, Uint8Array, Uint8Array])[] = [
    ["a high S", highS, hash, publicKey],
    ["r and s of zero", zero, hash, publicKey],
    ["an S of the order", withS(signed.signature, order), hash, publicKey],
    ["another hash", signed.signature, new Uint8Array(32).fill(8), publicKey],
    ["another key", signed.signature, hash, secp256k1.publicKeyOf(hash)],
    ["a signature of 63 bytes", signed.signature.subarray(1), hash, publicKey],
    ["a hash of 31 bytes", signed.signature, hash.subarray(1), publicKey],
    ["a key of 64 bytes", signed.signature, hash, publicKey.subarray(1)],
    ["a key off the curve", signed.signature, hash, new Uint8Array(65).fill(4)],
    ["no signature", new Uint8Array(0), hash, publicKey],
  ];
  test.each(invalid)("does not verify %s", (_name, signature, message, owner) => {
    expect(secp256k1.verify(signature, message, owner)).toBe(false);
    expect(pureSecp256k1.verify(signature, message, owner)).toBe(false);
  });

  test("recovers the key of a high S, which only hasLowS detects", () => {
    expect(hasLowS(signed.signature)).toBe(true);
    expect(hasLowS(highS)).toBe(false);
    for (const implementation of [secp256k1, pureSecp256k1]) {
      expect(implementation.recover(highS, signed.recovery ^ 1, hash)).toEqual(publicKey);
    }
  });

  test.each([-1, 4, 1.5, Number.NaN])("recovers nothing for a recovery of %p", (recovery) => {
    expect(secp256k1.recover(signed.signature, recovery, hash)).toBeUndefined();
    expect(pureSecp256k1.recover(signed.signature, recovery, hash)).toBeUndefined();
  });
});

function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${bytes.toHex()}`);
}

function withS(signature: Uint8Array, s: bigint): Uint8Array {
  const changed = signature.slice();
  changed.set(Uint8Array.fromHex(s.toString(16).padStart(64, "0")), 32);
  return changed;
}
