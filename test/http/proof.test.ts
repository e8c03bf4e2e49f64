/**
 * Proofs of a real gateway over a real chain: what each of them shows, and that nothing else passes for one.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { readBlock } from "../../src/arweave/block.ts";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { addressOf } from "../../src/arweave/id.ts";
import { proofFields, proofRangeSizeMax, readProof } from "../../src/arweave/proof.ts";
import type { Anchor } from "../../src/arweave/proof-verify.ts";
import { readTransaction } from "../../src/arweave/transaction.ts";
import { Failure, failures } from "../../src/failures.ts";
import { decodeBase64url, encodeBase64url } from "../../src/lib/base64url.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { ecdsa, rsa } from "../dev/devnet/support.ts";
import { wire } from "../support/gateway-server.ts";
import { createChance, mutationSeed } from "../support/mutate.ts";
import { askProof, bundleTags, check, ethereum, openProofChain, type Planted, postChunked } from "./proof-chain.ts";
import { everyByte, everyLeaf, type Json } from "./proof-damage.ts";

const chain = await openProofChain();
const url = chain.url();
afterAll(chain.stack.close);

/** What the node, and not the gateway, says of a block. */
const blockText = async (height: number) => (await chain.stack.node.get(`/block/height/${height}`)).text();
const block = readBlock(await blockText(1));
const otherBlock = readBlock(await blockText(2));

const anchors: readonly (readonly [string, Anchor, RegExp])[] = [
  ["nothing", { kind: "none" }, /the gateway is the only source/],
  ["the block's hash", { kind: "hash", hash: block.hash }, /block hash that was given/],
  ["the block's header", { kind: "block", text: block.text }, /block header that was given/],
  ["the block's tx_root", { kind: "tx root", txRoot: bytesOf(block.txRoot) }, /tx_root that was given/],
];

const subjects: readonly (readonly [string, Planted, readonly string[]])[] = [
  ["a transaction of several chunks with a halved tail", chain.chunked, ["chunks"]],
  ["a transaction that is a bundle", chain.bundle, ["chunks"]],
  ["a transaction of format 1", chain.first, ["chunks"]],
  ["a data item", chain.small, ["chunks", "bundles", "signature"]],
  ["an item over several chunks", chain.wide, ["chunks", "bundles", "signature"]],
  ["an item without content", chain.empty, ["chunks", "bundles", "signature"]],
  ["an item that is a bundle", chain.nested, ["chunks", "bundles", "signature"]],
  ["an item in a bundle in a bundle", chain.note, ["chunks", "bundles", "bundles", "signature"]],
  ["an item three bundles down", chain.deep, ["chunks", "bundles", "bundles", "bundles", "signature"]],
];

describe("a proof", () => {
  for (const [name, planted, steps] of subjects) {
    test.each(anchors)(`of ${name} holds for one who believes %s`, async (_name, anchor, belief) => {
      const verdict = check(planted, await askProof(url, planted.id), { anchor });
      expect(verdict).toMatchObject({ outcome: "proven", fault: undefined, open: [] });
      expect(verdict.steps.map(({ step }) => step)).toEqual(["block", "transaction", "place", ...steps] as never);
      expect(verdict.trusted.join("\n")).toMatch(belief);
      expect(verdict.trusted.join("\n").includes("only source")).toBe(anchor.kind === "none");
    });
  }

  test("of a transaction without data holds by the block's list, which a tx_root does not cover", async () => {
    const text = await askProof(url, chain.transfer.id);
    expect(check(chain.transfer, text).outcome).toBe("proven");
    const bare = check(chain.transfer, text, { anchor: { kind: "tx root", txRoot: bytesOf(block.txRoot) } });
    expect(bare).toMatchObject({
      outcome: "signed",
      open: [expect.stringContaining("give the block's hash")],
    });
  });

  test("of an item in a transaction of format 1 holds, and says what is not shown of the transaction", async () => {
    const verdict = check(chain.old, await askProof(url, chain.old.id));
    expect(verdict.outcome).toBe("proven");
    expect(verdict.open).toEqual([expect.stringContaining("is of format 1")]);
  });

  test("of an ECDSA transaction holds for one who knows its owner; its place holds for everybody", async () => {
    const text = await askProof(url, chain.curved.id);
    const verdict = check(chain.curved, text);
    expect(verdict).toMatchObject({ outcome: "placed", open: [expect.stringContaining("names no owner")] });
    const known = check(chain.curved, text, { owner: ecdsa.address });
    expect(known).toMatchObject({ outcome: "proven", open: [] });
    expect(known.trusted).toContain(`the owner that was given: ${ecdsa.address}`);
    expect(check(chain.curved, text, { owner: rsa.address }).outcome).toBe("rejected");
    const item = check(chain.inCurved, await askProof(url, chain.inCurved.id));
    expect(item).toMatchObject({
      outcome: "proven",
      open: [expect.stringContaining("who signed transaction")],
    });
  });

  test.each([chain.chunked, chain.first, chain.deep])("is rejected when the owner is another", async (planted) => {
    const text = await askProof(url, planted.id);
    expect(check(planted, text, { owner: ecdsa.address })).toMatchObject({ outcome: "rejected" });
    const { items, transaction } = JSON.parse(text);
    const owner = items.length === 0 ? transaction.owner : addressOf(ethereum.owner);
    expect(check(planted, text, { owner }).outcome).toBe("proven");
  });

  test("of what is in no block yet shows its signature, and says so", async () => {
    const text = await askProof(url, chain.pending.id);
    expect(JSON.parse(text)).toMatchObject({ stable: false, block: null, chunks: [] });
    expect(check(chain.pending, text)).toMatchObject({ outcome: "signed", open: ["it is in no block yet"] });
    const first = check(chain.pendingFirst, await askProof(url, chain.pendingFirst.id));
    expect(first.open.join("\n")).toContain("may be cut elsewhere");
    const wrong = new Uint8Array(chain.pending.bytes).fill(1, 7, 8);
    expect(check(chain.pending, text, { bytes: wrong }).outcome).toBe("rejected");
  });

  test("reads as it was written", async () => {
    for (const { id } of [chain.deep, chain.first, chain.pending, chain.transfer]) {
      const text = await askProof(url, id);
      expect(JSON.stringify(proofFields(readProof(text)))).toBe(text);
    }
  });
});

describe("a proof of a part", () => {
  const size = chain.chunked.bytes.length;
  const tail = 262_144 + Math.ceil((size - 262_144) / 2);
  test.each([
    ["0-0", 0, 1],
    ["100-199", 100, 1],
    ["262143-262144", 262_143, 2],
    ["0-262143", 0, 1],
    ["262144-393215", 262_144, 1],
    [`${tail - 1}-${tail}`, tail - 1, 2],
    [`${tail}-`, tail, 1],
    ["-1", size - 1, 1],
    ["5000-99999999", 5_000, 3],
    ["bytes=7-9", 7, 1],
  ])("%s of a transaction is proven by the chunks that it touches", async (range, start, count) => {
    const text = await askProof(url, chain.chunked.id, range);
    const proof = readProof(text);
    expect([proof.range.start, proof.chunks.length]).toEqual([start, count]);
    expect(check(chain.chunked, text).outcome).toBe("proven");
    // Whole chunks are not sent again.
    for (const { start: from, end, bytes } of proof.chunks)
      expect(bytes === undefined).toBe(proof.range.start <= from && end <= proof.range.end);
  });

  test.each([
    ["an item", chain.wide, "signature is over all 300000 bytes"],
    ["an item three bundles down", chain.deep, "signature is over all 19 bytes"],
    ["a transaction of format 1", chain.first, "signature is over all of its data"],
  ])("of %s is proven with all of it, and without only placed", async (_name, planted, reason) => {
    const text = await askProof(url, planted.id, "3-9");
    const alone = check(planted, text);
    expect(alone.outcome).toBe("placed");
    expect(alone.open.join("\n")).toContain(reason);
    expect(check(planted, text, { whole: planted.bytes }).outcome).toBe("proven");
    const forged = new Uint8Array(planted.bytes);
    forged[1] = (forged[1] ?? 0) ^ 1;
    expect(check(planted, text, { whole: forged }).outcome).toBe("rejected");
  });

  test("may be requested by header, and the query takes precedence", async () => {
    const ask = async (query: string) => {
      const headers = { range: "bytes=10-19" };
      return readProof(await (await fetch(`${url}/svc/proof/${chain.small.id}${query}`, { headers })).text()).range;
    };
    expect(await ask("")).toEqual({ start: 10, end: 20 });
    expect(await ask("?range=1-2")).toEqual({ start: 1, end: 3 });
  });
});

describe("GET /svc/proof/{id}", () => {
  test.each([
    [`${"A".repeat(42)}B`, 404, "Not Found"],
    ["A".repeat(43), 404, "Not Found"],
    ["A".repeat(42), 400, "Invalid ID"],
    [`${chain.small.id}?range=34-`, 416, "Range not satisfiable"],
    [`${chain.small.id}?range=0-1,4-5`, 400, "Malformed input"],
    [`${chain.small.id}?range=5-2`, 200, undefined],
    [`${chain.small.id}?range=x`, 400, "Malformed input"],
    [`${chain.long.id}`, 413, failures.proof_too_large.message],
    [`${chain.long.id}?range=0-${proofRangeSizeMax}`, 413, failures.proof_too_large.message],
    [`${chain.long.id}?range=0-${proofRangeSizeMax - 1}`, 200, undefined],
  ])("%s gets %p %p", async (path, status, message) => {
    const response = await fetch(`${url}/svc/proof/${path}`);
    const body = await response.json();
    expect([response.status, message === undefined ? undefined : body]).toEqual([status, message]);
  });

  test("names its limit", () => {
    expect(failures.proof_too_large.message).toContain(` ${proofRangeSizeMax} bytes`);
  });

  test("more than one range in a header is not satisfiable", async () => {
    const headers = { range: "bytes=0-1,5-6" };
    expect((await fetch(`${url}/svc/proof/${chain.small.id}`, { headers })).status).toBe(416);
  });

  test("responds to HEAD with the headers of GET, to /ar-io as to /svc, and with 304 to its own tag", async () => {
    const ask = (method: string, prefix: string, more = "") =>
      wire(chain.stack.port, `${method} /${prefix}/proof/${chain.tiny.id} HTTP/1.1${more}`);
    const [get, head, alias] = [await ask("GET", "svc"), await ask("HEAD", "svc"), await ask("GET", "ar-io")];
    const shown = ({ headers }: typeof get) =>
      headers.filter(([name]) => !["date", "x-request-id", "connection"].includes(name)).toSorted();
    expect(get.status).toBe(200);
    expect(shown(head)).toEqual(shown(get));
    expect(head.body.length).toBe(0);
    expect(alias.body.equals(get.body)).toBe(true);
    const tag = get.headers.find(([name]) => name === "etag")?.[1];
    expect((await ask("GET", "svc", `\r\nIf-None-Match: ${tag}`)).status).toBe(304);
    expect((await ask("POST", "svc")).status).toBe(405);
  });

  test("shows nothing of what is blocked: 451 for it and around it, withheld beside it", async () => {
    const { blockList } = chain.stack.gateway.sources;
    const { neighbour, last, small, bundle, nested } = chain;
    const status = async (id: string, range = "") => (await fetch(`${url}/svc/proof/${id}${range}`)).status;
    const before = [await status(neighbour.id), await status(bundle.id), await status(last.id)];
    blockList.block("id", neighbour.id, {});
    expect(before).toEqual([200, 200, 200]);
    expect(await status(neighbour.id)).toBe(451);
    expect(await status(neighbour.id, "?range=0-0")).toBe(451);
    expect(await status(bundle.id)).toBe(451);
    expect(await status(bundle.id, "?range=0-100")).toBe(200);
    for (const planted of [last, small]) {
      const text = await askProof(url, planted.id);
      expect(everyChunkOf(text).includes(Buffer.from(neighbour.bytes))).toBe(false);
    }
    const withheld = check(last, await askProof(url, last.id));
    expect(withheld).toMatchObject({ outcome: "signed", fault: undefined });
    expect(withheld.open.join("\n")).toContain("is not shown whole");
    expect(check(small, await askProof(url, small.id)).outcome).toBe("proven");
    blockList.unblock("id", neighbour.id);
    blockList.block("id", nested.id, {});
    expect([await status(chain.note.id), await status(chain.deep.id), await status(last.id)]).toEqual([451, 451, 200]);
    blockList.unblock("id", nested.id);
    blockList.block("id", bundle.id, {});
    expect([await status(chain.deep.id), await status(last.id)]).toEqual([451, 451]);
    blockList.unblock("id", bundle.id);
    blockList.block("hash", encodeBase64url(sha256(chain.deep.bytes)), {});
    expect([await status(chain.deep.id), await status(chain.deepest.id), await status(chain.note.id)]).toEqual([
      451, 451, 200,
    ]);
    blockList.unblock("hash", encodeBase64url(sha256(chain.deep.bytes)));
    expect(check(chain.deep, await askProof(url, chain.deep.id)).outcome).toBe("proven");
  });
});

describe("another block", () => {
  test.each([
    ["hash", { kind: "hash", hash: otherBlock.hash }, "not the one that was given"],
    ["header", { kind: "block", text: otherBlock.text }, "the header is that of block 2"],
    ["tx_root", { kind: "tx root", txRoot: bytesOf(otherBlock.txRoot) }, "not the one that was given"],
  ] as const)("given by its %s is rejected", async (_name, anchor, reason) => {
    for (const planted of [chain.deep, chain.chunked, chain.transfer]) {
      const verdict = check(planted, await askProof(url, planted.id), { anchor });
      expect(verdict).toMatchObject({ outcome: "rejected", fault: { step: "block" } });
      expect(verdict.fault?.reason).toContain(reason);
    }
  });

  test.each([
    ["an item", chain.deep],
    ["a transaction", chain.chunked],
    ["a transaction without data", chain.transfer],
  ])("shown in the place of that of %s is rejected, whatever is believed", async (_name, planted) => {
    const proof = JSON.parse(await askProof(url, planted.id));
    proof.block = { height: 2, hash: otherBlock.hash, text: otherBlock.text };
    const text = JSON.stringify(proof);
    expect(check(planted, text).fault?.reason).toContain("block 2 does not name transaction");
    const anchor = { kind: "tx root", txRoot: bytesOf(block.txRoot) } as const;
    expect(check(planted, text, { anchor }).outcome).toBe("rejected");
  });
});

describe("what is wrong by one", () => {
  const chance = createChance(mutationSeed);
  console.log(`seed ${mutationSeed}`);

  /** Damaged proofs that still pass for one, of so many. */
  const passing = (planted: Planted, damaged: Iterable<readonly [string, string]>) => {
    const passed: string[] = [];
    let count = 0;
    for (const [where, text] of damaged) {
      count += 1;
      if (!isRejected(planted, text)) passed.push(where);
    }
    return { passed, count };
  };

  test("every byte of a small proof, flipped, is rejected", async () => {
    const { passed, count } = passing(
      chain.tiny,
      everyByte(JSON.parse(await askProof(url, chain.tiny.id)), () => true),
    );
    expect(passed).toEqual([]);
    expect(count).toBeGreaterThan(1_000);
  });

  test.each([
    ["a transaction with a halved tail", chain.chunked, "", 5_000],
    ["a part of it", chain.chunked, "262143-262144", 4],
    ["a transaction of format 1", chain.first, "", 2_000],
    ["an item three bundles down", chain.deep, "", 6],
    ["an item over chunks", chain.wide, "", 6],
  ])("bytes of a proof of %s, taken by the seed, are rejected", async (_name, planted, range, part) => {
    const text = await askProof(url, planted.id, range);
    const { passed, count } = passing(
      planted,
      everyByte(JSON.parse(text), () => chance.below(10_000) < part),
    );
    expect(passed).toEqual([]);
    expect(count).toBeGreaterThan(50);
  });

  test.each([
    ["an item", chain.tiny],
    ["an item three bundles down", chain.deep],
    ["a transaction", chain.chunked],
    ["a transaction of format 1", chain.first],
    ["an ECDSA transaction", chain.curved],
    ["an item in one", chain.inCurved],
  ])("every number, id and hash of a proof of %s is rejected when it is another", async (_name, planted) => {
    const proof = JSON.parse(await askProof(url, planted.id));
    const apart = (path: string) => path === "stable" || path.endsWith(".text");
    const { passed, count } = passing(planted, everyLeaf(proof, apart));
    expect(passed).toEqual([]);
    expect(count).toBeGreaterThan(10);
  });

  test("every field of the block and of the transaction is rejected when it is another", async () => {
    for (const [planted, part] of [
      [chain.tiny, "block"],
      [chain.tiny, "transaction"],
      [chain.chunked, "transaction"],
      [chain.first, "transaction"],
      [chain.inCurved, "transaction"],
    ] as const) {
      const proof = JSON.parse(await askProof(url, planted.id));
      const texts = [...everyLeaf(JSON.parse(proof[part].text), isUnsigned(planted))].map(
        ([where, text]): [string, string] => [
          `${part}.${where}`,
          JSON.stringify({ ...proof, [part]: { ...proof[part], text } }),
        ],
      );
      const { passed, count } = passing(planted, texts);
      expect(passed).toEqual([]);
      expect(count).toBeGreaterThan(8);
    }
  });

  /** Format 1 signs its data, and what its header says of a root is nothing. */
  function isUnsigned(planted: Planted): (name: string) => boolean {
    return (name) => planted === chain.first && name === "data_root";
  }

  test("every byte of the content, flipped, is rejected", async () => {
    const text = await askProof(url, chain.tiny.id);
    for (const at of chain.tiny.bytes.keys()) {
      const bytes = new Uint8Array(chain.tiny.bytes);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << chance.below(8));
      expect(check(chain.tiny, text, { bytes }).outcome).toBe("rejected");
    }
  });
});

describe("what is made up", () => {
  type Shown = Record<string, unknown>;

  test("another transaction's data under an ECDSA signature is never proven", async () => {
    // The signature recovers to some key, whatever the header says: both are in one block, so all paths are right.
    const [one, other] = [await askProof(url, chain.curved.id), await askProof(url, chain.curvedOther.id)].map((text) =>
      JSON.parse(text),
    );
    const [header, taken] = [JSON.parse(one.transaction.text), JSON.parse(other.transaction.text)];
    const text = JSON.stringify({ ...header, data_root: taken.data_root });
    const owner = readTransaction(text).ownerAddress;
    const transaction = { ...other.transaction, id: chain.curved.id, text, owner };
    const forged = JSON.stringify({ ...other, id: chain.curved.id, transaction });
    const planted = { id: chain.curved.id, bytes: chain.curvedOther.bytes };
    expect(owner).not.toBe(ecdsa.address);
    expect(check(planted, forged)).toMatchObject({ outcome: "placed", fault: undefined });
    expect(check(planted, forged, { owner: ecdsa.address }).outcome).toBe("rejected");
  });

  test("a header of the first format, shown with its data, proves no other bytes", async () => {
    const proof = JSON.parse(await askProof(url, chain.first.id));
    const { text, data_at: at } = proof.transaction;
    const data = Buffer.from(chain.first.bytes).toString("base64url");
    const whole = { ...proof.transaction, text: text.slice(0, at) + data + text.slice(at), data_at: null };
    const bare = { ...proof, transaction: { ...whole, data_root: "", place: null }, chunks: [], block: null };
    const forged = new Uint8Array(chain.first.bytes).fill(7, 9, 10);
    expect(check(chain.first, JSON.stringify(bare)).outcome).toBe("signed");
    expect(check(chain.first, JSON.stringify(bare), { bytes: forged }).outcome).toBe("rejected");
    expect(check(chain.first, JSON.stringify({ ...bare, block: proof.block }), { bytes: forged }).outcome).toBe(
      "rejected",
    );
  });

  test("a header copied before other bytes makes a place at most, and never a proof", async () => {
    const { tiny, stack } = chain;
    const header = tiny.item.subarray(0, tiny.item.length - tiny.bytes.length);
    const bytes = new Uint8Array(tiny.bytes).fill(0x21, 4, 5);
    const forged = Buffer.concat([header, bytes]);
    const bundle = await postChunked(stack.devnet, ecdsa, writeBundle([forged]), bundleTags);
    await stack.devnet.mine(1);
    await stack.settled();
    const honest = JSON.parse(await askProof(url, tiny.id));
    const shown = JSON.parse(await askProof(url, bundle.id));
    const dataStart = 96 + header.length;
    const item = { ...honest.items[0], parent: bundle.id, entry: { index: 0, count: 1 }, start: 96 };
    const proof = (start: number, end: number) =>
      JSON.stringify({
        ...honest,
        ...shown,
        id: tiny.id,
        kind: "data_item",
        size: bytes.length,
        range: { start, end },
        items: [{ ...item, data_start: dataStart, end: dataStart + bytes.length }],
        signature: honest.signature,
        chunks: [{ ...shown.chunks[0], chunk: encodeBase64url(bundle.bytes) }],
      });
    const part = { bytes: bytes.subarray(3, 9) };
    expect(check(tiny, proof(3, 9), part)).toMatchObject({ outcome: "placed", fault: undefined });
    expect(check(tiny, proof(3, 9), { ...part, whole: bytes })).toMatchObject({
      fault: { step: "signature" },
    });
    expect(check(tiny, proof(3, 9), { ...part, whole: tiny.bytes })).toMatchObject({ outcome: "rejected" });
    expect(check(tiny, proof(0, bytes.length), { bytes })).toMatchObject({ fault: { step: "signature" } });
    expect(check(tiny, proof(0, bytes.length))).toMatchObject({ fault: { step: "chunks" } });
  });

  test("a proof of something else proves nothing, with its own bytes or with the right ones", async () => {
    const text = await askProof(url, chain.deep.id);
    expect(check(chain.small, text)).toMatchObject({ outcome: "rejected" });
    const claimed = check({ id: chain.small.id, bytes: chain.deep.bytes }, text);
    expect(claimed).toMatchObject({
      fault: { step: "subject", reason: `the proof is about ${chain.deep.id}` },
    });
  });

  test("a transaction's proof under another id is rejected", async () => {
    const text = JSON.stringify({ ...JSON.parse(await askProof(url, chain.other.id)), id: chain.chunked.id });
    const verdict = check({ id: chain.chunked.id, bytes: chain.other.bytes }, text);
    expect(verdict.fault?.reason).toBe("another transaction is shown");
  });

  test.each([
    ["header", "the header is that of transaction", (own: Shown, other: Shown) => ({ ...other, id: own["id"] })],
    [
      "data root",
      "the data root is not that of the transaction",
      (own: Shown, other: Shown) => ({ ...own, data_root: other["data_root"], place: other["place"] }),
    ],
  ])("a transaction with the %s of another of its size and block is rejected", async (_name, reason, mix) => {
    const { curved, curvedOther } = chain;
    const [own, other] = [await askProof(url, curved.id), await askProof(url, curvedOther.id)].map((text) =>
      JSON.parse(text),
    );
    const text = JSON.stringify({
      ...other,
      id: own.id,
      transaction: mix(own.transaction, other.transaction),
    });
    const planted = { id: curved.id, bytes: curvedOther.bytes };
    expect(check(planted, text, { owner: ecdsa.address }).fault?.reason).toContain(reason);
  });

  test("a transaction is not larger than its header says", async () => {
    const proof = JSON.parse(await askProof(url, chain.chunked.id));
    const size = proof.size + 1;
    const transaction = { ...proof.transaction, data_size: size, place: null };
    const verdict = check(chain.chunked, JSON.stringify({ ...proof, size, transaction }));
    expect(verdict.fault?.reason).toContain(`the header states ${size - 1} bytes of data`);
  });

  test("a proof about no bytes, or with other bytes than it is about, proves nothing", async () => {
    const text = await askProof(url, chain.deep.id, "1-4");
    const faultOf = (given: Parameters<typeof check>[2], shown = text) => check(chain.deep, shown, given).fault?.reason;
    const nothing = JSON.stringify({ ...JSON.parse(text), range: { start: 3, end: 3 } });
    expect(faultOf({}, nothing)).toBe("the proof is about no bytes");
    expect(faultOf({ bytes: chain.deep.bytes })).toContain("19 bytes were given");
    expect(faultOf({ whole: chain.deep.bytes.subarray(1) })).toContain("and 18 were given");
    expect(faultOf({ whole: chain.small.bytes.subarray(0, 19) })).toContain("are not the same");
  });

  test("a transaction that shows an item's place proves no other bytes of its data", async () => {
    const [own, items] = [
      JSON.parse(await askProof(url, chain.tinyBundle.id)),
      JSON.parse(await askProof(url, chain.tiny.id)).items,
    ];
    const size = chain.tinyBundle.bytes.length;
    const end = size - items[0].data_start;
    const chunks = [{ ...own.chunks[0], chunk: encodeBase64url(chain.tinyBundle.bytes) }];
    const text = JSON.stringify({ ...own, items, chunks, range: { start: 0, end } });
    const bytes = chain.tinyBundle.bytes.subarray(items[0].data_start);
    expect(check(chain.tinyBundle, text, { bytes })).toMatchObject({ fault: { step: "subject" } });
  });

  describe("a walk whose indices are not shown", () => {
    type Items = { id: string; parent: string; data_start: number; end: number; entry: null }[];
    const walk = async (planted: Planted, change: (items: Items, others: Items) => Items) => {
      const [own, other] = [
        JSON.parse(await askProof(url, planted.id)),
        JSON.parse(await askProof(url, chain.deep.id)).items,
      ];
      const unshown = (items: Items) => items.map((item) => ({ ...item, entry: null }));
      const items = change(unshown(own.items), unshown(other));
      // The bytes at the place that is claimed: what is wrong must be found in the walk.
      const at = items.at(-1)?.data_start ?? 0;
      const bytes = chain.bundle.bytes.subarray(at, at + planted.bytes.length);
      return check(planted, JSON.stringify({ ...own, items }), { bytes });
    };

    test("holds, and says so", async () => {
      const verdict = await walk(chain.deep, (items) => items);
      expect(verdict.outcome).toBe("proven");
      expect(verdict.open).toEqual(Array(3).fill(expect.stringContaining("is not shown")));
    });

    test.each<[string, (items: Items, others: Items) => Items, string]>([
      [
        "into a bundle that does not hold the item",
        ([item], [nested]) => [
          nested as never,
          { ...item, parent: nested?.id, bundle_start: nested?.data_start } as never,
        ],
        "is not within its bundle",
      ],
      [
        "through an item that is not a bundle",
        ([item], [nested]) => [
          { ...nested, ...item } as never,
          { ...item, parent: item?.id, bundle_start: item?.data_start } as never,
        ],
        "not a bundle by its tags",
      ],
      [
        "to a payload that begins elsewhere",
        ([item]) => [{ ...item, data_start: (item?.data_start ?? 0) + 1, end: (item?.end ?? 0) + 1 } as never],
        "begins elsewhere",
      ],
      [
        "to an item under another's name",
        ([item]) => [{ ...item, id: chain.note.id } as never],
        "the signature shown is that of",
      ],
      ["that ends before the item", (_items, others) => others.slice(0, 1), "the walk ends at item"],
      ["that never begins", () => [], "does not lead to the item"],
    ])("is rejected %s", async (_name, change, reason) => {
      const verdict = await walk(chain.small, change);
      expect(verdict).toMatchObject({ outcome: "rejected" });
      expect(verdict.fault?.reason).toContain(reason);
    });

    test("is rejected when the names on the way are others", async () => {
      const verdict = await walk(chain.deep, (items) =>
        items.map((item, index) => ({
          ...item,
          ...(index === 0 ? { id: chain.note.id } : {}),
          ...(index === 1 ? { parent: chain.note.id } : {}),
        })),
      );
      expect(verdict.fault?.reason).toContain("the signature shown is that of");
    });
  });

  test("chunks out of order, or twice, are rejected", async () => {
    const proof = JSON.parse(await askProof(url, chain.chunked.id));
    for (const chunks of [proof.chunks.toReversed(), [proof.chunks[0], ...proof.chunks]]) {
      const verdict = check(chain.chunked, JSON.stringify({ ...proof, chunks }));
      expect(verdict.fault?.reason).toContain("does not follow the one before");
    }
  });

  test("an item without its signature's fields is rejected", async () => {
    const text = JSON.stringify({ ...JSON.parse(await askProof(url, chain.tiny.id)), signature: null });
    expect(check(chain.tiny, text).fault?.reason).toBe("the signature's fields are not shown");
  });

  test("a transaction is not placed at the position of another of its size", async () => {
    const [one, other] = [await askProof(url, chain.curved.id), await askProof(url, chain.curvedOther.id)].map((text) =>
      JSON.parse(text),
    );
    const { place } = other.transaction;
    const chunks = one.chunks.map((chunk: { end: number }) => ({
      ...chunk,
      absolute_end_offset: String(BigInt(place.weave_start) + BigInt(chunk.end)),
    }));
    const text = JSON.stringify({ ...one, chunks, transaction: { ...one.transaction, place } });
    const verdict = check(chain.curved, text, { owner: ecdsa.address });
    expect(verdict).toMatchObject({ fault: { step: "place", reason: "tx_path leads to another data root" } });
  });

  test.each<[string, (proof: Record<string, Json>) => Record<string, Json>]>([
    ["without its block", (proof) => ({ ...proof, block: null })],
    ["without its chunks", (proof) => ({ ...proof, chunks: [] })],
    ["without its path", (proof) => ({ ...proof, transaction: { ...(proof["transaction"] as object), place: null } })],
  ])("a proof %s shows the signature alone", async (_name, without) => {
    for (const planted of [chain.deep, chain.chunked, chain.first]) {
      const verdict = check(planted, JSON.stringify(without(JSON.parse(await askProof(url, planted.id)))));
      expect(verdict.outcome).toBe("signed");
      expect(verdict.open.length).toBeGreaterThan(0);
    }
  });
});

function isRejected(planted: Planted, text: string): boolean {
  try {
    const bytes = planted.bytes.subarray(...rangeOf(text, planted));
    return check(planted, text, { bytes }).outcome === "rejected";
  } catch (error) {
    if (error instanceof Failure && error.code === "malformed_input") return true; // it could not even be read
    throw error;
  }
}

/** The right bytes for the range as it was before it was damaged: that of the whole, unless the proof is of a part. */
function rangeOf(text: string, planted: Planted): [number, number] {
  const { start, end } = JSON.parse(text).range;
  const isPart = Math.abs(end - start) < planted.bytes.length - 1;
  return isPart ? [start, end] : [0, planted.bytes.length];
}

function everyChunkOf(text: string): Buffer {
  return Buffer.concat(readProof(text).chunks.map(({ bytes }) => bytes ?? new Uint8Array(0)));
}

function bytesOf(text: string): Uint8Array {
  return decodeBase64url(text) ?? new Uint8Array(0);
}
