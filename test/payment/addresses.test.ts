/**
 * Addresses and transaction ids: one canonical text each, and nothing that no key can sign for.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isId } from "../../src/arweave/id.ts";
import { createSolanaSigner } from "../../src/arweave/signers/ed25519.ts";
import { encodeBase58, encodeBech32 } from "../../src/lib/base-encodings.ts";
import {
  type AddressType,
  addressTypesOf,
  type Chain,
  readAddress,
  readAddressOfWord,
  readToken,
  readTransactionId,
  tokenNames,
  tokens,
  type UserAddress,
} from "../../src/payment/addresses.ts";
import { createKyveSigner } from "../support/signers.ts";

const ethereum = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A";
const solana = "GmaDrppBC7P5ARKV8g3djiwP89vz1jLK23V2GBjuAEGB";
const native = "1seRanklLU_1VTGkEk7P0xAwMJfA7owA1JHW5KyZKlY";
const kyveSigner = createKyveSigner(new Uint8Array(32).fill(5));
const kyve = kyveSigner.scheme.nativeAddress(kyveSigner.owner);

describe("readAddress", () => {
  test.each<[string, AddressType, string]>([
    [native, "native", native],
    [ethereum, "ethereum", ethereum],
    [ethereum.toLowerCase(), "ethereum", ethereum],
    [`0x${ethereum.slice(2).toUpperCase()}`, "ethereum", ethereum],
    ["0x0000000000000000000000000000000000000000", "ethereum", "0x0000000000000000000000000000000000000000"],
    [solana, "solana", solana],
    [kyve, "kyve", kyve],
    [kyve.toUpperCase(), "kyve", kyve],
  ])("reads %p as %p, which is %p", (text, type, canonical) => {
    expect(readAddress(text) as unknown).toEqual({ address: canonical, type });
    expect(readAddress(text, type)?.address as string | undefined).toBe(canonical);
  });

  test.each([
    ["nothing", ""],
    ["42 characters", native.slice(1)],
    ["44 characters", `${native}A`],
    ["a foreign character", `${native.slice(0, 41)}.Y`],
    ["a capital X", ethereum.replace("x", "X")],
    ["an address without 0x", ethereum.slice(2)],
    ["39 digits", ethereum.slice(0, 41)],
    ["mixed case that is not EIP-55", ethereum.replace("E7E3", "e7E3")],
    ["30 bytes of base58", encodeBase58(new Uint8Array(30).fill(9))],
    ["33 bytes of base58", encodeBase58(new Uint8Array(33).fill(9))],
    ["a program's address, off the curve", "8qbHbw2BbbTHBW1sbeqakYXVKRQM8Ne7pLK7m6CVfeR1"],
    ["a key of small order", "11111111111111111111111111111111"],
    ["a wrong checksum", `${kyve.slice(0, -1)}${kyve.endsWith("q") ? "p" : "q"}`],
    ["mixed case in bech32", kyve.replace("kyve1", "KYVE1")],
    ["19 bytes of bech32", encodeBech32("kyve", new Uint8Array(19))],
    ["another prefix", encodeBech32("cosmos", new Uint8Array(20))],
    ["an address with a space", ` ${ethereum}`],
    ["an e-mail address", "someone@example.org"],
    ["a million characters", "1".repeat(1_000_000)],
  ])("rejects %s", (_what, text) => {
    expect(readAddress(text)).toBeUndefined();
  });

  test("rejects an address of another type than the expected one, unless it has the shape of a native address", () => {
    const types: AddressType[] = ["native", "ethereum", "solana", "kyve"];
    const addresses = [native, ethereum, solana, kyve];
    for (const [index, type] of types.entries()) {
      const fitting = addresses.map((text) => readAddress(text, type) !== undefined);
      const hasShape = type === "native" ? [true, false, false, true] : undefined;
      expect(fitting).toEqual(hasShape ?? types.map((_, other) => other === index));
    }
  });

  test("accepts any 43 characters of base64url as a native address, unchanged", () => {
    for (const last of "ABYZ059-_") {
      const address = `${native.slice(0, 42)}${last}` as UserAddress;
      expect(readAddress(address)).toEqual({ address, type: "native" });
      expect(readAddressOfWord(address, "arweave")).toEqual({ address, type: "native" });
    }
  });

  test("a Solana key of 43 characters is Solana's, unless a native key can hash to that text", () => {
    const texts: string[] = [];
    for (let seed = 1; texts.length < 4; seed += 1) {
      const signer = createSolanaSigner(new Uint8Array(32).fill(seed % 256).with(0, seed >> 8));
      const text = encodeBase58(signer.owner);
      if (text.length === 43) texts.push(text);
    }
    for (const text of texts) expect(readAddress(text)?.type).toBe(isId(text) ? "native" : "solana");
  });

  test("K: gives every spelling of an Ethereum address the same text", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 20, maxLength: 20 }), (bytes) => {
        const lower = readAddress(`0x${bytes.toHex()}`)?.address;
        expect(lower).toBeDefined();
        expect(readAddress(`0x${bytes.toHex().toUpperCase()}`)?.address).toBe(lower);
        expect(readAddress(lower ?? "")?.address).toBe(lower);
      }),
    );
  });

  test("reads the address of every Solana key, unchanged", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (seed) => {
        const text = encodeBase58(createSolanaSigner(seed).owner);
        expect(readAddress(text)?.address as string | undefined).toBe(text);
        expect(readAddress(text, "ed25519") as unknown).toEqual({ address: text, type: "ed25519" });
      }),
      { numRuns: 30 },
    );
  });
});

describe("names on the wire", () => {
  test.each<[string, string | undefined]>([
    ["arweave", "native"],
    ["native", "native"],
    ["pol", "matic"],
    ["matic", "matic"],
    ["ed25519", "solana"],
    ["base-usdc", "base-usdc"],
    ["Arweave", undefined],
    ["usd", undefined],
    ["constructor", undefined],
    ["", undefined],
  ])("the token of %p is %p", (word, token) => {
    expect(readToken(word)).toBe(token as ReturnType<typeof readToken>);
  });

  test("every name belongs to one token", () => {
    const words = tokenNames.flatMap((name) => tokens[name].words);
    expect(new Set(words).size).toBe(words.length);
  });

  test.each<[string, string, string | undefined]>([
    ["arweave", native, native],
    ["base-eth", ethereum.toLowerCase(), ethereum],
    ["polygon-usdc", ethereum, ethereum],
    ["solana", solana, solana],
    ["ed25519", solana, solana],
    ["ario", native, native],
    ["ario", solana, solana],
    ["kyve", kyve, kyve],
    ["kyve", ethereum, undefined],
    ["arweave", ethereum, undefined],
    ["email", native, undefined],
  ])("an address of %p written %p is %p", (word, text, address) => {
    expect(readAddressOfWord(text, word)?.address as string | undefined).toBe(address);
  });

  test("an unknown name has no address types", () => {
    expect(addressTypesOf("email")).toBeUndefined();
  });
});

describe("readTransactionId", () => {
  const hash = "0x88DF016429689C079F3B2F6AD39FA052532C56795B733DA78A91EBE6A713944B";
  const solanaId = encodeBase58(new Uint8Array(64).fill(200));

  test.each<[Chain, string, string | undefined]>([
    ["native", native, native],
    ["native", `${native.slice(0, 42)}Z`, undefined],
    ["ethereum", hash.toLowerCase(), hash.toLowerCase()],
    ["ethereum", hash.replace("0X", "0x"), hash.toLowerCase()],
    ["polygon", `0x${hash.slice(2)}`, hash.toLowerCase()],
    ["base", `0X${hash.slice(2)}`, undefined],
    ["base", hash.slice(2), undefined],
    ["base", `${hash.toLowerCase()}0`, undefined],
    ["base", ` ${hash.toLowerCase()}`, undefined],
    ["solana", solanaId, solanaId],
    ["solana", `1${solanaId}`, undefined],
    ["solana", solana, undefined],
    ["solana", "1".repeat(100_000), undefined],
    ["kyve", hash.slice(2).toLowerCase(), hash.slice(2)],
    ["kyve", hash, undefined],
  ])("on %s reads %p as %p", (chain, text, id) => {
    expect(readTransactionId(text, chain)).toBe(id);
  });
});
