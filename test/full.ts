/**
 * The second tier: published clients, a real browser, nginx, small kill and fuzz runs. `bun run test:full`.
 *
 * Runs the folders that need more than Bun, after installing the clients from their own lockfile.
 * @module
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";

const root = resolve(import.meta.dir, "..");

/** Folders of tests that need helpers; each test skips by name where its helper is missing. */
const folders = ["test/clients", "test/full"].filter((folder) => existsSync(resolve(root, folder)));

const steps: readonly (readonly [cwd: string, command: readonly string[]])[] = [
  [resolve(root, "test/clients"), [process.execPath, "install", "--frozen-lockfile"]],
  [root, [process.execPath, "test", "--timeout", "300000", ...folders]],
];

for (const [cwd, command] of steps) {
  const { exitCode } = Bun.spawnSync([...command], { cwd, stdio: ["ignore", "inherit", "inherit"] });
  if (exitCode !== 0) process.exit(exitCode);
}
