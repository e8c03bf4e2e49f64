/**
 * Times of the calls of an index's writer, and what the longest one of each kind waited for.
 * @module
 */
import { openSync, readlinkSync, readSync } from "node:fs";
import { assert } from "../../src/lib/assert.ts";

/** Seconds of a call: the whole, that on a processor, and that in which it was ready and had none. */
type CallTime = Readonly<{ name: string; whole: number; computing: number; queued: number }>;

export type CallTimes = Readonly<{
  /** Makes a call of a name. */
  timed: <Result>(name: string, call: () => Result) => Result;
  /** Seconds of all calls that add rows, and of all others, so far. */
  seconds: () => Readonly<{ adding: number; merging: number }>;
  /** The longest call of each name, how many took more than `callSecondsMax`, and how many there were. */
  longest: () => Readonly<{ calls: readonly CallTime[]; above: number; count: number }>;
}>;

/** The target of one call. */
export const callSecondsMax = 0.1;

/** Creates them for calls of this thread. */
export function createCallTimes(): CallTimes {
  const seconds = { adding: 0, merging: 0 };
  const longest = new Map<string, CallTime>();
  let above = 0;
  let count = 0;
  const readThread = openThreadTimes();
  return {
    timed: (name, call) => {
      const before = readThread();
      const start = Bun.nanoseconds();
      const result = call();
      const whole = (Bun.nanoseconds() - start) / 1e9;
      seconds[name === "addItems" ? "adding" : "merging"] += whole;
      count += 1;
      if (whole > callSecondsMax) above += 1;
      if (whole > (longest.get(name)?.whole ?? 0)) {
        const after = readThread();
        const computing = after.computing - before.computing;
        longest.set(name, { name, whole, computing, queued: after.queued - before.queued });
      }
      return result;
    },
    seconds: () => ({ ...seconds }),
    longest: () => ({ calls: [...longest.values()], above, count }),
  };
}

/** The longest call as text, with the milliseconds of what it did, and the longest ones of other kinds. */
export function longestText({ calls, above, count }: ReturnType<CallTimes["longest"]>): string {
  const [first, ...others] = calls.toSorted((a, b) => b.whole - a.whole);
  assert(first !== undefined, "a call was made");
  const { name, whole, computing, queued } = first;
  const parts = [
    `${msOf(whole)} (${name}: computing ${msOf(computing)}, without a processor ${msOf(queued)}`,
    `waiting for the disk or a lock ${msOf(whole - computing - queued)}); ${above} of ${count} calls above`,
  ];
  const rest = others.map((call) => `${call.name} ${msOf(call.whole)} (computing ${msOf(call.computing)})`);
  return `${parts.join(", ")} ${msOf(callSecondsMax)}; ${rest.join(", ")}`;
}

function msOf(seconds: number): string {
  return `${(Math.max(0, seconds) * 1_000).toFixed(0)} ms`;
}

/** Reads the seconds of this thread on a processor and in the queue of one; zeros where the system does not tell. */
function openThreadTimes(): () => Readonly<{ computing: number; queued: number }> {
  const buffer = Buffer.alloc(128);
  const file = openThreadFile();
  return () => {
    if (file === undefined) return { computing: 0, queued: 0 };
    const length = readSync(file, buffer, 0, buffer.length, 0);
    const [computing = 0, queued = 0] = buffer.toString("latin1", 0, length).split(" ").map(Number);
    return { computing: computing / 1e9, queued: queued / 1e9 };
  };
}

function openThreadFile(): number | undefined {
  try {
    return openSync(`/proc/${readlinkSync("/proc/thread-self")}/schedstat`, "r");
  } catch {
    return undefined; // not Linux
  }
}
