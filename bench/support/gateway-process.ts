/**
 * The gateway under measurement: its process, on one core.
 * @module
 */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pinned } from "./processor-time.ts";

/** What a server notes of each request: nothing, as the program never does; metrics; a span of all, or of some too. */
export type Observed = "nothing" | "metrics" | "all traces" | "some traces";

/** The configuration of gateway-served.ts. */
export type ServedFixture = Readonly<{
  /** Folder of the bodies, whose names are ids. */
  bodies: string;
  /** Folder of the cache. */
  cache: string;
  ids: readonly string[];
  /** Chunks of 256 KiB in a separate transaction; 0 creates none. */
  chunks: number;
  /** Whether clients have a limit, which they do not reach. */
  isLimited: boolean;
  /** An index file, for /graphql, blocks and headers of transactions. */
  indexPath: string | undefined;
  /** Notes of each request. */
  observes: Observed;
  /** The URL of a collector, for traces. */
  collector: string | undefined;
  /** A node with the chunks of content that is not in the cache. */
  node: Readonly<{ url: string; roots: readonly NodeRoot[] }> | undefined;
}>;

/** The data of a transaction that a node has. */
export type NodeRoot = Readonly<{
  id: string;
  dataRoot: string;
  size: number;
  weaveStart: string;
  /** SHA-256 of the data, hex. */
  digest: string;
}>;

/** The delay of the server's event loop since the last question, with the timer of 1 ms. Milliseconds. */
export type LoopDelay = Readonly<{ p99: number; longest: number }>;

/** The line that it prints when it listens. */
export type ServedLine = Readonly<{
  port: number;
  /** A manifest in which each id is a path. */
  manifest: string;
  /** Offsets of the chunks' last bytes. */
  chunkEnds: readonly string[];
}>;

/** Starts the server. @param folder - For its configuration. @param before - Prefix of the command. */
export async function startServed(folder: string, fixture: Partial<ServedFixture>, before = pinned(0)) {
  const whole: ServedFixture = {
    bodies: join(folder, "bodies"),
    cache: join(folder, "cache"),
    ids: [],
    chunks: 0,
    isLimited: false,
    indexPath: undefined,
    observes: "metrics",
    collector: undefined,
    node: undefined,
    ...fixture,
  };
  const path = join(folder, `served-${crypto.randomUUID()}.json`);
  writeFileSync(path, JSON.stringify(whole));
  const program = resolve(import.meta.dir, "gateway-served.ts");
  let onDelay = (_delay: LoopDelay) => {};
  const ipc = (delay: LoopDelay) => onDelay(delay);
  const child = Bun.spawn([...before, process.execPath, program, path], { stdout: "pipe", ipc });
  const { value } = await child.stdout.getReader().read();
  const line: ServedLine = JSON.parse(Buffer.from(value ?? []).toString());
  const stop = async () => {
    child.kill();
    await child.exited;
  };
  const loopDelay = () =>
    new Promise<LoopDelay>((resolve) => {
      onDelay = resolve;
      child.send("delay");
    });
  return { ...line, pid: child.pid, stop, loopDelay };
}
