/**
 * Receipts: signed by a thread, the same to the byte whenever they are requested, and of no other party's making.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { idFromBytes } from "../../src/arweave/id.ts";
import { type ReceiptTerms, verifyReceipt } from "../../src/arweave/receipt.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { signReceipts } from "../../workers/receipts.ts";
import { rsaKeys } from "../support/rsa-keys.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-receipts-"));
afterAll(() => removeFolder(folder));

/** The size of the key changes nothing of the rules; a small one is made faster. */
const jwk = rsaKeys["2048"];
const keyFile = join(folder, "key.json");
writeFileSync(keyFile, JSON.stringify(jwk));
const modulus = jwk.n;

const terms: ReceiptTerms = {
  id: idFromBytes(new Uint8Array(32).fill(7)),
  deadlineHeight: 1_500_200,
  timestamp: 1_700_000_000_123,
};

describe("a receipt", () => {
  test("is signed the same way twice, and the signature holds", () => {
    const [first = "", second] = signReceipts({ keyFile, receipts: [terms, terms] });
    expect(first).toBe(second ?? "");
    expect(verifyReceipt(terms, modulus, first)).toBe(true);
  });

  const [signature = ""] = signReceipts({ keyFile, receipts: [terms] });
  test.each([
    ["another id", { ...terms, id: idFromBytes(new Uint8Array(32)) }, modulus, signature],
    ["a later deadline", { ...terms, deadlineHeight: terms.deadlineHeight + 1 }, modulus, signature],
    ["another time", { ...terms, timestamp: terms.timestamp - 1 }, modulus, signature],
    ["another key", terms, `${modulus.startsWith("w") ? "x" : "w"}${modulus.slice(1)}`, signature],
    ["another signature", terms, modulus, `${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`],
    ["no signature", terms, modulus, ""],
    ["a key that is not a valid text of bytes", terms, "!", signature],
    ["a key of a million bytes", terms, "A".repeat(1_000_000), signature],
  ] as const)("does not hold for %s", (_, changed, key, signed) => {
    expect(verifyReceipt(changed, key, signed)).toBe(false);
  });

  test("is not signed with a key that is not RSA", () => {
    const file = join(folder, "ecdsa.json");
    writeFileSync(file, JSON.stringify({ kty: "EC", crv: "secp256k1", d: Buffer.alloc(32, 1).toString("base64url") }));
    expect(() => signReceipts({ keyFile: file, receipts: [terms] })).toThrow("Malformed input");
  });
});
