/**
 * ClickHouse for tests: the engine of test/stores in a process of its own.
 * @module
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";

const stores = resolve(import.meta.dir, "../stores");

/** A running server. */
export type ClickhouseServer = Readonly<{
  url: string;
  /** Ends the process as a crash does; its data stays until `close`. */
  kill: () => Promise<void>;
  close: () => Promise<void>;
}>;

/**
 * Starts a server.
 *
 * @param options - `folder` has its data; unset is a temporary folder, which `close` removes. Port 0 is a free one.
 */
export async function openClickhouseServer(
  options: Readonly<{ password?: string; folder?: string; port?: number }> = {},
): Promise<ClickhouseServer> {
  const temporary = options.folder === undefined ? mkdtempSync(join(tmpdir(), "cairn-clickhouse-")) : undefined;
  const folder = options.folder ?? temporary ?? "";
  const command = [
    process.execPath,
    join(stores, "clickhouse-server.ts"),
    folder,
    `${options.port ?? 0}`,
    options.password ?? "",
  ];
  const server = Bun.spawn(command, { cwd: stores, stdin: "pipe", stdout: "pipe", stderr: "inherit" });
  const { value } = await server.stdout.getReader().read();
  const port = Number(new TextDecoder().decode(value));
  const kill = async (): Promise<void> => {
    server.kill("SIGKILL");
    await server.exited;
  };
  if (!(port > 0)) {
    await kill();
    throw new Error("the engine of test/stores did not start");
  }
  return {
    url: `http://127.0.0.1:${port}`,
    kill,
    close: async () => {
      await kill();
      if (temporary !== undefined) removeFolder(temporary);
    },
  };
}
