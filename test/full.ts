/**
 * The second tier: published clients, ClickHouse, a real browser, nginx, larger kill and fuzz runs, the rules of money on PostgreSQL.
 * `bun run test:full`.
 *
 * Clients are installed from their own lockfiles. Every step runs, whatever became of those before it.
 * @module
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { longTests } from "./tiers.ts";

const root = resolve(import.meta.dir, "..");

/** Folders of tests that need helpers; each test skips by name where its helper is missing. */
const folders = ["test/clients", "test/stores", "test/full"].filter((folder) => existsSync(resolve(root, folder)));

/** Sizes of tests of the first tier that it would take too long for. */
const sizes: readonly (readonly [file: string, sizes: Readonly<Record<string, string>>])[] = [
  ["test/store/ledger/kills.test.ts", { KILLS: "200" }],
  ["test/payment/credits/credits-property.test.ts", { RUNS: "3000" }],
];

/**
 * What the first tier runs on SQLite, and what meets another server's transactions on PostgreSQL. Left out is what
 * opens a ledger too, but is about threads, disks or memory.
 */
const ledgerTests = [
  "test/store/ledger/",
  "test/payment/",
  "test/http/payment/",
  "test/spec/odd-values.test.ts",
  "test/http/upload/approvals.test.ts",
  "test/http/upload/charges.test.ts",
  "test/http/upload/multipart.test.ts",
  "test/http/upload/duplicates.test.ts",
  "test/http/upload/x402-uploads.test.ts",
  "test/upload/intake/intake-kill.test.ts",
  "test/upload/intake/two-processes.test.ts",
  "test/upload/multipart/multipart-kill.test.ts",
  "test/upload/multipart/multipart-model.test.ts",
  "test/upload/pipeline/confirm-bundle.test.ts",
  "test/upload/pipeline/plan-bundles.test.ts",
  "test/upload/pipeline/file-removal.test.ts",
];

/**
 * A client that patches what all share must not be another file's fault: with wayfinder-core come a Promise of its own
 * (zone.js), and turbo-sdk, which then finalizes an upload before its parts have ended.
 */
const test = [process.execPath, "test", "--isolate", "--timeout", "300000"];

/** For files that share nothing: two at a time, each in a process of its own. */
const parallelTest = [process.execPath, "test", "--parallel=2", "--timeout", "300000"];

type Step = Readonly<{
  cwd: string;
  command: readonly string[];
  environment?: Readonly<Record<string, string>>;
}>;

const steps: readonly Step[] = [
  { cwd: resolve(root, "test/clients"), command: [process.execPath, "install", "--frozen-lockfile"] },
  ...installedByNpm(),
  { cwd: resolve(root, "test/stores"), command: [process.execPath, "install", "--frozen-lockfile"] },
  { cwd: root, command: [...test, ...folders] },
  { cwd: root, command: [...parallelTest, ...longTests] },
  ...sizes.map(([file, environment]) => ({ cwd: root, command: [...test, file], environment })),
  { cwd: root, command: [...parallelTest, ...ledgerTests], environment: { LEDGER_KINDS: "postgres" } },
  { cwd: root, command: [...test, "test/upload/service-kill.test.ts"], environment: { KILLS: "40" } },
];

// One run shows all that is wrong.
const failed = steps.filter((step) => !isPassed(step));
process.exitCode = failed.length > 0 ? 1 : 0;

function isPassed({ cwd, command, environment }: Step): boolean {
  const env = { ...process.env, ...environment };
  const { exitCode } = Bun.spawnSync([...command], { cwd, env, stdio: ["ignore", "inherit", "inherit"] });
  if (exitCode !== 0) console.log(`step ended with ${exitCode}: ${command.join(" ")}`);
  return exitCode === 0;
}

/** arkb has dependencies that are git repositories: npm puts released versions in their place, Bun cannot. */
function installedByNpm(): Step[] {
  if (Bun.which("npm") === null) return [];
  const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
  return [{ cwd: resolve(root, "test/clients/arkb"), command: ["npm", "ci", ...options] }];
}
