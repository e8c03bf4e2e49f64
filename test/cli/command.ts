/**
 * Runs a command in its own process, as a user does.
 * @module
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { repositoryRoot } from "../support/program.ts";

/** The result of a command. */
export type Ran = Readonly<{ code: number; out: string; err: string; peakBytes: number }>;

export type RunOptions = Readonly<{
  cwd?: string;
  environment?: Readonly<Record<string, string>>;
  /** Called with the started process. */
  onStart?: (child: Readonly<{ pid: number; kill: (signal: NodeJS.Signals) => void }>) => void;
  /** Called with the output so far. */
  onText?: (text: string) => void;
}>;

/** Runs `cairn` with arguments, and waits for its end. */
export async function runCairn(words: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const child = Bun.spawn([process.execPath, resolve(repositoryRoot, "src/main.ts"), ...words], {
    cwd: options.cwd ?? repositoryRoot,
    env: { ...process.env, ...options.environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const memory = watchMemory(child.pid);
  options.onStart?.({ pid: child.pid, kill: (signal) => child.kill(signal) });
  const read = async (stream: ReadableStream<Uint8Array>) => {
    let text = "";
    const decoder = new TextDecoder();
    for await (const piece of stream) {
      text += decoder.decode(piece, { stream: true });
      options.onText?.(text);
    }
    return text;
  };
  const [out, err, code] = await Promise.all([read(child.stdout), read(child.stderr), child.exited]);
  return { code, out, err, peakBytes: memory.end() };
}

/** Watches the peak of a process's memory. The `maxRSS` of its resource usage may be that of the process that forked it. */
function watchMemory(pid: number): Readonly<{ end: () => number }> {
  let peakBytes = 0;
  const look = () => {
    try {
      const [, kibibytes = "0"] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
      peakBytes = Math.max(peakBytes, Number(kibibytes) * 1_024);
    } catch {
      // It has ended.
    }
  };
  const timer = setInterval(look, 10);
  return {
    end: () => {
      clearInterval(timer);
      return peakBytes;
    },
  };
}

/** The complaints of a command: its error output without progress lines, which a busy machine may cause. */
export function complaintsIn(err: string): string {
  return err
    .split("\n")
    .filter((line) => !/^(uploading|exporting|importing|fetching|verifying) /.test(line))
    .join("\n");
}
