/**
 * A mixed load on a complete program for a long time: growth of memory and descriptors, and failures.
 *
 * `SOAK_MINUTES=60 bun run bench soak`; 2 minutes by default. `SOAK_RATE=0.5` sends half of the load. The program is
 * `cairn dev` in its own process, on loopback, with a block every two seconds. Slopes are lines through the samples
 * after the warm-up, the first half of the time. At the end, the program must exit with 0 and its ledger must be
 * consistent.
 *
 * Between two collections, bodies that were dropped take tens of megabytes, so that single samples tell nothing of a
 * megabyte. The time has twenty parts, or more of three minutes. Each complete one ends with a rest of the load, in
 * which the program collects its garbage: the slope of memory is one of the lowest samples of the rests. It has its
 * standard error beside it: a slope that is smaller than twice its error may be none.
 * @module
 */
import { readdirSync } from "node:fs";
import { type RunningProgram, repositoryRoot, startDev } from "../../test/support/program.ts";
import { newSeed } from "../../test/support/seed.ts";
import type { Bench, BenchRow, BenchSize } from "../harness.ts";
import { memoryOf } from "../support/memory.ts";
import type { LoadCounts } from "./soak-client.ts";
import { startLoad } from "./soak-load.ts";

/** Default of SOAK_MINUTES. */
const minutesUsual: Readonly<Record<BenchSize, number>> = { small: 0.1, large: 2 };

/** Between two samples, at most; a rest has two or more. */
const sampleMsMax = 2_000;

/** Share of the time before samples count: caches fill, code is compiled, and memory settles after the fast load. */
const warmUpShare = 1 / 2;

/** Share of the time in which the load is faster, and how much. Else the caches of databases would fill for hours. */
const fastShare = 1 / 3;
const fastPace = 4;

/** Smallest number of parts of the time; the lowest memory in the rest at the end of each counts. */
const partsMin = 20;

/** Longest part. Minutes. */
const partMinutesMax = 3;

/**
 * Length of a rest, as a share of its part. The runtime collects an idle heap within half a minute, which is a rest of
 * a run of 40 minutes or more.
 */
const restShare = 1 / 4;

const minuteMs = 60_000;

/**
 * Every byte is charged, so that the ledger takes part. The memory of bodies is small, so that it fills in the warm-up.
 */
const environment = { DEVNET_MINING: "2000", FREE_UPLOAD_BYTES: "0", HOT_BYTES_MAX: String(16 * 2 ** 20) };

/** Maximum number of log lines that are printed at the end. */
const complaintsShown = 20;

type Sample = Readonly<{ minutes: number; isAtRest: boolean; residentMiB: number; descriptors: number }>;

export const soakBench: Bench = {
  name: "soak",
  measure: async (size) => {
    const minutes = Number(process.env["SOAK_MINUTES"] ?? minutesUsual[size]);
    const rate = Number(process.env["SOAK_RATE"] ?? 1);
    const seed = newSeed();
    const program = await startDev({ environment });
    try {
      return await soak(program, { minutes, rate, seed });
    } finally {
      await program.remove();
    }
  },
};

type Load = Readonly<{ minutes: number; rate: number; seed: number }>;

async function soak(program: RunningProgram, { minutes, rate, seed }: Load): Promise<BenchRow[]> {
  const startedAt = performance.now();
  const minutesPassed = () => (performance.now() - startedAt) / minuteMs;
  const isFast = () => minutesPassed() < minutes * fastShare;
  const load = startLoad(program.line, seed, () => (isFast() ? fastPace : 1) * rate);
  const partMinutes = partMinutesOf(minutes);
  const restMinutes = partMinutes * restShare;
  const sampleMs = Math.min(sampleMsMax, (restMinutes * minuteMs) / 2);
  const samples: Sample[] = [];
  let reported = 0;
  for (let passed = 0; passed < minutes; ) {
    await Bun.sleep(sampleMs);
    passed = minutesPassed();
    const isAtRest = passed % partMinutes >= partMinutes - restMinutes;
    if (isAtRest) load.pause();
    else load.resume();
    const sample = { minutes: passed, isAtRest, ...measure(program.pid) };
    samples.push(sample);
    if (passed >= reported + 1) {
      reported = Math.floor(passed);
      process.stderr.write(`${reported} min: ${lineOf(sample, load.counts())}\n`);
    }
  }
  const counts = load.counts();
  await load.stop();
  const exit = await program.stop();
  const ledger = checkLedger(program.folder);
  const complaints = program
    .errors()
    .split("\n")
    .filter((line) => /"level":"(warn|error)"/.test(line));
  for (const line of complaints.slice(0, complaintsShown)) process.stderr.write(`${line}\n`);
  for (const [what, { count, first }] of counts.errors) process.stderr.write(`${count} × ${what}: ${first}\n`);
  const rows = rowsOf(minutes, samples, counts, { exit, ledger, complaints });
  if (counts.errors.size > 0 || exit !== 0 || ledger !== 0) {
    for (const { name, metric } of rows) process.stderr.write(`${name}: ${metric}\n`);
    throw new Error(`the soak failed: ${counts.errors.size} kinds of errors, exit ${exit}, ledger check ${ledger}`);
  }
  return rows;
}

type End = Readonly<{ exit: number; ledger: number; complaints: readonly string[] }>;

function rowsOf(minutes: number, samples: readonly Sample[], counts: LoadCounts, end: End): BenchRow[] {
  const warm = samples.filter((sample) => sample.minutes >= minutes * warmUpShare);
  const [first] = warm;
  const last = warm.at(-1);
  const lowest = lowestOf(
    warm.filter(({ isAtRest }) => isAtRest),
    partMinutesOf(minutes),
  );
  const per10 = (pick: (sample: Sample) => number, of: readonly Sample[] = warm) =>
    (10 * lineThrough(of, pick).slope).toFixed(1);
  const memory = ({ residentMiB }: Sample) => residentMiB;
  const errors = [...counts.errors.values()].reduce((sum, { count }) => sum + count, 0);
  const name = `mixed load of ${minutes} min`;
  return [
    { name, metric: `${total(counts)} requests, ${counts.resent} sent again, ${errors} errors`, target: "0 errors" },
    {
      name: `${name}: memory`,
      metric:
        `${per10(memory, lowest)} ± ${(10 * lineThrough(lowest, memory).error).toFixed(1)} MiB per 10 min ` +
        `(of all samples ${per10(memory)}), ` +
        `lowest ${lowest[0]?.residentMiB.toFixed(0)} MiB after the warm-up, ` +
        `${lowest.at(-1)?.residentMiB.toFixed(0)} at the end, highest ${Math.max(...warm.map(memory)).toFixed(0)}`,
      target: "≤ 1 MiB per 10 min",
    },
    {
      name: `${name}: open descriptors`,
      metric:
        `${per10(({ descriptors }) => descriptors)} per 10 min, ` +
        `${first?.descriptors} after the warm-up, ${last?.descriptors} at the end`,
      target: "0 per 10 min",
    },
    {
      name: `${name}: end`,
      metric: `exit ${end.exit}, ledger check ${end.ledger}, ${end.complaints.length} lines of warnings and errors`,
      target: "0, 0",
    },
  ];
}

function partMinutesOf(minutes: number): number {
  return Math.min(minutes / partsMin, partMinutesMax);
}

/** The sample with the lowest memory of each rest. */
function lowestOf(samples: readonly Sample[], partMinutes: number): readonly Sample[] {
  const parts = Map.groupBy(samples, ({ minutes }) => Math.floor(minutes / partMinutes));
  return [...parts.values()].map((part) =>
    part.reduce((lowest, sample) => (sample.residentMiB < lowest.residentMiB ? sample : lowest)),
  );
}

/** The line through the samples by least squares: its growth per minute, and the standard error of that. */
function lineThrough(
  samples: readonly Sample[],
  pick: (sample: Sample) => number,
): Readonly<{ slope: number; error: number }> {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const middle = mean(samples.map(({ minutes }) => minutes));
  const level = mean(samples.map(pick));
  const sumOf = (value: (sample: Sample) => number) => samples.reduce((sum, each) => sum + value(each), 0);
  const run = sumOf(({ minutes }) => (minutes - middle) ** 2);
  if (run === 0) return { slope: 0, error: Number.POSITIVE_INFINITY };
  const slope = sumOf((each) => (each.minutes - middle) * (pick(each) - level)) / run;
  const off = sumOf((each) => (pick(each) - level - slope * (each.minutes - middle)) ** 2);
  return { slope, error: samples.length > 2 ? Math.sqrt(off / (samples.length - 2) / run) : Number.POSITIVE_INFINITY };
}

function measure(pid: number): Pick<Sample, "residentMiB" | "descriptors"> {
  return { residentMiB: memoryOf(pid).resident, descriptors: readdirSync(`/proc/${pid}/fd`).length };
}

function checkLedger(folder: string): number {
  const env = { ...process.env, DATA_DIR: folder };
  return Bun.spawnSync([process.execPath, "src/main.ts", "ledger", "check"], { cwd: repositoryRoot, env }).exitCode;
}

function lineOf({ residentMiB, descriptors }: Sample, counts: LoadCounts): string {
  const errors = [...counts.errors].map(([what, { count }]) => `${count} × ${what}`);
  const said = errors.length === 0 ? "no errors" : errors.join(", ");
  return `${residentMiB.toFixed(0)} MiB, ${descriptors} descriptors, ${total(counts)} requests, ${said}`;
}

function total({ requests }: LoadCounts): number {
  return Object.values(requests).reduce((sum, count) => sum + count, 0);
}
