/**
 * Files of the program's pages: embedded in the binary, or built on the first request; cached compressed.
 * @module
 */
import { resolve } from "node:path";
import { promisify } from "node:util";
import { assert } from "../lib/assert.ts";
import { nodeZlib } from "../lib/late-modules.ts";

/** Files by name, compressed with gzip; names of embedded files end with ".gz". */
export type AssetFiles<Name extends string> = Readonly<Record<Name, Uint8Array<ArrayBuffer>>>;

/** The files, and a name for this version of them. */
export type Assets<Name extends string> = Readonly<{
  files: AssetFiles<Name>;
  /** Changes when any byte of the files changes. */
  version: string;
}>;

/** Returns the files; the first call reads or builds them. */
export type AssetSource<Name extends string> = () => Promise<Assets<Name>>;

/** Policy of a page whose scripts, styles and requests are of this origin. @param style - Source of styles. */
export function pagePolicy(style = "'self'"): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${style}`,
    "font-src data:",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

/** The URL of a file contains its version, so it is cached without expiry. */
const immutableCache = "public, max-age=31536000, immutable";

const expand = (bytes: Uint8Array) => promisify(nodeZlib().gunzip)(bytes);

/** Off the main thread: a script may have more than 1 MiB. */
const compress = (text: string) => promisify(nodeZlib().gzip)(text);

/** Build-time constant that selects React's production build. */
const reactMode = ["process", "env", "NODE_ENV"].join(".");

/**
 * Bundles the script and the style of a page from source, and compresses them.
 *
 * @param folder - Below `console/`; has `{name}.tsx` and `{name}.css`.
 * @param style - Precedes the page's own style.
 * @throws Error with every message of the bundler.
 */
export async function bundlePage(folder: string, name: string, style = ""): Promise<AssetFiles<"js" | "css">> {
  const [js = "", css = ""] = await bundle(folder, [`${name}.tsx`, `${name}.css`]);
  return { js: await compressText(js), css: await compressText(style + css) };
}

/** Bundles an ES module for other pages. @param file - Below `console/{folder}`. @throws Error as `bundlePage`. */
export async function bundleModule(folder: string, file: string): Promise<Uint8Array<ArrayBuffer>> {
  const [js = ""] = await bundle(folder, [file]);
  return await compressText(js);
}

async function compressText(text: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await compress(text));
}

/** Bundles files of a folder below `console/`, each to one text, in their order. */
async function bundle(folder: string, files: readonly string[]): Promise<string[]> {
  const source = resolve(import.meta.dir, "../../console", folder);
  const result = await Bun.build({
    entrypoints: files.map((file) => resolve(source, file)),
    target: "browser",
    minify: true,
    define: { [reactMode]: '"production"' },
    naming: { entry: "[name].[ext]" },
    throw: false,
  });
  if (!result.success) throw new Error(`${files[0]} cannot be bundled: ${result.logs.map(String).join("; ")}`);
  return await Promise.all(
    files.map((file) => {
      const output = result.outputs.find(({ path }) => path.endsWith(file.replace(/\.tsx?$/, ".js")));
      assert(output !== undefined, `the bundle has ${file}`);
      return output.text();
    }),
  );
}

/**
 * Creates the source. The next call retries after a failure.
 *
 * @param make - Builds the files if they are not embedded in the binary.
 */
export function createAssetSource<Name extends string>(
  names: readonly Name[],
  make: () => Promise<AssetFiles<Name>>,
): AssetSource<Name> {
  let assets: Promise<Assets<Name>> | undefined;
  return () => {
    assets ??= load(names, make).catch((error: unknown) => {
      assets = undefined;
      throw error;
    });
    return assets;
  };
}

/**
 * Responds with a file, compressed if the client accepts that.
 *
 * @param cache - Value of Cache-Control; without it, the URL of the file contains its version.
 */
export async function assetResponse<Name extends string>(
  request: Request,
  source: AssetSource<Name>,
  name: Name,
  type: string,
  cache = immutableCache,
): Promise<Response> {
  const compressed = (await source()).files[name];
  const isCompressed = /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");
  const body = isCompressed ? compressed : new Uint8Array(await expand(compressed));
  return new Response(body, {
    headers: {
      // The metrics count it: a note of the size would count these shared bytes as memory of the response.
      "Content-Length": String(body.byteLength),
      "Content-Type": type,
      "Cache-Control": cache,
      Vary: "Accept-Encoding",
      "X-Content-Type-Options": "nosniff",
      ...(isCompressed ? { "Content-Encoding": "gzip" } : {}),
    },
  });
}

async function load<Name extends string>(
  names: readonly Name[],
  make: () => Promise<AssetFiles<Name>>,
): Promise<Assets<Name>> {
  const files = (await readEmbedded(names)) ?? (await make());
  const hash = new Bun.CryptoHasher("sha256");
  for (const name of names) hash.update(files[name]);
  return { files, version: hash.digest("base64url").slice(0, 16) };
}

/** All of the files; undefined if one is not embedded. */
async function readEmbedded<Name extends string>(names: readonly Name[]): Promise<AssetFiles<Name> | undefined> {
  const found: Partial<Record<Name, Uint8Array<ArrayBuffer>>> = {};
  for (const name of names) {
    const bytes = await readEmbeddedFile(name);
    if (bytes === undefined) return undefined;
    found[name] = bytes;
  }
  return hasAll(found, names) ? found : undefined;
}

function hasAll<Name extends string>(
  found: Partial<AssetFiles<Name>>,
  names: readonly Name[],
): found is AssetFiles<Name> {
  return names.every((name) => name in found);
}

/** Bun puts a hash before the last ending of an embedded file's name. */
async function readEmbeddedFile(name: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const stem = name.slice(0, -".gz".length);
  const file = Bun.embeddedFiles.find((blob) => "name" in blob && String(blob.name).startsWith(stem));
  return file === undefined ? undefined : new Uint8Array(await file.arrayBuffer());
}
