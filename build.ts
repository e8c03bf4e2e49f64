/**
 * Builds the program into one binary: `bun build.ts [outfile]`.
 *
 * Three things need help to work away from this tree: piscina looks for its own worker beside itself, DuckDB for its
 * library, and Bun embeds only named files. Source: docs/decisions/002-threads.md; docs/decisions/096-duckdb.md.
 * @module
 */
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { resolve } from "node:path";
import type { BunPlugin } from "bun";
import { libraryAsset } from "./src/columnar/duckdb-library.ts";
import { bundleScriptPages } from "./src/http/gateway/script-pages.ts";
import { bundleGraphiql } from "./src/http/graphql/graphiql.ts";
import { readApiDocs } from "./src/http/reference/api-docs-assets.ts";
import { headSizeOption } from "./src/http/request-limits.ts";
import { removeFolder } from "./src/lib/remove-folder.ts";
import { workerEntries } from "./src/threads/pool.ts";

const root = import.meta.dir;
const outfile = resolve(process.argv[2] ?? "dist/cairn");

/** Where Bun mounts what it embedded. */
const embedded = "/$bunfs/root";

/** A change to the text of one file of a package. */
type Patch = Readonly<{ file: RegExp; before: string; after: string }>;

const patches: readonly Patch[] = [
  {
    // Its `__dirname` is frozen when it is bundled; inside the binary its folder has another name.
    file: /piscina\/dist\/index\.js$/,
    before: "__dirname",
    after: JSON.stringify(`${embedded}/node_modules/piscina/dist`),
  },
  {
    // It collects garbage for each listener, while the routes of the next one are created.
    file: /elysia\/dist\/compose\.mjs$/,
    before: "return isBun && Bun.gc(!1), fn;",
    after: "return fn;",
  },
  {
    // It would load node:http and node:zlib at each start, to send metrics to a server that nothing here uses.
    file: /prom-client\/index\.js$/,
    before: "exports.Pushgateway = require('./lib/pushgateway');",
    after: "",
  },
];

/** Applies the patches. A package that has changed ends the build. */
const patchPackages: BunPlugin = {
  name: "patch-packages",
  setup(build) {
    for (const { file, before, after } of patches) {
      build.onLoad({ filter: file }, async ({ path }) => {
        const text = await Bun.file(path).text();
        if (!text.includes(before)) throw new Error(`${path} has no ${before}: read it again`);
        return { contents: text.replaceAll(before, after), loader: "js" };
      });
    }
  },
};

const packageFolder = (name: string) => resolve(root, "node_modules", name);

/** The bindings of DuckDB for all platforms; those for other platforms are not installed. */
const bindings = Object.keys(
  (await Bun.file(resolve(packageFolder("@duckdb/node-bindings"), "package.json")).json()).optionalDependencies,
);
const otherBindings = bindings.filter((name) => !existsSync(packageFolder(name)));

/** The native library of DuckDB: its binding looks for it beside itself, where a binary has no files. */
async function readDuckdbLibrary(): Promise<Record<string, Uint8Array>> {
  const [binding] = bindings.filter((name) => existsSync(packageFolder(name)));
  if (binding === undefined) throw new Error("DuckDB has no binding for this platform");
  const library = readdirSync(packageFolder(binding)).find((name) => name.startsWith("libduckdb."));
  if (library === undefined) throw new Error(`${binding} has no library`);
  return libraryAsset(await Bun.file(resolve(packageFolder(binding), library)).bytes(), library.split(".")[1] ?? "so");
}

/** Files that the program finds again among `Bun.embeddedFiles`, written where the bundler can take them from. */
async function writeAssets(): Promise<string[]> {
  const folder = resolve(root, "dist/assets");
  removeFolder(folder);
  mkdirSync(folder, { recursive: true });
  const pages = { ...(await bundleGraphiql()), ...(await bundleScriptPages()), ...(await readApiDocs()) };
  return Promise.all(
    Object.entries({ ...pages, ...(await readDuckdbLibrary()) }).map(async ([name, bytes]) => {
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
  loader: { ".gz": "file", ".zst": "file" },
  target: "bun",
  // The first is only for priorities of threads, which are not used.
  external: ["@napi-rs/nice", ...otherBindings.map((name) => `${name}/duckdb.node`)],
  minify: true,
  // Compiled ahead: a start takes about half as long (measured).
  bytecode: true,
  // A command loads its own code only: a start takes a tenth less (measured).
  splitting: true,
  format: "esm",
  sourcemap: "none",
  plugins: [patchPackages],
  compile: { outfile, execArgv: [headSizeOption] },
});

for (const message of result.logs) console.error(String(message));
if (!result.success) process.exit(1);
console.log(`${outfile} ${(Bun.file(outfile).size / 2 ** 20).toFixed(1)} MiB`);
