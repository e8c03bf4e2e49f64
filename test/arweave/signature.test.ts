/**
 * Every way of signing: what it makes is valid, and nothing else is, least of all published forgeries.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { constants, createPrivateKey, sign } from "node:crypto";
import { keccak_256 as keccak256 } from "@noble/hashes/sha3.js";
import { signatureLayout, signatureSchemes } from "../../src/arweave/signature.ts";
import { createArweaveSigner } from "../../src/arweave/signers/arweave.ts";
import { multiAptos, verifyEd25519 } from "../../src/arweave/signers/ed25519.ts";
import { createEthereumSigner, ethereumAddress, typedDataHash } from "../../src/arweave/signers/ethereum.ts";
import type { Signer, Verdict } from "../../src/arweave/signers/scheme.ts";
import { Failure } from "../../src/failures.ts";
import { secp256k1 } from "../../src/lib/secp256k1.ts";
import { createMultiAptosSigner, rsaKey, signers, testKey } from "../support/signers.ts";

const message = new Uint8Array(48).map((_, index) => index * 5);
const named = signers.map((signer) => [signer.scheme.name, signer] as const);

describe("signatureLayout", () => {
  test.each([
    [1, "arweave", 512, 512],
    [2, "ed25519", 64, 32],
    [3, "ethereum", 65, 65],
    [4, "solana", 64, 32],
    [5, "injectedAptos", 64, 32],
    [6, "multiAptos", 2_052, 1_025],
    [7, "typedEthereum", 65, 42],
    [101, "kyve", 65, 65],
  ])("knows type %p as %p with %p bytes of signature and %p of owner", (type, name, signatureSize, ownerSize) => {
    expect(signatureLayout(type)).toMatchObject({ type, name, signatureSize, ownerSize });
  });

  test.each([0, 8, 100, 102, 255, 257, 65_535])("knows no type %p", (type) => {
    expect(signatureLayout(type)).toBeUndefined();
  });

  test("has a signer for every type", () => {
    expect(signers.map(({ scheme }) => scheme)).toEqual([...signatureSchemes]);
  });
});

describe("B4: every scheme", () => {
  test.each(named)("%s verifies what it signs", (_name, signer) => {
    const signature = signer.sign(message);
    expect(signature.length).toBe(signer.scheme.signatureSize);
    expect(signer.owner.length).toBe(signer.scheme.ownerSize);
    expect(check(signer, signature)).toBe("valid");
  });

  test.each(named)("%s rejects one wrong bit anywhere in the message", (_name, signer) => {
    const signature = signer.sign(message);
    for (let index = 0; index < message.length; index += 5) {
      const verdict = signer.scheme.verify(flipped(message, index, 1), signer.owner, signature);
      expect(verdict.valid).toBe(false);
    }
  });

  test.each(named)("%s rejects one wrong bit anywhere in the signature", (_name, signer) => {
    const signature = signer.sign(message);
    const step = Math.ceil(signature.length / 130);
    for (let index = 0; index < signature.length; index += step) {
      expect(check(signer, flipped(signature, index, 1 << (index & 7)))).not.toBe("valid");
    }
  });

  test.each(named)("%s rejects one wrong bit in every owner byte that names a key", (_name, signer) => {
    const signature = signer.sign(message);
    const keyBytes = signer.scheme === multiAptos ? 32 : signer.owner.length;
    const step = Math.ceil(keyBytes / 70);
    for (let index = 0; index < keyBytes; index += step) {
      const verdict = signer.scheme.verify(message, flipped(signer.owner, index, 4), signature);
      expect(verdict.valid).toBe(false);
    }
  });

  test.each(named)("%s rejects a signature and an owner of zeros, and of ones", (_name, { scheme, owner }) => {
    for (const value of [0, 255]) {
      const signature = new Uint8Array(scheme.signatureSize).fill(value);
      expect(scheme.verify(message, owner, signature).valid).toBe(false);
      expect(scheme.verify(message, new Uint8Array(scheme.ownerSize).fill(value), signature).valid).toBe(false);
    }
  });
});

describe("B4: arweave", () => {
  const { scheme, owner } = signerOf(1);
  const pss = (saltLength: number) => {
    const key = createPrivateKey({ key: rsaKey, format: "jwk" });
    return sign("sha256", message, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength });
  };

  test.each([0, 1, 32, 478])("accepts a salt of %p bytes", (saltLength) => {
    expect(scheme.verify(message, owner, new Uint8Array(pss(saltLength))).valid).toBe(true);
  });

  test("rejects PKCS #1 v1.5 padding", () => {
    const signature = sign("sha256", message, createPrivateKey({ key: rsaKey, format: "jwk" }));
    expect(scheme.verify(message, owner, new Uint8Array(signature)).valid).toBe(false);
  });

  test("rejects a modulus that is short, even, zero or not the signer's", () => {
    const signature = new Uint8Array(pss(32));
    const even = owner.with(511, (owner[511] ?? 0) & 0xfe);
    for (const modulus of [owner.with(0, 0), owner.with(0, 0x7f), even, new Uint8Array(512)]) {
      expect(scheme.verify(message, modulus, signature)).toEqual(
        rejection("the RSA signature does not match the owner and content"),
      );
    }
  });

  test("makes no signer of a key that is not 4096 bits of RSA", () => {
    expect(() => createArweaveSigner({ ...rsaKey, n: "AQAB" })).toThrow(Failure);
    expect(() => createArweaveSigner({ ...rsaKey, e: "Aw" })).toThrow(Failure);
    expect(() => createArweaveSigner({ kty: "EC" })).toThrow(Failure);
    expect(() => createArweaveSigner({ kty: "RSA", e: "AQAB", n: rsaKey.n ?? "" })).toThrow(Failure);
  });
});

describe("B4: ed25519", () => {
  // With a key of small order, R = S·B verifies for every message whose challenge is a multiple of that order.
  const smallOrder = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
  ];
  test.each(smallOrder)("rejects the key %s, for which anyone can sign", (hex) => {
    const verdict = verifyEd25519(message, Uint8Array.fromHex(hex), new Uint8Array(64).fill(1));
    expect(verdict).toEqual(rejection("the Ed25519 key has small order"));
  });

  test("rejects the forgery that the identity as key allows", () => {
    const identity = Uint8Array.fromHex(`01${"00".repeat(31)}`);
    const signature = new Uint8Array(64);
    signature.set(identity, 0); // R = 0·B and S = 0: true for every message.
    expect(verifyEd25519(message, identity, signature).valid).toBe(false);
    const { owner } = signerOf(2);
    expect(verifyEd25519(message, owner, signature)).toEqual(
      rejection("the Ed25519 signature has a commitment of small order"),
    );
  });

  test("rejects S that is the order itself, which equals 0", () => {
    const { owner, sign: signWith } = signerOf(2);
    const signature = signWith(message);
    signature.set(Uint8Array.fromHex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010"), 32);
    expect(verifyEd25519(message, owner, signature)).toEqual(rejection("the Ed25519 signature has S beyond the order"));
  });

  test("rejects S + L, a second spelling of the same signature", () => {
    const { owner, sign: signWith } = signerOf(2);
    const signature = signWith(message);
    const order = 2n ** 252n + 27742317777372353535851937790883648493n;
    const s = fromLittleEndian(signature.subarray(32)) + order;
    const respelled = signature.slice();
    respelled.set(Uint8Array.fromHex(s.toString(16).padStart(64, "0")).reverse(), 32);
    expect(verifyEd25519(message, owner, respelled)).toEqual(rejection("the Ed25519 signature has S beyond the order"));
  });
});

describe.each([3, 7, 101])("type %p", (type) => {
  const signer = signerOf(type);
  const signature = signer.sign(message);

  test("takes 27 and 28, 0 and 1 for the parity, and no other last byte", () => {
    const parity = (signature[64] ?? 0) - 27;
    const accepted = Array.from({ length: 256 }, (_, last) => last).filter(
      (last) => check(signer, signature.with(64, last)) === "valid",
    );
    expect(accepted).toEqual([parity, 27 + parity]);
  });

  test("rejects a high S, with either parity", () => {
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
    const s = order - BigInt(`0x${signature.subarray(32, 64).toHex()}`);
    const high = signature.slice();
    high.set(Uint8Array.fromHex(s.toString(16).padStart(64, "0")), 32);
    for (const last of [0, 1, 27, 28]) {
      expect(check(signer, high.with(64, last))).toBe("the signature has a high S");
    }
  });
});

describe("B4: ethereum", () => {
  test("rejects owners that are compressed or hybrid spellings of the key", () => {
    const signer = signerOf(3);
    const signature = signer.sign(message);
    for (const first of [0, 2, 3, 5, 6, 7]) {
      expect(signer.scheme.verify(message, signer.owner.with(0, first), signature)).toEqual(
        rejection("the owner is not an uncompressed secp256k1 key"),
      );
    }
  });
});

describe("B4: multiAptos", () => {
  const seeds = [testKey(6), testKey(7), testKey(8)];
  const bitmap = multiAptos.signatureSize - 4;

  test("rejects an empty bitmap, which published libraries accept for any owner", () => {
    const signer = createMultiAptosSigner(seeds, 1);
    expect(check(signer, new Uint8Array(2_052))).toBe("0 of 1 signatures that are needed");
  });

  test.each([
    [1, [0], "valid"],
    [2, [0, 2], "valid"],
    [3, [0, 1, 2], "valid"],
    [1, [0, 1, 2], "valid"],
    [2, [1], "1 of 2 signatures that are needed"],
    [3, [0, 1], "2 of 3 signatures that are needed"],
    [0, [0, 1, 2], "the threshold is not 1 to 32"],
    [33, [0, 1, 2], "the threshold is not 1 to 32"],
    [255, [0, 1, 2], "the threshold is not 1 to 32"],
  ])("with threshold %p and signatures of slots %p responds with %p", (threshold, slots, outcome) => {
    const signer = createMultiAptosSigner(seeds, threshold, slots);
    expect(check(signer, signer.sign(message))).toBe(outcome);
  });

  test("rejects a bit whose slot holds no key: its zeros are a key of small order", () => {
    const signer = createMultiAptosSigner(seeds, 2, [0]);
    const signature = signer.sign(message);
    expect(check(signer, signature.with(bitmap, 0x90))).toBe("slot 3: the Ed25519 key has small order");
  });

  test("rejects bytes in a slot that is not used: they would give the item another id", () => {
    const signer = createMultiAptosSigner(seeds, 1, [0]);
    const signature = signer.sign(message);
    expect(check(signer, signature.with(31 * 64 + 5, 1))).toBe("signature slot 31 is unused but not zero");
  });

  test("rejects one bad signature among enough good ones", () => {
    const signer = createMultiAptosSigner(seeds, 2);
    const signature = signer.sign(message);
    expect(check(signer, flipped(signature, 64 + 3, 1))).toStartWith("slot 1: ");
  });
});

describe("B4: typedEthereum", () => {
  test("the signed hash is that of EIP-712", () => {
    const hash = (...parts: readonly (string | Uint8Array)[]) => keccak256(Buffer.concat(parts.map(bytesOf)));
    const address = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf";
    const domain = hash(hash("EIP712Domain(string name,string version)"), hash("Bundlr"), hash("1"));
    const word = Buffer.concat([Buffer.alloc(12), Buffer.from(address.slice(2), "hex")]);
    const content = hash(hash("Bundlr(bytes Transaction hash,address address)"), hash(message), word);
    expect(typedDataHash(message, address)).toEqual(hash(Uint8Array.of(0x19, 0x01), domain, content));
  });

  test("accepts the owner's address in any case, and rejects other texts", () => {
    const signer = signerOf(7);
    const lower = new TextDecoder().decode(signer.owner);
    const address = ethereumAddress(secp256k1.publicKeyOf(testKey(9)));
    expect(address.toLowerCase()).toBe(lower);
    const signature = signer.sign(message);
    for (const spelling of [lower, address, `0x${lower.slice(2).toUpperCase()}`]) {
      expect(signer.scheme.verify(message, ascii(spelling), signature).valid).toBe(true);
    }
    for (const spelling of [lower.replace("0x", "0X"), `${lower.slice(0, 41)}g`, "x".repeat(42)]) {
      expect(signer.scheme.verify(message, ascii(spelling), signature)).toEqual(
        rejection("the owner is not a valid Ethereum address"),
      );
    }
  });
});

describe("native addresses", () => {
  test("are those of the chain where the key is at home", () => {
    const one = new Uint8Array(32).with(31, 1);
    const { owner } = createEthereumSigner(one);
    expect(ethereumAddress(owner)).toBe("0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf");
    // The characters between prefix and checksum are those of the same key in BIP-173's example bc1qw508d6….
    expect(signatureLayout(101)?.nativeAddress(owner)).toBe("kyve1w508d6qejxtdg4y5r3zarvary0c5xw7kdn6vyu");
    expect(signatureLayout(2)?.nativeAddress(new Uint8Array(32))).toBe("1".repeat(32));
    expect(signatureLayout(4)?.nativeAddress(Uint8Array.fromHex("ff".repeat(32)))).toBe(
      "JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFG",
    );
    expect(signatureLayout(1)?.nativeAddress(signerOf(1).owner)).toMatch(/^[\w-]{43}$/);
  });
});

function bytesOf(part: string | Uint8Array): Uint8Array {
  return typeof part === "string" ? new TextEncoder().encode(part) : part;
}

function signerOf(type: number): Signer {
  const signer = signers.find(({ scheme }) => scheme.type === type);
  if (signer === undefined) throw new Error(`no signer of type ${type}`);
  return signer;
}

function check({ scheme, owner }: Signer, signature: Uint8Array): string {
  const verdict = scheme.verify(message, owner, signature);
  return verdict.valid ? "valid" : verdict.reason;
}

function rejection(reason: string): Verdict {
  return { valid: false, reason };
}

function flipped(bytes: Uint8Array, index: number, bits: number): Uint8Array {
  return bytes.with(index, (bytes[index] ?? 0) ^ bits);
}

function ascii(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function fromLittleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${bytes.toReversed().toHex()}`);
}
