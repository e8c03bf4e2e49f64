/**
 * Memory of processes under measurement.
 * @module
 */
import { readFileSync, writeFileSync } from "node:fs";

/** Resident memory of a process, its peak, and the part of it that is pages of files. MiB. */
export type Memory = Readonly<{ resident: number; peak: number; files: number }>;

export type MemoryWatch = Readonly<{
  /** Notes the memory, at most once a second. */
  sample: () => void;
  /** The samples as text: their mean, the highest, the last, and the share of them above a limit in MiB. */
  text: (limit: number) => string;
}>;

const sampleMs = 1_000;

export function memoryOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const mebibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1_024;
  return { resident: mebibytes("VmRSS"), peak: mebibytes("VmHWM"), files: mebibytes("RssFile") };
}

/** The peak of a process since the last call, or since its start. MiB. */
export function takePeak(pid: number): number {
  const { peak } = memoryOf(pid);
  writeFileSync(`/proc/${pid}/clear_refs`, "5"); // sets the peak to the present value
  return peak;
}

/** Watches a process; where the system does not tell its memory, the text says so. */
export function watchMemory(pid: number): MemoryWatch {
  const samples: Memory[] = [];
  let sampledAt = Number.NEGATIVE_INFINITY;
  return {
    sample: () => {
      if (process.platform !== "linux" || performance.now() < sampledAt + sampleMs) return;
      sampledAt = performance.now();
      samples.push(memoryOf(pid));
    },
    text: (limit) => {
      const last = samples.at(-1);
      if (last === undefined) return "unknown";
      const mean = (pick: (sample: Memory) => number) =>
        (samples.reduce((sum, sample) => sum + pick(sample), 0) / samples.length).toFixed(0);
      const highest = Math.max(...samples.map(({ resident }) => resident)).toFixed(0);
      const above = samples.filter(({ resident }) => resident > limit).length / samples.length;
      return (
        `mean ${mean(({ resident }) => resident)} MiB, of which files ${mean(({ files }) => files)}, ` +
        `highest ${highest}, last ${last.resident.toFixed(0)}, ` +
        `above ${limit} in ${(above * 100).toFixed(1)} % of the time`
      );
    },
  };
}
