/**
 * The program as a user runs it: a process of its own, with a folder of its own, on free ports.
 * @module
 */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { freePorts } from "./free-ports.ts";
import { rsaKeys } from "./rsa-keys.ts";

/** The repository's root. */
export const repositoryRoot = resolve(import.meta.dir, "../..");

/** What `cairn dev --json` prints on its first line. */
export type DevLine = Readonly<{
  gateway: string;
  payment: string;
  upload: string;
  sandbox: string;
  node: string;
  adminKey: string;
  wallets: readonly Readonly<{
    name: string;
    address: string;
    balance: string;
    /** Whom its uploads are charged to, and what it has there. */
    account: string;
    credits: string;
    file?: string;
    jwk?: unknown;
  }>[];
  sample: Readonly<{ manifest: string; sound: string; bundle: string }>;
}>;

/** A running program. */
export type RunningProgram = Readonly<{
  line: DevLine;
  folder: string;
  pid: number;
  /** What it has written to standard error so far. */
  errors: () => string;
  /** Ends it as SIGKILL does, without a chance to tidy up. */
  kill: () => Promise<void>;
  /** Stops it by a signal. @returns Its exit code. */
  stop: () => Promise<number>;
  /** Stops it if it runs, and removes its folder. */
  remove: () => Promise<void>;
}>;

/** How a program is started. */
export type StartOptions = Readonly<{
  /** The command before `dev`; by default the source. */
  command?: readonly string[];
  /** Data folder; by default a new one with keys, so that the start does not generate them. */
  folder?: string;
  cwd?: string;
  environment?: Readonly<Record<string, string>>;
  /** Ports that stay the same over restarts, by the names of their settings (`programPorts`); free ports by default. */
  ports?: Readonly<Record<string, string>>;
}>;

const portNames = ["GATEWAY_PORT", "PAYMENT_PORT", "UPLOAD_PORT", "DEVNET_PORT", "SANDBOX_PORT"];

/** A free port for every listener, each by the name of its setting. */
export function programPorts(): Record<string, string> {
  const ports = freePorts(portNames.length);
  return Object.fromEntries(portNames.map((name, index) => [name, String(ports[index])]));
}

/** Long enough for a first start on a busy machine, which makes wallets and mines a site. */
const startTimeoutMs = 90_000;

/** Starts `dev` on free ports and waits for its line. */
export async function startDev(options: StartOptions = {}): Promise<RunningProgram> {
  const folder = options.folder ?? newFolder();
  const command = options.command ?? [process.execPath, resolve(repositoryRoot, "src/main.ts")];
  const { ports } = options;
  const free = ports === undefined ? ["--port", "0"] : [];
  const child = Bun.spawn([...command, "dev", ...free, "--json"], {
    cwd: options.cwd ?? repositoryRoot,
    env: { ...process.env, DATA_DIR: folder, LOG_FORMAT: "json", ...ports, ...options.environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let errors = "";
  const drained = collect(child.stderr, (text) => {
    errors += text;
  });
  const line = await firstLine(child.stdout, () => `it said: ${errors.slice(-4_000)}`);
  const stop = async () => {
    child.kill("SIGTERM");
    const code = await child.exited;
    await drained;
    return code;
  };
  const kill = async () => {
    child.kill("SIGKILL");
    await child.exited;
  };
  return {
    line: JSON.parse(line),
    folder,
    pid: child.pid,
    errors: () => errors,
    kill,
    stop,
    remove: async () => {
      if (child.exitCode === null) await kill();
      removeFolder(folder);
    },
  };
}

/** A data folder with keys, so that a start does not generate them. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "cairn-"));
  for (const [kind, name, key] of [
    ["devnet", "wallet-rsa.json", rsaKeys["4096"]],
    ["keys", "upload-wallet.json", rsaKeys.other],
  ] as const) {
    mkdirSync(join(folder, kind), { mode: 0o700 });
    writeFileSync(join(folder, kind, name), JSON.stringify(key), { mode: 0o600 });
  }
  return folder;
}

async function collect(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const piece of stream) take(decoder.decode(piece, { stream: true }));
}

/** The first line that a program prints. @param explain - Appended to the error without one. */
export async function firstLine(stream: ReadableStream<Uint8Array>, explain = () => ""): Promise<string> {
  const lines = Promise.withResolvers<string>();
  let text = "";
  const read = collect(stream, (piece) => {
    text += piece;
    const end = text.indexOf("\n");
    if (end >= 0) lines.resolve(text.slice(0, end));
  });
  const ended = () => lines.reject(new Error(`the program ended before it printed its line; ${explain()}`));
  read.then(ended, ended);
  const late = setTimeout(
    () => lines.reject(new Error(`no line within ${startTimeoutMs} ms; ${explain()}`)),
    startTimeoutMs,
  );
  try {
    return await lines.promise;
  } finally {
    clearTimeout(late);
  }
}
