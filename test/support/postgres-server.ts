/**
 * A PostgreSQL server of a test's own: in a temporary folder, on a free port, not as root, gone with the process.
 *
 * It is Debian's (`apt-get install postgresql`), or the one in PATH.
 * @module
 */
import { spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { SQL } from "bun";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { freePorts } from "./free-ports.ts";
import type { Need } from "./helpers.ts";
import { until } from "./until.ts";

/** A running server. */
export type PostgresServer = Readonly<{
  /** Makes an empty database. @returns Its URL. */
  createDatabase: () => Promise<string>;
  /** Ends it as SIGKILL does: the server and all its children at once. */
  kill: () => Promise<void>;
  /** Starts it again on the same folder and port. */
  start: () => Promise<void>;
  /** Stops it and removes its folder. */
  remove: () => Promise<void>;
}>;

/** Debian keeps a folder a version; the server rejects to run as root. */
const debianFolder = "/usr/lib/postgresql";
const binaries = findBinaries();
const isRoot = process.getuid?.() === 0;

/** For `describeWith`: whether a server can be started here. */
export const postgresServer: Need = {
  there: binaries !== undefined,
  what: "a PostgreSQL server (apt-get install postgresql)",
};

/** How long a server may take to be ready on a busy machine. */
const startTimeoutMs = 60_000;

function findBinaries(): string | undefined {
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder).map(Number) : [];
  const newest = versions.filter(Number.isFinite).sort((left, right) => right - left)[0];
  const found = newest === undefined ? Bun.which("initdb") : join(debianFolder, `${newest}`, "bin", "initdb");
  return found !== null && existsSync(found) ? dirname(found) : undefined;
}

/** The prefix of a command that runs it as another user than root, and ends it with this process. */
function asUnprivilegedUser(): string[] {
  if (!isRoot) return [];
  return ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--pdeathsig", "INT"];
}

/**
 * Makes and starts a server.
 *
 * @param isDurable - Whether it waits for the disk: for benches and for tests that kill it. Others need not.
 */
export async function startPostgres(isDurable = false): Promise<PostgresServer> {
  if (binaries === undefined) throw new Error("there is no PostgreSQL server");
  const folder = mkdtempSync(join(tmpdir(), "cairn-postgres-"));
  if (isRoot) chownSync(folder, idOf("-u"), idOf("-g"));
  const data = join(folder, "data");
  run([
    join(binaries, "initdb"),
    "-D",
    data,
    "-U",
    "cairn",
    "-A",
    "trust",
    "-E",
    "UTF8",
    "--locale=C.UTF-8",
    "--no-sync",
  ]);
  const [port = 0] = freePorts(1);
  let child = await startServer(join(binaries, "postgres"), data, port, isDurable);
  let databases = 0;
  const urlOf = (database: string) => `postgres://cairn@127.0.0.1:${port}/${database}`;

  return {
    createDatabase: async () => {
      databases += 1;
      const name = `ledger_${databases}`;
      const admin = new SQL(urlOf("postgres"), { max: 1 });
      await admin.unsafe(`CREATE DATABASE ${name}`);
      await admin.close();
      return urlOf(name);
    },
    kill: async () => {
      const processes = [child.pid, ...childrenOf(child.pid)];
      for (const pid of processes.filter(isRunning)) process.kill(pid, "SIGKILL");
      await child.exited;
      // A server rejects to start while one of the old ones still has the memory that they shared.
      await until(() => !processes.some(isRunning));
    },
    start: async () => {
      child = await startServer(join(binaries, "postgres"), data, port, isDurable);
    },
    remove: async () => {
      child.kill("SIGINT");
      await child.exited;
      removeFolder(folder);
    },
  };
}

async function startServer(program: string, data: string, port: number, isDurable: boolean) {
  const child = Bun.spawn(
    [
      ...asUnprivilegedUser(),
      program,
      "-D",
      data,
      "-p",
      `${port}`,
      "-h",
      "127.0.0.1",
      "-k",
      dirname(data),
      ...(isDurable ? [] : ["-F"]),
    ],
    { stdio: ["ignore", "ignore", "pipe"], cwd: dirname(data) },
  );
  const ready = Promise.withResolvers<void>();
  let said = "";
  const listen = async () => {
    const decoder = new TextDecoder();
    // Read to the end, or the server would are still at a full pipe.
    for await (const bytes of child.stderr) {
      if (said.length < 100_000) said += decoder.decode(bytes, { stream: true });
      if (said.includes("ready to accept connections")) ready.resolve();
    }
    ready.reject(new Error(`PostgreSQL ended: ${said}`));
  };
  void listen();
  const late = setTimeout(() => ready.reject(new Error(`PostgreSQL is not ready: ${said}`)), startTimeoutMs);
  await ready.promise.finally(() => clearTimeout(late));
  return child;
}

/** The processes that a process has started. */
function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
}

/** Whether a process is running; a zombie is not. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s*[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

function run(command: readonly string[]): void {
  const [program = "", ...rest] = [...asUnprivilegedUser(), ...command];
  const { status, stderr } = spawnSync(program, rest, { cwd: "/", encoding: "utf8" });
  if (status !== 0) throw new Error(`${command[0]}: ${stderr}`);
}

function idOf(flag: "-u" | "-g"): number {
  return Number(spawnSync("id", [flag, "nobody"], { encoding: "utf8" }).stdout);
}
