/**
 * Each call by which a ledger writes fails once, one after another: acknowledged changes are stored, others are stored
 * completely or not at all, and the ledger check finds no fault.
 *
 * strace makes the n-th call of a process fail; FAULTS sets how many places are tried of each kind, SEED which.
 * @module
 */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { checkLedger } from "../../src/store/ledger/ledger-check.ts";
import { operationAt, readTraces, stateOf } from "../store/ledger/streams.ts";
import { describeWith } from "../support/helpers.ts";
import { openPlace } from "../support/ledger-place.ts";
import { createRandom } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";
import { strace, writeFaults } from "./write-faults.ts";

const { FAULTS = "12" } = process.env;
const faultsEach = Number(FAULTS);
const child = resolve(import.meta.dir, "../store/ledger/fault-child.ts");
/** Places that are always tried. */
const firstPlaces = 4;
/** Operations of each stream. */
const operations = 4;

type Run = Readonly<{ lines: readonly string[]; exitCode: number; traced: string }>;

function work(place: string, seed: number, strained: readonly string[], log: string): Run {
  const { stdout, exitCode } = Bun.spawnSync(
    ["strace", "-f", "-qq", "-o", log, ...strained, process.execPath, child, place, `${seed}`, `${operations}`],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  return { lines: stdout.toString().trim().split("\n"), exitCode, traced: log };
}

/** Calls of these names that a run makes when nothing fails. */
async function countCalls(seed: number, calls: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "cairn-faults-"));
  const { traced, lines } = work(join(folder, "ledger.sqlite"), seed, ["-e", `trace=${calls}`], join(folder, "log"));
  expect(lines).toHaveLength(16 * operations);
  const count = (await Bun.file(traced).text()).split("\n").filter((line) => /\(\d+/.test(line)).length;
  rmSync(folder, { recursive: true });
  return count;
}

/** Lets the n-th call fail, and compares the ledger with the acknowledged changes. */
async function failAt(
  seed: number,
  [calls, error, forGood]: (typeof writeFaults)[number],
  at: number,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "cairn-faults-"));
  const place = join(folder, "ledger.sqlite");
  const when = forGood ? `${at}+` : `${at}`;
  const options = ["-e", `trace=${calls}`, "-e", `inject=${calls}:error=${error}:when=${when}`];
  const { lines, exitCode } = work(place, seed, options, join(folder, "log"));
  const where = `${calls} ${error} when=${when} seed=${seed}`;
  if (exitCode !== 0) throw new Error(`${where}: ended with ${exitCode} after ${lines.length} lines`);
  const database = await openPlace(place);
  expect([where, await checkLedger(database)]).toEqual([where, []]);
  const traces = await database.read(readTraces);
  await database.close();
  let failed = 0;
  for (const line of lines[0] === "not opened" ? [] : lines) {
    const [stream, index, response] = line.split(" ");
    const operation = operationAt(seed, Number(stream), Number(index));
    const found = stateOf(traces, operation);
    const isUnknown = response === "database_unavailable";
    const isRight = isUnknown || response === "rejected" ? found !== "broken" : found === "whole";
    if (!isRight) throw new Error(`${where}: ${response}, but found ${found}: ${Bun.inspect(operation)}`);
    if (isUnknown) failed += 1;
  }
  rmSync(folder, { recursive: true });
  if (lines[0] === "not opened") return "not opened";
  return failed === 0 ? "no error was seen" : "some were rejected";
}

describeWith(strace, "a fault of the disk", () => {
  test.each(writeFaults)(
    "of %s, %s, for good: %p, loses no acknowledged change and leaves no partial one",
    async (calls, error, forGood) => {
      const seed = newSeed();
      const random = createRandom(seed);
      const count = await countCalls(seed, calls);
      // strace counts each thread's calls apart, so the first places are met by several of them.
      const places = new Set(
        Array.from({ length: Math.min(count, faultsEach) }, (_, index) =>
          index < firstPlaces || count <= faultsEach ? index + 1 : 1 + random.below(count),
        ),
      );
      const ends = new Map<string, number>();
      for (const at of places) {
        const end = await failAt(seed, [calls, error, forGood], at);
        ends.set(end, (ends.get(end) ?? 0) + 1);
      }
      console.log(
        `${calls} ${error}${forGood ? " for good" : ""}: ${places.size} of ${count} places`,
        Object.fromEntries(ends),
      );
    },
    60_000 + faultsEach * 20_000,
  );
});
