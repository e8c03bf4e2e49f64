/**
 * Faults that developers found in arlocal, the earlier development chain, one test each.
 *
 * Each name states the right behaviour, the comment states the fault of arlocal. Durability over restarts (#40) and
 * kills is in durability.test.ts; GraphQL, ranges and bundles belong to the tests of the gateway.
 * Source: textury/arlocal 1.1.66 as read, and its issues (numbers with #).
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { blockHash, readBlock } from "../../../src/arweave/block.ts";
import { devnetFee } from "../../../src/dev/devnet/chain-rules.ts";
import {
  chunkPosts,
  createTestClock,
  ecdsa,
  openTestDevnet,
  post,
  rsa,
  serve,
  sign,
  statedOf,
  stranger,
  testBytes,
} from "./support.ts";

const devnet = await openTestDevnet();
const node = serve(devnet);

afterAll(async () => {
  await node.close();
  devnet.close();
});

async function text(path: string): Promise<string> {
  return await (await node.get(path)).text();
}

async function json(path: string) {
  return await (await node.get(path)).json();
}

describe("unlike arlocal, the devnet", () => {
  // Block ids were random.
  test("identifies blocks by the hash of their content", async () => {
    const block = readBlock((await devnet.mine(1)).text);
    expect(blockHash(block.fields, block.shape)).toBe(block.hash);
    expect(block.hash).toMatch(/^[A-Za-z0-9_-]{64}$/);
  });

  // Blocks had five fields: indep_hash, timestamp, previous_block, height, txs.
  test("has the fields of a node in a block", async () => {
    const block = await json("/block/current");
    const needed = ["weave_size", "block_size", "tx_root", "wallet_list", "reward_addr", "diff", "poa", "signature"];
    expect(needed.filter((key) => !(key in block))).toEqual([]);
  });

  // There was no /block/current (#158) and no /height.
  test("serves /block/current and /height", async () => {
    expect((await json("/block/current")).indep_hash).toBe(devnet.tipHash());
    expect(await text("/height")).toBe(`${devnet.height()}`);
  });

  // Block times were milliseconds (#102).
  test("has times in seconds", async () => {
    expect((await json("/block/current")).timestamp).toBe(1_700_000_000);
  });

  // /block/height of a missing height responded 200.
  test("responds with 404 for a missing block", async () => {
    expect((await node.get("/block/height/1000000")).status).toBe(404);
  });

  // Chunks had no tx_path, and data_path was never checked.
  test("proves every chunk by both paths, and rejects a chunk without a valid proof", async () => {
    const data = testBytes(300_000, 21);
    await post(devnet, rsa, { stated: statedOf(data) });
    const [body = "", next = ""] = chunkPosts(data);
    const forged = JSON.stringify({ ...JSON.parse(body), chunk: JSON.parse(next).chunk });
    expect(await (await node.post("/chunk", forged)).json()).toEqual({ error: "invalid_proof" });
    await node.post("/chunk", body);
    await devnet.mine(1);
    const chunk = await json(`/chunk/${devnet.weaveSize() - 524_288n + 1n}`);
    expect([chunk.tx_path.length > 0, chunk.data_path.length > 0]).toEqual([true, true]);
  });

  // Offsets were a running counter set when a chunk came, so that parallel or unordered uploads were scrambled.
  test("stores chunks at their offsets, in any order of arrival", async () => {
    const parts = [22, 23].map((seed) => testBytes(700_000, seed));
    const ids = await Promise.all(
      parts.map(async (data) => (await post(devnet, ecdsa, { stated: statedOf(data) })).id),
    );
    const bodies = parts.flatMap((data) => chunkPosts(data)).toReversed();
    await Promise.all(bodies.map((body) => node.post("/chunk", body)));
    await devnet.mine(1);
    for (const [index, id] of ids.entries()) {
      expect(await (await node.get(`/${id}`)).bytes()).toEqual(parts[index] as Uint8Array<ArrayBuffer>);
    }
  });

  // Chunks were stored by their hash, so that a repeated one was dropped.
  test("stores a chunk as often as it occurs", async () => {
    const data = new Uint8Array(3 * 262_144 + 50_000);
    const { id } = await post(devnet, rsa, { stated: statedOf(data) });
    for (const body of chunkPosts(data)) await node.post("/chunk", body);
    await devnet.mine(1);
    expect((await (await node.get(`/${id}`)).bytes()).length).toBe(data.length);
  });

  // ECDSA transactions failed, since an owner was needed.
  test("accepts ECDSA transactions", async () => {
    const { text: body, id } = sign(devnet, ecdsa);
    expect(await (await node.post("/tx", body)).text()).toBe("OK");
    await devnet.mine(1);
    expect((await json(`/tx/${id}`)).owner).toBe("");
  });

  // Balances were floating point numbers in SQL.
  test("counts every winston, beyond what a number holds", async () => {
    const much = 2n ** 64n + 1n;
    devnet.mint(stranger.address, much);
    expect(await text(`/wallet/${stranger.address}/balance`)).toBe(`${much}`);
    devnet.mint(stranger.address, 1n);
    expect(await text(`/wallet/${stranger.address}/balance`)).toBe(`${much + 1n}`);
  });

  // The balance stayed 0 after minting to a wallet (#98).
  test("shows minted tokens at once", async () => {
    const address = "A".repeat(43);
    expect(await text(`/mint/${address}/1000`)).toBe("1000");
    expect(await text(`/wallet/${address}/balance`)).toBe("1000");
    for (const last of "BZ9-_") {
      const other = `${"A".repeat(42)}${last}`;
      expect(await text(`/mint/${other}/7`)).toBe("7");
      expect(await text(`/wallet/${other}/balance`)).toBe("7");
      expect(await text(`/wallet/${other}/last_tx`)).toBe("");
      expect(await text(`/price/0/${other}`)).toBe(await text(`/price/0/${address}`));
    }
    expect(await text(`/wallet/${address}/balance`)).toBe("1000");
  });

  // Minting was a GET that any page could make a browser send.
  test("mints by POST too, and rejects pages of other sites", async () => {
    const path = `/mint/${stranger.address}/1`;
    expect((await node.post(path)).status).toBe(200);
    expect((await node.get(path, { origin: "https://example.com" })).status).toBe(403);
    expect((await node.get(path, { "sec-fetch-site": "cross-site" })).status).toBe(403);
  });

  // A bundle posted before its chunks stored the process busy until they arrived.
  test("waits for missing chunks without doing anything", async () => {
    const data = testBytes(300_000, 24);
    const tags = [
      { name: "Bundle-Format", value: "binary" },
      { name: "Bundle-Version", value: "2.0.0" },
    ];
    const { id } = await post(devnet, rsa, { stated: statedOf(data), tags });
    await devnet.mine(1);
    const { offset } = await json(`/tx/${id}/offset`);
    expect((await node.get(`/chunk/${Number(offset) - 299_999}`)).status).toBe(404);
    for (const body of chunkPosts(data)) await node.post("/chunk", body);
    expect((await node.get(`/chunk/${Number(offset) - 299_999}`)).status).toBe(200);
  });

  // /tx/{id}/offset crashed when the data had come in the transaction's body (#63).
  test("has the offset of data that was posted in the body", async () => {
    const { id } = await post(devnet, rsa, { data: testBytes(10) });
    await devnet.mine(1);
    const { offset, size } = await json(`/tx/${id}/offset`);
    expect([size, (await json(`/chunk/${offset}`)).chunk_size]).toEqual(["10", "10"]);
  });

  // /tx/{id}/offset without an offset responded with an error and the body "OK" (#72).
  test("responds with 404 for a transaction without an offset", async () => {
    const response = await node.get(`/tx/${"A".repeat(43)}/offset`);
    expect([response.status, await response.text()]).toEqual([404, ""]);
  });

  // A second fetch of data responded 500, or the data twice (#5, PR #105).
  test("returns the same data at each request", async () => {
    const data = testBytes(2_000_000, 25);
    const { id } = await post(devnet, rsa, { stated: statedOf(data) });
    for (const body of chunkPosts(data)) await node.post("/chunk", body);
    await devnet.mine(1);
    const responses = await Promise.all([1, 2, 3].map(async () => await (await node.get(`/${id}`)).bytes()));
    for (const response of responses) expect(response).toEqual(data as Uint8Array<ArrayBuffer>);
  });

  // The status of a transaction that waits was 200 with the text "Pending", which read as a status.
  test("responds with 202 while a transaction is pending", async () => {
    const { id } = await post(devnet, ecdsa);
    expect((await node.get(`/tx/${id}/status`)).status).toBe(202);
    expect((await node.get(`/tx/${id}`)).status).toBe(202);
    await devnet.mine(1);
    expect((await node.get(`/tx/${id}/status`)).status).toBe(200);
  });

  // Confirmations were one too few.
  test("counts the block of a transaction as its first confirmation", async () => {
    const { id } = await post(devnet, ecdsa);
    await devnet.mine(3);
    expect((await json(`/tx/${id}/status`)).number_of_confirmations).toBe(3);
  });

  // A post responded with the transaction's JSON instead of "OK".
  test("responds to a post as a node does", async () => {
    expect(await (await node.post("/tx", sign(devnet, rsa, { reward: 10n ** 11n }).text)).text()).toBe("OK");
  });

  // A rejection said "Bad Request" and the reason was only on the console of the server (#11, #146).
  test("returns the reason of a rejection", async () => {
    const response = await node.post("/tx", sign(devnet, rsa, { lastTx: "A".repeat(64) }).text);
    expect([response.status, await response.text()]).toEqual([400, "Invalid anchor (last_tx)."]);
    expect(response.headers.get("x-reject-reason")).toBe(
      "tx_bad_anchor: the anchor is neither the wallet's last transaction nor one of the last 50 blocks",
    );
  });

  // An overspend responded 410 with an object, or 403.
  test("responds to an overspend as a node does", async () => {
    const response = await node.post("/tx", sign(devnet, rsa, { target: ecdsa.address, quantity: 10n ** 20n }).text);
    expect([response.status, await response.text()]).toEqual([400, "Transaction verification failed."]);
    expect(response.headers.get("x-reject-reason")).toStartWith("overspend: ");
  });

  // A transaction without data cost nothing.
  test("charges a fee for a transaction without data, and more for a new account", async () => {
    expect(await text("/price/0")).toBe(`${devnetFee(0n, "none")}`);
    expect(BigInt(await text("/price/0"))).toBeGreaterThan(0n);
    const created = BigInt(await text(`/price/0/${"B".repeat(42)}A`));
    expect(created).toBe(devnetFee(0n, "new"));
  });

  // An unknown path responded 200 with an error in its body; an unknown chunk 204.
  test("responds to unknown paths and chunks with an error status", async () => {
    expect((await node.get("/unknown")).status).toBe(400);
    expect((await node.get(`/chunk/${devnet.weaveSize() + 1n}`)).status).toBe(404);
  });

  // The last message a client saw of a wrong anchor was "Bad Request"; the anchor it was given had to be right (#146).
  test("suggests a block as an anchor as deep as a node does, never a random value", async () => {
    await devnet.mine(10);
    const { indep_hash } = await json(`/block/height/${devnet.height() - 5}`);
    expect(await text("/tx_anchor")).toBe(indep_hash);
  });

  // Mining made blocks with new random ids each run, so that no test could be repeated exactly.
  test("creates the same blocks again from the same seed and calls", async () => {
    const run = async () => {
      const again = await openTestDevnet({ clock: createTestClock(), seed: "again" });
      await post(again, rsa, { data: testBytes(5) });
      const { hash } = await again.mine(5);
      again.close();
      return hash;
    };
    expect(await run()).toBe(await run());
  });
});
