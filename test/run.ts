/**
 * Runs one tier of the tests: `bun test/run.ts unit` or `bun test/run.ts fast`. test/tiers.ts lists the files.
 * @module
 */
import { resolve } from "node:path";
import { helperFolders, longTests, unitTests } from "./tiers.ts";

const root = resolve(import.meta.dir, "..");

/** Paths that each tier runs. */
const tiers: Readonly<Record<string, readonly string[]>> = { unit: unitTests, fast: ["test/"] };

const [tier = "", ...options] = process.argv.slice(2);
const paths = tiers[tier];
if (paths === undefined) throw new Error(`unknown tier '${tier}': expected unit or fast`);

const left = [...helperFolders.map((folder) => `${folder}/**`), ...longTests];
const ignored = left.flatMap((pattern) => ["--path-ignore-patterns", pattern]);
const command = [process.execPath, "test", "--parallel=2", "--timeout", "120000", ...ignored, ...options, ...paths];
const { exitCode } = Bun.spawnSync(command, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
process.exitCode = exitCode;
