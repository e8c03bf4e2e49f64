/**
 * Transactions: made and read back, each rule at its edge, and damaged by the hundred thousand.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import fc from "fast-check";
import { idFromBytes } from "../../src/arweave/id.ts";
import { dataRootOf } from "../../src/arweave/merkle.ts";
import {
  createSignatureCheck,
  readTransaction,
  readTransactionHeader,
  type Transaction,
  treeRootOf,
  verifyTransaction,
} from "../../src/arweave/transaction.ts";
import { signTransaction, type UnsignedTransaction } from "../../src/arweave/transaction-sign.ts";
import { ecdsaWallet, readWallet, type Wallet } from "../../src/arweave/wallet.ts";
import { Failure } from "../../src/failures.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { readUnsigned, utf8Bytes, writeUnsignedFixed } from "../../src/lib/bytes.ts";
import type { JsonObject } from "../../src/lib/json.ts";
import { createChance, mutateText, mutationCount, mutationSeed } from "../support/mutate.ts";
import { rsaKeys } from "../support/rsa-keys.ts";

const groupOrder = 2n ** 256n - 0x14551231950b75fc4402da1732fc9bebfn;
const rsa = readWallet(rsaKeys["2048"]);
const ecdsa = ecdsaWallet(new Uint8Array(32).fill(7));
const target = idFromBytes(new Uint8Array(32).fill(9));
const anchor = encodeBase64url(new Uint8Array(48).fill(3));

function rsaWallet(modulusLength: number): Wallet {
  const jwk: unknown = generateKeyPairSync("rsa", { modulusLength }).privateKey.export({ format: "jwk" });
  return readWallet(jwk as JsonObject);
}

const plain: UnsignedTransaction = {
  format: 2,
  lastTx: anchor,
  reward: 123n,
  tags: [{ name: "Content-Type", value: "text/plain" }],
  data: utf8Bytes("hello"),
};

/** The JSON of a transaction with other values in it. */
function changed(transaction: Transaction, change: object): string {
  return JSON.stringify({ ...JSON.parse(transaction.text), ...change });
}

function reasonOf(text: string): string {
  try {
    const verdict = verifyTransaction(readTransaction(text));
    return verdict.valid ? "valid" : verdict.reason;
  } catch (error) {
    if (error instanceof Failure && error.code === "malformed_input") return String(error.context["reason"]);
    throw error;
  }
}

describe("signTransaction", () => {
  const rows: [name: string, wallet: Wallet, unsigned: UnsignedTransaction][] = [
    ["format 2, RSA", rsa, plain],
    ["format 2, ECDSA", ecdsa, plain],
    ["format 1, RSA", rsa, { ...plain, format: 1 }],
    ["format 1 without data", rsa, { format: 1, lastTx: "", reward: 0n }],
    ["format 2 without data", ecdsa, { format: 2, lastTx: "", reward: 0n, target, quantity: 5n }],
    ["a denomination, format 1", rsa, { ...plain, format: 1, denomination: 2n }],
    ["a denomination, format 2", ecdsa, { ...plain, denomination: 1n }],
    [
      "data that is posted in chunks",
      rsa,
      { ...plain, data: new Uint8Array(0), stated: { dataSize: 10 ** 12, dataRoot: new Uint8Array(32) } },
    ],
  ];
  test.each(rows)("%s: what is signed is valid, and reads as it was meant", (_name, wallet, unsigned) => {
    const made = signTransaction(unsigned, wallet);
    expect(verifyTransaction(made)).toEqual({ valid: true });
    expect(readTransaction(made.text)).toEqual(made);
    expect(made).toMatchObject({
      format: unsigned.format,
      ownerAddress: wallet.address,
      owner: encodeBase64url(wallet.owner),
      signatureType: wallet.type,
      tags: unsigned.tags ?? [],
      reward: unsigned.reward,
      lastTx: unsigned.lastTx,
      target: unsigned.target ?? "",
      denomination: unsigned.denomination?.toString() ?? "",
    });
    const { owner, data_tree } = JSON.parse(made.text);
    expect([owner, data_tree]).toEqual([wallet.type === "rsa" ? encodeBase64url(wallet.owner) : "", []]);
  });

  test("any fields are signed so that they are valid", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            name: fc.string({ unit: "binary", maxLength: 20 }),
            value: fc.string({ maxLength: 40 }),
          }),
          { maxLength: 8 },
        ),
        fc.uint8Array({ maxLength: 3_000 }),
        fc.bigInt({ min: 0n, max: 10n ** 30n - 1n }),
        fc.constantFrom(1 as const, 2 as const),
        (tags, data, reward, format) => {
          const made = signTransaction({ format, lastTx: anchor, reward, tags, data }, format === 1 ? rsa : ecdsa);
          expect(verifyTransaction(made)).toEqual({ valid: true });
          expect(made.dataSize).toBe(data.length);
        },
      ),
      { numRuns: 40 },
    );
  });

  test("a target that is no base64url is rejected", () => {
    expect(() => signTransaction({ ...plain, target: "?" }, rsa)).toThrow(Failure);
  });
});

describe("readTransaction", () => {
  const v1 = signTransaction({ ...plain, format: 1 }, rsa);
  const v2 = signTransaction(plain, rsa);
  const rows: [name: string, text: string, reason: string][] = [
    ["no JSON", "{", "the text is not a JSON object"],
    ["a list", "[]", "the text is not a JSON object"],
    ["4,097 lists", "[".repeat(4_097), "the JSON opens more than 4096 lists or objects"],
    ["4,097 objects", '{"a":'.repeat(4_097), "the JSON opens more than 4096 lists or objects"],
    ["format 3", changed(v2, { format: 3 }), "format is neither 1 nor 2"],
    ["format null", changed(v2, { format: null }), "format is neither 1 nor 2"],
    ["no id", changed(v2, { id: undefined }), "id is not text"],
    ["a short id", changed(v2, { id: "AAAA" }), "id has 3 bytes instead of 32"],
    ["an id with another spelling", changed(v2, { id: `${v2.id.slice(0, 42)}B` }), "id is not canonical base64url"],
    [
      "an anchor of 49 bytes",
      changed(v2, { last_tx: encodeBase64url(new Uint8Array(49)) }),
      "last_tx has more than 48 bytes",
    ],
    [
      "an owner of 513 bytes",
      changed(v2, { owner: encodeBase64url(new Uint8Array(513)) }),
      "owner has more than 512 bytes",
    ],
    [
      "a signature of 513 bytes",
      changed(v2, { signature: encodeBase64url(new Uint8Array(513)) }),
      "signature has more than 512 bytes",
    ],
    [
      "a target of 33 bytes",
      changed(v2, { target: encodeBase64url(new Uint8Array(33)) }),
      "target has more than 32 bytes",
    ],
    ["a quantity that is a fraction", changed(v2, { quantity: "1.5" }), "quantity is not a whole number"],
    ["a negative quantity", changed(v2, { quantity: "-1" }), "quantity is not a whole number"],
    ["a quantity with a leading zero", changed(v2, { quantity: "01" }), "quantity is not a whole number"],
    ["a quantity of 121 digits", changed(v2, { quantity: "1".repeat(121) }), "quantity has more than 120 digits"],
    ["tags that are an object", changed(v2, { tags: {} }), "tags is not a list"],
    ["a tag without a value", changed(v2, { tags: [{ name: "" }] }), "a tag is not a name and a value"],
    [
      "a tag with a third part",
      changed(v2, { tags: [{ name: "", value: "", x: 1 }] }),
      "a tag is not a name and a value",
    ],
    ["a tag that is text", changed(v2, { tags: ["a"] }), "a tag is not a name and a value"],
    ["2,049 tags", changed(v2, { tags: Array(2_049).fill({ name: "", value: "" }) }), "tags has more than 2048 items"],
    [
      "tags of 2,049 bytes",
      changed(v2, { tags: [tagOf(1_024), tagOf(1_025)] }),
      "a tag's value has more than 1024 bytes",
    ],
    ["a data_size above 2^53", changed(v2, { data_size: "9007199254740992" }), "data_size is above 2^53 - 1"],
    ["a data_size of 22 digits", changed(v2, { data_size: "1".repeat(22) }), "data_size has more than 21 digits"],
    ["no data_size in format 2", changed(v2, { data_size: undefined }), "data_size is not a whole number"],
    ["another data_size in format 1", changed(v1, { data_size: "6" }), "data_size is not the size of data"],
    ["denomination 0", changed(v2, { denomination: "0" }), "denomination is 0: expected 1 or more, or no denomination"],
    ["data above 10 MiB", changed(v2, { data: "A".repeat(13_981_016) }), "data has more than 10485760 bytes"],
    [
      "no owner, and a signature that gives none away",
      changed(v2, { owner: "" }),
      "owner is empty and signature is not the 65 bytes from which an owner can be recovered",
    ],
    [
      "more text than a transaction has",
      " ".repeat(15 * 2 ** 20 + 1),
      "the JSON has 15728641 characters: expected at most 15728640",
    ],
  ];
  test.each(rows)("%s is rejected", (_name, text, reason) => {
    expect(reasonOf(text)).toBe(reason);
  });

  function tagOf(size: number) {
    return { name: "", value: encodeBase64url(new Uint8Array(size)) };
  }

  test("2,048 tags of one byte each are read", () => {
    const tags = Array.from({ length: 2_048 }, () => ({ name: "", value: "a" }));
    expect(signTransaction({ ...plain, tags }, ecdsa).tags).toEqual(tags);
  });

  test("the first transactions lack format, data_size and data_root; clients leave a size of format 1 at 0", () => {
    const { format: _f, data_size: _s, data_root: _r, data_tree: _t, ...first } = JSON.parse(v1.text);
    expect(reasonOf(JSON.stringify(first))).toBe("valid");
    expect(reasonOf(changed(v1, { data_size: "0" }))).toBe("valid");
    expect(readTransaction(changed(v1, { data_size: "0" })).dataSize).toBe(5);
  });

  test("format may be text", () => {
    expect(reasonOf(changed(v2, { format: "2" }))).toBe("valid");
  });

  test("a key of 32 bytes is its own address, as in the first days", () => {
    const short = new Uint8Array(32).fill(0x55);
    const read = readTransaction(changed(v2, { owner: encodeBase64url(short) }));
    expect(read.ownerAddress).toBe(encodeBase64url(short) as never);
  });
});

describe("verifyTransaction", () => {
  const v2 = signTransaction(plain, rsa);
  const curve = signTransaction(plain, ecdsa);
  const whole = Buffer.from(curve.signature, "base64url");
  const high = Buffer.concat([
    whole.subarray(0, 32),
    writeUnsignedFixed(groupOrder - readUnsigned(whole.subarray(32, 64)), 32),
    Uint8Array.of((whole[64] ?? 0) ^ 1),
  ]);
  const other = signTransaction({ ...plain, reward: 5n }, rsa);
  const rows: [name: string, text: string, reason: string][] = [
    ["another id", changed(v2, { id: target }), "id is not the SHA-256 of signature"],
    [
      "another's signature",
      changed(v2, { signature: other.signature, id: other.id }),
      "signature is not the owner's over these fields",
    ],
    ["another reward", changed(v2, { reward: "124" }), "signature is not the owner's over these fields"],
    ["money to no address", changed(v2, { quantity: "1" }), "quantity has no target address of 32 bytes"],
    [
      "money to 31 bytes",
      changed(v2, { quantity: "1", target: encodeBase64url(new Uint8Array(31)) }),
      "quantity has no target address of 32 bytes",
    ],
    ["itself as the target", changed(v2, { target: rsa.address }), "target is the owner"],
    ["31 digits", changed(v2, { reward: "1".repeat(31) }), "reward has too many digits"],
    [
      "34 digits of denomination 1",
      changed(v2, { denomination: "1", quantity: "1".repeat(34), target }),
      "quantity has too many digits",
    ],
    [
      "a root without a size",
      changed(v2, { data_size: "0" }),
      "data_root is given without data_size, or data_size without data_root",
    ],
    [
      "a size without a root",
      changed(v2, { data_root: "" }),
      "data_root is given without data_size, or data_size without data_root",
    ],
    [
      "a signature with a high S",
      changed(curve, { signature: encodeBase64url(high), id: idOf(high) }),
      "signature has a high S",
    ],
    [
      "a recovery number of 4",
      changed(curve, { signature: encodeBase64url(whole.with(64, 4)) }),
      "owner is empty and cannot be recovered from signature",
    ],
    ["ECDSA in format 1", changed(curve, { format: 1 }), "owner is empty, and format 1 has no ECDSA signatures"],
  ];
  test.each(rows)("%s is rejected", (_name, text, reason) => {
    expect(reasonOf(text)).toBe(reason);
  });

  function idOf(signature: Uint8Array): string {
    return new Bun.CryptoHasher("sha256").update(signature).digest("base64url");
  }

  test("an ECDSA transaction that says something else belongs to someone else", () => {
    const read = readTransaction(changed(curve, { reward: "9" }));
    expect(read.ownerAddress).not.toBe(curve.ownerAddress);
  });

  test("an owner that was put in by hand is not believed", () => {
    expect(
      verifyTransaction({ ...curve, owner: encodeBase64url(ecdsaWallet(new Uint8Array(32).fill(8)).owner) }),
    ).toEqual({
      valid: false,
      reason: "signature is not the owner's over these fields",
    });
  });

  test.each([1_024, 2_056, 4_096])("a key of %p bits signs", (bits) => {
    expect(verifyTransaction(signTransaction(plain, rsaWallet(bits)))).toEqual({ valid: true });
  });
});

describe("createSignatureCheck", () => {
  const data = new Uint8Array(5_000).map((_, index) => index * 7);
  const rows: [name: string, transaction: Transaction][] = [
    ["format 1", signTransaction({ ...plain, format: 1, data }, rsa)],
    ["format 1 with a denomination", signTransaction({ ...plain, format: 1, data, denomination: 1n }, rsa)],
  ];
  test.each(rows)("of %s: data in pieces of any size is signed, other data is not", (_name, whole) => {
    const header = readTransactionHeader(changed(whole, { data: "" }));
    expect(header).toEqual({ ...whole, data: "", text: header.text });
    const signed = (bytes: Uint8Array, size: number) => {
      const check = createSignatureCheck(header);
      for (let at = 0; at < bytes.length; at += size) check.update(bytes.subarray(at, at + size));
      return check.finish().valid;
    };
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6_000 }), fc.nat(data.length - 1), (size, place) => {
        expect(signed(data, size)).toBe(true);
        expect(signed(data.with(place, (data[place] ?? 0) ^ 1), size)).toBe(false);
      }),
      { numRuns: 20 },
    );
  });

  test.each(rows)("of %s: another amount of data than is stated is a defect of ours", (_name, whole) => {
    const check = createSignatureCheck(whole);
    check.update(data.subarray(1));
    expect(() => check.finish()).toThrow("invariant broken");
  });

  test("of format 2 looks at no data, which is signed by its root", () => {
    const check = createSignatureCheck(signTransaction({ ...plain, data }, ecdsa));
    expect(() => check.update(data)).toThrow("invariant broken");
    expect(check.finish()).toEqual({ valid: true });
  });
});

describe("readTransactionHeader", () => {
  test("reads a transaction that has its data like any other, and takes no other untruth about its size", () => {
    const whole = signTransaction({ ...plain, format: 1 }, rsa);
    expect(readTransactionHeader(whole.text)).toEqual(whole);
    expect(() => readTransactionHeader(changed(whole, { data_size: "6" }))).toThrow(Failure);
    expect(readTransactionHeader(changed(whole, { data: "", data_size: "6" })).dataSize).toBe(6);
  });
});

describe("treeRootOf", () => {
  test("format 1 is under the root of its data in plain steps, also of none; format 2 under its stated root", () => {
    const data = new Uint8Array(262_144 + 5);
    const v1 = signTransaction({ ...plain, format: 1, data }, rsa);
    const empty = signTransaction({ format: 1, lastTx: "", reward: 1n }, rsa);
    const none = signTransaction({ format: 2, lastTx: "", reward: 1n }, rsa);
    expect(treeRootOf(v1)).toBe(encodeBase64url(dataRootOf(data, "plain")));
    expect(treeRootOf(empty)).toBe(encodeBase64url(dataRootOf(new Uint8Array(0), "plain")));
    expect(treeRootOf(none)).toBe("");
  });
});

describe(`${mutationCount} damaged transactions (seed ${mutationSeed})`, () => {
  test("are read or rejected with a Failure, and no damaged one is valid as another's", () => {
    const sound = [
      signTransaction(plain, rsa),
      signTransaction(plain, ecdsa),
      signTransaction({ ...plain, format: 1, tags: [] }, rsa),
      signTransaction({ ...plain, target, quantity: 10n, denomination: 2n }, ecdsa),
    ];
    const owners = new Set<string>(sound.map(({ ownerAddress }) => ownerAddress));
    const chance = createChance(mutationSeed);
    let read = 0;
    for (let count = 0; count < mutationCount; count++) {
      const damaged = mutateText(
        sound.map(({ text }) => text),
        chance,
      );
      const transaction = attempt(damaged);
      if (transaction === undefined) continue;
      read += 1;
      // Verifying costs a hundred times as much as reading: every tenth, and only what claims to be an owner of ours.
      if (read % 10 !== 0 || !owners.has(transaction.ownerAddress)) continue;
      if (verifyTransaction(transaction).valid) expectSameMeaning(transaction, sound);
    }
    expect(read).toBeGreaterThan(mutationCount / 100);
  }, 120_000);
});

function attempt(text: string): Transaction | undefined {
  try {
    return readTransaction(text);
  } catch (error) {
    if (error instanceof Failure && error.code === "malformed_input") return undefined;
    throw error;
  }
}

/** Only fields that no signature covers may differ. */
function expectSameMeaning(transaction: Transaction, sound: readonly Transaction[]): void {
  const original = sound.find(({ id }) => id === transaction.id);
  const { text: _one, data: _data, ...meaning } = transaction;
  expect(original).toMatchObject(transaction.format === 1 ? { ...meaning, data: transaction.data } : meaning);
}

test("keys come as JSON of several kinds", () => {
  const bad: [jwk: JsonObject, reason: string][] = [
    [{ kty: "EC", crv: "P-256", d: "AA" }, "the key's curve is not secp256k1"],
    [{ kty: "EC", crv: "secp256k1", d: "AA" }, "an ECDSA key has 32 bytes"],
    [{ kty: "EC", crv: "secp256k1" }, "the key's part d is missing"],
    [{ kty: "RSA" }, "the key's part n is missing"],
    [{ kty: "RSA", n: "AQAB" }, "the RSA key cannot be used"],
  ];
  for (const [jwk, reason] of bad) {
    const failure = (() => {
      try {
        return readWallet(jwk);
      } catch (error) {
        return error;
      }
    })();
    expect(failure instanceof Failure && String(failure.context["reason"])).toStartWith(reason);
  }
});
