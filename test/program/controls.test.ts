/**
 * Controls of `cairn dev` respond when the gateway shows what they did.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeBundle } from "../../src/arweave/bundle.ts";
import type { Tag } from "../../src/arweave/tags.ts";
import { signTransaction } from "../../src/arweave/transaction-sign.ts";
import { createShownControls } from "../../src/cli/shown-controls.ts";
import { utf8Bytes } from "../../src/lib/bytes.ts";
import { rsa } from "../dev/devnet/support.ts";
import { bundleTags, makeItems } from "../indexing/samples.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { until } from "../support/until.ts";
import { testItem } from "../support/upload.ts";

let dev: RunningProgram;
beforeAll(async () => {
  dev = await startDev({ environment: { DEVNET_MINING: "manual" } });
  await node(`/mint/${rsa.address}/${10n ** 16n}`);
}, 120_000);
afterAll(() => dev.remove());

async function text(url: string): Promise<string> {
  const response = await fetch(url);
  const body = await response.text();
  expect([url, response.status, body.slice(0, 200)]).toEqual([url, 200, expect.any(String)]);
  return body;
}
const node = (path: string) => text(`${dev.line.node}${path}`);
const gateway = (path: string) => text(`${dev.line.gateway}${path}`);

/** Posts a transaction to the node. @returns Its id. */
async function post(data: Uint8Array, tags: readonly Tag[] = []): Promise<string> {
  const [lastTx, reward] = [await node("/tx_anchor"), await node(`/price/${data.length}`)];
  const fields = { format: 2, data, tags: [...tags], lastTx, reward: BigInt(reward) } as const;
  const transaction = signTransaction(fields, rsa);
  const response = await fetch(`${dev.line.node}/tx`, { method: "POST", body: transaction.text });
  expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
  return transaction.id;
}

async function ask(query: string) {
  const response = await fetch(`${dev.line.gateway}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query }),
  });
  return (await response.json()).data;
}

const rounds = 20;

describe("what a control did is shown by the gateway at once", () => {
  test("a block in /height, /info, /block/current and the status of its transaction", async () => {
    for (let round = 0; round < rounds; round += 1) {
      const id = await post(utf8Bytes(`round ${round}`));
      await gateway("/height");
      const { height, current } = JSON.parse(await node("/mine"));
      expect(await gateway("/height")).toBe(`${height}`);
      expect(JSON.parse(await gateway("/info"))).toMatchObject({ height, current });
      expect(JSON.parse(await gateway("/block/current"))).toMatchObject({ indep_hash: current });
      expect(JSON.parse(await gateway(`/tx/${id}/status`)).block_height).toBe(height);
      expect(await gateway(`/${id}`)).toBe(`round ${round}`);
      const { transaction } = await ask(`{ transaction(id: "${id}") { block { height } } }`);
      expect(transaction).toEqual({ block: { height } });
    }
  }, 120_000);

  test("many blocks, and the items of a bundle", async () => {
    const id = await post(writeBundle(makeItems(40)), bundleTags);
    const { height } = JSON.parse(await node("/mine/50"));
    expect(await gateway("/height")).toBe(`${height}`);
    const { transactions } = await ask(`{ transactions(bundledIn: ["${id}"], first: 100) { edges { node { id } } } }`);
    expect(transactions.edges).toHaveLength(40);
  }, 60_000);

  test("a balance that was read a moment before", async () => {
    for (let round = 0; round < rounds; round += 1) {
      const before = BigInt(await gateway(`/wallet/${rsa.address}/balance`));
      const minted = await node(`/mint/${rsa.address}/1`);
      expect([round, await gateway(`/wallet/${rsa.address}/balance`)]).toEqual([round, minted]);
      expect(BigInt(minted)).toBe(before + 1n);
    }
  }, 60_000);

  test("a chain that began anew: its height, and none of what was mined or waited before", async () => {
    const mined = await post(utf8Bytes("was mined"));
    await node("/mine/3");
    const waiting = await post(utf8Bytes("waits"));
    const pending = () => ask("{ transactions(first: 1000) { edges { node { id block { height } } } } }");
    const idsOf = async () =>
      (await pending()).transactions.edges.map((edge: { node: { id: string } }) => edge.node.id);
    await until(async () => (await idsOf()).includes(waiting));
    await gateway("/info");

    expect(await node("/reset")).toBe("reset done");
    expect(await gateway("/height")).toBe("0");
    expect(JSON.parse(await gateway("/info")).height).toBe(0);
    const left = (await pending()).transactions.edges.filter(
      (edge: { node: { block: unknown } }) => edge.node.block === null,
    );
    expect(left).toEqual([]);
    for (const id of [mined, waiting]) {
      const { transaction } = await ask(`{ transaction(id: "${id}") { id } }`);
      expect([id, transaction]).toEqual([id, null]);
      expect((await fetch(`${dev.line.gateway}/tx/${id}`)).status).toBe(404);
    }
    await node(`/mint/${rsa.address}/${10n ** 16n}`);
    const again = await post(utf8Bytes("after"));
    await node("/mine");
    expect(await gateway(`/${again}`)).toBe("after");
  }, 60_000);

  test("a chain that began anew, to which uploads are posted as before", async () => {
    expect(await node("/reset")).toBe("reset done");
    await node("/mine");
    const item = testItem("uploaded after a reset");
    const upload = async () => {
      const taken = await fetch(`${dev.line.upload}/v1/tx`, { method: "POST", body: item.bytes });
      expect([taken.status, await taken.json()]).toEqual([200, expect.objectContaining({ id: item.id })]);
      await until(
        async () => {
          await node("/mine");
          await Bun.sleep(50); // not so fast that the anchor of the bundle is too old for a post
          return (await status()) === "FINALIZED" && (await gateway(`/raw/${item.id}`)) === "uploaded after a reset";
        },
        "the upload is in a block",
        60_000,
      );
    };
    const status = async () => JSON.parse(await text(`${dev.line.upload}/v1/tx/${item.id}/status`)).status;
    await upload();
    // The same item again, on a chain that has not got it.
    expect(await node("/reset")).toBe("reset done");
    expect(await status()).toBe("FAILED");
    await upload();
  }, 120_000);
});

describe("a gateway that does not follow", () => {
  const counts = { bundlesQueued: 0 };
  const fixture = (running: boolean, onForget = () => {}) => ({
    reader: { tip: () => undefined, counts: () => counts },
    indexing: {
      wake: () => {},
      removePendingBut: async () => 0,
      status: () => ({ follow: { running }, bundles: { working: [] } }),
    },
    failPermanentUploads: async () => undefined,
    forgetAll: onForget,
  });
  const devnet = { height: () => 5, tipHash: () => "other", pendingIds: () => [] };

  test.each([
    ["is stopped", false],
    ["never gets on", true],
  ])("delays no control for long: it %s", async (_name, running) => {
    let now = 0;
    let forgotten = 0;
    const controls = createShownControls({ START_HEIGHT: 0, STOP_HEIGHT: undefined }, () => (now += 100));
    await controls.shown("mine");
    // The parts of a gateway that are asked.
    controls.by(fixture(running, () => (forgotten += 1)) as never, devnet as never);
    await controls.shown("mine");
    await controls.shown("reset");
    expect(forgotten).toBe(2);
    expect(now).toBeLessThan(30_000);
  });

  test.each([
    ["ends below", { START_HEIGHT: 0, STOP_HEIGHT: 4 }, 4],
    ["begins above", { START_HEIGHT: 9, STOP_HEIGHT: undefined }, undefined],
  ])("is waited for as far as it goes: it %s", async (_name, heights, tip) => {
    let now = 0;
    const controls = createShownControls(heights, () => (now += 1));
    const made = {
      ...fixture(true),
      reader: { tip: () => (tip === undefined ? tip : { height: tip }), counts: () => counts },
    };
    controls.by(made as never, devnet as never);
    await controls.shown("mine");
    expect(now).toBeLessThan(10);
  });
});
