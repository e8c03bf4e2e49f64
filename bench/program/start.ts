/**
 * Time from the start of the program to its first response, and its memory when idle.
 * @module
 */
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { firstLine, repositoryRoot } from "../../test/support/program.ts";
import { type Bench, type BenchRow, type BenchSize, median } from "../harness.ts";
import { memoryOf } from "../support/memory.ts";

const binary = resolve(repositoryRoot, "dist/cairn");
const rounds: Readonly<Record<BenchSize, number>> = { small: 1, large: 7 };

/** Idle time before its memory is read. Milliseconds. */
const idleMs = 3_000;

/** Start of `serve` on an empty folder, from source, and as a binary if `bun run build` has created one. */
export const startBench: Bench = {
  name: "start",
  measure: async (size) => {
    const rows = await measureStarts(
      "from source",
      [process.execPath, resolve(repositoryRoot, "src/main.ts")],
      rounds[size],
    );
    if (!existsSync(binary)) return rows;
    return [...rows, ...(await measureStarts("binary", [binary], rounds[size], "≤ 80 ms"))];
  },
};

async function measureStarts(
  name: string,
  command: readonly string[],
  count: number,
  target?: string,
): Promise<BenchRow[]> {
  const starts: { responseMs: number; idleMiB: number }[] = [];
  for (let round = 0; round < count; round += 1) starts.push(await startOnce(command, round === 0));
  const responseMs = median(starts.map((start) => start.responseMs));
  return [
    {
      name: `start to first response, ${name}`,
      metric: `${responseMs.toFixed(0)} ms`,
      ...(target ? { target } : {}),
    },
    {
      name: `memory when idle, ${name}`,
      metric: `${starts[0]?.idleMiB.toFixed(0)} MiB`,
      target: "≤ 120 MiB",
    },
  ];
}

async function startOnce(command: readonly string[], readsMemory: boolean) {
  const folder = mkdtempSync(join(tmpdir(), "cairn-start-"));
  const startedAt = performance.now();
  const child = Bun.spawn([...command, "serve", "--port", "0", "--json"], {
    // No server listens there: the start must not wait for the chain.
    env: { ...process.env, DATA_DIR: folder, TRUSTED_NODE_URL: "http://127.0.0.1:9", LOG_LEVEL: "error" },
    stdout: "pipe",
    stderr: "ignore",
  });
  try {
    const { gateway } = JSON.parse(await firstLine(child.stdout));
    const response = await fetch(`${gateway}/svc/healthcheck`);
    if (response.status !== 200) throw new Error(`the healthcheck responded ${response.status}`);
    const responseMs = performance.now() - startedAt;
    if (readsMemory) await Bun.sleep(idleMs);
    return { responseMs, idleMiB: memoryOf(child.pid).resident };
  } finally {
    child.kill("SIGKILL");
    await child.exited;
    removeFolder(folder);
  }
}
