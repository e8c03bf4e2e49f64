/**
 * Builds the program into one binary: `bun build.ts [outfile]`.
 *
 * Two things need help to work away from this tree: piscina looks for its own worker beside itself, and Bun embeds
 * only what it is told to. Source: docs/decisions/002-threads.md.
 * @module
 */

import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import type { BunPlugin } from "bun";
import { bundleGraphiql } from "./src/http/graphql/graphiql.ts";
import { readApiDocs } from "./src/http/reference/api-docs-assets.ts";
import { workerEntries } from "./src/threads/pool.ts";

const root = import.meta.dir;
const outfile = resolve(process.argv[2] ?? "dist/cairn");

/** Where Bun mounts what it embedded. */
const embedded = "/$bunfs/root";

/** piscina's `__dirname` is frozen when it is bundled; inside the binary its folder has another name. */
const piscinaFindsItsWorker: BunPlugin = {
  name: "piscina-finds-its-worker",
  setup(build) {
    build.onLoad({ filter: /piscina\/dist\/index\.js$/ }, async ({ path }) => {
      const text = await Bun.file(path).text();
      const mended = text.replaceAll("__dirname", JSON.stringify(`${embedded}/node_modules/piscina/dist`));
      if (mended === text)
        throw new Error("piscina no longer looks for its worker by __dirname: read its index.js again");
      return { contents: mended, loader: "js" };
    });
  },
};

/** Files that the program finds again among `Bun.embeddedFiles`, written where the bundler can take them from. */
async function writeAssets(): Promise<string[]> {
  const folder = resolve(root, "dist/assets");
  mkdirSync(folder, { recursive: true });
  return Promise.all(
    Object.entries({ ...(await bundleGraphiql()), ...(await readApiDocs()) }).map(async ([name, bytes]) => {
      const file = resolve(folder, name);
      await Bun.write(file, bytes);
      return file;
    }),
  );
}

const result = await Bun.build({
  entrypoints: [
    resolve(root, "src/main.ts"),
    ...workerEntries.map((entry) => resolve(root, `workers/${entry}.ts`)),
    resolve(root, "node_modules/piscina/dist/worker.js"),
    ...(await writeAssets()),
  ],
  root,
  loader: { ".gz": "file" },
  target: "bun",
  // Only for priorities of threads, which nobody here asks for.
  external: ["@napi-rs/nice"],
  minify: true,
  // Compiled ahead: a start takes about half as long (measured).
  bytecode: true,
  format: "esm",
  sourcemap: "none",
  plugins: [piscinaFindsItsWorker],
  compile: { outfile },
});

for (const message of result.logs) console.error(String(message));
if (!result.success) process.exit(1);
console.log(`${outfile} ${(Bun.file(outfile).size / 2 ** 20).toFixed(1)} MiB`);
