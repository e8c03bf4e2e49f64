/**
 * Uploads in parts as they are in the program: a ledger, a folder, threads, and the routes on a real socket. A byte
 * costs a winc.
 * @module
 */
import { existsSync, mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AnyElysia, Elysia } from "elysia";
import { checkItem, createDataItem } from "../../../src/arweave/data-item.ts";
import type { Signer } from "../../../src/arweave/signers/scheme.ts";
import type { Tag } from "../../../src/arweave/tags.ts";
import { winc } from "../../../src/arweave/winston.ts";
import { createRequestMetrics } from "../../../src/http/request-metrics.ts";
import type { HttpServer } from "../../../src/http/server.ts";
import { createMultipartRoutes } from "../../../src/http/upload/multipart-routes.ts";
import { createReceiptWriter } from "../../../src/http/upload/upload-responses.ts";
import type { Clock } from "../../../src/lib/clock.ts";
import type { Log } from "../../../src/lib/log.ts";
import { createMetrics } from "../../../src/lib/metrics.ts";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import type { UserAddress } from "../../../src/payment/addresses.ts";
import { createCredits } from "../../../src/payment/credits/credits.ts";
import type { LedgerDatabase } from "../../../src/store/ledger/ledger-database.ts";
import type { MakeId } from "../../../src/store/ledger/transfers.ts";
import { makeItemFolders } from "../../../src/store/uploads/item-files.ts";
import { openPartFiles, type PartFile, type PartFiles } from "../../../src/store/uploads/part-files.ts";
import { openPool } from "../../../src/threads/pool.ts";
import type { UploadBlockList } from "../../../src/upload/blocked-uploads.ts";
import { accountOf } from "../../../src/upload/intake/charge-item.ts";
import { createFileCheck } from "../../../src/upload/intake/file-check.ts";
import { createIntake, type Intake, type IntakeRules } from "../../../src/upload/intake/item-intake.ts";
import { createItemStore } from "../../../src/upload/intake/item-store.ts";
import { createUploadQuota } from "../../../src/upload/intake/upload-quota.ts";
import { type MultipartSweep, openMultipartSweep } from "../../../src/upload/multipart/multipart-expiry.ts";
import { createFinalizer } from "../../../src/upload/multipart/multipart-finalizer.ts";
import { createMultipart, type Multipart } from "../../../src/upload/multipart/multipart-uploads.ts";
import { createPartWriters, type PartWriters } from "../../../src/upload/multipart/part-writers.ts";
import { createBlockList } from "../../support/block-lists.ts";
import { openServer } from "../../support/http-server.ts";
import { createRecordingLog } from "../../support/recording-log.ts";
import { createMultiAptosSigner, signers, testKey } from "../../support/signers.ts";

/** What a fixture is opened on; what it is made of may be left to it. */
export type FixtureOptions = Readonly<{
  database: LedgerDatabase;
  /** That of uploads. */
  folder: string;
  clock: Clock;
  makeId: MakeId;
  rules?: Partial<IntakeRules>;
  blockList?: UploadBlockList;
  /** Disk that uploads may take. Bytes. */
  diskBytesMax?: number;
  /** Quota of unpaid parts. Bytes. */
  unpaidBytesMax?: number;
  /** The price of a byte; throws while no price is known. */
  priceOfByte?: () => bigint;
  /** Name of the folder; `usualStoreName` by default. */
  store?: string;
  /** Called before and after every slow step: a test may end the process there. */
  step?: (name: string) => Promise<void> | void;
}>;

/** a fixture, open. */
export type MultipartFixture = Readonly<{
  intake: Intake;
  multipart: Multipart;
  sweep: MultipartSweep;
  writers: PartWriters;
  files: PartFiles;
  server: HttpServer;
  /** Log lines so far, parsed. */
  lines: Record<string, unknown>[];
  /** Ids of announced items, in order. */
  announced: string[];
  close: () => Promise<void>;
}>;

/** The folder's name in these tests. */
const usualStoreName = "00000000-0000-4000-8000-000000000000";

/** Opens it. */
export async function openMultipartFixture(options: FixtureOptions): Promise<MultipartFixture> {
  const { folder, clock, makeId, priceOfByte = () => 1n, step = () => undefined } = options;
  const { store: storeName = usualStoreName } = options;
  const { log, lines } = createRecordingLog(clock);
  const ledger = stepped(options.database, step);
  makeItemFolders(folder);
  const files = steppedFiles(await openPartFiles(folder), step);
  const pool = (entry: "intake" | "walk") =>
    openPool({ entry, threads: 1, queueMax: 1_024, timeoutMs: 60_000, idleMs: 60_000 });
  const pools = { intake: [pool("intake")], walk: [pool("walk"), pool("walk")] };
  const announced: string[] = [];
  const writersLater: { bytes: () => number } = { bytes: () => 0 };
  const quota = createUploadQuota({
    folder,
    clock,
    log,
    countStored: async () => writersLater.bytes(),
    storedBytes: 0,
    bytesMax: options.diskBytesMax ?? 2 ** 40,
    freeBytesMin: 0,
  });
  const intake = createIntake({
    ledger,
    quota,
    makeId,
    storeName,
    clock,
    blockList: options.blockList ?? createBlockList(),
    prices: {
      bytes: async (size) => ({
        winc: winc(size * priceOfByte()),
        networkWinc: winc(size),
        adjustments: [],
      }),
    },
    store: createItemStore(folder, pools.intake, () => undefined),
    balance: createCredits({ database: ledger, clock, makeId }).balance,
    height: () => 1_000,
    rules: {
      itemBytesMax: 2 ** 30,
      freeBytesMax: 0,
      allowed: new Set(),
      blocked: new Set(),
      ...options.rules,
    },
    onTaken: async ({ row }) => {
      announced.push(row.id);
    },
  });
  const writers = createPartWriters(files, quota);
  writersLater.bytes = writers.diskBytes;
  const finalizer = createFinalizer({
    ledger,
    writers,
    intake,
    makeId,
    clock,
    log,
    atOnce: 2,
    check: createFileCheck(folder, pools.walk),
  });
  const multipart = createMultipart({
    storeName,
    ledger,
    writers,
    finalizer,
    makeId,
    clock,
    itemBytesMax: options.rules?.itemBytesMax ?? 2 ** 30,
    unpaidBytesMax: options.unpaidBytesMax ?? 2 ** 40,
    makeUploadId: () => crypto.randomUUID(),
  });
  const sweep = await openMultipartSweep({
    storeName,
    ledger,
    files,
    writers,
    finalizer,
    makeId,
    clock,
    log,
    onEnded: multipart.forget,
  });
  await quota.recount();
  const server = openRoutes(multipart, log);
  return {
    intake,
    multipart,
    sweep,
    writers,
    files,
    server,
    lines,
    announced,
    close: async () => {
      await server.close(1_000);
      await sweep.close();
      await finalizer.close();
      for (const each of [...pools.intake, ...pools.walk]) await each.close();
    },
  };
}

/** The routes at the root and below `/v1`, as the program has them. */
function openRoutes(multipart: Multipart, log: Log): HttpServer {
  const writeReceipt = createReceiptWriter({
    publicKey: "key",
    sign: async (terms) => `signature of ${JSON.stringify(terms)}`,
    hosts: () => ["gateway.example"],
  });
  const place = (prefix: string): AnyElysia =>
    new Elysia({ prefix, strictPath: true }).use(createMultipartRoutes({ multipart, writeReceipt }));
  return openServer({
    hostname: "127.0.0.1",
    port: 0,
    app: new Elysia({ strictPath: true }).use(place("")).use(place("/v1")),
    bodyBytesMax: 600 * 2 ** 20,
    log,
    stats: createRequestMetrics(createMetrics(), log),
  });
}

/** A database that tells before and after whatever it writes. */
export function stepped(database: LedgerDatabase, step: NonNullable<FixtureOptions["step"]>): LedgerDatabase {
  return {
    ...database,
    write: async (work) => {
      await step("before a write to the ledger");
      const response = await database.write(work);
      await step("after a write to the ledger");
      return response;
    },
  };
}

function steppedFiles(files: PartFiles, step: NonNullable<FixtureOptions["step"]>): PartFiles {
  const steppedFile = (file: PartFile): PartFile => ({
    ...file,
    write: async (pieces, position) => {
      await step("before a write to a file");
      await file.write(pieces, position);
      await step("after a write to a file");
    },
    sync: async () => {
      await step("before a synchronisation");
      await file.sync();
    },
    truncate: async (size) => {
      await step("before a file is cut");
      await file.truncate(size);
      await step("after a file is cut");
    },
  });
  return {
    ...files,
    open: async (upload) => {
      await step("before a file is opened");
      const file = steppedFile(await files.open(upload));
      await step("after a file is opened");
      return file;
    },
    remove: async (upload) => {
      await step("before a file is removed");
      await files.remove(upload);
      await step("after a file is removed");
    },
  };
}

/** A folder of a test's own. */
export function makeFolder(): Readonly<{ path: string; remove: () => void }> {
  const path = mkdtempSync(join(tmpdir(), "cairn-parts-"));
  return { path: join(path, "uploads"), remove: () => removeFolder(path) };
}

/** A signed item, its id, and the account of who signed it. */
export type TestItem = Readonly<{ bytes: Uint8Array; id: string; account: UserAddress; data: Uint8Array }>;

/** The Ethereum signer: quick, and each signature of it is checked in full. */
export const usualSigner = signers[2];

/** Makes an item. */
export function makeItem(
  data: Uint8Array,
  tags: readonly Tag[] = [],
  signer: Signer | undefined = usualSigner,
): TestItem {
  if (signer === undefined) throw new Error("there is a signer of each type");
  const bytes = createDataItem({ data, tags }, signer);
  const checked = checkItem(bytes, "strict");
  if (checked.kind !== "item") throw new Error(checked.reason);
  return { bytes, id: checked.header.id, account: accountOf(signer.scheme.type, signer.owner), data };
}

/** Names of the files in the folder of parts. */
export function partFilesIn(folder: string): string[] {
  return existsSync(join(folder, "parts")) ? readdirSync(join(folder, "parts")).sort() : [];
}

/** A client of the routes. */
export type PartsClient = Readonly<{
  create: (query?: string) => Promise<string>;
  put: (id: string, start: number, bytes: Uint8Array) => Promise<Response>;
  list: (id: string) => Promise<Record<string, unknown>>;
  status: (id: string) => Promise<Record<string, unknown>>;
  finalize: (id: string, how?: "-1" | "finalize", headers?: Record<string, string>) => Promise<Response>;
}>;

/** Creates a client. @param base - The service's address, with or without `/v1`. */
export function createPartsClient(base: string, token = "ethereum"): PartsClient {
  const at = (rest: string) => `${base}/chunks/${token}/${rest}`;
  const json = async (rest: string) => {
    const response = await fetch(at(rest));
    const body = await response.json();
    if (!response.ok) throw new Error(`${response.status} ${JSON.stringify(body)}`);
    return body as Record<string, unknown>;
  };
  return {
    create: async (query = "") => String((await json(`-1/-1${query}`))["id"]),
    put: (id, start, bytes) => fetch(at(`${id}/${start}`), { method: "POST", body: bytes as Uint8Array<ArrayBuffer> }),
    list: (id) => json(`${id}/-1`),
    status: (id) => json(`${id}/status`),
    finalize: (id, how = "-1", headers = {}) => fetch(at(`${id}/${how}`), { method: "POST", headers }),
  };
}

/** Signers whose signatures have more than one valid encoding. */
export const malleableSigners = [
  ["ethereum", signers[2]],
  ["multiAptos", createMultiAptosSigner([testKey(51), testKey(52), testKey(53)], 2)],
] as const;
