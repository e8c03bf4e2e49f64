/**
 * Bundles made for the tests of indexing: signers of every type from numbered seeds, items, and what is wrong
 * with some.
 * @module
 */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeBundle, writeBundleHeader } from "../../src/arweave/bundle.ts";
import { createDataItem, type ItemFields, readItemHeader } from "../../src/arweave/data-item.ts";
import { type Id, idFromBytes } from "../../src/arweave/id.ts";
import { createEd25519Signer, createSolanaSigner } from "../../src/arweave/signers/ed25519.ts";
import { createEthereumSigner } from "../../src/arweave/signers/ethereum.ts";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { concatBytes } from "../../src/lib/bytes.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { createRandom } from "../support/random.ts";
import {
  createInjectedAptosSigner,
  createKyveSigner,
  createMultiAptosSigner,
  createTypedEthereumSigner,
} from "../support/signers.ts";

/** 32 bytes that follow from a number: a private key of a test. */
export function seedOf(number: number): Uint8Array {
  return sha256(new TextEncoder().encode(`seed ${number}`));
}

/** The signer whose checks cost least. */
export const ed25519Signer = createEd25519Signer(seedOf(2));

/** One signer of every type that needs no RSA key. */
export const signers: readonly Signer[] = [
  ed25519Signer,
  createEthereumSigner(seedOf(3)),
  createSolanaSigner(seedOf(4)),
  createInjectedAptosSigner(seedOf(5)),
  createMultiAptosSigner([seedOf(6), seedOf(7), seedOf(8)], 2, [0, 2]),
  createTypedEthereumSigner(seedOf(9)),
  createKyveSigner(seedOf(10)),
];

/** The tags by which a transaction or an item says that it is a bundle. */
export const bundleTags = [
  { name: "Bundle-Format", value: "binary" },
  { name: "Bundle-Version", value: "2.0.0" },
] as const;

/** A signed item. */
export function makeItem(
  data: Uint8Array | string,
  fields: ItemFields = {},
  signer: Signer = ed25519Signer,
): Uint8Array {
  return createDataItem({ data, ...fields }, signer);
}

/** An item's header as an operator announces it. */
export function announcementOf(item: Uint8Array) {
  const read = readItemHeader(item, "strict");
  if (read.kind !== "header") throw new Error("the test's item is an item");
  const { id, owner, ownerAddress, signature, headerSize } = read.header;
  return {
    id,
    owner: encodeBase64url(owner),
    owner_address: ownerAddress,
    signature: encodeBase64url(signature),
    data_size: item.length - headerSize,
    tags: [{ name: encodeBase64url(Buffer.from("Announced")), value: encodeBase64url(Buffer.from("yes")) }],
  };
}

/** Items whose payload is their number, each unlike the others. */
export function makeItems(count: number, name = "item"): Uint8Array[] {
  return Array.from({ length: count }, (_, index) =>
    makeItem(`${name} ${index}`, { tags: [{ name: "Number", value: String(index) }] }),
  );
}

/** An item that holds a bundle of items. */
export function makeNested(items: readonly Uint8Array[], fields: ItemFields = {}): Uint8Array {
  return makeItem(writeBundle(items), { ...fields, tags: [...bundleTags, ...(fields.tags ?? [])] });
}

/** A bundle with other bytes at some places. */
export function spoil(bytes: Uint8Array, at: number, ...values: number[]): Uint8Array {
  const spoiled = bytes.slice();
  spoiled.set(values, at);
  return spoiled;
}

/** A bundle with valid items at its ends, and between them items that are invalid for several reasons. */
export function makeFlawedBundle(name = "flawed") {
  const [first, altered, renamed, unknown, empty, last] = makeItems(6, name).map((bytes) => ({
    bytes,
    id: idOf(bytes),
  }));
  if (!first || !altered || !renamed || !unknown || !empty || !last) throw new Error("six items were made");
  const entries = [
    { ...first, reason: undefined },
    { id: altered.id, bytes: spoil(altered.bytes, altered.bytes.length - 1, 0xff), reason: "signature" },
    { id: first.id, bytes: renamed.bytes, reason: "the item's id is not the id in its bundle" },
    { id: unknown.id, bytes: spoil(unknown.bytes, 0, 99, 0), reason: "signature type 99 is unknown" },
    { id: empty.id, bytes: new Uint8Array(0), reason: "cut short" },
    { ...last, reason: undefined },
  ];
  const header = writeBundleHeader(entries.map(({ id, bytes }) => ({ id, size: bytes.length })));
  return {
    data: concatBytes([header, ...entries.map(({ bytes }) => bytes)]),
    valid: [first.id, last.id],
    invalid: entries.flatMap(({ id, reason }, index) => (reason === undefined ? [] : [{ index, id, reason }])),
  };
}

function idOf(item: Uint8Array): Id {
  return idFromBytes(sha256(item.subarray(2, 66))); // an Ed25519 signature
}

/** Bytes that follow from a seed. */
export function noise(size: number, seed: number): Uint8Array {
  const random = createRandom(seed).next;
  const words = new Uint32Array(Math.ceil(size / 4)).map(() => Math.floor(random() * 2 ** 32));
  return new Uint8Array(words.buffer, 0, size);
}

/** A folder of a test's own. */
export function openFolder() {
  const path = mkdtempSync(join(tmpdir(), "cairn-indexing-"));
  return {
    path,
    file: (name: string, bytes: Uint8Array): string => {
      const file = join(path, name);
      writeFileSync(file, bytes);
      return file;
    },
    remove: () => removeFolder(path),
  };
}
