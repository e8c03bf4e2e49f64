/**
 * `cairn doctor`: checks databases, cached bytes, agreement of the index with the chain, and worker threads.
 * `cairn doctor --accept-loss <name>`: removes a lost database from the folder's record. No file is deleted: an
 * unusable file is renamed.
 * @module
 */
import { existsSync, renameSync, rmSync } from "node:fs";
import { exitCodes, misuse } from "../app/complaints.ts";
import {
  type DatabaseName,
  type DataFolder,
  databaseNames,
  existingDataFolder,
  lockFolder,
} from "../app/data-folder.ts";
import {
  type ExaminedDatabase,
  examineDatabases,
  type KnownDatabase,
  shortName,
  writeDatabaseRecord,
} from "../app/databases.ts";
import { systemRandom } from "../app/random.ts";
import { openThreads, openUploadThreads } from "../app/threads.ts";
import { openNode } from "../chain/node.ts";
import { createNodes } from "../chain/nodes.ts";
import type { Config } from "../config/settings.ts";
import { createChainQuestions } from "../indexing/ask-chain.ts";
import { systemClock } from "../lib/clock.ts";
import { type Closers, createClosers } from "../lib/closers.ts";
import { silentLog } from "../lib/log.ts";
import { invalidValue, jsonText, printable, printableLines } from "../lib/printable.ts";
import { secp256k1Implementation } from "../lib/secp256k1.ts";
import { openExtents } from "../store/extents/extents.ts";
import { openIndexReader } from "../store/index/index-reader.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import { checkIntegrity, closeDatabase, isDamage, openForReading } from "../store/sqlite.ts";
import type { Pool } from "../threads/pool.ts";
import { print } from "./print.ts";
import { type PageRow, rowsText } from "./terminal.ts";

export type DoctorOptions = Readonly<{
  json: boolean;
  /** Sends no request to nodes. */
  offline: boolean;
}>;

/** The findings. `faults` are sentences; none means that all is well. */
type Report = {
  folder: string;
  secp256k1: "native" | "pure";
  threads: Record<string, string>;
  /** The state of each database of the folder. */
  databases: Record<string, string>;
  index: string;
  content: string;
  chain: string;
  faults: string[];
};

/** Steps of cached content whose checksums are verified: 25 MiB. */
const sampledSteps = 100;

/** Databases with an integrity check of the whole file; index and content have their own checks. */
const wholeFileChecked: readonly DatabaseName[] = ["ledger", "moderation", "administration", "webhooks"];

/** Page cache of an integrity check, bytes. */
const walkCacheBytes = 16 * 2 ** 20;

/** Maximum number of faults that are reported for one file. */
const fileFaultsMax = 5;

/** Longest wait for the nodes. Milliseconds. */
const chainMsMax = 15_000;

/** Checks the folder and prints the report. @returns The exit code: 1 when there is a fault. */
export async function runDoctor(config: Config, options: DoctorOptions): Promise<number> {
  const closers = createClosers((name, error) => report.faults.push(`${name} could not be closed: ${error}`));
  const folder = existingDataFolder(config.DATA_DIR);
  const report: Report = {
    folder: folder.root,
    secp256k1: secp256k1Implementation(),
    threads: {},
    databases: {},
    index: "none yet",
    content: "none yet",
    chain: options.offline ? "not compared" : "unknown",
    faults: [],
  };
  try {
    await examineThreads(config, report, closers);
    await checkDatabases(config, folder, report);
    const reader = examineIndex(folder, report, closers);
    // Before the folder is locked below: the lock shows whether a program runs on it.
    const nodes = nodesOf(config, folder);
    await examineContent(config, folder, report, closers);
    if (reader !== undefined && !options.offline) await examineChain(nodes, reader, report);
  } finally {
    await closers.closeAll();
  }
  print(options.json ? `${jsonText(report)}\n` : page(report));
  return report.faults.length === 0 ? exitCodes.done : exitCodes.failed;
}

async function examineThreads(config: Config, report: Report, closers: Closers): Promise<void> {
  const { intake, receipts, bundles, walks, signing } = openUploadThreads(config, closers);
  const uploads = { receipts, bundles, signing, ...firstOf({ intake, walk: walks }) };
  for (const [name, pool] of Object.entries({ ...openThreads(config, closers), ...uploads })) {
    try {
      report.threads[name] = await pool.ping();
    } catch (error) {
      // The error is a finding of the report.
      report.threads[name] = "does not respond";
      report.faults.push(`the thread ${name} does not respond: ${Bun.inspect(error)}`);
    }
  }
}

/** Compares the databases with the folder's record of them, and checks their files. */
async function checkDatabases(config: Config, folder: DataFolder, report: Report): Promise<void> {
  try {
    const { databases, isRecordLost } = await examineDatabases(folder, config);
    if (isRecordLost) report.faults.push(`${folder.databases} is missing: the next start writes it again`);
    for (const { known, found, finding } of databases) {
      report.databases[known.name] = finding?.fault ?? (found.kind === "absent" ? "none yet" : "ok");
      if (finding !== undefined) report.faults.push(`${known.name}: ${finding.sentence}`);
      else if (wholeFileChecked.includes(known.name)) report.faults.push(...fileFaults(known));
    }
  } catch (error) {
    // A database that cannot be opened is a finding of the report.
    report.faults.push(`databases: ${error instanceof Error ? error.message : error}`);
  }
}

function fileFaults({ name, place, path }: KnownDatabase): readonly string[] {
  if (place !== "file" || !existsSync(path)) return [];
  const db = openForReading(path, walkCacheBytes);
  try {
    return checkIntegrity(db, fileFaultsMax).map((fault) => `${name}: ${path} is damaged: ${fault}`);
  } finally {
    closeDatabase(db);
  }
}

type Ping = Pick<Pool<unknown>, "ping">;

/** One pool of each group of equal pools. */
function firstOf(pools: Readonly<Record<string, readonly Ping[]>>): Record<string, Ping> {
  return Object.fromEntries(
    Object.entries(pools).flatMap(([name, [first]]) => (first === undefined ? [] : [[name, first]])),
  );
}

function examineIndex(folder: DataFolder, report: Report, closers: Closers): IndexReader | undefined {
  if (!existsSync(folder.index)) return undefined;
  try {
    const reader = openIndexReader(folder.index);
    closers.add("index", reader.close);
    const faults = reader.integrity();
    report.faults.push(...faults.map((fault) => `index: ${fault}`));
    const { blocks, transactions, items } = reader.counts();
    const tip = reader.tip();
    const top = tip === undefined ? "no block" : `height ${tip.height}`;
    report.index = `${top}, ${blocks} blocks, ${transactions} transactions, ${items} items`;
    return reader;
  } catch (error) {
    // A file that cannot be opened is a finding of the report.
    report.index = "cannot be read";
    report.faults.push(
      `index: ${error instanceof Error ? error.message : error}. To build it again: cairn doctor --accept-loss index`,
    );
    return undefined;
  }
}

async function examineContent(config: Config, folder: DataFolder, report: Report, closers: Closers): Promise<void> {
  if (!existsSync(folder.contentMap)) return;
  const unlock = lockFolder(folder);
  if (unlock === undefined) {
    report.content = "in use by a running program, which verifies it; not sampled here";
    return;
  }
  closers.add("folder", unlock);
  const extents = openExtents({
    folder: folder.content,
    mapPath: folder.contentMap,
    bytesMax: config.CACHE_BYTES_MAX,
    freeBytesMin: 0,
    clock: systemClock,
    log: silentLog,
  });
  closers.add("content", extents.close);
  report.faults.push(...extents.integrity().map((fault) => `content: ${fault}`));
  const { compared, damaged } = await extents.sample(sampledSteps, systemRandom);
  report.content = `${extents.stats().bytes} bytes, ${compared} steps compared, ${damaged} damaged`;
  if (damaged > 0) report.faults.push(`content: ${damaged} of ${compared} steps were damaged and dropped`);
}

async function examineChain(urls: readonly string[] | undefined, reader: IndexReader, report: Report): Promise<void> {
  const tip = reader.tip();
  if (urls === undefined) report.chain = "the development chain is not running: not compared";
  if (tip === undefined || urls === undefined) return;
  const nodes = createNodes(
    urls.map((url) => openNode(url)),
    { clock: systemClock, random: systemRandom, log: silentLog },
  );
  try {
    const theirs = await createChainQuestions(nodes).hashAt(tip.height, AbortSignal.timeout(chainMsMax));
    report.chain = theirs === tip.hash ? `agrees at height ${tip.height}` : `differs at height ${tip.height}`;
    if (theirs === undefined) report.faults.push(`chain: the nodes have no block at our height ${tip.height}`);
    else if (theirs !== tip.hash)
      report.faults.push(`chain: at height ${tip.height} the nodes have ${theirs}, we have ${tip.hash}`);
  } catch (error) {
    // No response is a finding of the report.
    report.chain = "no node responds";
    const why = error instanceof Error ? error.message : String(error);
    report.faults.push(`chain: no response from ${urls.join(", ")}: ${printable(why)}`);
  } finally {
    nodes.close();
  }
}

/** The nodes that the folder's program follows; `undefined` while its development chain is stopped. */
function nodesOf(config: Config, folder: DataFolder): readonly string[] | undefined {
  if (!existsSync(folder.devnet)) return config.TRUSTED_NODE_URL;
  const unlock = lockFolder(folder);
  unlock?.();
  return unlock === undefined ? [`http://127.0.0.1:${config.DEVNET_PORT}`] : undefined;
}

function page(report: Report): string {
  const threads = Object.entries(report.threads).map(([name, state]) => `${name} ${state}`);
  const databases = Object.entries(report.databases).map(([name, state]) => `${name} ${state}`);
  const rows: PageRow[] = [
    ["folder", report.folder],
    ["databases", databases.join(", ")],
    ["index", report.index],
    ["content", report.content],
    ["chain", report.chain],
    ["threads", threads.join(", ")],
    ["secp256k1", report.secp256k1],
  ];
  const faults =
    report.faults.length === 0 ? ["no faults found"] : report.faults.map((fault) => `FAULT ${printableLines(fault)}`);
  return `${rowsText(rows, 10)}\n${faults.join("\n")}\n`;
}

/**
 * Removes a lost database from the folder's record, and prints what the next start does. @returns The exit code.
 *
 * @throws Misuse when the database does not exist or is not lost, or when a program runs on the folder.
 */
export async function acceptLoss(config: Config, name: string): Promise<number> {
  const folder = existingDataFolder(config.DATA_DIR);
  const known = databaseNames.find((each) => each === name);
  if (known === undefined) throw misuse(invalidValue("--accept-loss", name, `one of ${databaseNames.join(", ")}`));
  const unlock = lockFolder(folder);
  if (unlock === undefined) throw misuse(`another program runs on the folder ${folder.root}: stop it first`);
  try {
    const { databases, record } = await examineDatabases(folder, config);
    const examined = databases.find((each) => each.known.name === known);
    const outcome = examined === undefined ? "the next start that uses it creates a new one" : setAside(examined);
    const stored = new Map([...record].filter(([each]) => each !== known));
    writeDatabaseRecord(folder.databases, stored);
    print(`removed ${known} from the record of the data folder: ${outcome}\n`);
    return exitCodes.done;
  } finally {
    unlock();
  }
}

/** Renames an unusable file. @returns What the next start does. */
function setAside({ known, found, finding }: ExaminedDatabase): string {
  const name = shortName(known);
  if (finding?.fault === "moved") return `the next start uses ${name}, and its credits`;
  const aside = `${known.path}.${new Date().toISOString().replace(/[:.]/g, "-")}`;
  if (found.kind === "absent") {
    if (known.place === "file") moveLog(known.path, aside);
    return `the next start creates a new ${name}`;
  }
  if (known.place === "PostgreSQL") {
    if (finding === undefined) throw nothingLost(name);
    return `the next start uses the database of LEDGER_URL as it is`;
  }
  const isBroken = found.kind === "damaged" || found.kind === "empty" || isDamagedWithin(known.path);
  if (!isBroken && finding?.fault === "foreign") return `the next start uses ${name} as it is`;
  if (!isBroken && known.rebuilt === undefined) throw nothingLost(name);
  moveLog(known.path, aside);
  renameSync(known.path, aside);
  return `the old file is now ${aside}, and the next start creates a new ${name}`;
}

/** Renames the log of a database, which belongs to no other file. */
function moveLog(path: string, aside: string): void {
  if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${aside}-wal`);
  rmSync(`${path}-shm`, { force: true });
}

function nothingLost(name: string): Error {
  return misuse(`${name} is intact and belongs to this data folder: there is no loss to accept`);
}

function isDamagedWithin(path: string): boolean {
  try {
    const db = openForReading(path, walkCacheBytes);
    try {
      return checkIntegrity(db, 1).length > 0;
    } finally {
      closeDatabase(db);
    }
  } catch (error) {
    if (isDamage(error)) return true;
    throw error;
  }
}
