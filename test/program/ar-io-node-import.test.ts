/**
 * The data of an ar-io-node is imported and served: GraphQL, content and the chain are those of the source. An import
 * that was killed is completed by the same command; hostile rows are left out or end it with one sentence.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { blockHashBytes, type Id, idBytes, readBlockHash, readId } from "../../src/arweave/id.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import {
  allColumns,
  type IndexReader,
  type PageRow,
  transactionSignatureTypes,
} from "../../src/store/index/index-types.ts";
import { runCairn } from "../cli/command.ts";
import {
  inDatabase,
  type SourceBlock,
  type SourceFile,
  type SourceItem,
  type SourceTransaction,
  writeArIoNodeFolder,
} from "../support/ar-io-node-folder.ts";
import { lineReader } from "../support/line-reader.ts";
import { type RunningProgram, repositoryRoot, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";

let program: RunningProgram;
let work: string;
let source: string;
/** The last final height of the source. */
let last: number;
let rows: readonly PageRow[];

const stableDepth = 18;

beforeAll(async () => {
  program = await startDev();
  work = mkdtempSync(join(tmpdir(), "cairn-from-ar-io-node-"));
  source = join(work, "data");
  await fetch(`${program.line.node}/mine/30`, { method: "POST" });
  const reader = openIndexReader(join(program.folder, "index.sqlite"));
  const tip = await eventually(
    () => (reader.nextBundleAt() === undefined && reader.counts().items > 5 ? (reader.tip()?.height ?? 0) : 0),
    (height) => height >= 30,
  );
  last = tip - stableDepth;
  rows = reader.page({ order: "asc", limit: 1_000, block: { max: last }, columns: allColumns }).rows;
  await writeSource(reader);
  reader.close();
}, 120_000);

afterAll(async () => {
  await program.remove();
  removeFolder(work);
});

/** Writes what an ar-io-node would have of the final blocks. */
async function writeSource(reader: IndexReader): Promise<void> {
  const first = reader.blocks({ order: "asc", limit: 1 }).rows[0]?.height ?? 0;
  const blocks = Array.from({ length: last - first + 1 }, (_, at) => blockOf(reader, first + at));
  const transactions = blocks.flatMap(({ height, transactionIds }) =>
    transactionIds.map((id, index) =>
      transactionOf(reader, readKnown(Buffer.from(id).toString("base64url")), height, index),
    ),
  );
  const items = rows.filter(({ kind }) => kind === "item").map((row) => itemOf(reader, row));
  const files: SourceFile[] = [];
  for (const { id, dataSize } of transactions) {
    if (dataSize === 0) continue;
    const response = await fetch(`${program.line.gateway}/raw/${Buffer.from(id).toString("base64url")}`);
    files.push({ id, bytes: await response.bytes() });
  }
  writeArIoNodeFolder(source, { blocks, transactions, items, files });
}

function readKnown(text: string): Id {
  const id = readId(text);
  if (id === undefined) throw new Error(`${text} is not an id`);
  return id;
}

function blockOf(reader: IndexReader, height: number): SourceBlock {
  const fields = JSON.parse(reader.blockText(height)?.text ?? "");
  const [hash, previous] = [readBlockHash(fields.indep_hash), readBlockHash(fields.previous_block)];
  if (hash === undefined) throw new Error(`block ${height} has no hash`);
  return {
    hash: blockHashBytes(hash),
    previous: previous === undefined ? null : blockHashBytes(previous),
    height,
    timestamp: fields.timestamp,
    weaveSize: Number(fields.weave_size),
    blockSize: Number(fields.block_size),
    transactionIds: fields.txs.map((id: string) => idBytes(readKnown(id))),
  };
}

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, "base64url"));

function transactionOf(reader: IndexReader, id: Id, height: number, index: number): SourceTransaction {
  const fields = JSON.parse(reader.transactionText(id)?.text ?? "");
  const row = reader.row(id);
  const span = reader.weaveSpan(id);
  if (row === undefined) throw new Error(`${id} has no row`);
  return {
    ...{ id: idBytes(id), height, index, signature: null, format: fields.format, lastTx: bytesOf(fields.last_tx) },
    ...{ owner: bytesOf(row.ownerKey), target: bytesOf(fields.target), quantity: fields.quantity },
    ...{ reward: fields.reward, dataSize: row.size, dataRoot: bytesOf(fields.data_root), tags: row.tags },
    offset: span === undefined ? null : Number(span.end),
  };
}

function itemOf(reader: IndexReader, row: PageRow): SourceItem {
  const located = reader.locate(row.id);
  if (located === undefined || row.parentId === undefined) throw new Error(`${row.id} has no place`);
  const rootParentOffset =
    row.parentId === located.rootId ? 0 : (reader.locate(row.parentId)?.dataOffset ?? Number.NaN);
  return {
    ...{ id: idBytes(row.id), parentId: idBytes(row.parentId), rootId: idBytes(located.rootId) },
    ...{ height: row.place.height, index: row.place.txIndex, signature: null, signatureType: row.signatureType },
    ...{ anchor: bytesOf(row.anchor), owner: bytesOf(row.ownerKey), target: bytesOf(row.target), tags: row.tags },
    offset: located.itemOffset - rootParentOffset,
    size: located.headerSize + located.size,
    dataOffset: located.dataOffset - rootParentOffset,
    dataSize: located.size,
    rootParentOffset,
  };
}

type Served = Readonly<{ gateway: string; adminKey: string; stop: () => Promise<void> }>;

/** Queues the bundle of an imported item, whose content is then served as verified. */
async function verifyBundle({ gateway, adminKey }: Served): Promise<void> {
  const item = rows.find(({ kind, place }) => kind === "item" && place.height < last);
  const root = rows.find(({ kind, place }) => kind === "transaction" && place.height === item?.place.height);
  const isVerified = async () => (await fetch(`${gateway}/raw/${item?.id}`)).headers.get("x-ar-io-verified");
  expect(await isVerified()).toBe("false");
  const headers = { authorization: `Bearer ${adminKey}`, "content-type": "application/json" };
  const body = JSON.stringify({ id: item?.parentId === undefined ? root?.id : item.parentId });
  expect((await fetch(`${gateway}/svc/admin/queue-bundle`, { method: "POST", headers, body })).status).toBe(200);
  await eventually(isVerified, (value) => value === "true");
}

/** Serves an imported folder, following the chain of the source. */
async function serve(folder: string): Promise<Served> {
  const child = Bun.spawn(
    [process.execPath, resolve(repositoryRoot, "src/main.ts"), "serve", "--port", "0", "--json"],
    {
      env: { ...process.env, DATA_DIR: folder, LOG_FORMAT: "json", TRUSTED_NODE_URL: program.line.node },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
    },
  );
  const { gateway, adminKey } = JSON.parse(await lineReader(child.stdout)());
  const stop = async () => {
    child.kill("SIGKILL");
    await child.exited;
  };
  return { gateway, adminKey, stop };
}

const query = (first: number, after: string) => `{
  transactions(first: ${first}, sort: HEIGHT_ASC, block: { max: ${last} }${after === "" ? "" : `, after: "${after}"`}) {
    pageInfo { hasNextPage }
    edges { cursor node { id anchor recipient owner { address key } fee { winston } quantity { winston }
      data { size type } tags { name value } block { id height timestamp previous } bundledIn { id } } }
  }
}`;

/** All pages of a gateway. */
async function pagesOf(gateway: string, first: number): Promise<readonly unknown[]> {
  const edges: unknown[] = [];
  for (let after = ""; ; ) {
    const response = await fetch(`${gateway}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query: query(first, after) }),
    });
    const { data, errors } = (await response.json()) as {
      errors?: unknown;
      data: { transactions: { pageInfo: { hasNextPage: boolean }; edges: { cursor: string }[] } };
    };
    if (errors !== undefined) throw new Error(JSON.stringify(errors));
    edges.push(...data.transactions.edges);
    if (!data.transactions.pageInfo.hasNextPage) return edges;
    after = data.transactions.edges.at(-1)?.cursor ?? "";
  }
}

describe("the imported data of an ar-io-node", () => {
  test("is listed and served as by the source, and the chain is followed from its end", async () => {
    const target = join(work, "target");
    const words = ["import", source, "--from", "ar-io-node", "--json"];
    const ran = await runCairn(words, { environment: { DATA_DIR: target } });
    expect(ran.err).toBe("");
    const { index, content } = JSON.parse(ran.out);
    const items = rows.filter(({ kind }) => kind === "item").length;
    // The key of an ECDSA transaction is not in its fields: the transaction is fetched.
    const missing = rows.filter(({ signatureType }) => signatureType === transactionSignatureTypes.ecdsa).length;
    expect(index).toMatchObject({ transactions: rows.length - items - missing, items, missing, skipped: {} });
    expect(index.heights.last).toBe(last);
    expect(content).toMatchObject({ copied: 0, skipped: {} });
    expect(content.linked).toBeGreaterThan(1);
    const served = await serve(target);
    try {
      const { gateway } = program.line;
      await eventually(
        () => pagesOf(served.gateway, 100),
        ({ length }) => length === rows.length,
      );
      expect(await pagesOf(served.gateway, 3)).toEqual([...(await pagesOf(gateway, 1_000))]);
      for (const { id } of rows) {
        const [here, there] = await Promise.all([fetch(`${served.gateway}/raw/${id}`), fetch(`${gateway}/raw/${id}`)]);
        expect([id, here.status, here.headers.get("content-type")]).toEqual([
          ...[id, there.status, there.headers.get("content-type")],
        ]);
        expect(Buffer.compare(await here.bytes(), await there.bytes())).toBe(0);
      }
      const [block, ofSource] = await Promise.all(
        [served.gateway, gateway].map(async (url) => (await fetch(`${url}/block/height/${last}`)).json()),
      );
      expect(block).toEqual(ofSource);
      const info = async () => (await (await fetch(`${served.gateway}/info`)).json()) as { height: number };
      await eventually(info, ({ height }) => height >= last + stableDepth);
      await verifyBundle(served);
    } finally {
      await served.stop();
    }
    const again = JSON.parse((await runCairn(words, { environment: { DATA_DIR: target } })).out);
    expect(again.index).toMatchObject({ blocks: 0, transactions: 0, items: 0 });
    expect(again.content).toMatchObject({ linked: 0, copied: 0 });
  }, 120_000);

  test("F2: a row that names an id or a place wrongly is not served", async () => {
    const folder = join(work, "forged");
    cpSync(source, folder, { recursive: true });
    const item = rows.find(({ kind, size, parentId }) => kind === "item" && size > 1_000 && parentId !== undefined);
    if (item === undefined) throw new Error("no item");
    const forged = new Uint8Array(32).fill(7);
    inDatabase(folder, "bundles", (db) => {
      const names = db.query<{ name: string }, []>("SELECT name FROM pragma_table_info('stable_data_items')").all();
      const moved: Record<string, string> = { id: "?1", offset: '"offset" + 128', data_offset: "data_offset + 128" };
      const values = names.map(({ name }) => moved[name] ?? (name === "data_size" ? "data_size - 128" : `"${name}"`));
      const columns = names.map(({ name }) => `"${name}"`).join(", ");
      db.run(
        `INSERT INTO stable_data_items (${columns}) SELECT ${values.join(", ")} FROM stable_data_items WHERE id = ?2`,
        [forged, idBytes(item.id)],
      );
      db.run("UPDATE stable_data_items SET tag_count = 0 WHERE id = ?", [forged]);
    });
    const target = join(work, "forged-target");
    const words = ["import", folder, "--from", "ar-io-node", "--json"];
    const { out } = await runCairn(words, { environment: { DATA_DIR: target } });
    expect(JSON.parse(out).index).toMatchObject({ skipped: {} });
    const served = await serve(target);
    try {
      const url = `${served.gateway}/raw/${Buffer.from(forged).toString("base64url")}`;
      const [whole, part] = await Promise.all([fetch(url), fetch(url, { headers: { range: "bytes=0-9" } })]);
      // 404, or 502 when gateways that are asked next are unreachable.
      expect([whole.ok, part.ok]).toEqual([false, false]);
      expect((await fetch(`${served.gateway}/raw/${item.id}`, { headers: { range: "bytes=0-9" } })).status).toBe(206);
    } finally {
      await served.stop();
    }
  }, 60_000);
});
