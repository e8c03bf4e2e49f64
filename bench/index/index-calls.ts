/**
 * Times of the calls of an index's writer, and what the longest one waited for.
 * @module
 */
import { openSync, readlinkSync, readSync } from "node:fs";

/** Seconds of a call: the whole, that on a processor, and that in which it was ready and had none. */
type CallTime = Readonly<{ name: string; whole: number; computing: number; queued: number }>;

export type CallTimes = Readonly<{
  /** Makes a call of a name. */
  timed: <Result>(name: string, call: () => Result) => Result;
  /** Seconds of all calls that add rows, and of all others, so far. */
  seconds: () => Readonly<{ adding: number; merging: number }>;
  /** The longest call, how many took more than `callSecondsMax`, and how many there were. */
  longest: () => Readonly<{ call: CallTime; above: number; count: number }>;
}>;

/** The target of one call. */
export const callSecondsMax = 0.1;

/** Creates them for calls of this thread. */
export function createCallTimes(): CallTimes {
  const seconds = { adding: 0, merging: 0 };
  let longest: CallTime = { name: "none", whole: 0, computing: 0, queued: 0 };
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
      if (whole > longest.whole) {
        const after = readThread();
        const computing = after.computing - before.computing;
        longest = { name, whole, computing, queued: after.queued - before.queued };
      }
      return result;
    },
    seconds: () => ({ ...seconds }),
    longest: () => ({ call: longest, above, count }),
  };
}

/** The longest call as text: what it was, and the milliseconds of what it did. */
export function longestText({ call, above, count }: ReturnType<CallTimes["longest"]>): string {
  const { name, whole, computing, queued } = call;
  const ms = (value: number) => (Math.max(0, value) * 1_000).toFixed(0);
  const waited = ms(whole - computing - queued);
  return (
    `${ms(whole)} ms (${name}: computing ${ms(computing)}, without a processor ${ms(queued)}, ` +
    `waiting for the disk or a lock ${waited}); ${above} of ${count} calls above ${ms(callSecondsMax)} ms`
  );
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
