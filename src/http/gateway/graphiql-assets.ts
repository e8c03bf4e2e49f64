/**
 * The files of the GraphiQL page: inside the binary where there is one, else bundled from `console/graphiql` when
 * somebody first opens the page.
 *
 * build.ts embeds what `bundleGraphiql` gives, under the names of `graphiqlFiles`.
 * @module
 */
import { createHash } from "node:crypto";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { assert } from "../../lib/assert.ts";

/** Names of the files as they are embedded: compressed with gzip. */
export const graphiqlFiles = ["graphiql.js.gz", "graphiql.css.gz"] as const;

/** Name of one file. */
export type GraphiqlFile = (typeof graphiqlFiles)[number];

/** The files, and a name for this version of them. */
export type GraphiqlAssets = Readonly<{
  files: Readonly<Record<GraphiqlFile, Uint8Array<ArrayBuffer>>>;
  /** Changes when any byte of the files does. */
  version: string;
}>;

/** What React reads at its build to know whether it is checked or fast. */
const reactMode = ["process", "env", "NODE_ENV"].join(".");

/** Off the main thread: the script has more than 1 MiB. */
const compress = promisify(gzip);

/** Gives the assets; the first call reads or makes them. */
export type GraphiqlSource = () => Promise<GraphiqlAssets>;

/** Creates the source. A bundle that failed is tried again by the next call. */
export function createGraphiqlSource(): GraphiqlSource {
  let assets: Promise<GraphiqlAssets> | undefined;
  return () => {
    assets ??= load().catch((error: unknown) => {
      assets = undefined;
      throw error;
    });
    return assets;
  };
}

/**
 * Bundles the page's script and style from source, and compresses them.
 *
 * @throws Error with every message of the bundler.
 */
export async function bundleGraphiql(): Promise<Readonly<Record<GraphiqlFile, Uint8Array<ArrayBuffer>>>> {
  const folder = resolve(import.meta.dir, "../../../console/graphiql");
  const result = await Bun.build({
    entrypoints: [join(folder, "graphiql.tsx"), join(folder, "graphiql.css")],
    target: "browser",
    minify: true,
    define: { [reactMode]: '"production"' },
    naming: { entry: "[name].[ext]" },
    throw: false,
  });
  if (!result.success) throw new Error(`GraphiQL cannot be bundled: ${result.logs.map(String).join("; ")}`);
  const compressed = async (name: string) => {
    const output = result.outputs.find(({ path }) => path.endsWith(name));
    assert(output !== undefined, `the bundle has ${name}`);
    return new Uint8Array(await compress(await output.arrayBuffer()));
  };
  return {
    "graphiql.js.gz": await compressed("graphiql.js"),
    "graphiql.css.gz": await compressed("graphiql.css"),
  };
}

async function load(): Promise<GraphiqlAssets> {
  const files = (await readEmbedded()) ?? (await bundleGraphiql());
  const hash = createHash("sha256");
  for (const name of graphiqlFiles) hash.update(files[name]);
  return { files, version: hash.digest("base64url").slice(0, 16) };
}

async function readEmbedded(): Promise<GraphiqlAssets["files"] | undefined> {
  const [script, style] = await Promise.all(graphiqlFiles.map(readOne));
  return script === undefined || style === undefined
    ? undefined
    : { "graphiql.js.gz": script, "graphiql.css.gz": style };
}

/** Bun puts a hash before the last ending of an embedded file's name. */
async function readOne(name: GraphiqlFile): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const stem = name.slice(0, -".gz".length);
  const file = Bun.embeddedFiles.find((blob) => "name" in blob && String(blob.name).startsWith(stem));
  return file === undefined ? undefined : new Uint8Array(await file.arrayBuffer());
}
