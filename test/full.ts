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

const steps: readonly (readonly [cwd: string, command: readonly string[]])[] = [
  [resolve(root, "test/clients"), [process.execPath, "install", "--frozen-lockfile"]],
  ...installedByNpm(),
  [root, [process.execPath, "test", "--timeout", "300000", ...folders]],
];

for (const [cwd, command] of steps) {
  const { exitCode } = Bun.spawnSync([...command], { cwd, stdio: ["ignore", "inherit", "inherit"] });
  if (exitCode !== 0) process.exit(exitCode);
}

/** arkb has dependencies that are git repositories: npm puts released versions in their place, Bun cannot. */
function installedByNpm(): typeof steps {
  if (Bun.which("npm") === null) return [];
  const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
  return [[resolve(root, "test/clients/arkb"), ["npm", "ci", ...options]]];
}
