/**
 * RSA-PSS with keys of any size and salts of any length.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { constants, generateKeyPairSync, sign } from "node:crypto";
import { utf8Bytes } from "../../src/lib/bytes.ts";
import { signRsaPss, verifyRsaPss } from "../../src/lib/rsa.ts";

const message = utf8Bytes("a message");
const keys = [1_024, 2_048, 2_056, 4_096].map((modulusLength) => {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength });
  const modulus = new Uint8Array(Buffer.from(publicKey.export({ format: "jwk" }).n ?? "", "base64url"));
  return { modulusLength, modulus, privateKey };
});

describe("verifyRsaPss", () => {
  for (const { modulusLength, modulus, privateKey } of keys) {
    test(`accepts signatures of ${modulusLength} bits with no salt, 32 bytes and the maximum`, () => {
      for (const saltLength of [0, 32, constants.RSA_PSS_SALTLEN_MAX_SIGN]) {
        const padding = constants.RSA_PKCS1_PSS_PADDING;
        const signature = sign("sha256", message, { key: privateKey, padding, saltLength });
        expect(verifyRsaPss(modulus, message, signature)).toBe(true);
        expect(verifyRsaPss(modulus, utf8Bytes("another"), signature)).toBe(false);
        expect(verifyRsaPss(modulus, message, signature.subarray(1))).toBe(false);
      }
    });

    test(`signs with ${modulusLength} bits; without salt always the same`, () => {
      const one = signRsaPss(privateKey, message, 0);
      expect(signRsaPss(privateKey, message, 0)).toEqual(one);
      expect(signRsaPss(privateKey, message, 32)).not.toEqual(signRsaPss(privateKey, message, 32));
      expect(verifyRsaPss(modulus, message, one)).toBe(true);
    });
  }

  test("a signature with another padding is rejected", () => {
    const [first] = keys;
    if (first === undefined) throw new Error("there are keys");
    const signature = sign("sha256", message, {
      key: first.privateKey,
      padding: constants.RSA_PKCS1_PADDING,
    });
    expect(verifyRsaPss(first.modulus, message, signature)).toBe(false);
  });

  const none: [name: string, modulus: Uint8Array][] = [
    ["no bytes", new Uint8Array(0)],
    ["zero", new Uint8Array(512)],
    ["one", Uint8Array.of(1)],
    ["an even number", new Uint8Array(512).fill(0xfe)],
    ["all ones", new Uint8Array(512).fill(0xff)],
    ["32 bytes", new Uint8Array(32).fill(0x77)],
  ];
  test.each(none)("a modulus of %s verifies nothing, without an error", (_name, modulus) => {
    expect(verifyRsaPss(modulus, message, new Uint8Array(modulus.length))).toBe(false);
    expect(verifyRsaPss(modulus, message, new Uint8Array(512).fill(1))).toBe(false);
  });

  test("a thousand other keys in between do not change a result", () => {
    const [key] = keys;
    if (key === undefined) throw new Error("there are keys");
    const signature = signRsaPss(key.privateKey, message, 32);
    for (let count = 0; count < 1_000; count++) {
      const other = key.modulus
        .with(5, count & 255)
        .with(6, count >> 8)
        .with(0, 0xc1);
      verifyRsaPss(other, message, signature);
    }
    expect(verifyRsaPss(key.modulus, message, signature)).toBe(true);
  });
});
