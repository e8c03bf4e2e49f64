/**
 * Loads DuckDB: the package, and within a binary the native library that the package needs beside itself.
 *
 * A binary embeds the library compressed. It is written to a folder once, and checked by its hash before each use.
 * Source: docs/decisions/096-duckdb.md.
 * @module
 */
import { dlopen } from "bun:ffi";
import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

/** The name of the embedded library. Bun adds a hash of its own before the last ending. */
const embeddedName = /^(libduckdb-([0-9a-f]{64})\.\w+)\b.*\.zst$/;

/** @param libraryFolder - Where a binary writes the library; created when it is absent. */
export async function loadDuckdb(libraryFolder: string): Promise<typeof import("@duckdb/node-api")> {
  const embedded = embeddedLibrary();
  if (embedded !== undefined) {
    // The package's binding finds a loaded library by its name. Bun requires a symbol.
    dlopen(await writeLibrary(embedded, libraryFolder), { duckdb_library_version: { returns: "cstring" } });
  }
  return import("@duckdb/node-api");
}

/** The asset that build.ts embeds: its name and its bytes. @param library - The file of the package. */
export function libraryAsset(library: Uint8Array<ArrayBuffer>, ending: string): Record<string, Uint8Array> {
  // Level 9: a tenth of the time of level 19, for 2 MB more.
  return { [`libduckdb-${hashOf(library)}.${ending}.zst`]: Bun.zstdCompressSync(library, { level: 9 }) };
}

type EmbeddedLibrary = Readonly<{ file: Blob; name: string; sha256: string }>;

function embeddedLibrary(): EmbeddedLibrary | undefined {
  for (const file of Bun.embeddedFiles) {
    const [, name, sha256] = embeddedName.exec("name" in file ? String(file.name) : "") ?? [];
    if (name !== undefined && sha256 !== undefined) return { file, name, sha256 };
  }
  return undefined;
}

/** @returns The path of the library, whose bytes have the expected hash. */
async function writeLibrary({ file, name, sha256 }: EmbeddedLibrary, folder: string): Promise<string> {
  const path = join(folder, name);
  const written = Bun.file(path);
  if ((await written.exists()) && (await hashOfFile(written)) === sha256) return path;
  const library = await Bun.zstdDecompress(await file.bytes());
  if (hashOf(library) !== sha256) throw new Error("the embedded library is damaged: install the program again");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // Threads and processes may write at once: each renames a complete file of its own.
  const part = `${path}.${crypto.randomUUID()}.part`;
  try {
    await Bun.write(part, library, { mode: 0o700 });
    renameSync(part, path);
  } finally {
    rmSync(part, { force: true });
  }
  for (const other of readdirSync(folder))
    if (/^libduckdb-[0-9a-f]{64}\.\w+$/.test(other) && other !== name) rmSync(join(folder, other), { force: true });
  return path;
}

function hashOf(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

/** Reads the file in pieces. */
async function hashOfFile(file: Blob): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  for await (const part of file.stream()) hash.update(part);
  return hash.digest("hex");
}
