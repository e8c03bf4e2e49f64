/**
 * A process with 16 streams of ledger operations, killed by SIGKILL at any moment: what it had reported is there,
 * once; what it had not is there whole or not at all; and the checker finds nothing.
 *
 * The reference is the log of responses that came through a pipe. KILLS sets how many, SEED repeats a run.
 * @module
 */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds, type TestLedger } from "../../support/ledger-databases.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { operationAt, readTraces, stateOf, streamCount } from "./streams.ts";

const { KILLS } = process.env;
/** How often. */
const kills = Number(KILLS ?? 40);
/** Kills that one ledger sees: it stays small, so that all of it is checked each time. */
const killsPerLedger = 20;
/** Ledgers that are worked on at once. */
const atOnce = 2;

/** What was found over all kills. */
type Histogram = Map<string, number>;

/** What the model knows of a stream. */
type Stream = { next: number; responded: { index: number; response: string }[] };

function count(histogram: Histogram, name: string, amount = 1): void {
  histogram.set(name, (histogram.get(name) ?? 0) + amount);
}

/** Runs a process until it has done so many operations, or so long; kills it; reads its log to the end. */
async function runAndKill(place: string, seed: number, streams: Stream[], random: Random): Promise<string> {
  const starts = streams.map(({ next }) => next).join(",");
  const child = Bun.spawn([process.execPath, resolve(import.meta.dir, "kill-child.ts"), place, `${seed}`, starts], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const whileOpening = random.chance(0.08);
  const responsesMax = random.below(200);
  const lateMs = random.chance(0.5) ? 0 : random.below(4);
  if (whileOpening) await Bun.sleep(random.below(60));
  const decoder = new TextDecoder();
  let text = "";
  let isKilled = whileOpening;
  if (isKilled) child.kill("SIGKILL");
  for await (const bytes of child.stdout) {
    text += decoder.decode(bytes, { stream: true });
    if (isKilled || text.split("\n").length - 2 < responsesMax) continue;
    isKilled = true;
    await Bun.sleep(lateMs);
    child.kill("SIGKILL");
  }
  await child.exited;
  if (child.signalCode !== "SIGKILL")
    throw new Error(`the process ended by itself: ${await new Response(child.stderr).text()}`);
  return text;
}

/** Takes over what the log says. A line that the kill cut off is not a valid response. */
function readLog(text: string, streams: Stream[]): number {
  const lines = text.split("\n").slice(0, -1);
  let responses = 0;
  for (const line of lines.slice(1)) {
    const [stream, index, response] = line.split(" ");
    const state = streams[Number(stream)];
    if (state === undefined || response === undefined) throw new Error(`not a line of the log: ${line}`);
    expect(Number(index)).toBe(state.next);
    state.responded.push({ index: state.next, response });
    state.next += 1;
    responses += 1;
  }
  return responses;
}

/** Opens the ledger as the next process would, and holds it against the log. */
async function evaluate(ledger: TestLedger, seed: number, streams: readonly Stream[], histogram: Histogram) {
  const database = await ledger.openAgain();
  try {
    expect(await checkLedger(database)).toEqual([]);
    await database.read(async (tx) => {
      const traces = await readTraces(tx);
      for (const [stream, { next, responded }] of streams.entries()) {
        for (const { index, response } of responded) {
          const operation = operationAt(seed, stream, index);
          const found = stateOf(traces, operation);
          // A rejection leaves nothing; what it is about may have been done by an earlier operation of that name.
          const isRight = response === "rejected" ? found !== "broken" : found === "whole";
          if (!isRight) throw new Error(`${response}, but found ${found}: ${Bun.inspect(operation)}`);
        }
        const unanswered = operationAt(seed, stream, next);
        const found = stateOf(traces, unanswered);
        if (found === "broken") throw new Error(`done by halves: ${Bun.inspect(unanswered)}`);
        count(histogram, `unanswered ${unanswered.kind} found ${found}`);
      }
      for (const table of ["reservations", "approvals"]) {
        const rows = await tx.all<{ state: string; count: bigint }>(
          `SELECT state, COUNT(*) AS count FROM ${table} GROUP BY state`,
        );
        for (const row of rows) count(histogram, `${table} ${row.state}`, Number(row.count));
      }
      const all = streams.reduce((sum, { next }) => sum + next + 1, 0);
      const done = await tx.get<{ count: bigint }>("SELECT COUNT(*) AS count FROM events");
      expect(Number(done?.count)).toBeLessThanOrEqual(all);
    });
  } finally {
    await database.close();
  }
}

for (const kind of ledgerKinds())
  describeWith(kind.need, `kill -9 on ${kind.name}`, () => {
    test(
      `N2: loses no responded operation and doubles none in ${kills} kills`,
      async () => {
        const seed = newSeed();
        const histogram: Histogram = new Map();
        const batches = Array.from({ length: Math.ceil(kills / killsPerLedger) }, (_, batch) => batch);
        let responses = 0;

        async function runBatch(batch: number): Promise<void> {
          const random = createRandom(seed * 31 + batch);
          const batchSeed = seed + batch;
          const ledger = await kind.open();
          await ledger.database.close();
          const streams: Stream[] = Array.from({ length: streamCount }, () => ({ next: 0, responded: [] }));
          const rounds = Math.min(killsPerLedger, kills - batch * killsPerLedger);
          for (let round = 0; round < rounds; round += 1) {
            const log = await runAndKill(ledger.place, batchSeed, streams, random);
            count(histogram, log === "" ? "killed while opening" : "killed at work");
            responses += readLog(log, streams);
            // Every other time the next process is the first to see what the dead one left behind.
            if (round % 2 === 0 || round === rounds - 1) await evaluate(ledger, batchSeed, streams, histogram);
          }
          await ledger.remove();
        }

        const slots = Array.from({ length: atOnce }, async () => {
          for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) await runBatch(batch);
        });
        await Promise.all(slots);
        const lines = [...histogram].sort().map(([name, times]) => `  ${name}: ${times}`);
        console.log(`${kills} kills on ${kind.name}, ${responses} responses, 0 lost, 0 doubled\n${lines.join("\n")}`);
        expect(histogram.get("killed at work") ?? 0).toBeGreaterThan(kills / 2);
        expect(responses).toBeGreaterThan(kills * 10);
      },
      30_000 + kills * 3_000,
    );
  });
