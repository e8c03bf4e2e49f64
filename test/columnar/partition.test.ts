/**
 * Partitions of an export: every row of the index once, in files that another program reads.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ExportProgress, runExport } from "../../src/columnar/export-run.ts";
import { exportPartition, type PartitionRequest } from "../../src/columnar/partition.ts";
import { createPostingKeys } from "../../src/columnar/posting-list.ts";
import { openExportRows } from "../../src/store/index/export-rows.ts";
import { stableDepth } from "../../src/store/index/index-types.ts";
import { packPlace } from "../../src/store/index/place.ts";
import { temporaryFolder } from "../store/folder.ts";
import { growingChain } from "../store/index/growing-chain.ts";
import { indexFile } from "../store/index/index-file.ts";
import { createFixture } from "../store/index/index-fixture.ts";
import { canonicalRows, type ModelRow } from "../store/index/model.ts";
import { bundleOf, idOf, itemOf, ownerOf } from "../store/index/rows-of.ts";
import { createRandom } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";
import { chainEndMin } from "./exported-chain.ts";
import { type ParquetRow, parquetFiles, readParquet, readParquetMetadata, readTable } from "./read-parquet.ts";

const seed = newSeed();
const steps = Number(process.env["STEPS"] ?? 250);

const text = (bytes: unknown): string => (bytes instanceof Uint8Array ? Buffer.from(bytes).toString("base64url") : "");

/** A random chain in an index, with the rows that an export of all its final heights has. */
function openChain() {
  const file = indexFile();
  const fixture = createFixture(createRandom(seed), (clock) => {
    Object.defineProperty(file, "nowMs", { get: clock });
    return file;
  });
  for (let step = 0; step < steps; step += 1) fixture.step();
  const index = openExportRows(file.path);
  for (let block = 0; block < 20 || index.stableHeight() < chainEndMin; block += 1) fixture.addBlock(3);
  const finalRows = () => canonicalRows(fixture.rows()).filter(({ place }) => place.height <= index.stableHeight());
  let rows = finalRows();
  for (; !rows.some(isNested); rows = finalRows()) fixture.step(); // few seeds have none yet
  return { file, index, end: index.stableHeight(), rows };
}

const isNested = ({ kind, parentOffset }: ModelRow): boolean => kind === "item" && parentOffset !== null;

let chain: ReturnType<typeof openChain>;
beforeAll(() => {
  chain = openChain();
});
afterAll(() => {
  chain.index.close();
  chain.file[Symbol.dispose]();
});

const requestOf = (folder: string, given: Partial<PartitionRequest> = {}): PartitionRequest => ({
  folder,
  start: 100,
  end: chain.end,
  maxFileRows: 0,
  skipL1Transactions: false,
  skipL1Tags: false,
  runId: "one",
  ...given,
});

const keyOf = (row: ParquetRow): string =>
  [row["height"], row["block_transaction_index"], row["id"] instanceof Uint8Array ? text(row["id"]) : ""].join("/");

const expectedKey = ({ place, id }: ModelRow): string => [place.height, place.txIndex, id].join("/");

describe(`an export of a random chain (seed ${seed})`, () => {
  test("has every canonical row once, in the order of places, with its fields", async () => {
    using folder = temporaryFolder();
    await exportPartition(requestOf(folder.path), chain.index);
    const rows = await readTable(folder.path, "transactions");
    expect(rows.map(keyOf)).toEqual(chain.rows.map(expectedKey));
    expect(rows.length).toBeGreaterThan(100);
    const fields = rows.map((row) => ({
      owner: text(row["owner_address"]),
      target: text(row["target"]),
      size: Number(row["data_size"]),
      isItem: row["is_data_item"],
      ingestedAt: Number(row["indexed_at"]),
    }));
    expect(fields).toEqual(
      chain.rows.map(({ kind, ownerAddress, target, size, ingestedAt }) => ({
        ...{ owner: ownerAddress, target, size, isItem: kind === "item", ingestedAt },
      })),
    );
  });

  test.each(["blocks", "transactions", "tags", "postings"])(
    "leaves no incomplete file when its %s cannot be written",
    async (table) => {
      using folder = temporaryFolder();
      const request = requestOf(folder.path);
      const directory = join(folder.path, table, "data", `height=${request.start}-${request.end}`);
      // The file cannot take its name: there is a folder with a file.
      const obstacle = join(directory, `${table}_${request.start}_${request.end}_${request.runId}.parquet`);
      mkdirSync(obstacle, { recursive: true });
      writeFileSync(join(obstacle, "file"), "");
      expect(await exportPartition(request, chain.index).catch((error: unknown) => error)).toBeInstanceOf(Error);
      const names = readdirSync(folder.path, { recursive: true, encoding: "utf8" });
      expect(names.filter((name) => name.endsWith(".part"))).toEqual([]);
    },
  );

  test("has the place of each row and of each tag", async () => {
    using folder = temporaryFolder();
    await exportPartition(requestOf(folder.path), chain.index);
    const placesOf = async (table: "transactions" | "tags") =>
      (await readTable(folder.path, table)).map(({ place }) => place);
    const wanted = chain.rows.map(({ place, tags }) => ({ place: packPlace(place), tags }));
    expect(await placesOf("transactions")).toEqual(wanted.map(({ place }) => place));
    expect(await placesOf("tags")).toEqual(wanted.flatMap(({ place, tags }) => tags.map(() => place)));
  });

  test("names the parent, the root and the byte of each item", async () => {
    using folder = temporaryFolder();
    await exportPartition(requestOf(folder.path), chain.index);
    const rows = (await readTable(folder.path, "transactions")).filter((row) => row["is_data_item"] === true);
    const items = chain.rows.filter(({ kind }) => kind === "item");
    const found = rows.map((row) => ({
      at: Number(row["root_parent_offset"]) + Number(row["offset"]),
      isNested: Number(row["root_parent_offset"]) > 0,
      isInRoot: text(row["parent"]) === text(row["root_transaction_id"]),
    }));
    expect(found).toEqual(
      items.map(({ place, parentOffset }) => ({
        at: place.offset,
        isNested: parentOffset !== null,
        isInRoot: parentOffset === null,
      })),
    );
    expect(found.some(({ isNested }) => isNested)).toBe(true);
    for (const row of rows) {
      const start = Number(row["offset"]);
      expect(Number(row["signature_offset"])).toBe(start + 2);
      expect(Number(row["owner_offset"])).toBe(start + 2 + Number(row["signature_size"]));
      expect(Number(row["data_offset"]) + Number(row["data_size"])).toBe(start + Number(row["size"]));
    }
  });

  test("names a nested bundle that the index filter excluded as the parent of its items", async () => {
    using file = indexFile();
    using folder = temporaryFolder();
    const random = createRandom(seed);
    const owner = ownerOf(random);
    const root = { height: 100, txIndex: 0, offset: -1 };
    const { transactions } = growingChain(file.writer, random, owner, 100).add({
      transactions: [{ dataSize: 100_000 }],
      bundles: (_height, rows) => rows.map(({ id, dataSize }) => bundleOf(root, id, dataSize)),
    });
    const place = { ...root, offset: 1_000 };
    const nested = { ...bundleOf(place, idOf(random), 5_000), headerSize: 130, depth: 1 };
    file.writer.addItems({ bundle: root, rows: [], firstEntry: 0, nextEntry: 1, bundles: [nested] });
    const item = itemOf(random, owner, { place: { ...root, offset: 1_300 }, parentOffset: 1_000 });
    file.writer.addItems({ bundle: place, rows: [item], firstEntry: 0, nextEntry: 1, bundles: [] });
    const index = openExportRows(file.path);
    try {
      await exportPartition(requestOf(folder.path, { end: 100 }), index);
    } finally {
      index.close();
    }
    const rows = (await readTable(folder.path, "transactions")).filter((row) => row["is_data_item"] === true);
    const parents = rows.map((row) => [text(row["parent"]), text(row["root_transaction_id"])]);
    expect(parents).toEqual([[nested.id, transactions[0]?.id ?? ""]]);
    expect(rows.map((row) => Number(row["root_parent_offset"]) + Number(row["offset"]))).toEqual([1_300]);
  });

  test("has every tag, by its number within the row", async () => {
    using folder = temporaryFolder();
    await exportPartition(requestOf(folder.path), chain.index);
    const found = (await readTable(folder.path, "tags")).map((row) => [
      ...[text(row["id"]), Number(row["tag_index"])],
      ...[
        Buffer.from(row["tag_name"] as Uint8Array).toString(),
        Buffer.from(row["tag_value"] as Uint8Array).toString(),
      ],
    ]);
    const expected = chain.rows.flatMap(({ id, tags }) =>
      tags.map(({ name, value }, number) => [id, number, name, value]),
    );
    expect(found).toEqual(expected);
  });

  test("has a posting for each id, owner, recipient, parent and tag, sorted by key, then by place", async () => {
    using folder = temporaryFolder();
    await exportPartition(requestOf(folder.path), chain.index);
    const postings = (await readTable(folder.path, "postings")).map((row) => [
      BigInt(row["key"] as bigint),
      BigInt(row["place"] as bigint),
    ]);
    const sorted = postings.toSorted((a, b) => Number((a[0] ?? 0n) - (b[0] ?? 0n) || (a[1] ?? 0n) - (b[1] ?? 0n)));
    expect(postings).toEqual(sorted);
    const keys = createPostingKeys();
    const of = (key: number) => postings.filter(([found]) => found === BigInt(key)).map(([, place]) => place);
    const placesOf = (rows: readonly ModelRow[]) => rows.map(({ place }) => packPlace(place));
    const [one] = chain.rows;
    if (one === undefined) throw new Error("the chain has rows");
    expect(of(keys.id(Buffer.from(one.id, "base64url")))).toEqual(placesOf([one]));
    const wanted = chain.rows.filter(({ tags }) => tags.some(({ name, value }) => name === "Type" && value === "a"));
    expect(of(keys.tag("Type", "a"))).toEqual(placesOf(wanted));
    const [{ ownerAddress } = { ownerAddress: "" }] = chain.rows;
    const ofOwner = chain.rows.filter((row) => row.ownerAddress === ownerAddress);
    expect(of(keys.owner(Buffer.from(ownerAddress, "base64url")))).toEqual(placesOf(ofOwner));
    expect(of(keys.tag("Type", "absent"))).toEqual([]);
  });

  test("has every block once", async () => {
    using folder = temporaryFolder();
    await exportPartition(requestOf(folder.path), chain.index);
    const heights = (await readTable(folder.path, "blocks")).map((row) => Number(row["height"]));
    expect(heights).toEqual(Array.from({ length: chain.end - 99 }, (_, index) => 100 + index));
  });

  test.each([1, 7, 1_000])("of at most %d rows a file has the same rows", async (maxFileRows) => {
    using folder = temporaryFolder();
    // A few rows a file make many files: of the newest block alone.
    const start = maxFileRows < 100 ? chain.end : 100;
    await exportPartition(requestOf(folder.path, { maxFileRows, start }), chain.index);
    for (const path of parquetFiles(folder.path, "transactions")) {
      expect((await readParquet(path)).length).toBeLessThanOrEqual(maxFileRows);
    }
    const found = (await readTable(folder.path, "transactions")).map(keyOf);
    const wanted = chain.rows.filter(({ place }) => place.height >= start).map(expectedKey);
    expect(found.toSorted()).toEqual(wanted.toSorted());
  });

  test.each([
    [true, true],
    [true, false],
    [false, true],
  ])("without transactions of the chain: %p, without their tags: %p", async (skipL1Transactions, skipL1Tags) => {
    using folder = temporaryFolder();
    await exportPartition(requestOf(folder.path, { skipL1Transactions, skipL1Tags }), chain.index);
    const isItem = (row: ParquetRow) => row["is_data_item"] === true;
    const rows = await readTable(folder.path, "transactions");
    const tags = await readTable(folder.path, "tags");
    expect([rows.every(isItem), tags.every(isItem)]).toEqual([skipL1Transactions, skipL1Tags]);
    expect(rows.filter(isItem).length).toBe(chain.rows.filter(({ kind }) => kind === "item").length);
  });

  test("states its heights and its first block in each file", async () => {
    using folder = temporaryFolder();
    await exportPartition(requestOf(folder.path), chain.index);
    const [path = ""] = parquetFiles(folder.path, "blocks");
    const { metadata } = readParquetMetadata(path);
    const [block] = await readParquet(path);
    expect(metadata.get("cairn.heights")).toBe(`100-${chain.end}`);
    expect(metadata.get("cairn.first_block")).toBe(text(block?.["indep_hash"]));
  });
});

describe("writing a partition again", () => {
  test("replaces the files of an earlier run, and removes incomplete ones", async () => {
    using folder = temporaryFolder();
    await exportPartition(requestOf(folder.path, { maxFileRows: 50 }), chain.index);
    const before = parquetFiles(folder.path, "transactions");
    writeFileSync(`${before[0]}.part`, "incomplete");
    await exportPartition(requestOf(folder.path, { runId: "two" }), chain.index);
    const [only = "", ...others] = parquetFiles(folder.path, "transactions");
    expect([others, only.endsWith("_two.parquet")]).toEqual([[], true]);
    expect(readdirSync(join(only, "..")).filter((name) => name.endsWith(".part"))).toEqual([]);
  });

  test("is skipped while the run's record and files are there", async () => {
    using folder = temporaryFolder();
    const write = async (runId = "one") =>
      (await exportPartition(requestOf(folder.path, { runId }), chain.index)) !== undefined;
    expect([await write(), await write()]).toEqual([true, false]);
    writeFileSync(parquetFiles(folder.path, "tags")[0] ?? "", "cut");
    expect([await write(), await write()]).toEqual([true, false]);
    rmSync(parquetFiles(folder.path, "tags")[0] ?? "");
    expect([await write(), await write(), await write("two")]).toEqual([true, false, true]);
  });

  test("keeps the files of an earlier run when the index has pruned some of their items since", async () => {
    using folder = temporaryFolder();
    using other = temporaryFolder();
    const { file, index, end } = openChain();
    try {
      const request = { ...requestOf(folder.path), end };
      await exportPartition(request, index);
      const before = await readTable(folder.path, "transactions");
      const bounds = { ingestedBeforeSeconds: 4_000_000_000, startHeight: 100, endHeight: end };
      expect(file.writer.pruneItems(bounds)).toBeGreaterThan(0);
      const again = exportPartition({ ...request, runId: "two" }, index);
      await expect(again).rejects.toThrow(
        /^the index has pruned \d+ items since .* got files of the heights 100 to \d+: /,
      );
      expect(await readTable(folder.path, "transactions")).toEqual(before);
      expect(parquetFiles(folder.path, "transactions").every((path) => path.endsWith("_one.parquet"))).toBe(true);
      for (const runId of ["one", "two"])
        expect(await exportPartition({ ...request, folder: other.path, runId }, index)).toBeDefined();
    } finally {
      index.close();
      file[Symbol.dispose]();
    }
  });

  test("replaces smaller partitions within its heights", async () => {
    using folder = temporaryFolder();
    await exportPartition(requestOf(folder.path, { end: 105 }), chain.index);
    await exportPartition(requestOf(folder.path, { start: 106, end: 110 }), chain.index);
    await exportPartition(requestOf(folder.path, { runId: "two" }), chain.index);
    expect((await readTable(folder.path, "transactions")).map(keyOf)).toEqual(chain.rows.map(expectedKey));
    expect(readdirSync(join(folder.path, "partitions"))).toEqual([`height=100-${chain.end}.json`]);
  });
});

describe.each([1, 3])("an export of several partitions, %d at once,", (partitionsAtOnce) => {
  const partsOf = (nowMs = 0) => ({
    writer: {
      firstHeight: async () => chain.index.firstHeight(),
      stableHeight: async () => chain.index.stableHeight(),
      write: (request: PartitionRequest) => exportPartition(request, chain.index),
    },
    clock: () => nowMs,
    partitionsAtOnce,
    signal: new AbortController().signal,
  });
  const runOf = (folder: string) => {
    const { start: _start, end: _end, runId: _runId, ...files } = requestOf(folder);
    return { ...files, startHeight: 100, endHeight: 10 ** 6, heightPartitionSize: 10 };
  };

  test("ends at the last height that cannot be rolled back, and has each row once", async () => {
    using folder = temporaryFolder();
    const { endHeight, heightsDone } = await runExport(runOf(folder.path), partsOf());
    expect([endHeight, heightsDone]).toEqual([chain.end, chain.end - 99]);
    expect(chain.end).toBe((chain.file.reader.tip()?.height ?? 0) - stableDepth);
    expect((await readTable(folder.path, "transactions")).map(keyOf)).toEqual(chain.rows.map(expectedKey));
  });

  test("that is continued writes only the partitions that are missing", async () => {
    using folder = temporaryFolder();
    const stopping = new AbortController();
    // Of three at once the fourth has begun by then, and the fifth has not.
    const onProgress = ({ heightsDone }: ExportProgress) => {
      if (heightsDone >= 20) stopping.abort(new Error("stopped"));
    };
    const first = runExport(runOf(folder.path), { ...partsOf(1), signal: stopping.signal, onProgress });
    expect(await first.catch(String)).toBe("Error: stopped");
    const progress: number[] = [];
    const { files } = await runExport(runOf(folder.path), {
      ...partsOf(2),
      onProgress: (step) => progress.push(step.files),
    });
    expect(progress.slice(0, 2)).toEqual([0, 0]);
    expect(files).toBeGreaterThan(0);
    expect((await readTable(folder.path, "transactions")).map(keyOf)).toEqual(chain.rows.map(expectedKey));
  });

  test("that was complete, or is requested differently, is written anew", async () => {
    using folder = temporaryFolder();
    const filesOf = async (nowMs: number, given = {}) => {
      const { files } = await runExport({ ...runOf(folder.path), ...given }, partsOf(nowMs));
      return files;
    };
    const all = await filesOf(1);
    expect([all > 0, await filesOf(2)]).toEqual([true, all]);
    const stopped = { ...partsOf(3), signal: AbortSignal.abort(new Error("stopped")) };
    expect(await runExport(runOf(folder.path), stopped).catch(String)).toBe("Error: stopped");
    expect(await filesOf(4, { maxFileRows: 10 ** 6 })).toBe(all);
    expect((await readTable(folder.path, "transactions")).map(keyOf)).toEqual(chain.rows.map(expectedKey));
  });

  test("grows with the chain in the same folder, and does not leave a row in two files", async () => {
    using folder = temporaryFolder();
    const exportTo = (given: object) => runExport({ ...runOf(folder.path), ...given }, partsOf()).catch(String);
    await exportTo({ endHeight: 104 });
    await exportTo({ endHeight: 125 });
    await exportTo({});
    expect((await readTable(folder.path, "transactions")).map(keyOf)).toEqual(chain.rows.map(expectedKey));
    const overlap = (start: number, end: number) =>
      `Error: the folder has files of heights ${start} to ${end}, which overlap: export to another folder`;
    expect(await exportTo({ startHeight: 105 })).toBe(overlap(100, 109));
    expect(await exportTo({ endHeight: 104 })).toBe(overlap(100, 109));
    expect(await exportTo({ heightPartitionSize: 15 })).toBe(overlap(110, 119));
    expect(await exportTo({ heightPartitionSize: 20 })).toMatchObject({ endHeight: chain.end });
  });

  test("begins no partition after an error", async () => {
    using folder = temporaryFolder();
    const begun: number[] = [];
    const write = async ({ start }: PartitionRequest): Promise<undefined> => {
      begun.push(start);
      await Bun.sleep(0);
      if (start === 100) throw new Error("disk full");
    };
    const parts = partsOf();
    const failing = { ...parts, writer: { ...parts.writer, write } };
    expect(await runExport(runOf(folder.path), failing).catch(String)).toBe("Error: disk full");
    expect(begun).toEqual([100, 110, 120].slice(0, partitionsAtOnce));
    const { heightsDone } = await runExport(runOf(folder.path), parts);
    expect(heightsDone).toBe(chain.end - 99);
  });

  test("locks its folder until it ends", async () => {
    using folder = temporaryFolder();
    const first = runExport(runOf(folder.path), partsOf());
    const second = { ...runOf(folder.path), heightPartitionSize: 7 };
    expect(await runExport(second, partsOf(1)).catch(String)).toBe(
      `Error: another export writes to ${folder.path}: wait until it ends, or export to another folder`,
    );
    await first;
    expect((await readTable(folder.path, "transactions")).map(keyOf)).toEqual(chain.rows.map(expectedKey));
    expect(await runExport(runOf(folder.path), partsOf())).toMatchObject({ endHeight: chain.end });
  });

  test("of heights that may all be rolled back fails with the highest final one", async () => {
    using folder = temporaryFolder();
    const run = { ...runOf(folder.path), startHeight: chain.end + 1 };
    expect(await runExport(run, partsOf()).catch(String)).toBe(
      `Error: no height from ${chain.end + 1} is final yet: the highest final height is ${chain.end}`,
    );
    expect(existsSync(join(folder.path, "blocks"))).toBe(false);
  });
});
