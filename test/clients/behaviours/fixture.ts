/**
 * One running `cairn dev` with the content that the rows of behaviours ask for: transactions with data inside and in
 * chunks, a transfer, one that waits, a bundle with a nested one and a manifest, an upload, and something blocked.
 * @module
 */
import { readFileSync } from "node:fs";
import { writeBundle } from "../../../src/arweave/bundle.ts";
import { createDataItem, readItemHeader } from "../../../src/arweave/data-item.ts";
import { createArweaveSigner } from "../../../src/arweave/signers/arweave.ts";
import { createEd25519Signer } from "../../../src/arweave/signers/ed25519.ts";
import type { Signer } from "../../../src/arweave/signers/scheme.ts";
import type { Tag } from "../../../src/arweave/tags.ts";
import type { Transaction } from "../../../src/arweave/transaction.ts";
import { signTransaction, type UnsignedTransaction } from "../../../src/arweave/transaction-sign.ts";
import { readWallet, type Wallet } from "../../../src/arweave/wallet.ts";
import { chunkPosts, statedOf, testBytes } from "../../dev/devnet/support.ts";
import { type RunningProgram, startDev } from "../../support/program.ts";
import { testKey } from "../../support/signers.ts";
import { eventually } from "../../support/until.ts";

/** What rows name. */
export type Fixture = Readonly<{
  gateway: string;
  node: string;
  payment: string;
  upload: string;
  adminKey: string;
  /** Of the funded RSA wallet. */
  address: string;
  /** An unused address. */
  stranger: string;
  /** Data inside of the transaction, two tags. */
  text: Transaction;
  /** Data in chunks. */
  chunked: Transaction;
  chunkedData: Uint8Array;
  chunkedEnd: bigint;
  transfer: Transaction;
  /** Posted and not mined. */
  waiting: Transaction;
  bundle: Transaction;
  /** A text in the bundle, and one in a bundle within it. */
  item: string;
  inner: string;
  nested: string;
  manifest: string;
  page: string;
  blocked: string;
  /** Has an approval from the funded wallet; its last character is not canonical. */
  approved: string;
  /** An uploaded item, and the receipt that was given for it. */
  uploaded: string;
  receipt: Readonly<Record<string, unknown>>;
  uploadedBytes: Uint8Array;
  /** Signed items that were not uploaded: one of a key without credits, one whose payload was changed. */
  unpaidItem: Uint8Array;
  forgedItem: Uint8Array;
  /** Signs an item of the funded wallet. */
  signedItem: (tags: readonly Tag[]) => Uint8Array;
  /** A transaction that is signed and not posted. */
  unposted: (fields: Partial<UnsignedTransaction>) => Transaction;
  /** Height of the block that has the transactions. */
  height: number;
  blockHash: string;
  program: RunningProgram;
}>;

/** The page in the manifest, and the text for paths that it does not have. */
export const pageText = "<!doctype html><title>Page</title>";
export const fallbackText = "nothing here";

/** Longest item that costs nothing, so that rows can show what is rejected for want of credits. */
const freeBytes = 2_000;

const binaryBundle = [
  { name: "Bundle-Format", value: "binary" },
  { name: "Bundle-Version", value: "2.0.0" },
];

/** Starts the program and posts the content. */
export async function openFixture(): Promise<Fixture> {
  const environment = {
    DEVNET_MINING: "manual",
    FREE_UPLOAD_BYTES: String(freeBytes),
    UPLOAD_BUNDLE_WAIT_MS: "3600000",
  };
  const program = await startDev({ environment });
  const { gateway, node, payment, upload, adminKey, wallets } = program.line;
  const funded = wallets.find(({ name }) => name === "rsa");
  if (funded?.file === undefined) throw new Error("the program has no RSA wallet in a file");
  const jwk = JSON.parse(readFileSync(funded.file, "utf8"));
  const wallet = readWallet(jwk);
  const key = createEd25519Signer(testKey(41));
  const stranger = `${"S".repeat(42)}8`;

  const post = poster(gateway, wallet);
  const text = await post({
    data: new TextEncoder().encode("Hello, permaweb"),
    tags: [
      { name: "Content-Type", value: "text/plain" },
      { name: "App-Name", value: "Behaviours" },
    ],
  });
  const chunkedData = testBytes(600_000, 77);
  const chunked = await post({
    stated: statedOf(chunkedData),
    tags: [{ name: "Content-Type", value: "application/x-behaviour" }],
  });
  for (const body of chunkPosts(chunkedData)) await taken(`${gateway}/chunk`, body);
  const transfer = await post({ target: stranger, quantity: 12_345n });
  const content = bundledContent(key);
  const bundle = await post({ data: content.bytes, tags: binaryBundle });
  await taken(`${node}/mine`, "");
  const height = Number(await textAt(`${gateway}/height`));
  const { indep_hash: blockHash } = await jsonAt(`${gateway}/block/height/${height}`);
  const authorization = `Bearer ${adminKey}`;
  await eventually(
    async () =>
      await (await fetch(`${gateway}/ar-io/admin/bundle-status/${bundle.id}`, { headers: { authorization } })).json(),
    ({ lastFullyIndexedAt }) => typeof lastFullyIndexedAt === "number",
  );
  for (const id of [...Object.values(content.ids), chunked.id, text.id]) await eventuallyIndexed(gateway, id);
  const blocking = await fetch(`${gateway}/ar-io/admin/block-data`, {
    method: "PUT",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({ id: content.ids.blocked }),
  });
  if (blocking.status !== 200) throw new Error(`block-data responded ${blocking.status}`);
  const uploadedBytes = createDataItem(
    { data: "an upload", tags: [{ name: "Content-Type", value: "text/plain" }] },
    key,
  );
  const approved = `${"P".repeat(42)}_`;
  const approval = createDataItem(
    {
      data: "approval",
      tags: [
        { name: "x-approve-payment", value: approved },
        { name: "x-amount", value: "1000" },
      ],
    },
    createArweaveSigner(jwk),
  );
  await taken(`${upload}/v1/tx`, approval);
  const receipt = await (await taken(`${upload}/v1/tx`, uploadedBytes)).json();
  const waiting = await post({ data: new TextEncoder().encode("not mined yet") });
  await eventuallyIndexed(gateway, waiting.id);
  for (const path of ["/v1/rates", "/v1/price/bytes/1", "/v1/price/ethereum/1e+18"])
    await eventually(
      async () => (await fetch(`${payment}${path}`)).status,
      (status) => status === 200,
    );
  const { offset } = await jsonAt(`${gateway}/tx/${chunked.id}/offset`);
  return {
    gateway,
    node,
    payment,
    upload,
    adminKey,
    address: funded.address,
    stranger,
    approved,
    text,
    chunked,
    chunkedData,
    chunkedEnd: BigInt(offset),
    transfer,
    waiting,
    bundle,
    ...content.ids,
    uploaded: receipt.id,
    receipt,
    uploadedBytes,
    height,
    blockHash,
    program,
    unpaidItem: createDataItem({ data: testBytes(50_000, 3) }, createEd25519Signer(testKey(42))),
    forgedItem: changedLast(createDataItem({ data: "to be changed" }, key)),
    signedItem: (tags) => createDataItem({ data: "approval", tags }, key),
    unposted: (fields) => sign(wallet, "", fields),
  };
}

function bundledContent(key: Signer) {
  const typed = (data: string, type: string) =>
    createDataItem({ data, tags: [{ name: "Content-Type", value: type }] }, key);
  const item = createDataItem(
    {
      data: "an item",
      tags: [
        { name: "Content-Type", value: "text/plain" },
        { name: "App-Name", value: "Behaviours" },
        { name: "Unit", value: "item" },
      ],
    },
    key,
  );
  const inner = typed("an item in a nested bundle", "text/plain");
  const nested = createDataItem({ data: writeBundle([inner]), tags: binaryBundle }, key);
  const page = typed(pageText, "text/html");
  const fallback = typed(fallbackText, "text/plain");
  const manifest = typed(
    JSON.stringify({
      manifest: "arweave/paths",
      version: "0.2.0",
      index: { path: "index.html" },
      fallback: { id: idOf(fallback) },
      paths: { "index.html": { id: idOf(page) }, "a/text": { id: idOf(item) } },
    }),
    "application/x.arweave-manifest+json",
  );
  const blocked = typed("content that an operator blocks", "text/plain");
  const ids = {
    item: idOf(item),
    inner: idOf(inner),
    nested: idOf(nested),
    manifest: idOf(manifest),
    page: idOf(page),
    blocked: idOf(blocked),
  };
  return { bytes: writeBundle([item, nested, page, fallback, manifest, blocked]), ids };
}

function idOf(item: Uint8Array): string {
  const read = readItemHeader(item, "strict");
  if (read.kind !== "header") throw new Error("an item that was signed here cannot be read");
  return read.header.id;
}

function changedLast(bytes: Uint8Array): Uint8Array {
  return bytes.with(bytes.length - 1, (bytes.at(-1) ?? 0) ^ 1);
}

/** Signs with an anchor and a reward of the chain's own, and posts to the gateway. */
function poster(gateway: string, wallet: Wallet) {
  return async (fields: Partial<UnsignedTransaction>): Promise<Transaction> => {
    const anchor = await textAt(`${gateway}/tx_anchor`);
    const size = fields.data?.length ?? fields.stated?.dataSize ?? 0;
    const target = fields.target === undefined ? "" : `/${fields.target}`;
    const reward = BigInt(await textAt(`${gateway}/price/${size}${target}`));
    const transaction = sign(wallet, anchor, { reward, ...fields });
    await taken(`${gateway}/tx`, transaction.text);
    return transaction;
  };
}

function sign(wallet: Wallet, lastTx: string, fields: Partial<UnsignedTransaction>): Transaction {
  return signTransaction({ format: 2, lastTx, reward: 10n ** 12n, ...fields }, wallet);
}

async function taken(url: string, body: string | Uint8Array): Promise<Response> {
  const sent = typeof body === "string" ? body : Uint8Array.from(body);
  const response = await fetch(url, { method: "POST", body: sent });
  if (response.status !== 200) throw new Error(`${url} responded ${response.status}: ${await response.text()}`);
  return response;
}

async function textAt(url: string): Promise<string> {
  const response = await fetch(url);
  if (response.status !== 200) throw new Error(`${url} responded ${response.status}`);
  return await response.text();
}

async function jsonAt(url: string) {
  return JSON.parse(await textAt(url));
}

/** Waits until GraphQL has a row, pending or mined. */
async function eventuallyIndexed(gateway: string, id: string): Promise<void> {
  const body = JSON.stringify({ query: `{ transaction(id: "${id}") { id } }` });
  const headers = { "content-type": "application/json" };
  await eventually(
    async () => await (await fetch(`${gateway}/graphql`, { method: "POST", headers, body })).json(),
    ({ data }) => data?.transaction?.id === id,
  );
}
