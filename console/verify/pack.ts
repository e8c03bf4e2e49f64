/**
 * Writes the module that verifies content as a package for npm: `bun run pack:verify [folder]`. The folder has one
 * script without dependencies, its types, and docs/verify-module.md as README.
 * @module
 */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gunzipSync } from "bun";
import { bundleModule } from "../../src/http/page-assets.ts";

const here = import.meta.dir;
const root = resolve(here, "../..");
const folder = resolve(process.argv[2] ?? join(root, "dist/cairn-verify"));

const modules = ["verify", "proof-check", "bytes"];

/** Writes the types of the modules whose types are exported. @throws Error with the compiler's messages. */
function writeTypes(): void {
  const types = mkdtempSync(join(tmpdir(), "cairn-verify-"));
  const options = "--ignoreConfig --declaration --emitDeclarationOnly --strict --target esnext --module preserve";
  const { exitCode, stdout } = Bun.spawnSync(
    [
      join(root, "node_modules/.bin/tsc"),
      ...options.split(" "),
      ...["--allowImportingTsExtensions", "--lib", "ESNext,DOM,DOM.Iterable", "--types", ""],
      ...["--skipLibCheck", "--outDir", types, join(here, "verify.ts")],
    ],
    { timeout: 120_000 },
  );
  if (exitCode === 0)
    for (const name of modules) copyFileSync(join(types, `${name}.d.ts`), join(folder, `${name}.d.ts`));
  rmSync(types, { recursive: true, force: true });
  if (exitCode !== 0) throw new Error(`the types cannot be written: ${stdout}`);
}

mkdirSync(folder, { recursive: true });
await Bun.write(join(folder, "verify.js"), gunzipSync(await bundleModule("verify", "verify.ts")));
writeTypes();
copyFileSync(join(here, "package.json"), join(folder, "package.json"));
copyFileSync(join(root, "docs/verify-module.md"), join(folder, "README.md"));
process.stdout.write(`${folder}\n`);
