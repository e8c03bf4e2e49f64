/**
 * The second tier: published clients, a real browser, nginx, small kill and fuzz runs. `bun run test:full`.
 *
 * Runs the folders that need more than Bun, after installing the clients from their own lockfiles.
 * @module
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";

const root = resolve(import.meta.dir, "..");

/** Folders of tests that need helpers; each test skips by name where its helper is missing. */
const folders = ["test/clients", "test/full"].filter((folder) => existsSync(resolve(root, folder)));

/** Folders whose tests take their ledger from test/support/ledger-databases.ts: the first tier ran them on SQLite. */
const ledgerFolders = ["test/store/ledger", "test/payment", "test/upload", "test/http/upload"];

/** A client that patches what all share must not be another file's trouble. */
const test = [process.execPath, "test", "--isolate", "--timeout", "300000"];

type Step = Readonly<{
  cwd: string;
  command: readonly string[];
  environment?: Readonly<Record<string, string>>;
}>;

const steps: readonly Step[] = [
  { cwd: resolve(root, "test/clients"), command: [process.execPath, "install", "--frozen-lockfile"] },
  ...installedByNpm(),
  { cwd: root, command: [...test, ...folders] },
  { cwd: root, command: [...test, ...ledgerFolders], environment: { LEDGER_KINDS: "postgres" } },
  { cwd: root, command: [...test, "test/upload/whole-kill.test.ts"], environment: { KILLS: "40" } },
];

// Every step runs, whatever became of those before it: one run shows all that is wrong.
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
