/**
 * `bun run mutate [words]`: removes the defences one by one in a copy of the tree, and says whether a test fails then.
 *
 * Words choose defences by their threat, name or file. `MUTATE_AT_ONCE` copies are worked on at once. It ends with 1
 * when a removal was not caught, or could not be evaluated because the tests fail without it.
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import type { Defence } from "./defence.ts";
import { defences } from "./defences.ts";

const root = resolve(import.meta.dir, "../..");

/** A test that waits for what never comes ends after this, which is a failure. Milliseconds. */
const testTimeoutMs = 60_000;

/** Tests that take longer than this are ended, which is a failure. Milliseconds. */
const runTimeoutMs = 420_000;

/** Bytes of output stored of each run that could not be evaluated. */
const outputBytesMax = 4_000;

type Verdict = "caught" | "NOT CAUGHT" | "NOT EVALUATED";
type Run = Readonly<{ isFailed: boolean; output: string }>;

const words = process.argv.slice(2).map((word) => word.toLowerCase());
const chosen = defences.filter(({ threat, name, file }) => {
  const text = `${threat} ${name} ${file}`.toLowerCase();
  return words.length === 0 || words.some((word) => text.includes(word));
});

const folder = mkdtempSync(join(tmpdir(), "cairn-mutate-"));
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) end(child);
  removeFolder(folder);
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));

const startedAt = performance.now();
const verdicts = new Map<Defence, Verdict>();
/** Tests without any removal, by what is run: several defences have the same. */
const baselines = new Map<string, Promise<Run>>();
const queue = [...chosen];
const atOnce = Number(process.env["MUTATE_AT_ONCE"] ?? Math.max(1, Math.floor(cpus().length / 2)));
await Promise.all(Array.from({ length: atOnce }, (_, index) => workThrough(join(folder, String(index)))));
report();

/** Takes defences off the queue, each in the same copy of the tree. */
async function workThrough(copy: string): Promise<void> {
  copyTree(copy);
  for (let defence = queue.shift(); defence !== undefined; defence = queue.shift()) {
    const from = performance.now();
    const verdict = await evaluate(copy, defence);
    verdicts.set(defence, verdict);
    const seconds = ((performance.now() - from) / 1_000).toFixed(1);
    console.log(`${verdict.padEnd(10)} ${seconds.padStart(6)} s  ${defence.threat.padEnd(3)} ${defence.name}`);
  }
}

async function evaluate(copy: string, defence: Defence): Promise<Verdict> {
  const path = join(copy, defence.file);
  const source = readFileSync(path, "utf8");
  if (source.split(defence.text).length !== 2) {
    console.log(`the text of "${defence.name}" does not are once in ${defence.file}`);
    return "NOT EVALUATED";
  }
  const before = await baseline(copy, defence);
  if (before.isFailed) {
    console.log(`without a removal, these tests fail: ${defence.tests.join(" ")}\n${before.output}`);
    return "NOT EVALUATED";
  }
  writeFileSync(
    path,
    source.replace(defence.text, () => defence.instead),
  );
  const after = await runTests(copy, defence);
  writeFileSync(path, source);
  return after.isFailed ? "caught" : "NOT CAUGHT";
}

/** Runs the tests of a defence before anything is removed in this copy. */
function baseline(copy: string, defence: Defence): Promise<Run> {
  const key = JSON.stringify([defence.tests, defence.only]);
  const known = baselines.get(key);
  if (known !== undefined) return known;
  const run = runTests(copy, defence);
  baselines.set(key, run);
  return run;
}

/** Runs tests in a copy until one fails. */
async function runTests(copy: string, { tests, only }: Defence): Promise<Run> {
  const filter = only === undefined ? [] : ["-t", only];
  const paths = tests.map((path) => `./${path}`);
  const words = ["test", "--bail", "--timeout", String(testTimeoutMs), ...filter, ...paths];
  const vectors = process.env["VECTORS_DIR"] ?? resolve(root, "../shared/vectors");
  const child = spawn(process.execPath, words, {
    cwd: copy,
    detached: true, // a group of its own, so that what the tests started ends with them
    env: { ...process.env, VECTORS_DIR: vectors },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  let output = "";
  const keep = (bytes: Buffer) => {
    output = (output + bytes.toString()).slice(-outputBytesMax);
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  const timer = setTimeout(() => end(child), runTimeoutMs);
  const code = await new Promise<number | null>((settle) => child.on("close", settle));
  clearTimeout(timer);
  end(child);
  running.delete(child);
  return { isFailed: code !== 0, output };
}

function end(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch {
    // The group has ended.
  }
}

/** Copies the files that git knows, or would know; packages are linked. */
function copyTree(copy: string): void {
  const listed = Bun.spawnSync(["git", "ls-files", "-co", "--exclude-standard", "-z"], { cwd: root });
  for (const file of listed.stdout.toString().split("\0")) {
    if (file === "" || !existsSync(join(root, file))) continue;
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(root, file), join(copy, file));
  }
  for (const packages of ["node_modules", "test/clients/node_modules", "tools/node_modules"])
    if (existsSync(join(root, packages))) symlinkSync(join(root, packages), join(copy, packages));
}

function report(): void {
  const count = (verdict: Verdict) => [...verdicts.values()].filter((each) => each === verdict).length;
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1);
  const missed = [...verdicts].filter(([, verdict]) => verdict !== "caught");
  for (const [{ threat, name, file }, verdict] of missed) console.log(`${verdict}: ${threat} ${name} (${file})`);
  console.log(
    `${chosen.length} defences removed: ${count("caught")} caught, ${count("NOT CAUGHT")} not caught, ` +
      `${count("NOT EVALUATED")} not evaluated, ${minutes} min`,
  );
  process.exit(missed.length === 0 ? 0 : 1);
}
