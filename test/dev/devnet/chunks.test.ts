/**
 * Data in the weave: in the body or by chunks, in any order, and proved from the block's root down to each byte.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { readBlock } from "../../../src/arweave/block.ts";
import { type TailRule, validatePath } from "../../../src/arweave/merkle.ts";
import { readTransactionHeader } from "../../../src/arweave/transaction.ts";
import { devnetFee } from "../../../src/dev/devnet/chain-rules.ts";
import type { Devnet } from "../../../src/dev/devnet/devnet.ts";
import { decodeBase64url, encodeBase64url } from "../../../src/lib/base64url.ts";
import { yieldToEventLoop } from "../../../src/lib/event-loop.ts";
import { sha256 } from "../../../src/lib/hash.ts";
import { chunkPosts, ecdsa, openTestDevnet, post, rsa, serve, sign, statedOf, testBytes } from "./support.ts";

const kib256 = 262_144;
const sizes = [1, 255, 32_767, kib256 - 1, kib256, kib256 + 1, kib256 + 32_767, kib256 + 32_768, 2 * kib256, 600_000];

describe("data posted by chunks", () => {
  test.each(sizes)("of %d bytes is returned completely, with proofs, in any order of the chunks", async (size) => {
    const devnet = await openTestDevnet();
    await post(devnet, ecdsa, { data: testBytes(10) });
    const data = testBytes(size, size);
    const { id } = await post(devnet, rsa, { stated: statedOf(data) });
    const posts = chunkPosts(data).toReversed();
    // Some before the block, some after it.
    const half = Math.ceil(posts.length / 2);
    for (const body of posts.slice(0, half)) expect(devnet.postChunk(body)).toEqual({ kind: "stored" });
    await devnet.mine(1);
    for (const body of posts.slice(half)) expect(devnet.postChunk(body)).toEqual({ kind: "stored" });
    expect(encodeBase64url(sha256(readWeave(devnet, id)))).toBe(encodeBase64url(sha256(data)));
    devnet.close();
  });

  test("of several transactions, in parallel over many connections, is not mixed up", async () => {
    const devnet = await openTestDevnet();
    const node = serve(devnet);
    const parts = [1, 2, 3].map((seed) => testBytes(5 * kib256 + seed * 1_000, seed));
    const ids = await Promise.all(
      parts.map(
        async (data) =>
          (
            await post(devnet, ecdsa, {
              stated: statedOf(data),
              tags: [{ name: "size", value: `${data.length}` }],
            })
          ).id,
      ),
    );
    const posts = parts.flatMap((data) => chunkPosts(data));
    const shuffled = posts.toSorted((left, right) => (left.slice(-40) < right.slice(-40) ? -1 : 1));
    const responses = await Promise.all(shuffled.map((body) => node.post("/chunk", body)));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    await devnet.mine(1);
    for (const [index, id] of ids.entries()) expect(readWeave(devnet, id)).toEqual(parts[index] ?? new Uint8Array(0));
    await node.close();
    devnet.close();
  });

  test("with repeated chunks has each of them at its offset", async () => {
    const devnet = await openTestDevnet();
    const data = new Uint8Array(4 * kib256 + 40_000).fill(7);
    const { id } = await post(devnet, rsa, { stated: statedOf(data) });
    for (const body of chunkPosts(data)) devnet.postChunk(body);
    await devnet.mine(1);
    expect(readWeave(devnet, id)).toEqual(data);
    devnet.close();
  });

  test("that was posted before is available to the next transaction at once", async () => {
    const devnet = await openTestDevnet();
    const data = testBytes(300_000);
    await post(devnet, rsa, { stated: statedOf(data) });
    for (const body of chunkPosts(data)) devnet.postChunk(body);
    const { id } = await post(devnet, ecdsa, { stated: statedOf(data) });
    await devnet.mine(1);
    expect(readWeave(devnet, id)).toEqual(data);
    devnet.close();
  });

  test("is rejected while no transaction has its data root, and with another size", async () => {
    const devnet = await openTestDevnet();
    const data = testBytes(300_000);
    const [first = ""] = chunkPosts(data);
    expect(devnet.postChunk(first)).toMatchObject({ kind: "rejected", fault: "data_root_not_found" });
    await post(devnet, rsa, { stated: statedOf(data) });
    const otherSize = JSON.stringify({ ...JSON.parse(first), data_size: "300001" });
    expect(devnet.postChunk(otherSize)).toMatchObject({ kind: "rejected", fault: "data_root_not_found" });
    expect(devnet.postChunk(first)).toEqual({ kind: "stored" });
    devnet.close();
  });

  test("is rejected when a byte, the path or the place is wrong", async () => {
    const devnet = await openTestDevnet();
    const data = testBytes(600_000);
    await post(devnet, rsa, { stated: statedOf(data) });
    const [first = "", second = ""] = chunkPosts(data);
    const one = JSON.parse(first);
    const other = JSON.parse(second);
    const wrong = {
      "another chunk's bytes": { ...one, chunk: other.chunk },
      "another chunk's path": { ...one, data_path: other.data_path },
      "another chunk's offset": { ...one, offset: other.offset },
      "one byte less": { ...one, chunk: encodeBase64url(testBytes(kib256 - 1)) },
      "an offset after the data": { ...one, offset: "600000" },
    };
    for (const [name, body] of Object.entries(wrong)) {
      expect([name, devnet.postChunk(JSON.stringify(body))]).toEqual([
        name,
        { kind: "rejected", fault: "invalid_proof", reason: expect.any(String) },
      ]);
    }
    devnet.close();
  });

  test("is rejected by the node's limits, in the node's order", async () => {
    const devnet = await openTestDevnet();
    const data = testBytes(600_000);
    await post(devnet, rsa, { stated: statedOf(data) });
    const body = JSON.parse(chunkPosts(data)[0] ?? "");
    const huge = `${2n ** 256n}`;
    const rows: readonly (readonly [changes: Record<string, unknown>, fault: string])[] = [
      [{ data_size: 600_000 }, "invalid_json"],
      [{ chunk: "@" }, "invalid_json"],
      [{ data_root: undefined }, "invalid_json"],
      [{ offset: "x" }, "invalid_json"],
      [{ data_size: huge, chunk: encodeBase64url(testBytes(kib256 + 1)) }, "data_size_too_big"],
      [
        { chunk: encodeBase64url(testBytes(kib256 + 1)), data_path: encodeBase64url(testBytes(349_505)) },
        "chunk_too_big",
      ],
      [{ data_path: encodeBase64url(testBytes(349_505)), offset: undefined }, "data_path_too_big"],
      [{ offset: undefined, chunk: "" }, "offset_field_required"],
      [{ offset: huge, chunk: "" }, "offset_too_big"],
      [{ chunk: "" }, "chunk_proof_ratio_not_attractive"],
      [{ data_path: "" }, "chunk_proof_ratio_not_attractive"],
      [{ data_root: encodeBase64url(testBytes(32)) }, "data_root_not_found"],
      [{ data_root: "AAAA" }, "data_root_not_found"],
    ];
    const found = rows.map(([changes]) => devnet.postChunk(JSON.stringify({ ...body, ...changes })));
    const faults = found.map((outcome): string => (outcome.kind === "rejected" ? outcome.fault : outcome.kind));
    expect(faults).toEqual(rows.map(([, fault]) => fault));
    devnet.close();
  });
});

describe("data posted in the body", () => {
  test.each(sizes)(
    "of %d bytes is accepted when it is split at every 256 KiB, and is available at once",
    async (size) => {
      const devnet = await openTestDevnet();
      const data = testBytes(size, size);
      const plain = await post(devnet, rsa, { data, tailRule: "plain" });
      await devnet.mine(1);
      expect(JSON.parse(minedText(devnet, plain.id)).data).toBe("");
      expect(readWeave(devnet, plain.id)).toEqual(data);
      devnet.close();
    },
  );

  test("whose tree has a halved tail is rejected, as a node does, and can be posted by chunks", async () => {
    const devnet = await openTestDevnet();
    const data = testBytes(kib256 + 100);
    const halved = sign(devnet, rsa, { data, tailRule: "halved" satisfies TailRule });
    expect(await devnet.postTransaction(halved.text)).toEqual({ kind: "unknown_split" });
    const { id } = await post(devnet, rsa, { stated: statedOf(data) });
    for (const body of chunkPosts(data)) expect(devnet.postChunk(body)).toEqual({ kind: "stored" });
    await devnet.mine(1);
    expect(readWeave(devnet, id)).toEqual(data);
    devnet.close();
  });

  test("of several MiB is read without being parsed as one", async () => {
    const devnet = await openTestDevnet();
    const data = testBytes(5 * 2 ** 20 + 3);
    const { id } = await post(devnet, ecdsa, { data, tailRule: "plain" });
    await devnet.mine(1);
    expect(readWeave(devnet, id)).toEqual(data);
    devnet.close();
  });

  test("is complete although another transaction with the same data is dropped during its arrival", async () => {
    const data = testBytes(4 * kib256);
    for (let iterations = 0; iterations < 10; iterations += 1) {
      const devnet = await openTestDevnet();
      await post(devnet, rsa, { lastTx: "" });
      const stale = await post(devnet, rsa, { lastTx: "", data, tailRule: "plain" });
      const arriving = post(devnet, ecdsa, { data, tailRule: "plain" });
      for (let iteration = 0; iteration < iterations; iteration += 1) await yieldToEventLoop();
      await devnet.mine(1);
      expect(devnet.transaction(stale.id).kind).toBe("rejected");
      const { id } = await arriving;
      await devnet.mine(1);
      expect(readWeave(devnet, id)).toEqual(data);
      devnet.close();
    }
  });

  test("of format 1 is proved like any other, and an empty one leaves an empty leaf", async () => {
    const devnet = await openTestDevnet();
    const data = testBytes(300_000, 4);
    data[data.length - 1] = 0;
    const full = await post(devnet, rsa, { format: 1, data });
    await post(devnet, rsa, { format: 1, target: ecdsa.address, quantity: 1n });
    await devnet.mine(1);
    expect(await devnet.written(full.id)).toBe(full.text);
    expect(readWeave(devnet, full.id)).toEqual(data);
    devnet.close();
  });

  test("of format 1 with 10 MiB and with a denomination is signed as a whole, and is returned as posted", async () => {
    const devnet = await openTestDevnet();
    const data = testBytes(10 * 2 ** 20).with(10 * 2 ** 20 - 1, 0);
    const reward = devnetFee(BigInt(data.length), "none");
    for (const denomination of [0n, 1n]) {
      const whole = sign(devnet, rsa, { format: 1, data, reward, denomination });
      const fields = JSON.parse(whole.text);
      const at = 9_000_001;
      const other = fields.data[at] === "A" ? "B" : "A";
      const changed = { ...fields, data: fields.data.slice(0, at) + other + fields.data.slice(at + 1) };
      expect(await devnet.postTransaction(JSON.stringify(changed))).toMatchObject({
        kind: "faulty",
        faults: [{ code: "tx_signature_not_valid" }],
      });
      expect(await devnet.postTransaction(whole.text)).toMatchObject({ kind: "accepted" });
      expect(await devnet.written(whole.id)).toBe(whole.text);
      await devnet.mine(1);
      expect(await devnet.written(whole.id)).toBe(whole.text);
      expect(readWeave(devnet, whole.id)).toEqual(data);
    }
    devnet.close();
  });

  test("of format 1 that is not base64url is rejected, wherever in a long text the fault is", async () => {
    const devnet = await openTestDevnet();
    const data = testBytes(2 * 2 ** 20).with(2 * 2 ** 20 - 1, 0);
    const { text } = sign(devnet, rsa, { format: 1, data, reward: devnetFee(BigInt(data.length), "none") });
    const fields = JSON.parse(text);
    for (const at of [0, 1_048_575, 1_048_576, fields.data.length - 1]) {
      const broken = { ...fields, data: `${fields.data.slice(0, at)}+${fields.data.slice(at + 1)}` };
      expect(await devnet.postTransaction(JSON.stringify(broken))).toEqual({
        kind: "invalid_json",
        reason: "data is not canonical base64url",
      });
    }
    devnet.close();
  });

  test("in a text that is long without its data, or has many brackets, is not parsed", async () => {
    const devnet = await openTestDevnet();
    const { text } = sign(devnet, rsa);
    const texts = [
      `${text.slice(0, -1)},"more":"${"x".repeat(2 ** 20)}"}`,
      `${text.slice(0, -1)},"more":${"[".repeat(5_000)}${"]".repeat(5_000)}}`,
    ];
    for (const long of texts) {
      expect(await devnet.postTransaction(long)).toEqual({
        kind: "invalid_json",
        reason: "the body without its data is too large",
      });
    }
    devnet.close();
  });
});

describe("the weave", () => {
  test("has no chunk in the padding after data, before its first byte, or beyond its end", async () => {
    const devnet = await openTestDevnet();
    const { id } = await post(devnet, rsa, { data: testBytes(100) });
    await devnet.mine(1);
    const end = placeOf(devnet, id).weaveEnd;
    expect(end).toBe(kib256 + 100);
    const offsets = [0, kib256, kib256 + 1, end, end + 1, 2 * kib256, 2 * kib256 + 1];
    expect(offsets.map((offset) => devnet.chunkAt(offset)?.weaveEnd)).toEqual([
      undefined,
      undefined,
      end,
      end,
      undefined,
      undefined,
      undefined,
    ]);
    devnet.close();
  });
});

function minedText(devnet: Devnet, id: string): string {
  const found = devnet.transaction(id);
  return found.kind === "mined" ? found.transaction.text : "";
}

function placeOf(devnet: Devnet, id: string) {
  const found = devnet.transaction(id);
  if (found.kind !== "mined" || found.transaction.data === undefined) throw new Error(`${id} has no data`);
  return { ...found.transaction.data, height: found.transaction.height };
}

/** Reads a transaction's data chunk by chunk from the weave, as a stranger would, checking both paths of each. */
function readWeave(devnet: Devnet, id: string): Uint8Array {
  const { weaveEnd, size, height } = placeOf(devnet, id);
  const block = readBlock(devnet.blockAt(height)?.text ?? "");
  const blockStart = Number(block.weaveSize - block.blockSize);
  const { dataRoot, format } = readTransactionHeader(minedText(devnet, id));
  const start = weaveEnd - size;
  const data = new Uint8Array(size);
  for (let at = start + 1; at <= weaveEnd; ) {
    const served = devnet.chunkAt(at);
    if (served === undefined) throw new Error(`no chunk at ${at}`);
    const { chunk, dataPath, txPath } = served;
    const root = decodeBase64url(block.txRoot) ?? new Uint8Array(0);
    const target = at - 1 - blockStart;
    const leaf = validatePath({ root, path: txPath, target, size: block.blockSize, ruleset: "basic" });
    if (leaf === undefined) throw new Error(`the tx path at ${at} proves nothing`);
    if (format === 2) expect(encodeBase64url(leaf.hash)).toBe(dataRoot);
    const inData = at - 1 - start;
    const proven = validatePath({
      root: leaf.hash,
      path: dataPath,
      target: inData,
      size,
      ruleset: "relaxed",
    });
    if (proven === undefined) throw new Error(`the data path at ${at} proves nothing`);
    expect(encodeBase64url(sha256(chunk))).toBe(encodeBase64url(proven.hash));
    data.set(chunk, Number(proven.start));
    at = start + Number(proven.end) + 1;
  }
  return data;
}
