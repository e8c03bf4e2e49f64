/**
 * The module that verifies content in web pages, run from its source: it resolves with the bytes of every kind of
 * content that it can check, and rejects what a gateway changed, with the reason. In a browser: test/clients.
 * Source: docs/verify-module.md.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { isSignedBy } from "../../console/verify/signatures.ts";
import { fetchVerified, VerificationError, type VerifyOptions } from "../../console/verify/verify.ts";
import { readBlock } from "../../src/arweave/block.ts";
import { addressOf } from "../../src/arweave/id.ts";
import { rsa } from "../dev/devnet/support.ts";
import { signers } from "../support/signers.ts";
import { openChangingGateway, type ProofChange } from "./changing-gateway.ts";
import { ed25519, openProofChain, type Planted } from "./proof-chain.ts";

const chain = await openProofChain();
const changing = openChangingGateway(chain.url());
const { txRoot: blockRoot } = readBlock(await (await chain.stack.node.get("/block/height/1")).text());

afterAll(async () => {
  await changing.close();
  await chain.stack.close();
});

/** The step and the reason of a rejection. */
async function rejectionOf(id: string, options: Partial<VerifyOptions> = {}): Promise<readonly [string, string]> {
  try {
    await fetchVerified(id, { gateway: changing.url, ...options });
  } catch (error) {
    if (error instanceof VerificationError) return [error.step, error.message];
    return ["", error instanceof Error ? error.message : String(error)];
  }
  return ["", "verified"];
}

const { small, wide, note, deep, empty, chunked, bundle, tiny } = chain;

describe("resolves with the bytes of", () => {
  test.each<[string, Planted]>([
    ["an item", small],
    ["an Ethereum item of several chunks", wide],
    ["an item in a bundle within a bundle", note],
    ["an item three bundles down", deep],
    ["an item without bytes", empty],
    ["an item whose chunk has other items", tiny],
    ["a transaction of three chunks", chunked],
    ["a transaction that is a bundle", bundle],
  ])("%s", async (_what, { id, bytes }) => {
    const verified = await fetchVerified(id, { gateway: chain.url(), txRoot: blockRoot });
    expect(Buffer.compare(verified.bytes, bytes)).toBe(0);
    expect(verified.block?.height).toBe(1);
    expect(verified.steps.map(({ state }) => state).slice(1)).not.toContain("open");
  });

  test("an item that was uploaded and is in no block, without its place", async () => {
    changing.change = ({ proof }) => Object.assign(proof, { block: null, transaction: null, items: [], chunks: [] });
    const verified = await fetchVerified(small.id, { gateway: changing.url });
    expect(Buffer.compare(verified.bytes, small.bytes)).toBe(0);
    expect(verified.block).toBeNull();
    expect(await rejectionOf(small.id, { txRoot: blockRoot })).toEqual(["Block", "Block: It is in no block yet."]);
    changing.change = undefined;
  });
});

describe("tells what was signed:", () => {
  test("the tags, the type and the owner of a transaction", async () => {
    const { tags, type, owner } = await fetchVerified(bundle.id, { gateway: chain.url(), owner: rsa.address });
    expect([tags.map(({ name }) => name), type]).toEqual([
      ["Bundle-Format", "Bundle-Version"],
      "application/octet-stream",
    ]);
    expect(owner).toBe(rsa.address);
  });

  test("the tags and the owner of an item", async () => {
    const { tags, owner } = await fetchVerified(chain.nested.id, { gateway: chain.url() });
    expect(tags).toEqual([
      { name: "Bundle-Format", value: "binary" },
      { name: "Bundle-Version", value: "2.0.0" },
    ]);
    expect(owner).toBe(addressOf(ed25519.owner));
  });
});

/** Makes a transaction of three chunks pass for its first chunk. */
const truncated: ProofChange = ({ proof }) => {
  const [first] = proof.chunks;
  if (first !== undefined) Object.assign(proof, { size: first.end, range: { start: 0, end: first.end } });
  proof.chunks = proof.chunks.slice(0, 1);
};

/** Flips a bit in the middle of a text of base64url. */
function flip(object: object | undefined | null, name: string, at = 40): void {
  if (object === undefined || object === null) throw new Error(`there is no ${name} to change`);
  const text = String(Reflect.get(object, name));
  Reflect.set(object, name, `${text.slice(0, at)}${text[at] === "A" ? "B" : "A"}${text.slice(at + 1)}`);
}

describe("rejects", () => {
  const cases: readonly (readonly [what: string, of: Planted, change: ProofChange, step: string, reason: string])[] = [
    ["a byte of an item", small, ({ flipByte }) => flipByte(3), "Chunks", "hold other bytes"],
    ["a byte of a transaction", chunked, ({ flipByte }) => flipByte(300_000), "Chunks", "are not what the data root"],
    ["an item cut short", small, ({ proof, cut }) => cut(proof, 5), "Data item", "another id or size"],
    [
      "the first chunk of a transaction",
      chunked,
      (response) => {
        truncated(response);
        response.cut(response.proof, response.proof.range.end);
      },
      "Transaction",
      "another size than the content",
    ],
    [
      "the first chunk of a transaction as a part",
      chunked,
      (response) => {
        const { size } = response.proof;
        truncated(response);
        response.cut(response.proof, response.proof.range.end);
        response.proof.size = size;
      },
      "Size",
      "a part of the content",
    ],
    ["another item's proof", small, ({ proof }) => Object.assign(proof, { id: note.id }), "Block", "is about"],
    [
      "a changed path to the transaction",
      small,
      ({ proof }) => flip(proof.transaction?.place, "tx_path"),
      "Transaction",
      "A branch does not have the hash",
    ],
    [
      "another data root",
      small,
      ({ proof }) => flip(proof.transaction, "data_root"),
      "Transaction",
      "another data root",
    ],
    [
      "a changed path to a chunk",
      small,
      ({ proof }) => flip(proof.chunks[0], "data_path"),
      "Chunks",
      "does not have the hash",
    ],
    ["a changed header", small, ({ proof }) => flip(proof.items[0], "header"), "Data item", "The header differs"],
    [
      "a changed signature",
      small,
      ({ proof }) => flip(proof.signature, "signature"),
      "Signature",
      "not those of the header",
    ],
    [
      "other tags of an item",
      chain.nested,
      ({ proof }) => flip(proof.signature, "tags", 10),
      "Signature",
      "not those of the header",
    ],
    [
      "other tags of a transaction",
      bundle,
      ({ proof }) => {
        const fields = JSON.parse(proof.transaction?.text ?? "");
        flip(fields.tags[0], "value", 1);
        Object.assign(proof.transaction ?? {}, { text: JSON.stringify(fields) });
      },
      "Signature",
      "not the owner's",
    ],
    [
      "a proof without a transaction",
      chunked,
      ({ proof }) => Object.assign(proof, { transaction: null }),
      "Signature",
      "the chunks were not checked",
    ],
    [
      "an offset that is a text",
      small,
      ({ proof }) => Object.assign(proof.items[0] ?? {}, { start: "0" }),
      "Block",
      "is not a number",
    ],
    [
      "a proof whose paths are not base64",
      small,
      ({ proof }) => Object.assign(proof.chunks[0] ?? {}, { data_path: "?" }),
      "Chunks",
      "cannot be read",
    ],
  ];

  test.each(cases)("%s", async (_what, { id }, change, step, reason) => {
    changing.change = change;
    const rejection = await rejectionOf(id);
    changing.change = undefined;
    expect(rejection[0]).toBe(step);
    expect(rejection[1]).toContain(reason);
    expect(await rejectionOf(id)).toEqual(["", "verified"]);
  });

  test.each<[string, Planted, Partial<VerifyOptions>, string, string]>([
    ["another owner than the expected", small, { owner: rsa.address }, "Signature", `not ${rsa.address}`],
    ["another block than the expected", small, { txRoot: "A".repeat(43) }, "Block", "another tx_root"],
    ["content above the limit", small, { maxBytes: small.bytes.length - 1 }, "Size", "33 are allowed"],
    ["a transaction of format 1", chain.first, {}, "Signature", 'checked by "cairn verify"'],
    ["a transaction with ECDSA", chain.curved, {}, "Signature", 'checked by "cairn verify"'],
  ])("%s", async (_what, { id }, options, step, reason) => {
    const rejection = await rejectionOf(id, options);
    expect(rejection[0]).toBe(step);
    expect(rejection[1]).toContain(reason);
  });

  test("nothing at its limits", async () => {
    const options = { maxBytes: small.bytes.length, owner: addressOf(ed25519.owner), txRoot: blockRoot };
    expect(await rejectionOf(small.id, options)).toEqual(["", "verified"]);
  });

  test("a body that is longer than the proof says, before all of it is read", async () => {
    changing.change = ({ lengthen }) => lengthen(10_000_000);
    expect((await rejectionOf(small.id))[0]).toBe("Size");
    changing.change = undefined;
  });
});

test.each<[string, string, Partial<VerifyOptions>]>([
  ["unknown content", "A".repeat(43), {}],
  ["a transaction in no block", chain.pending.id, {}],
  ["content beyond the limit of proofs", chain.long.id, {}],
  ["an unreachable gateway", small.id, { gateway: "http://127.0.0.1:1" }],
  ["a stop by the page", small.id, { signal: AbortSignal.abort() }],
])("%s is another error", async (_what, id, options) => {
  const [step, reason] = await rejectionOf(id, options);
  expect([step, reason === "verified"]).toEqual(["", false]);
});

describe("signatures of type", () => {
  const message = new Uint8Array(48).map((_, at) => at);
  const checked = [1, 2, 3, 4, 7, 101];
  test.each(signers.map((signer) => [signer.scheme.type, signer] as const))("%d", async (type, signer) => {
    const [owner, signature] = [new Uint8Array(signer.owner), new Uint8Array(signer.sign(message))];
    const signed = (change: Partial<Record<"message" | "owner" | "signature", Uint8Array<ArrayBuffer>>> = {}) =>
      isSignedBy(type, change.owner ?? owner, change.message ?? message, change.signature ?? signature).catch(
        () => false,
      );
    if (!checked.includes(type)) {
      expect(await signed()).toBeUndefined();
      return;
    }
    expect(await signed()).toBe(true);
    expect(await signed({ message: message.with(47, 0) })).toBe(false);
    for (const at of [0, 20, signature.length - 1])
      expect(await signed({ signature: signature.with(at, (signature[at] ?? 0) ^ 4) })).toBe(false);
    expect(await signed({ owner: owner.with(20, (owner[20] ?? 0) ^ 1) })).toBe(false);
    expect(await signed({ signature: signature.slice(1) })).toBe(false);
  });

  test.each([2, 4])("%d by a key of small order are rejected", async (type) => {
    const identity = new Uint8Array(32).with(0, 1);
    const signature = new Uint8Array(64).with(0, 1);
    expect(await isSignedBy(type, identity, message, signature)).toBe(false);
  });
});
