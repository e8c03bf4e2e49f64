/**
 * A process whose disk or file handles run out: it reads content all the same, and says how that went.
 * Arguments: what runs out, a folder, a node's address.
 * @module
 */
import { closeSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../src/failures.ts";
import { until } from "../support/until.ts";
import { isSame, locatedOf, openHarness } from "./content-harness.ts";
import { type Report, starvedCycles, starvedData } from "./starved.ts";

const [mode = "", folder = "", nodeUrl = ""] = process.argv.slice(2);
const none = new AbortController().signal;
const report: Report = {
  right: 0,
  fault: 0,
  wrong: [],
  cachedAgain: 0,
  rejectedWrites: 0,
  lost: 0,
  faults: [],
};
let harness = openHarness({ nodeUrls: [nodeUrl], folder });

/** Reads data whole, in one piece or as a stream. */
async function read(number: number): Promise<void> {
  const data = starvedData(number);
  harness.index.set(data.root.id, locatedOf(data.root.id, data.root));
  try {
    const opened = await harness.content.open(data.root.id, none);
    const bytes = await opened.bytes({ start: 0, end: data.bytes.length }, none);
    if (isSame(bytes, data.bytes)) report.right += 1;
    else report.wrong.push(`data ${number}`);
  } catch (error) {
    if (error instanceof Failure) report.fault += 1;
    else report.wrong.push(String(error));
  }
}

const isCached = async (number: number) => {
  const { root } = starvedData(number);
  return (await harness.content.open(root.id, none)).cached({ start: 0, end: root.size });
};

async function numbers(first: number, last: number): Promise<void> {
  for (let number = first; number <= last; number++) await read(number);
}

/** Fills the disk with an unrelated file. */
function fillDisk(path: string): void {
  const file = openSync(path, "w");
  try {
    for (;;) writeSync(file, new Uint8Array(65_536));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
  } finally {
    closeSync(file);
  }
}

async function untilQuota(): Promise<void> {
  await until(() => harness.extents.hasSpace());
}

/** The disk is too small for what is read, then full to the last byte, then free again. */
async function withoutSpace(): Promise<void> {
  const filler = join(folder, "filler");
  for (let cycle = 0; cycle < starvedCycles; cycle++) {
    await numbers(0, 11);
    fillDisk(filler);
    await numbers(12, 15);
    await harness.extents.flush();
    rmSync(filler);
    for (let number = 0; number < 16; number++) await harness.extents.remove(starvedData(number).root);
    await untilQuota();
    const after = 20 + (cycle % 10);
    await read(after);
    if (await isCached(after)) report.cachedAgain += 1;
    if (cycle + 1 < starvedCycles) await harness.extents.remove(starvedData(after).root);
  }
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize < 2 ** 20) report.faults.push(`only ${bavail * bsize} bytes are free after all was removed`);
}

/** No file and no connection can be opened. */
async function withoutHandles(): Promise<void> {
  await numbers(0, 7);
  harness = await harness.restart();
  const held: number[] = [];
  try {
    for (;;) held.push(openSync("/dev/null", "r"));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EMFILE")) throw error;
  }
  await numbers(0, 9);
  for (const file of held) closeSync(file);
  for (let number = 0; number < 8; number++) if (await isCached(number)) report.cachedAgain += 1;
  for (let tries = 0; tries < 100 && report.right < 18; tries++) {
    const before = report.right;
    await numbers(0, 9);
    if (report.right === before + 10) break;
    await Bun.sleep(50);
  }
}

/** Some writings fail, as they do on a disk that is about to end. */
async function withBadWrites(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await numbers(0, 9);
    await harness.extents.flush();
  }
}

if (mode === "space") await withoutSpace();
else if (mode === "handles") await withoutHandles();
else await withBadWrites();
const { rejectedWrites, lostFiles, damagedSteps } = harness.extents.stats();
report.rejectedWrites = rejectedWrites;
report.lost = lostFiles + damagedSteps;
harness = await harness.restart();
for (let number = 0; number < 30; number++) if (harness.index.has(starvedData(number).root.id)) await read(number);
report.faults.push(...harness.extents.integrity());
process.stdout.write(JSON.stringify(report));
process.exit(0);
