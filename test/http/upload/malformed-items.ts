/**
 * Data items that break one rule each, and are signed as if they did not: what rejects them is the rule.
 * Source: docs/reference/formats.md#data-items.
 * @module
 */
import { createDataItem, createItemHash } from "../../../src/arweave/data-item.ts";
import { createEthereumSigner } from "../../../src/arweave/signers/ethereum.ts";
import type { Signer } from "../../../src/arweave/signers/scheme.ts";
import { writeAvroTags } from "../../../src/arweave/tags.ts";
import { concatBytes, utf8Bytes } from "../../../src/lib/bytes.ts";
import { createMultiAptosSigner, signers, testKey } from "../../support/signers.ts";
import { fastSigner } from "../../support/upload.ts";

/** What of an item may be wrong; the rest is as it should be. */
type Parts = Readonly<{
  signer?: Signer;
  targetFlag?: number;
  anchorFlag?: number;
  tagCount?: bigint;
  tagsSize?: bigint;
  rawTags?: Uint8Array;
  data?: Uint8Array;
}>;

const data = utf8Bytes("the payload of an item that breaks a rule");
const oneTag = writeAvroTags([{ name: "a", value: "b" }]);

/** Writes an item by hand and signs what it says. */
function writeItem(parts: Parts): Uint8Array {
  const { signer = fastSigner, targetFlag = 0, anchorFlag = 0, rawTags = new Uint8Array(0) } = parts;
  const { tagCount = 0n, tagsSize = BigInt(rawTags.length) } = parts;
  const payload = parts.data ?? data;
  const nothing = new Uint8Array(0);
  const fields = {
    signatureType: signer.scheme.type,
    owner: signer.owner,
    targetBytes: nothing,
    anchorBytes: nothing,
    rawTags,
  };
  const hash = createItemHash(fields, payload.length);
  hash.update(payload);
  const signature = signer.sign(hash.finish().message);
  const counts = new DataView(new ArrayBuffer(16));
  counts.setBigUint64(0, tagCount, true);
  counts.setBigUint64(8, tagsSize, true);
  const type = Uint8Array.of(signer.scheme.type & 0xff, signer.scheme.type >> 8);
  const flags = Uint8Array.of(targetFlag, anchorFlag);
  return concatBytes([type, signature, signer.owner, flags, new Uint8Array(counts.buffer), rawTags, payload]);
}

function tagged(tags: readonly Readonly<{ name: string; value: string }>[]): Parts {
  return { tagCount: BigInt(tags.length), rawTags: writeAvroTags(tags) };
}

function signerOf(type: number): Signer {
  const signer = signers.find(({ scheme }) => scheme.type === type);
  if (signer === undefined) throw new Error(`no signer of type ${type}`);
  return signer;
}

/** A valid item of a type, changed. */
function changed(type: number, change: (bytes: Uint8Array, signatureEnd: number) => void): Uint8Array {
  const signer = signerOf(type);
  const bytes = createDataItem({ data }, signer);
  change(bytes, 2 + signer.scheme.signatureSize);
  return bytes;
}

const withType = (type: number) => changed(3, (bytes) => bytes.set([type & 0xff, type >> 8]));
const bitmapSize = 4;

/** A name, the item, and a word of why it is rejected. */
export const malformedItems: readonly (readonly [string, Uint8Array, RegExp])[] = [
  ["no bytes", new Uint8Array(0), /cut short/],
  ["one byte", Uint8Array.of(1), /cut short/],
  ["79 bytes", new Uint8Array(79).fill(1), /type 257 is unknown/],
  ["signature type 0", withType(0), /type 0 is unknown/],
  ["signature type 8", withType(8), /type 8 is unknown/],
  ["signature type 65535", withType(65_535), /type 65535 is unknown/],
  ["target flag 2", writeItem({ targetFlag: 2 }), /target flag is 2/],
  ["target flag 255", writeItem({ targetFlag: 255 }), /target flag is 255/],
  ["anchor flag 2", writeItem({ anchorFlag: 2 }), /anchor flag is 2/],
  ["129 tags", writeItem(tagged(Array(129).fill({ name: "a", value: "b" }))), /more than 128 tags/],
  ["2^53 tags", writeItem({ tagCount: 2n ** 53n }), /more than 128 tags/],
  ["2^64 − 1 tags", writeItem({ tagCount: 2n ** 64n - 1n }), /more than 128 tags/],
  ["4097 tag bytes", writeItem({ tagCount: 1n, tagsSize: 4_097n }), /more than 4096 tag bytes/],
  ["2^53 tag bytes", writeItem({ tagCount: 1n, tagsSize: 2n ** 53n }), /more than 4096 tag bytes/],
  ["2^64 − 1 tag bytes", writeItem({ tagCount: 1n, tagsSize: 2n ** 64n - 1n }), /more than 4096 tag bytes/],
  ["tag bytes beyond the end", writeItem({ tagCount: 1n, tagsSize: 1_000n, rawTags: oneTag }), /cut short|tag/],
  ["a name of 1025 bytes", writeItem(tagged([{ name: "n".repeat(1_025), value: "v" }])), /tag name of 1025/],
  ["a value of 3073 bytes", writeItem(tagged([{ name: "n", value: "v".repeat(3_073) }])), /tag value of 3073/],
  ["one tag too few", writeItem({ tagCount: 2n, rawTags: oneTag }), /1 tags where 2 are declared/],
  ["tag bytes and no tags", writeItem({ tagCount: 0n, rawTags: oneTag }), /tag bytes without tags/],
  ["no end of tags", writeItem({ tagCount: 1n, rawTags: oneTag.subarray(0, -1) }), /tag/],
  ["bytes after the tags", writeItem({ tagCount: 1n, rawTags: concatBytes([oneTag, data]) }), /after the last tag/],
  ["2^31 tags in a block", writeItem({ tagCount: 1n, rawTags: Uint8Array.of(0x80, 0x80, 0x80, 0x80, 0x10, 0) }), /tag/],
  ["a count of eleven bytes", writeItem({ tagCount: 1n, rawTags: new Uint8Array(11).fill(0x80) }), /tag/],
  ["a text longer than the section", writeItem({ tagCount: 1n, rawTags: Uint8Array.of(2, 0x7e, 1, 0) }), /tag/],
  ...signers.flatMap(({ scheme: { type, name } }): (readonly [string, Uint8Array, RegExp])[] => [
    [`a signature of zeroes (${name})`, changed(type, (bytes, end) => bytes.fill(0, 2, end)), /./],
    [`a signature of ones (${name})`, changed(type, (bytes, end) => bytes.fill(255, 2, end)), /./],
    [`another payload (${name})`, changed(type, (bytes) => bytes.fill(0x20, bytes.length - 1)), /./],
    [`another owner (${name})`, changed(type, (bytes, end) => bytes.set([(bytes[end + 3] ?? 0) ^ 1], end + 3)), /./],
  ]),
  ...[2, 26, 29, 31, 255].map((v): readonly [string, Uint8Array, RegExp] => [
    `the recovery byte ${v} (ethereum)`,
    changed(3, (bytes, end) => bytes.set([v], end - 1)),
    /./,
  ]),
  ["no signature of many (multiAptos)", changed(6, (bytes, end) => bytes.fill(0, end - bitmapSize, end)), /./],
  [
    "fewer signatures than its threshold (multiAptos)",
    writeItem({ signer: createMultiAptosSigner([testKey(6), testKey(7), testKey(8)], 2, [1]) }),
    /./,
  ],
  ["another's recovery byte (ethereum)", otherRecovery(), /./],
];

/** The signature of an Ethereum item has two spellings, and with them two ids; one is the item's. */
function otherRecovery(): Uint8Array {
  const signer = createEthereumSigner(testKey(3));
  const bytes = createDataItem({ data }, signer);
  const at = 2 + signer.scheme.signatureSize - 1;
  return bytes.with(at, (bytes[at] ?? 0) === 27 ? 28 : 27);
}
