/**
 * The files of the GraphiQL page: embedded in the binary, or bundled from `console/graphiql` on the first request.
 *
 * build.ts embeds the output of `bundleGraphiql` under the names of `graphiqlFiles`.
 * @module
 */
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { assert } from "../../lib/assert.ts";
import type { AssetFiles } from "../assets.ts";

/** Names of the embedded files, compressed with gzip. */
export const graphiqlFiles = ["graphiql.js.gz", "graphiql.css.gz"] as const;

export type GraphiqlFile = (typeof graphiqlFiles)[number];

/** Build-time constant that selects React's production build. */
const reactMode = ["process", "env", "NODE_ENV"].join(".");

/** Off the main thread: the script has more than 1 MiB. */
const compress = promisify(gzip);

/**
 * Bundles the page's script and style from source, and compresses them.
 *
 * @throws Error with every message of the bundler.
 */
export async function bundleGraphiql(): Promise<AssetFiles<GraphiqlFile>> {
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
