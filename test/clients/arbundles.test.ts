/**
 * @dha-team/arbundles and Cairn read and verify each other's data items and bundles.
 *
 * Where the library accepts a forgery, the test shows that it does, and that Cairn does not.
 * @module
 */
import { expect, test } from "bun:test";
import { firstEntry, readBundleCount, readBundleEntries, writeBundle } from "../../src/arweave/bundle.ts";
import { checkItem, createDataItem } from "../../src/arweave/data-item.ts";
import { idFromBytes } from "../../src/arweave/id.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import { createEthereumSigner } from "../../src/arweave/signers/ethereum.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { signers, testKey } from "../support/signers.ts";
import { type Library, librarySigners } from "./arbundles-signers.ts";

const library: Library | undefined = clientLibraries.there ? await import("@dha-team/arbundles") : undefined;

const fields = {
  tags: [
    { name: "Content-Type", value: "text/plain" },
    { name: "Grüße", value: "☃ und \u{1f600}" },
  ],
  target: idFromBytes(testKey(31)),
  anchor: idFromBytes(testKey(32)),
};
const payloads: readonly (readonly [string, Uint8Array])[] = [
  ["no payload", new Uint8Array(0)],
  ["a text", new TextEncoder().encode("payload")],
  ["300,000 bytes", new Uint8Array(300_000).map((_, index) => index % 251)],
];

/** The library verifies all types but 101, for which it has sizes only. */
const verifiable = signers.filter(({ scheme }) => scheme.type !== 101);

describeWith(clientLibraries, "@dha-team/arbundles verifies what we sign", () => {
  const named = verifiable.map((signer) => [signer.scheme.name, signer] as const);

  test.each(named)("%s, whatever the payload and fields", async (_name, signer) => {
    const { DataItem } = need();
    for (const [, data] of payloads) {
      for (const optional of [
        {},
        fields,
        { tags: fields.tags },
        { target: fields.target },
        { anchor: fields.anchor },
      ]) {
        const bytes = Buffer.from(createDataItem({ ...optional, data }, signer));
        expect(await DataItem.verify(bytes)).toBe(true);
        const item = new DataItem(bytes);
        const ours = checkItem(bytes, "strict");
        if (ours.kind === "invalid") throw new Error(ours.reason);
        expect(item.id).toBe(ours.header.id);
        expect(item.tags).toEqual([...ours.header.tags]);
        expect(item.target).toBe(ours.header.target);
        expect(item.rawAnchor).toEqual(Buffer.from(ours.header.anchorBytes));
        expect(item.rawData).toEqual(Buffer.from(data));
      }
    }
  });

  test("in a bundle of all types", async () => {
    const { unbundleData } = need();
    const items = verifiable.map((signer) => createDataItem({ ...fields, data: signer.scheme.name }, signer));
    const bundle = unbundleData(Buffer.from(writeBundle(items)));
    expect(await bundle.verify()).toBe(true);
    expect(bundle.length).toBe(items.length);
    expect(bundle.items.map((item) => item.rawData.toString())).toEqual(verifiable.map(({ scheme }) => scheme.name));
  });
});

describeWith(clientLibraries, "we verify what @dha-team/arbundles signs", () => {
  test.each(Object.keys(librarySigners(need())))("by %s", async (name) => {
    const { createData } = need();
    const made = librarySigners(need())[name]?.();
    if (made === undefined) throw new Error(`no signer is called ${name}`);
    const [type, signer] = made;
    for (const [, data] of payloads) {
      const options = { tags: fields.tags, target: fields.target, anchor: "a".repeat(32) };
      const item = createData(data, signer, options);
      await item.sign(signer);
      const checked = checkItem(item.getRaw(), "strict");
      if (checked.kind === "invalid") throw new Error(checked.reason);
      expect(checked.header.signatureType).toBe(type);
      expect<string>(checked.header.id).toBe(item.id);
      expect(checked.header.tags).toEqual(fields.tags);
      expect(checked.header.target).toBe(fields.target);
      expect(Buffer.from(checked.header.anchorBytes).toString()).toBe("a".repeat(32));
      expect(checked.data).toEqual(data);
    }
  });

  test("in a bundle", async () => {
    const { bundleAndSignData, createData } = need();
    const made = Object.values(librarySigners(need())).map((make) => make()[1]);
    const [first] = made;
    if (first === undefined) throw new Error("the library has no signers");
    const items = await Promise.all(
      made.map(async (signer, index) => {
        const item = createData(`item ${index}`, signer, { tags: fields.tags });
        await item.sign(signer);
        return item;
      }),
    );
    const bytes = (await bundleAndSignData(items, first)).getRaw();
    const head = readBundleCount(bytes, bytes.length);
    if (head.kind === "invalid") throw new Error(head.reason);
    const step = readBundleEntries(bytes.subarray(32), firstEntry(head.count), head.count, bytes.length);
    expect(step.fault).toBeUndefined();
    expect(step.next).toEqual({ index: made.length, offset: bytes.length });
    expect<string[]>(step.entries.map(({ id }) => id)).toEqual(items.map(({ id }) => id));
    for (const { offset, size } of step.entries) {
      expect(checkItem(bytes.subarray(offset, offset + size), "strict").kind).toBe("item");
    }
  });
});

describeWith(clientLibraries, "what @dha-team/arbundles accepts and we reject", () => {
  test("a type 6 signature without a signer", async () => {
    const signer = signers.find(({ scheme }) => scheme.type === 6);
    if (signer === undefined) throw new Error("no signer of type 6");
    const forged = createDataItem({ data: "forged" }, { ...signer, sign: () => new Uint8Array(2_052) });
    expect(await need().DataItem.verify(Buffer.from(forged))).toBe(true);
    expect(checkItem(forged, "strict")).toEqual({
      kind: "invalid",
      reason: "0 of 2 signatures that are needed",
    });
  });

  test("an Ethereum item under 254 further ids", async () => {
    const item = createDataItem({ data: "one item" }, createEthereumSigner(testKey(3)));
    const respelled = item.with(2 + 64, 99);
    expect(await need().DataItem.verify(Buffer.from(respelled))).toBe(true);
    expect(checkItem(respelled, "strict").kind).toBe("invalid");
    expect(checkItem(respelled, "lenient").kind).toBe("invalid");
  });

  test.each([
    ["a target flag of 2", (item: Uint8Array) => item.with(98, 2)],
    ["an anchor flag of 2", (item: Uint8Array) => item.with(99, 2)],
  ])("on upload %s, which on the chain we accept as the library does", async (_name, change) => {
    const item = change(createDataItem({ data: "x" }, createEd25519Signer(testKey(2))));
    expect(await need().DataItem.verify(Buffer.from(item))).toBe(true);
    expect(checkItem(item, "strict").kind).toBe("invalid");
    expect(checkItem(item, "lenient").kind).toBe("item");
  });
});

function need(): Library {
  if (library === undefined) throw new Error(`${clientLibraries.what} is missing`);
  return library;
}
