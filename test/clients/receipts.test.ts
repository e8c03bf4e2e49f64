/**
 * Receipts hold by published code alone: the deep hash of @dha-team/arbundles, and the signature check of arweave-js,
 * whatever the size of the key.
 * Source: docs/reference/formats.md#receipts.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { openTestUpload, type TestUpload, testItem } from "../support/upload.ts";
import { makeReceiptKey } from "../support/upload-parts.ts";

/** What a receipt says, as clients read it. */
type Receipt = Readonly<{
  id: string;
  timestamp: number;
  version: string;
  deadlineHeight: number;
  public: string;
  signature: string;
}>;

/** Checks a receipt with none of our own code. */
async function holds(receipt: Receipt): Promise<boolean> {
  const { deepHash } = await import("@dha-team/arbundles");
  const { default: Arweave } = await import("arweave");
  const { id, timestamp, version, deadlineHeight } = receipt;
  const fields = ["Bundlr", version, id, String(deadlineHeight), String(timestamp)];
  const message = await deepHash(fields.map((field) => Buffer.from(field, "utf8")));
  const signature = Buffer.from(receipt.signature, "base64url");
  return await Arweave.crypto.verify(receipt.public, message, signature);
}

for (const bits of [2_048, 4_096] as const)
  describeWith(clientLibraries, `receipts of a key of ${bits} bits`, () => {
    const root = mkdtempSync(join(tmpdir(), "cairn-receipts-"));
    let upload: TestUpload;
    let receipt: Receipt;
    let text: string;

    beforeAll(async () => {
      upload = await openTestUpload({
        keyFile: makeReceiptKey(root, bits),
        rules: { freeBytesMax: 2 ** 20 },
      });
      text = await (await upload.send(testItem("has a receipt").bytes)).text();
      receipt = JSON.parse(text);
    }, 120_000);
    afterAll(async () => {
      await upload.close();
      removeFolder(root);
    });

    test("hold, and name the key that signed them", async () => {
      expect(receipt.public).toBe(upload.publicKey);
      expect(Buffer.from(receipt.public, "base64url")).toHaveLength(bits / 8);
      expect(await holds(receipt)).toBe(true);
    });

    test.each<[string, Partial<Receipt>]>([
      ["another item", { id: testItem("has none").id }],
      ["a later deadline", { deadlineHeight: 1_201 }],
      ["another time", { timestamp: 1 }],
    ])("do not hold for %s", async (_name, changed) => {
      expect(await holds({ ...receipt, ...changed })).toBe(false);
    });

    test("are the same to the byte when the item comes again", async () => {
      expect(await (await upload.send(testItem("has a receipt").bytes)).text()).toBe(text);
    });
  });
