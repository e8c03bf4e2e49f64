/**
 * One act of signing has one identity, whatever encodings of its signature a client derives: per signature type, every
 * derivable encoding is either invalid or identified as the same signing.
 * Source: docs/reference/signatures.md.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { checkItem, createDataItem } from "../../src/arweave/data-item.ts";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import { isMalleable, signingOfHeader, signingOfItem } from "../../src/arweave/signing.ts";
import { otherEncodings } from "../support/encodings.ts";
import { createMultiAptosSigner, signers, testKey } from "../support/signers.ts";

const keys = [1, 2, 3, 4].map((value) => testKey(60 + value));
const all: readonly Signer[] = [
  ...signers.filter(({ scheme }) => scheme.type !== 6),
  createMultiAptosSigner(keys, 2),
  createMultiAptosSigner(keys, 4),
];
const named = all.map((signer, index) => [`${signer.scheme.name} (${index})`, signer] as const);

/** Encodings that are valid besides the signer's own. */
const validOthers: Readonly<Record<string, number>> = {
  "ethereum (2)": 1,
  "typedEthereum (5)": 1,
  "kyve (6)": 1,
  // Of four signatures with a threshold of two: 6 pairs and 4 triples.
  "multiAptos (7)": 10,
};

function itemBy(signer: Signer, data = "signed once") {
  const item = checkItem(new Uint8Array(createDataItem({ data }, signer)), "strict");
  if (item.kind !== "item") throw new Error(item.reason);
  return item;
}

describe("U2: an act of signing", () => {
  test.each(named)("by %s: other encodings are invalid or the same signing", (name, signer) => {
    const bytes = new Uint8Array(createDataItem({ data: "signed once" }, signer));
    const own = checkItem(bytes, "strict");
    if (own.kind !== "item") throw new Error(own.reason);
    const signing = signingOfItem(own.header, own.message);
    const encodings = otherEncodings(bytes);
    const ids = new Set([own.header.id]);
    for (const { name: encoding, bytes: other, isValid } of encodings) {
      const checked = checkItem(other, "strict");
      expect([encoding, checked.kind]).toEqual([encoding, isValid ? "item" : "invalid"]);
      if (checked.kind !== "item") continue;
      ids.add(checked.header.id);
      expect([encoding, signingOfItem(checked.header, checked.message).id]).toEqual([encoding, signing.id]);
    }
    const others = validOthers[name] ?? 0;
    expect(encodings.filter(({ isValid }) => isValid).length).toBe(others);
    expect(ids.size).toBe(1 + others);
    expect(isMalleable(own.header.signatureType)).toBe([3, 6, 7, 101].includes(own.header.signatureType));
  });

  test.each(named.filter(([, { scheme }]) => [3, 7, 101].includes(scheme.type)))(
    "by %s: the header alone lists both ids, the canonical one first, from either",
    (_name, signer) => {
      const bytes = new Uint8Array(createDataItem({ data: "either" }, signer));
      const [other] = otherEncodings(bytes);
      const read = [bytes, other?.bytes ?? bytes].map((encoded) => {
        const item = checkItem(encoded, "strict");
        if (item.kind !== "item") throw new Error(item.reason);
        return item.header;
      });
      const [canonical, changed] = read.map(({ id }) => id);
      for (const header of read)
        expect([...signingOfHeader(header).itemIds]).toEqual([canonical ?? "", changed ?? ""] as never[]);
    },
  );

  test.each(named)("by %s: other content is another signing", (_name, signer) => {
    const [first, second] = [itemBy(signer), itemBy(signer, "signed again")];
    expect(signingOfItem(first.header, first.message).id).not.toBe(signingOfItem(second.header, second.message).id);
  });

  test("by arweave: the same content signed anew is another signing", () => {
    const [signer] = signers;
    if (signer === undefined) throw new Error("there is an Arweave signer");
    const [first, second] = [itemBy(signer), itemBy(signer)];
    expect(first.header.id).not.toBe(second.header.id);
    expect(signingOfItem(first.header, first.message).id).not.toBe(signingOfItem(second.header, second.message).id);
  });

  test("by multiAptos: any owner's subset differs from another owner's", () => {
    const [left, right] = [createMultiAptosSigner(keys, 2), createMultiAptosSigner(keys, 3)].map((signer) =>
      itemBy(signer),
    );
    if (left === undefined || right === undefined) throw new Error("there are two items");
    expect(signingOfItem(left.header, left.message).id).not.toBe(signingOfItem(right.header, right.message).id);
  });
});
