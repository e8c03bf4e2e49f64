/**
 * A module in a process of its own, whose functions are called one after another as those of a thread are: its memory
 * is then that of this work alone.
 * @module
 */
import { assert } from "../../src/lib/assert.ts";
import type { Pool } from "../../src/threads/pool.ts";

/** A running process. */
export type ModuleProcess<Module> = Pick<Pool<Module>, "run"> & Readonly<{ pid: number; stop: () => Promise<void> }>;

type Call = Readonly<{ name: string; job: unknown }>;
type Reply = Readonly<{ result: unknown }> | Readonly<{ fault: string }>;

if (import.meta.main) {
  const module: Readonly<Record<string, (job: unknown) => unknown>> = await import(process.argv[2] ?? "");
  process.on("message", async ({ name, job }: Call) => {
    const reply: Reply = await Promise.try(() => ({ result: module[name]?.(job) })).catch((error: unknown) => ({
      fault: String(error),
    }));
    process.send?.(reply);
  });
}

/** Starts a process of a module. @param path - The file, absolute. */
export function startModule<Module>(path: string): ModuleProcess<Module> {
  let pending: PromiseWithResolvers<unknown> | undefined;
  let ended: Error | undefined;
  const child = Bun.spawn([process.execPath, import.meta.path, path], {
    stdio: ["ignore", "inherit", "inherit"],
    serialization: "advanced",
    ipc: (reply: Reply) => {
      if ("fault" in reply) pending?.reject(new Error(reply.fault));
      else pending?.resolve(reply.result);
    },
    onExit: (_child, exitCode, signal) => {
      ended = new Error(`the process of ${path} ended with ${signal ?? exitCode}`);
      pending?.reject(ended);
    },
  });
  const run = async (name: string, job: unknown): Promise<unknown> => {
    assert(pending === undefined, "calls of a process are made one after another");
    if (ended !== undefined) throw ended;
    pending = Promise.withResolvers();
    try {
      child.send({ name, job } satisfies Call);
      return await pending.promise;
    } finally {
      pending = undefined;
    }
  };
  return {
    // Typed by the module, as calls of a thread are.
    run: run as Pool<Module>["run"],
    pid: child.pid,
    stop: async () => {
      child.kill();
      await child.exited;
    },
  };
}
