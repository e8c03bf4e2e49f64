/**
 * The chain's published client against the devnet, and against a gateway that follows it: what every app does with it,
 * and its own checks of what it gets.
 *
 * The client cannot sign with ECDSA (1.15.7): such transactions are signed here, and read back by the client.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { idOfSignature } from "../../src/arweave/id.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import { signTransaction } from "../../src/arweave/transaction-sign.ts";
import { readWallet } from "../../src/arweave/wallet.ts";
import { type Devnet, openDevnet } from "../../src/dev/devnet/devnet.ts";
import { rsaJwk, serve, testBytes } from "../dev/devnet/support.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { testKey } from "../support/signers.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { eventually } from "../support/until.ts";

const kib256 = 262_144;

/** A chain, and the port at which the client finds it. */
type Fixture = Readonly<{ devnet: Devnet; port: number; close: () => Promise<void> }>;

describeWith(clientLibraries, "arweave-js on the devnet", () =>
  describeClient(async () => {
    const devnet = await openDevnet({ dir: undefined, seed: "client", clock: Date.now, mining: "auto" });
    const node = serve(devnet);
    const close = async () => {
      await node.close();
      devnet.close();
    };
    return { devnet, port: node.port, close };
  }),
);

describeWith(clientLibraries, "arweave-js through the gateway", () =>
  describeClient(() => openStack({}, { clock: Date.now, mining: "auto" })),
);

describeWith(clientLibraries, "arweave-js, where a gateway gives more than a node", () => {
  let stack: Stack;
  let arweave: InstanceType<typeof import("arweave")>;

  beforeAll(async () => {
    const { default: Arweave } = await import("arweave");
    stack = await openStack();
    arweave = Arweave.init({ host: "127.0.0.1", port: stack.port, protocol: "http" });
  });

  afterAll(() => stack?.close());

  test("searches by tags, follows a transaction into its block, and reads an item of a bundle", async () => {
    const tags = [
      { name: "App-Name", value: "Cairn-Search" },
      { name: "Content-Type", value: "text/plain" },
    ];
    const signer = createEd25519Signer(testKey(2));
    const item = createDataItem({ data: "an item", tags }, signer);
    const itemId = idOfSignature(item.subarray(2, 2 + signer.scheme.signatureSize));
    const key = rsaJwk as never;
    const transaction = await arweave.createTransaction({ data: writeBundle([item]) }, key);
    transaction.addTag("Bundle-Format", "binary");
    transaction.addTag("Bundle-Version", "2.0.0");
    await arweave.transactions.sign(transaction, key);
    expect(await arweave.transactions.getStatus(transaction.id)).toEqual({ status: 404, confirmed: null });
    expect((await arweave.transactions.post(transaction)).status).toBe(200);
    expect(await arweave.transactions.getStatus(transaction.id)).toEqual({ status: 202, confirmed: null });
    await stack.devnet.mine(3);
    await stack.settled();
    const { confirmed } = await arweave.transactions.getStatus(transaction.id);
    expect(confirmed).toEqual({
      block_height: 1,
      block_indep_hash: (await arweave.blocks.getByHeight(1)).indep_hash,
      number_of_confirmations: 3,
    });
    const query = `{ transactions(tags: [{ name: "App-Name", values: ["Cairn-Search"] }]) {
      edges { node { id bundledIn { id } } }
    } }`;
    const found = await arweave.api.post("graphql", { query });
    expect(found.data.data.transactions.edges).toEqual([{ node: { id: itemId, bundledIn: { id: transaction.id } } }]);
    // No chunks are the item's own: the client says so on the console, and falls back on the gateway.
    expect(await arweave.transactions.getData(itemId, { decode: true, string: true })).toBe("an item");
  });
});

function describeClient(open: () => Promise<Fixture>) {
  type Client = InstanceType<typeof import("arweave")>;
  type Key = import("arweave/node/lib/wallet").JWKInterface;
  type Merkle = typeof import("arweave/node/lib/merkle");
  let fixture: Fixture;
  let devnet: Devnet;
  let arweave: Client;
  let merkle: Merkle;
  let key: Key;
  let address: string;

  beforeAll(async () => {
    const library = await import("arweave");
    merkle = await import("arweave/node/lib/merkle");
    fixture = await open();
    ({ devnet } = fixture);
    arweave = library.default.init({ host: "127.0.0.1", port: fixture.port, protocol: "http" });
    const [wallet] = devnet.wallets;
    key = wallet?.jwk as unknown as Key;
    address = wallet?.address ?? "";
  });

  afterAll(() => fixture?.close());

  /** Waits until the client itself sees the transaction in a block. */
  async function confirmed(id: string) {
    const { status, confirmed } = await eventually(
      () => arweave.transactions.getStatus(id),
      ({ status }) => status !== 202,
    );
    expect(status).toBe(200);
    return confirmed;
  }

  async function postData(data: Uint8Array, tags: Readonly<Record<string, string>> = {}) {
    const transaction = await arweave.createTransaction({ data }, key);
    for (const [name, value] of Object.entries(tags)) transaction.addTag(name, value);
    await arweave.transactions.sign(transaction, key);
    const uploader = await arweave.transactions.getUploader(transaction);
    while (!uploader.isComplete) await uploader.uploadChunk();
    return transaction;
  }

  const sizes = [1, 1_000, kib256 - 1, kib256, kib256 + 1, 2 * kib256, 600 * 1_024];

  test.each(sizes)("posts %d bytes, reads them back, and finds every proof right", async (size) => {
    const data = testBytes(size, size);
    const posted = await postData(data, { "Content-Type": "application/octet-stream", Größe: `${size}` });
    const status = await confirmed(posted.id);
    expect(status?.number_of_confirmations).toBeGreaterThanOrEqual(1);

    const read = await arweave.transactions.get(posted.id);
    expect(await arweave.transactions.verify(read)).toBe(true);
    expect(Buffer.from(read.data).equals(data)).toBe(true);
    expect([read.data_root, read.data_size, read.owner]).toEqual([posted.data_root, `${size}`, key.n]);
    expect(Buffer.from(await arweave.chunks.downloadChunkedData(posted.id)).equals(data)).toBe(true);

    const { offset } = await arweave.chunks.getTransactionOffset(posted.id);
    const start = Number(offset) - size;
    for (let at = 0; at < size; ) {
      const chunk = await arweave.chunks.getChunk(start + at + 1);
      const path = Buffer.from(chunk.data_path, "base64url");
      const root = Buffer.from(posted.data_root, "base64url");
      const proven = await merkle.validatePath(root, at, 0, size, path);
      if (proven === false) throw new Error(`arweave-js does not accept the data path at ${at}`);
      const bytes = Buffer.from(chunk.chunk, "base64url");
      expect([proven.leftBound, proven.chunkSize]).toEqual([at, bytes.length]);
      at += bytes.length;
    }
  });

  test("finds the tx path of every chunk right, under the tx_root of its block", async () => {
    const parts = await Promise.all([10, 300_000, 5].map((size) => postData(testBytes(size, size + 1))));
    await Promise.all(parts.map(({ id }) => confirmed(id)));
    for (const { id, data_root: dataRoot } of parts) {
      const { offset, size } = await arweave.chunks.getTransactionOffset(id);
      const status = await confirmed(id);
      const block = await arweave.blocks.get(status?.block_indep_hash ?? "");
      const blockSize = Number(block.block_size);
      const target = Number(offset) - Number(block.weave_size) + blockSize - 1;
      const chunk = await arweave.chunks.getChunk(Number(offset));
      const txPath = Buffer.from(chunk.tx_path, "base64url");
      // The client's own walk over a tree, with the bounds of a block instead of a transaction.
      const proven = await merkle.validatePath(Buffer.from(block.tx_root, "base64url"), target, 0, blockSize, txPath);
      if (proven === false) throw new Error("arweave-js does not accept the tx path");
      expect(txPath.subarray(-64, -32).toString("base64url")).toBe(dataRoot);
      expect(proven.rightBound - proven.leftBound).toBe(Number(size));
    }
  });

  test("takes an interrupted upload up again from what it stored", async () => {
    const data = testBytes(4 * kib256 + 17, 77);
    const transaction = await arweave.createTransaction({ data }, key);
    await arweave.transactions.sign(transaction, key);
    const first = await arweave.transactions.getUploader(transaction);
    await first.uploadChunk();
    await first.uploadChunk();
    const stored = JSON.parse(JSON.stringify(first));
    const second = await arweave.transactions.getUploader(stored, data);
    while (!second.isComplete) await second.uploadChunk();
    await confirmed(transaction.id);
    expect(Buffer.from(await arweave.chunks.downloadChunkedData(transaction.id)).equals(data)).toBe(true);
  });

  test("takes a large upload up again by its id, when all but the data was lost", async () => {
    const data = testBytes(20 * 2 ** 20 + 5, 78);
    const transaction = await arweave.createTransaction({ data }, key);
    await arweave.transactions.sign(transaction, key);
    const first = await arweave.transactions.getUploader(transaction);
    for (let step = 0; step < 40; step += 1) await first.uploadChunk();
    expect([first.uploadedChunks, first.totalChunks]).toEqual([39, 81]);
    await confirmed(transaction.id);
    const second = await arweave.transactions.getUploader(transaction.id, data);
    while (!second.isComplete) await second.uploadChunk();
    expect(second.uploadedChunks).toBe(81);
    const read = await arweave.transactions.getData(transaction.id, { decode: true });
    expect(Buffer.compare(Buffer.from(read as Uint8Array), data)).toBe(0);
  }, 120_000);

  test("returns data in each requested form, of both formats", async () => {
    const text = "a stone on a heap, Stein auf Stein: 石";
    const second = await postData(Buffer.from(text));
    const first = await arweave.createTransaction({ data: text }, key);
    Object.assign(first, { format: 1 });
    await arweave.transactions.sign(first, key);
    expect((await arweave.api.post("tx", first)).status).toBe(200);
    for (const { id } of [first, second]) {
      await confirmed(id);
      const { getData } = arweave.transactions;
      const ask = getData.bind(arweave.transactions);
      expect(await ask(id)).toBe(Buffer.from(text).toString("base64url"));
      expect(await ask(id, { decode: true, string: true })).toBe(text);
      expect(Buffer.from((await ask(id, { decode: true })) as Uint8Array).toString()).toBe(text);
    }
  });

  test("pays another wallet, at the quoted price", async () => {
    const target = await arweave.wallets.jwkToAddress(await arweave.wallets.generate());
    expect(await arweave.wallets.getBalance(target)).toBe("0");
    const before = BigInt(await arweave.wallets.getBalance(address));
    const quantity = arweave.ar.arToWinston("1.5");
    const transaction = await arweave.createTransaction({ target, quantity }, key);
    const price = await arweave.transactions.getPrice(0, target);
    expect(transaction.reward).toBe(price);
    // A wallet that is new to the chain costs more than one that is there.
    expect(BigInt(price)).toBeGreaterThan(BigInt(await arweave.transactions.getPrice(0, address)));
    expect(await arweave.transactions.getPrice(0)).toBe(await arweave.transactions.getPrice(0, address));
    expect(BigInt(await arweave.transactions.getPrice(10 * kib256, target))).toBeGreaterThan(BigInt(price));
    await arweave.transactions.sign(transaction, key);
    expect((await arweave.transactions.post(transaction)).status).toBe(200);
    await confirmed(transaction.id);
    // A gateway gives what a node said again for half a second.
    const spent = BigInt(quantity) + BigInt(transaction.reward);
    for (const [wallet, expected] of [
      [target, quantity],
      [address, String(before - spent)],
    ] as const)
      await eventually(
        () => arweave.wallets.getBalance(wallet),
        (balance) => balance === expected,
      );
    expect(await arweave.wallets.getLastTransactionID(address)).toBe(transaction.id);
  });

  test("posts format 1, which carries its data", async () => {
    const data = testBytes(5_000, 3);
    data[data.length - 1] = 0;
    const transaction = await arweave.createTransaction({ data }, key);
    Object.assign(transaction, { format: 1 });
    await arweave.transactions.sign(transaction, key);
    const response = await arweave.api.post("tx", transaction);
    expect([response.status, response.data]).toEqual([200, "OK"]);
    await confirmed(transaction.id);
    const read = (await arweave.api.get(`tx/${transaction.id}`)).data;
    expect([read.format, read.data]).toEqual([1, Buffer.from(data).toString("base64url")]);
    expect(Buffer.from(await arweave.chunks.downloadChunkedData(transaction.id)).equals(data)).toBe(true);
  });

  test("reads what an ECDSA wallet wrote", async () => {
    const wallet = readWallet(devnet.wallets[1]?.jwk ?? {});
    const data = testBytes(700, 4);
    const transaction = signTransaction(
      {
        format: 2,
        lastTx: await arweave.transactions.getTransactionAnchor(),
        reward: BigInt(await arweave.transactions.getPrice(data.length)),
        data,
      },
      wallet,
    );
    const response = await arweave.api.post("tx", transaction.text);
    expect([response.status, response.data]).toEqual([200, "OK"]);
    await confirmed(transaction.id);
    const read = await arweave.transactions.get(transaction.id);
    expect([read.owner, Buffer.from(read.data).equals(data)]).toEqual(["", true]);
    expect(await arweave.wallets.getLastTransactionID(wallet.address)).toBe(transaction.id);
  });

  test("reads blocks by height, hash and as the current one, each naming the one before", async () => {
    await devnet.mine(2);
    const current = await arweave.blocks.getCurrent();
    expect(current).toEqual(await arweave.blocks.getByHeight(current.height));
    const previous = await arweave.blocks.get(current.previous_block);
    expect(previous.height).toBe(current.height - 1);
    expect(Number(current.weave_size) - Number(current.block_size)).toBe(Number(previous.weave_size));
    const info = await arweave.network.getInfo();
    expect([info.height, info.current, info.blocks]).toEqual([current.height, current.indep_hash, current.height + 1]);
    expect(await arweave.network.getPeers()).toEqual([]);
  });

  test("gets the node's messages for invalid input", async () => {
    const transaction = await arweave.createTransaction({ data: "x", last_tx: "A".repeat(64) }, key);
    await arweave.transactions.sign(transaction, key);
    const stale = await arweave.transactions.post(transaction);
    expect([stale.status, stale.data]).toEqual([400, { error: "Invalid anchor (last_tx)." }]);

    const cheap = await arweave.createTransaction({ data: "x", reward: "1" }, key);
    await arweave.transactions.sign(cheap, key);
    const rejected = await arweave.transactions.post(cheap);
    expect([rejected.status, rejected.data]).toEqual([400, { error: "Transaction verification failed." }]);
    expect((await arweave.transactions.getStatus(cheap.id)).status).toBe(404);
    expect((await arweave.api.get(`tx/${cheap.id}`)).status).toBe(410);

    const fine = await postData(testBytes(3, 9));
    const again = await arweave.api.post("tx", fine);
    expect(again.status).toBe(208);
  });

  test("gives an upload up at once when a chunk is wrong, as it does on a node", async () => {
    const data = testBytes(600_000, 12);
    const transaction = await arweave.createTransaction({ data }, key);
    await arweave.transactions.sign(transaction, key);
    const uploader = await arweave.transactions.getUploader(transaction);
    await uploader.uploadChunk();
    transaction.data[5] = (transaction.data[5] ?? 0) ^ 1;
    await expect(uploader.uploadChunk()).rejects.toThrow("Fatal error uploading chunk 0: invalid_proof");
  });
}
