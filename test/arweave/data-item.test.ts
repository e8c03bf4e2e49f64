/**
 * Data items: what is made is read and valid, what is cut or changed anywhere is not, and nothing throws.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import fc from "fast-check";
import {
  checkItem,
  createDataItem,
  createItemHash,
  createItemSigning,
  hashItem,
  type ItemFields,
  itemSizeMin,
  readItemFrame,
  readItemHeader,
  verifyItem,
} from "../../src/arweave/data-item.ts";
import { deepHash } from "../../src/arweave/deep-hash.ts";
import { addressOf, idBytes, idFromBytes } from "../../src/arweave/id.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import type { ItemRules } from "../../src/arweave/tags.ts";
import { Failure } from "../../src/failures.ts";
import { concatBytes } from "../../src/lib/bytes.ts";
import { createKyveSigner, signers, testKey } from "../support/signers.ts";

const target = idFromBytes(testKey(21));
const anchor = idFromBytes(testKey(22));
const fields = {
  data: "the payload",
  tags: [
    { name: "Content-Type", value: "text/plain" },
    { name: "Grüße", value: "☃" },
  ],
  target,
  anchor,
};
const named = signers.map((signer) => [signer.scheme.name, signer] as const);
const rulings: readonly ItemRules[] = ["strict", "lenient"];

/** A small item of type 2 and the offsets in it: flags at 98 and 99, counts at 100 and 108, tags at 116. */
const small = createDataItem({ data: "data", tags: [{ name: "a", value: "b" }] }, createEd25519Signer(testKey(2)));
const none = new Uint8Array(0);
const targetFlag = 98;
const anchorFlag = 99;
const tagCount = 100;
const tagsSize = 108;

describe("B4: createDataItem and checkItem", () => {
  test.each(named)("%s: what is made is read back whole", (_name, signer) => {
    for (const rules of rulings) {
      const item = createDataItem(fields, signer);
      const checked = checkItem(item, rules);
      if (checked.kind === "invalid") throw new Error(checked.reason);
      const { header, data, digest } = checked;
      expect(header.tags).toEqual(fields.tags);
      expect(header.target).toBe(target);
      expect(header.anchor).toBe(anchor);
      expect(header.anchorBytes).toEqual(testKey(22));
      expect(header.owner).toEqual(signer.owner);
      expect(header.ownerAddress).toBe(addressOf(signer.owner));
      expect(header.signatureType).toBe(signer.scheme.type);
      expect(idBytes(header.id).toHex()).toBe(createHash("sha256").update(header.signature).digest("hex"));
      expect(item.subarray(header.signatureOffset, header.ownerOffset)).toEqual(header.signature);
      expect(item.subarray(header.headerSize)).toEqual(data);
      expect(new TextDecoder().decode(data)).toBe(fields.data);
      expect(digest.toHex()).toBe(createHash("sha256").update(fields.data).digest("hex"));
    }
  });

  test.each(named)("%s: an item cut at any byte is rejected, with a reason", (_name, signer) => {
    const item = createDataItem(fields, signer);
    for (let size = 0; size < item.length; size += 1) {
      for (const rules of rulings) {
        const checked = checkItem(item.subarray(0, size), rules);
        if (checked.kind !== "invalid") throw new Error(`${size} of ${item.length} bytes pass`);
        expect(checked.reason.length).toBeGreaterThan(0);
      }
    }
  });

  test.each(named)("%s: reading piece by piece asks for bytes until the header is there", (_name, signer) => {
    const item = createDataItem(fields, signer);
    let have = 0;
    for (let steps = 0; steps < 10; steps += 1) {
      const read = readItemHeader(item.subarray(0, have), "strict");
      if (read.kind === "header") {
        expect(have).toBe(read.header.headerSize);
        return;
      }
      if (read.kind === "invalid") throw new Error(read.reason);
      expect(read.bytes).toBeGreaterThan(have);
      have = read.bytes;
    }
    throw new Error("reading asks without end");
  });

  test.each(named)("%s: one wrong bit in any signed byte is rejected", (_name, signer) => {
    const item = createDataItem(fields, signer);
    const { ownerOffset } = headerOf(item);
    const start = ownerOffset + signer.scheme.ownerSize;
    for (let index = start; index < item.length; index += 1) {
      const changed = item.with(index, (item[index] ?? 0) ^ (1 << (index & 7)));
      expect(checkItem(changed, "strict").kind).toBe("invalid");
    }
  });

  test("an item of one type is not valid as another of the same sizes", () => {
    const solana = createDataItem(fields, createEd25519Signer(testKey(2)));
    expect(checkItem(solana.with(0, 4), "strict").kind).toBe("invalid");
    const kyve = createDataItem(fields, createKyveSigner(testKey(10)));
    expect(checkItem(kyve.with(0, 3), "strict").kind).toBe("invalid");
  });

  test("the smallest item has 116 bytes", () => {
    const item = createDataItem({ data: "" }, createEd25519Signer(testKey(2)));
    expect(item.length).toBe(itemSizeMin);
    expect(checkItem(item, "strict").kind).toBe("item");
  });

  test("any fields within the limits are made, read and valid", () => {
    const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 30 });
    const made = fc.record({
      data: fc.uint8Array({ maxLength: 2_000 }),
      tags: fc.array(fc.record({ name: text, value: text }), { maxLength: 12 }),
      target: fc.constantFrom("", target),
      anchor: fc.constantFrom("", anchor),
    });
    const quick = signers.filter(({ scheme }) => scheme.type !== 1);
    const property = fc.property(made, fc.constantFrom(...quick), (item, signer) => {
      const checked = checkItem(createDataItem(item, signer), "strict");
      if (checked.kind === "invalid") throw new Error(checked.reason);
      expect({
        data: checked.data,
        tags: checked.header.tags,
        target: checked.header.target,
        anchor: checked.header.anchor,
      }).toEqual(item);
    });
    fc.assert(property, { numRuns: 200 });
  });

  test.each([
    ["129 tags", { tags: Array(129).fill({ name: "a", value: "b" }) }],
    ["a target of 42 characters", { target: target.slice(1) }],
    ["a target that is not canonical", { target: `${target.slice(0, 42)}B` }],
    ["an anchor that is no base64url", { anchor: "x".repeat(32) }],
  ] satisfies [string, ItemFields][])("makes no item of %s", (_name, broken) => {
    expect(() => createDataItem({ data: "", ...broken }, createEd25519Signer(testKey(2)))).toThrow(Failure);
  });
});

describe("B4: readItemFrame", () => {
  const u64 = (value: bigint) => {
    const view = new DataView(new ArrayBuffer(8));
    view.setBigUint64(0, value, true);
    return new Uint8Array(view.buffer);
  };
  const put = (offset: number, bytes: Uint8Array) => {
    const changed = small.slice();
    changed.set(bytes, offset);
    return changed;
  };

  test.each([
    ["type 0", put(0, new Uint8Array([0, 0])), "signature type 0 is unknown"],
    ["type 8", put(0, new Uint8Array([8, 0])), "signature type 8 is unknown"],
    ["type 258, whose low byte is 2", put(0, new Uint8Array([2, 1])), "signature type 258 is unknown"],
    ["type 65535", put(0, new Uint8Array([255, 255])), "signature type 65535 is unknown"],
    ["target flag 2", small.with(targetFlag, 2), "the target flag is 2, not 0 or 1"],
    ["target flag 255", small.with(targetFlag, 255), "the target flag is 255, not 0 or 1"],
    ["anchor flag 2", small.with(anchorFlag, 2), "the anchor flag is 2, not 0 or 1"],
    ["129 tags", put(tagCount, u64(129n)), "more than 128 tags are declared"],
    ["2^53 tags", put(tagCount, u64(2n ** 53n)), "more than 128 tags are declared"],
    ["2^64 - 1 tags", put(tagCount, u64(2n ** 64n - 1n)), "more than 128 tags are declared"],
    ["4097 tag bytes", put(tagsSize, u64(4_097n)), "more than 4096 tag bytes are declared"],
    ["2^63 tag bytes", put(tagsSize, u64(2n ** 63n)), "more than 4096 tag bytes are declared"],
    ["2^64 - 1 tag bytes", put(tagsSize, u64(2n ** 64n - 1n)), "more than 4096 tag bytes are declared"],
    ["tag bytes beyond the item", put(tagsSize, u64(11n)), "the tags are cut short"],
  ])("rejects %s", (_name, bytes, reason) => {
    expect(readItemFrame(bytes, "strict", bytes.length)).toEqual({ kind: "invalid", reason });
  });

  test.each([
    [targetFlag, 2],
    [targetFlag, 255],
    [anchorFlag, 7],
  ])("takes the flag at %p for absent when it is %p on the chain; the signature still holds", (offset, value) => {
    expect(checkItem(small.with(offset, value), "lenient").kind).toBe("item");
  });

  test("asks for no more than the lenient limits while a size is not known", () => {
    const declared = put(tagsSize, u64(1_048_576n));
    expect(readItemHeader(declared, "lenient")).toEqual({ kind: "need", bytes: 116 + 1_048_576 });
    expect(readItemHeader(put(tagsSize, u64(1_048_577n)), "lenient").kind).toBe("invalid");
  });
});

test.each(["ethereum", "typedEthereum", "kyve"])(
  "an item of %s is valid under two ids, one for each spelling of its parity, and says the same under both",
  (name) => {
    const signer = signers.find(({ scheme }) => scheme.name === name);
    if (signer === undefined) throw new Error("every scheme has a signer");
    const item = createDataItem(fields, signer);
    const last = 2 + signer.scheme.signatureSize - 1;
    const checked = Array.from({ length: 256 }, (_, byte) => checkItem(item.with(last, byte), "strict"));
    const valid = checked.filter((one) => one.kind === "item");
    expect(valid).toHaveLength(2);
    expect(new Set(valid.map(({ header }) => header.id)).size).toBe(2);
    expect(new Set(valid.map(({ message }) => message.toHex())).size).toBe(1);
  },
);

describe("createItemHash", () => {
  test("gives the deep hash of the item's fields and the payload's SHA-256, however the payload is cut", () => {
    const data = new Uint8Array(5_000).map((_, index) => index * 7);
    const item = createDataItem({ ...fields, data }, createEd25519Signer(testKey(2)));
    const header = headerOf(item);
    const ascii = (text: string) => new TextEncoder().encode(text);
    const expected = deepHash([
      ascii("dataitem"),
      ascii("1"),
      ascii("2"),
      header.owner,
      testKey(21),
      testKey(22),
      header.rawTags,
      data,
    ]);
    const cuts = fc.array(fc.integer({ min: 0, max: data.length }), { maxLength: 8 });
    const property = fc.property(cuts, (made) => {
      const ends = [0, ...made.toSorted((left, right) => left - right), data.length];
      const hash = createItemHash(header, data.length);
      ends.slice(1).forEach((end, index) => {
        hash.update(data.subarray(ends[index], end));
      });
      const { message, digest } = hash.finish();
      expect(message).toEqual(expected);
      expect(digest.toHex()).toBe(createHash("sha256").update(data).digest("hex"));
      expect(verifyItem(header, message)).toEqual({ valid: true });
    });
    fc.assert(property, { numRuns: 100 });
  });

  test("hashes the tag bytes as they are, not as they would be written anew", () => {
    const signer = createEd25519Signer(testKey(2));
    // Two blocks, where our own writer makes one.
    const rawTags = Uint8Array.fromHex("0202610262020261026200");
    const signed = { signatureType: 2, owner: signer.owner, targetBytes: none, anchorBytes: none, rawTags };
    const signature = signer.sign(hashItem(signed, none).message);
    const counts = new Uint8Array(18).with(2, 2).with(10, rawTags.length);
    const item = concatBytes([new Uint8Array([2, 0]), signature, signer.owner, counts, rawTags]);
    const checked = checkItem(item, "strict");
    if (checked.kind === "invalid") throw new Error(checked.reason);
    expect(checked.header.tags).toEqual([
      { name: "a", value: "b" },
      { name: "a", value: "b" },
    ]);
  });

  test("rejects to end when the pieces are not the payload", () => {
    const hash = createItemHash(headerOf(small), 4);
    hash.update(new Uint8Array(3));
    expect(() => hash.finish()).toThrow("invariant broken");
  });
});

describe("createItemSigning", () => {
  test("makes the same item from pieces as from the whole", () => {
    const signer = createEd25519Signer(testKey(2));
    const data = new Uint8Array(1_000).fill(3);
    const signing = createItemSigning(fields, data.length, signer);
    signing.update(data.subarray(0, 300));
    signing.update(data.subarray(300));
    const { id, header } = signing.finish();
    const whole = createDataItem({ ...fields, data }, signer);
    expect(header).toEqual(whole.subarray(0, whole.length - data.length));
    expect(id).toBe(headerOf(whole).id);
  });
});

function headerOf(item: Uint8Array) {
  const read = readItemHeader(item, "strict", item.length);
  if (read.kind !== "header") throw new Error("no header");
  return read.header;
}
