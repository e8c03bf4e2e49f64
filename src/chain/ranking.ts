/**
 * Which of several sources to ask first: by how often and how fast they answered, with rests after trouble
 * and longer ones after untruth. Every source is asked some time, so that one that recovers is found.
 * @module
 */
import type { Clock } from "../lib/clock.ts";

/** What is known of a source. */
export type Standing = Readonly<{
  successShare: number; // of late, 0 to 1
  latencyMs: number; // of late
  faults: number; // since the start
  wrongs: number; // since the start
  restsUntil: number; // Unix milliseconds; in the past when it does not rest
}>;

/** An order of sources that learns. */
export type Ranking<Source> = Readonly<{
  /** All sources: those that rest last, the others by chance, weighted by how good they are. */
  inOrder: () => Source[];
  /** Notes an answer, and how long it took. That a source does not have something is an answer too. */
  noteResponse: (source: Source, ms: number) => void;
  /** Notes that a source did not come to an answer. */
  noteFault: (source: Source) => void;
  /** Notes that a source was so slow that another one was asked too, and was sooner. */
  noteOutrun: (source: Source) => void;
  /** Notes that a source answered what is provably not true. */
  noteWrong: (source: Source) => void;
  standing: (source: Source) => Standing;
  /** Takes a source in, or lets one go. */
  add: (source: Source) => void;
  remove: (source: Source) => void;
  /** How long to wait for a source before another one is asked as well. Milliseconds. */
  hedgeAfterMs: (source: Source) => number;
}>;

type Record = {
  successShare: number;
  latencyMs: number;
  faults: number;
  wrongs: number;
  inRow: number; // troubles since the last answer
  restsUntil: number;
};

/** The weight of the newest answer in the averages. */
const newestShare = 0.2;

/** Latency of a source that was not asked yet. */
const firstLatencyMs = 200;

/** Sources closer than this differ by chance. */
const latencyGrainMs = 50;

const restFirstMs = 500;
const restLongestMs = 60_000;

/** A source that lied is asked again when others fail, and by itself only after this. */
const restAfterWrongMs = 300_000;

const hedgeShortestMs = 500;
const hedgeLongestMs = 4_000;

/** A source that never answers keeps this much of its weight. */
const successShareMin = 0.05;

/** Makes an order. @param random - in [0, 1). */
export function createRanking<Source>(sources: readonly Source[], clock: Clock, random: () => number): Ranking<Source> {
  const records = new Map(sources.map((source) => [source, newRecord()]));
  /** A source that was let go while it was asked leaves no record. */
  const recordOf = (source: Source): Record => records.get(source) ?? newRecord();

  /** Chance to a power that falls with weight; the greatest is a source drawn by its weight (Efraimidis, Spirakis). */
  function draw({ successShare, latencyMs }: Record): number {
    const weight = Math.max(successShareMin, successShare) ** 2 / (latencyMs + latencyGrainMs);
    return Math.log(Math.max(random(), Number.MIN_VALUE)) / weight;
  }

  function rest(record: Record, ms: number): void {
    record.restsUntil = Math.max(record.restsUntil, clock() + ms);
  }

  return {
    inOrder() {
      const now = clock();
      const drawn = [...records].map(([source, record]) => ({
        source,
        restMs: Math.max(0, record.restsUntil - now),
        key: draw(record),
      }));
      return drawn.sort((a, b) => a.restMs - b.restMs || b.key - a.key).map(({ source }) => source);
    },
    noteResponse(source, ms) {
      const record = recordOf(source);
      record.successShare += newestShare * (1 - record.successShare);
      record.latencyMs += newestShare * (ms - record.latencyMs);
      record.inRow = 0;
    },
    noteFault(source) {
      const record = recordOf(source);
      record.successShare -= newestShare * record.successShare;
      record.faults += 1;
      rest(record, Math.min(restLongestMs, restFirstMs * 2 ** record.inRow));
      record.inRow = Math.min(record.inRow + 1, 16);
    },
    noteOutrun(source) {
      const record = recordOf(source);
      record.successShare -= newestShare * record.successShare;
    },
    noteWrong(source) {
      const record = recordOf(source);
      record.successShare -= 2 * newestShare * record.successShare;
      record.wrongs += 1;
      rest(record, restAfterWrongMs);
    },
    standing: (source) => ({ ...recordOf(source) }),
    add: (source) => {
      records.set(source, newRecord());
    },
    remove: (source) => {
      records.delete(source);
    },
    hedgeAfterMs: (source) => Math.min(hedgeLongestMs, Math.max(hedgeShortestMs, 3 * recordOf(source).latencyMs)),
  };
}

function newRecord(): Record {
  return { successShare: 1, latencyMs: firstLatencyMs, faults: 0, wrongs: 0, inRow: 0, restsUntil: 0 };
}

/** What a standing weighs, 1 to 100: half at a latency of 200 ms, and less with every failure. */
export function weightOf({ successShare, latencyMs }: Standing): number {
  const weight = (100 * successShare ** 2 * firstLatencyMs) / (firstLatencyMs + latencyMs);
  return Math.min(100, Math.max(1, Math.round(weight)));
}
