/**
 * The taking in of data items put together for tests: real threads, real files, real receipts, on any ledger.
 * @module
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { winc } from "../../src/arweave/winston.ts";
import type { Pace } from "../../src/http/request-body.ts";
import { createItemRoutes, createReceiptRoutes } from "../../src/http/upload/item-routes.ts";
import { createReceiptWriter } from "../../src/http/upload/upload-responses.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createSemaphore } from "../../src/lib/semaphore.ts";
import { createCredits } from "../../src/payment/credits/credits.ts";
import type { LedgerDatabase } from "../../src/store/ledger/ledger-database.ts";
import type { MakeId } from "../../src/store/ledger/transfers.ts";
import { openPool, type Pool, type Workers } from "../../src/threads/pool.ts";
import { findTakenDurably } from "../../src/upload/intake/charge-item.ts";
import { createIntake, type IntakeParts } from "../../src/upload/intake/item-intake.ts";
import { createItemStore } from "../../src/upload/intake/item-store.ts";
import { createUploadQuota, type QuotaOptions } from "../../src/upload/intake/upload-quota.ts";
import { storedBytes } from "../../src/upload/upload-rows.ts";
import { createReceiptSigner } from "../../src/upload/upload-signing.ts";
import type { WrittenItem } from "../../workers/intake.ts";
import { createBlockList } from "./block-lists.ts";
import { rsaKeys } from "./rsa-keys.ts";

type IntakePool = Pool<Workers["intake"]>;

/** What it is opened with. */
export type TestUploadOptions = Readonly<{
  ledger: LedgerDatabase;
  /** Of uploads; made when absent. */
  folder: string;
  /** Key that signs receipts: a file (`receiptKey`). */
  keyFile: string;
  clock: Clock;
  makeId: MakeId;
  threads?: number;
  /** The threads' entry, where it is another than the program's. */
  intakeEntry?: URL;
  rules?: Partial<IntakeParts["rules"]>;
  quota?: Partial<Pick<QuotaOptions, "bytesMax" | "freeBytesMin">>;
  /** Price of so many bytes; 1 winc a byte by default. */
  priceOf?: (bytes: bigint) => Promise<bigint>;
  blockList?: IntakeParts["blockList"];
  height?: IntakeParts["height"];
  onTaken?: IntakeParts["onTaken"];
  /** As of `createItemStore`. */
  onUnnamed?: (item: WrittenItem) => void;
  pace?: Pace;
  /** Wraps the ledger of the intake. */
  wrapLedger?: (ledger: LedgerDatabase) => LedgerDatabase;
  /** Wraps the thread pool of the intake. */
  wrapPool?: (pool: IntakePool) => IntakePool;
}>;

/** The default size limit of items in tests. */
export const testItemBytesMax = 64 * 2 ** 20;

/** The host that receipts of tests name. */
export const testHost = "gateway.test";

/** Opens it. */
export async function openUploadParts(options: TestUploadOptions) {
  const { ledger, folder, keyFile, clock, makeId, threads = 2, wrapPool = (pool: IntakePool) => pool } = options;
  mkdirSync(folder, { recursive: true });
  const closers = createClosers((name, error) => {
    throw new Error(`${name} could not be closed`, { cause: error });
  });
  const limits = { threads: 1, queueMax: 1_024, timeoutMs: 60_000, idleMs: 600_000 };
  const openIntakePool = () => {
    const { intakeEntry: entry } = options;
    const opened: IntakePool =
      entry === undefined ? openPool({ ...limits, entry: "intake" }) : openPool({ ...limits, entry });
    closers.add("intake", opened.close);
    return wrapPool(opened);
  };
  const countStored = () => ledger.read((tx) => storedBytes(tx, "test"));
  const quota = createUploadQuota({
    folder,
    countStored,
    storedBytes: await countStored(),
    clock,
    log: silentLog,
    bytesMax: 2 ** 40,
    freeBytesMin: 0,
    ...options.quota,
  });
  const credits = createCredits({ database: ledger, clock, makeId });
  const intake = createIntake({
    ledger: options.wrapLedger?.(ledger) ?? ledger,
    quota,
    makeId,
    clock,
    storeName: "test",
    blockList: options.blockList ?? createBlockList(),
    store: createItemStore(
      folder,
      Array.from({ length: threads }, openIntakePool),
      options.onUnnamed ?? (() => undefined),
    ),
    prices: {
      bytes: async (bytes) => {
        const price = winc((await options.priceOf?.(bytes)) ?? bytes);
        return { winc: price, networkWinc: price, adjustments: [] };
      },
    },
    balance: credits.balance,
    height: options.height ?? (() => 1_000),
    rules: {
      itemBytesMax: testItemBytesMax,
      freeBytesMax: 0,
      allowed: new Set(),
      blocked: new Set(),
      ...options.rules,
    },
    onTaken: options.onTaken ?? (async () => undefined),
  });
  const receipts = openPool({ ...limits, entry: "receipts" });
  closers.add("receipts", receipts.close);
  const writeReceipt = createReceiptWriter({
    publicKey: publicKeyOf(keyFile),
    sign: createReceiptSigner({
      signAll: (terms) => receipts.run("signReceipts", { keyFile, receipts: terms }),
      threads: 1,
    }),
    hosts: () => [testHost],
  });
  const again = {
    find: (id: string) => findTakenDurably(ledger, id),
    writeReceipt,
    semaphore: createSemaphore(1, 2),
  };
  const createRoutes = () =>
    createItemRoutes({ intake, writeReceipt, pace: options.pace ?? usualPace }).use(createReceiptRoutes(again));
  return { intake, quota, credits, createRoutes, close: closers.closeAll };
}

const usualPace: Pace = { stallMs: 20_000, windowMs: 60_000, windowBytes: 0 };

/** The modulus of the key in a file, base64url. */
export function publicKeyOf(keyFile: string): string {
  return String(JSON.parse(readFileSync(keyFile, "utf8")).n);
}

/** Puts a key for receipts into a folder. @returns Its file. */
export function makeReceiptKey(folder: string, modulusLength: 2_048 | 4_096 = 2_048): string {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `receipts-${modulusLength}.json`);
  writeFileSync(file, JSON.stringify(rsaKeys[`${modulusLength}`]));
  return file;
}

/** Files below a folder of uploads, and their sizes. A file that is removed meanwhile is left out. */
export function filesIn(folder: string): Record<string, number> {
  if (!existsSync(folder)) return {};
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return Object.fromEntries(
    names.flatMap((name) => {
      const found = statSync(join(folder, name), { throwIfNoEntry: false });
      return found?.isFile() ? [[name, found.size]] : [];
    }),
  );
}
