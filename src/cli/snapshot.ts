/**
 * `cairn snapshot publish`: uploads exported partitions as signed data items, with a description and a path manifest.
 * `cairn snapshot fetch`: brings a published snapshot into the columnar store of an empty folder. The description is
 * verified by its signature and its block, each file by its SHA-256, and a sample of the rows by their proofs.
 * @module
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, realpathSync, statSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { exitCodes, isMisuse, misuse } from "../app/complaints.ts";
import { type DataFolder, takeFolder } from "../app/data-folder.ts";
import { columnStoreOptions } from "../app/open-columnar.ts";
import { type Id, readId } from "../arweave/id.ts";
import { manifestSizeMax, readManifest } from "../arweave/manifest.ts";
import type { ColumnStore } from "../columnar/column-store.ts";
import { openDuckdbStore } from "../columnar/duckdb-store.ts";
import { type ImportProgress, importFolder } from "../columnar/import-folder.ts";
import { openColumnStore } from "../columnar/open-store.ts";
import {
  type ExportedFile,
  forgetPartition,
  hasHeights,
  type LoadedPartition,
  readPartition,
  writePartitionRecord,
  writtenPartitions,
} from "../columnar/partition.ts";
import {
  lastBlockOf,
  readSnapshot,
  type SampledItem,
  type Snapshot,
  sampleItems,
  snapshotName,
  writeSnapshot,
} from "../columnar/snapshot.ts";
import type { Config } from "../config/settings.ts";
import { explainError } from "../failures.ts";
import { concatBytes } from "../lib/bytes.ts";
import { systemClock } from "../lib/clock.ts";
import { createClosers } from "../lib/closers.ts";
import { failureOf, type Http, openHttp } from "../lib/http-client.ts";
import { invalidValue, jsonText, printableLines } from "../lib/printable.ts";
import { countText } from "../lib/quantity-text.ts";
import { replaceFile, syncFolder } from "../store/durable-file.ts";
import { openIndexReader } from "../store/index/index-reader.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import { openIndexWriter } from "../store/index/index-writer.ts";
import type { StoredHeights } from "../store/index/stored-partitions.ts";
import { failureCodeOf, stopAtInterrupt } from "./interruption.ts";
import { print } from "./print.ts";
import { readServiceUrl } from "./service-client.ts";
import { type Bar, createBar, errorScreen } from "./terminal.ts";
import { eachAtOnce } from "./upload/item-sender.ts";
import { runUpload, type UploadOptions } from "./upload/upload.ts";
import { verifyAtGateway } from "./verify-gateway.ts";

/** Publishes a folder that `cairn export` wrote. @returns The exit code. */
export async function publishSnapshot(config: Config, upload: UploadOptions): Promise<number> {
  const folder = resolve(upload.path);
  const partitions = writtenPartitions(folder).map((heights) => readPartition(folder, heights));
  for (const partition of partitions) checkBlocks(partition);
  const end = partitions.at(-1)?.end;
  if (end === undefined) throw misuse(`${folder} has no exported partitions; write some with: cairn export ${folder}`);
  const store = await openDuckdbStore({ folder: realpathSync(folder), libraryFolder: upload.stateFolder });
  try {
    const lastBlock = await lastBlockOf(store, end, new AbortController().signal);
    if (lastBlock === undefined) throw misuse(`${folder} does not have the block ${end}`);
    replaceFile(join(folder, snapshotName), writeSnapshot(partitions, lastBlock));
  } finally {
    await store.close();
  }
  return await runUpload({ ...upload, path: folder, index: snapshotName, dataDir: config.DATA_DIR });
}

/** A partition without some of its blocks cannot be imported. @throws Misuse. */
function checkBlocks({ start, end, files }: LoadedPartition): void {
  const blocks = files.reduce((sum, { table, rows }) => sum + (table === "blocks" ? rows : 0), 0);
  if (blocks !== end - start + 1)
    throw misuse(`the files of heights ${start} to ${end} have ${blocks} blocks: export them again to another folder`);
}

export type FetchOptions = Readonly<{
  /** Id of the manifest that `publish` printed. */
  id: string;
  gateway: string | undefined;
  /** Rows whose proofs are verified, as given. */
  sample: string | undefined;
  json: boolean;
}>;

const sampleDefault = "1000";
const sampleMax = 100_000;

/** A gateway may have to fetch the content first. */
const timeouts = { firstByteMs: 120_000, stallMs: 60_000, totalMs: 30 * 60_000 } as const;

/** Files and proofs that are requested at once. */
const requestsAtOnce = 8;

type FetchReport = ImportProgress & Readonly<{ verified: number; unavailable: number }>;

/** Fetches a snapshot into the store. @returns The exit code. */
export async function fetchSnapshot(config: Config, options: FetchOptions): Promise<number> {
  const id = readId(options.id);
  if (id === undefined) throw misuse(invalidValue("<id>", options.id, "an id of 43 base64url characters"));
  const sample = Number(options.sample ?? sampleDefault);
  if (!Number.isSafeInteger(sample) || sample < 0 || sample > sampleMax)
    throw misuse(invalidValue("--sample", options.sample ?? "", `0–${sampleMax}`));
  if (options.gateway === undefined) throw misuse("missing option --gateway");
  const gateway = readServiceUrl(options.gateway, "--gateway");
  const closers = createClosers((name, error) =>
    process.stderr.write(`cairn: ${name} could not be closed: ${error}\n`),
  );
  const bar = createBar(errorScreen(), systemClock);
  const stop = new AbortController();
  const unhook = stopAtInterrupt(stop);
  try {
    const data = takeFolder(config, closers);
    const storeOptions = columnStoreOptions({ ...config, COLUMNAR_STORE: storeOf(config) }, data);
    if (storeOptions === undefined) throw misuse("cairn snapshot fetch requires COLUMNAR_STORE: duckdb or clickhouse");
    mkdirSync(data.columnar, { recursive: true, mode: 0o700 });
    const http = openHttp(timeouts);
    closers.add("http", http.close);
    const source = { http, gateway, stop };
    const published = await readVerified(source, id);
    const report = await withFiles(published, source, data, bar, async () => {
      bar.show(1, `verifying ${countText(sample, "row")}`);
      const sampled = await verifySample(source, data, sample);
      const store = await openColumnStore(storeOptions);
      closers.add("columnar store", store.close);
      return { ...(await importInto(data, store, stop.signal)), ...sampled };
    });
    bar.end();
    print(options.json ? `${jsonText(report)}\n` : reportText(report, config));
    return exitCodes.done;
  } catch (error) {
    bar.end();
    if (!(error instanceof Error) || isMisuse(error)) throw error;
    process.stderr.write(`cairn: ${printableLines(explainError(error))}\n`);
    return failureCodeOf(stop.signal);
  } finally {
    unhook();
    await closers.closeAll();
  }
}

/** Without a store, DuckDB reads the files in place. */
function storeOf({ COLUMNAR_STORE }: Config): Config["COLUMNAR_STORE"] {
  return COLUMNAR_STORE === "none" ? "duckdb" : COLUMNAR_STORE;
}

async function importInto(data: DataFolder, store: ColumnStore, signal: AbortSignal): Promise<ImportProgress> {
  const index = openIndexWriter(data.index, { clock: systemClock });
  const reader = openIndexReader(data.index);
  try {
    const folders = { storeFolder: data.columnar, libraryFolder: data.libraries };
    return await importFolder(data.columnar, { ...folders, store, reader, index, signal });
  } finally {
    reader.close();
    index.close();
  }
}

function reportText({ partitions, items, verified, unavailable }: FetchReport, config: Config): string {
  const proofs = unavailable === 0 ? "" : `, ${unavailable} without a proof at the gateway`;
  const counts = `${countText(items, "new item")}; ${countText(verified, "row")} proven${proofs}`;
  const next = config.COLUMNAR_STORE === "none" ? "start the gateway with COLUMNAR_STORE=duckdb to list them\n" : "";
  return `fetched ${countText(partitions, "partition")}: ${counts}\n${next}`;
}

/** Where a snapshot is fetched from. */
type Source = Readonly<{ http: Http; gateway: string; stop: AbortController }>;

/** A snapshot, and the ids of its files by path. */
type Published = Readonly<{ snapshot: Snapshot; ids: ReadonlyMap<string, Id> }>;

/** Reads manifest and description, each proven by its signature and its block. */
async function readVerified(source: Source, id: Id): Promise<Published> {
  const { paths } = readManifest(await provenBytes(source, id));
  const description = paths.get(snapshotName);
  if (description === undefined) throw new Error(`${id} is not a snapshot: its manifest has no ${snapshotName}`);
  const snapshot = readSnapshot(new TextDecoder().decode(await provenBytes(source, description)));
  return { snapshot, ids: paths };
}

async function provenBytes({ http, gateway, stop }: Source, id: Id): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  const onPiece = (piece: Uint8Array): void => {
    size += piece.length;
    if (size > manifestSizeMax) throw new Error(`${id} has more than ${manifestSizeMax} bytes`);
    pieces.push(piece);
  };
  const request = { id, http, gateway, anchor: { kind: "none" }, range: undefined, onPiece } as const;
  const { outcome, fault } = await verifyAtGateway(request, stop.signal);
  const half = outcome === "signed" ? "no block has it yet" : `it is only ${outcome}`;
  if (outcome !== "proven") throw new Error(`${id} is not proven: ${fault?.reason ?? half}`);
  return concatBytes(pieces);
}

/**
 * Downloads the files that are not here yet, writes the records of the partitions, and calls `work`.
 *
 * When one of them fails, the records are removed, except those of partitions that the index has recorded: rows that
 * were not verified must not be taken for those of another snapshot. The files stay for the next attempt.
 */
async function withFiles<Result>(
  { snapshot, ids }: Published,
  source: Source,
  data: DataFolder,
  bar: Pick<Bar, "show">,
  work: () => Promise<Result>,
): Promise<Result> {
  // The store has these heights, perhaps with rows that only it has: their files are not replaced.
  const partitions = snapshot.partitions.filter((partition) => !hasHeights(data.columnar, partition));
  const files = partitions.flatMap((partition) => partition.files);
  let done = 0;
  try {
    await eachAtOnce(files.values(), requestsAtOnce, source.stop, async (file) => {
      const id = ids.get(file.path);
      if (id === undefined) throw new Error(`the manifest of the snapshot has no ${file.path}`);
      await downloadFile(file, id, source, data.columnar);
      done += 1;
      bar.show(done / files.length, `fetching ${done} of ${countText(files.length, "file")}`);
    });
    for (const partition of partitions) writePartitionRecord(data.columnar, { ...partition, folder: data.columnar });
    return await work();
  } catch (error) {
    const loaded = loadedHeights(data);
    for (const partition of partitions)
      if (!loaded.some(({ first, last }) => first === partition.start && last === partition.end))
        forgetPartition(data.columnar, partition);
    throw error;
  }
}

/** Heights that the index has recorded; none of an index that cannot be read. */
function loadedHeights(data: DataFolder): readonly StoredHeights[] {
  if (!existsSync(data.index)) return [];
  let reader: IndexReader | undefined;
  try {
    reader = openIndexReader(data.index);
    return reader.storedPartitions.loadedHeights();
  } catch {
    // A full disk may leave an index without tables. The error of the fetch is the one to report, and the next fetch
    // makes the records again.
    return [];
  } finally {
    reader?.close();
  }
}

async function downloadFile(file: ExportedFile, id: Id, source: Source, folder: string): Promise<void> {
  const target = join(folder, file.path);
  // The import compares the SHA-256 of files of an earlier attempt.
  if (statSync(target, { throwIfNoEntry: false })?.size === file.bytes) return;
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  const response = await source.http.stream({ method: "GET", url: `${source.gateway}/raw/${id}` }, source.stop.signal);
  if (response.kind === "fault") throw failureOf(response);
  if (response.status !== 200) {
    response.cancel();
    throw new Error(`the gateway responded ${response.status} to the request for ${file.path} (${id})`);
  }
  const part = await open(`${target}.part`, "w");
  const hash = createHash("sha256");
  let size = 0;
  let isComplete = false;
  try {
    for await (const piece of response.body) {
      size += piece.length;
      if (size > file.bytes) throw new Error(`${file.path} (${id}) has more bytes than the snapshot states`);
      hash.update(piece);
      await part.writeFile(piece);
    }
    if (hash.digest("hex") !== file.sha256) throw new Error(`${file.path} (${id}) does not have the stated SHA-256`);
    await part.sync();
    isComplete = true;
  } finally {
    await part.close();
    if (!isComplete) await rm(`${target}.part`, { force: true });
  }
  await rename(`${target}.part`, target);
  syncFolder(dirname(target));
}

/**
 * Verifies random rows by their proofs: the id and the owner of each must be those of an item in a block.
 *
 * @throws Error for a row that the proof contradicts, or when the gateway has no proof of most rows.
 */
async function verifySample(
  { http, gateway, stop }: Source,
  data: DataFolder,
  count: number,
): Promise<Pick<FetchReport, "verified" | "unavailable">> {
  const rows = count === 0 ? [] : await sampleRows(data, count, stop.signal);
  let verified = 0;
  let unavailable = 0;
  await eachAtOnce(rows.values(), requestsAtOnce, stop, async ({ id, owner }) => {
    const range = { start: 0, end: 1 };
    const request = { id, http, gateway, anchor: { kind: "none" }, range, owner } as const;
    const { outcome, fault } = await verifyAtGateway(request, stop.signal);
    if (outcome === "rejected") throw new Error(`the row of ${id} is wrong: ${fault?.reason ?? outcome}`);
    if (outcome === "proven") verified += 1;
    else unavailable += 1;
  });
  if (unavailable > verified) throw new Error(`the gateway has no proof of ${unavailable} of ${rows.length} rows`);
  return { verified, unavailable };
}

async function sampleRows(data: DataFolder, count: number, signal: AbortSignal): Promise<SampledItem[]> {
  const store = await openDuckdbStore({ folder: realpathSync(data.columnar), libraryFolder: data.libraries });
  try {
    return await sampleItems(store, writtenPartitions(data.columnar), count, signal);
  } finally {
    await store.close();
  }
}
