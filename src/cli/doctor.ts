/**
 * `cairn doctor`: is the folder whole, do cached bytes have their checksums, does the index agree with the chain, do
 * the threads work.
 * @module
 */

import { existsSync } from "node:fs";
import { exitCodes } from "../app/complaints.ts";
import { type DatabaseName, type DataFolder, existingDataFolder, lockFolder } from "../app/data-folder.ts";
import { examineDatabases, type KnownDatabase } from "../app/databases.ts";
import { systemRandom } from "../app/random.ts";
import { openThreads, openUploadThreads } from "../app/threads.ts";
import { openNode } from "../chain/node.ts";
import { createNodes } from "../chain/nodes.ts";
import type { Config } from "../config/settings.ts";
import { createChainQuestions } from "../indexing/ask-chain.ts";
import { systemClock } from "../lib/clock.ts";
import { type Closers, createClosers } from "../lib/closers.ts";
import { silentLog } from "../lib/log.ts";
import { jsonText, printable, printableLines } from "../lib/printable.ts";
import { secp256k1Implementation } from "../lib/secp256k1.ts";
import { openExtents } from "../store/extents/extents.ts";
import { openIndexReader } from "../store/index/reader.ts";
import type { IndexReader } from "../store/index/types.ts";
import { checkIntegrity, closeDatabase, openForReading } from "../store/sqlite.ts";
import type { Pool } from "../threads/pool.ts";
import { type PageRow, rowsText } from "./rows.ts";

/** How it is run. */
export type DoctorOptions = Readonly<{
  json: boolean;
  /** Asks no node. */
  offline: boolean;
}>;

/** What was found. Faults are sentences; none means well. */
type Report = {
  folder: string;
  secp256k1: "native" | "pure";
  threads: Record<string, string>;
  /** What was found of each database of the folder. */
  databases: Record<string, string>;
  index: string;
  content: string;
  chain: string;
  faults: string[];
};

/** Steps of cached content that are compared with their checksums: 25 MiB. */
const sampledSteps = 100;

/** Databases that are read through here; the index and the cache of content have their own examinations. */
const wholeFileChecked: readonly DatabaseName[] = ["ledger", "moderation", "administration", "webhooks"];

/** Page cache of a walk over a whole file, bytes. */
const walkCacheBytes = 16 * 2 ** 20;

/** Lines of one damaged file. */
const fileFaultsMax = 5;

/** Longest wait for the nodes. Milliseconds. */
const chainMsMax = 15_000;

/** Examines, prints, and answers the exit code: 1 when something is wrong. */
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
    chain: options.offline ? "not asked" : "not known",
    faults: [],
  };
  try {
    await examineThreads(config, report, closers);
    await checkDatabases(config, folder, report);
    const reader = examineIndex(folder, report, closers);
    // Whether a program runs on the folder is seen by its lock, which is taken next.
    const nodes = nodesOf(config, folder);
    await examineContent(config, folder, report, closers);
    if (reader !== undefined && !options.offline) await examineChain(nodes, reader, report);
  } finally {
    await closers.closeAll();
  }
  process.stdout.write(options.json ? `${jsonText(report)}\n` : page(report));
  return report.faults.length === 0 ? exitCodes.done : exitCodes.failed;
}

async function examineThreads(config: Config, report: Report, closers: Closers): Promise<void> {
  const { intake, receipts, bundles, walks, signing } = openUploadThreads(config, closers);
  const uploads = { receipts, bundles, signing, ...firstOf({ intake, walk: walks }) };
  for (const [name, pool] of Object.entries({ ...openThreads(config, closers), ...uploads })) {
    try {
      report.threads[name] = await pool.ping();
    } catch (error) {
      // What is wrong with the thread is the finding.
      report.threads[name] = "does not answer";
      report.faults.push(`the thread ${name} does not answer: ${Bun.inspect(error)}`);
    }
  }
}

/** Compares the databases with what the folder remembers, and reads through those that nothing else reads here. */
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
    // A database that cannot be opened is the finding.
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
    // A file that cannot be opened is the finding.
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
    report.content = "in use by a running program, which compares what it serves; not sampled here";
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
  if (urls === undefined) report.chain = "the development chain does not run: not asked";
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
    // That no node answers is the finding.
    report.chain = "no node answers";
    const why = error instanceof Error ? error.message : String(error);
    report.faults.push(`chain: no answer from ${urls.join(", ")}: ${printable(why)}`);
  } finally {
    nodes.close();
  }
}

/** Whom the folder's program follows: its own development chain, where it has one; `undefined` while that is down. */
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
    report.faults.length === 0 ? ["All is well."] : report.faults.map((fault) => `FAULT ${printableLines(fault)}`);
  return `${rowsText(rows, 10)}\n${faults.join("\n")}\n`;
}
