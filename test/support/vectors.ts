/**
 * Real data to test against: files of other authors, with the results of published libraries.
 *
 * The folder is `VECTORS_DIR`, by default `vectors` in a folder `shared` beside the repository. Tests that need it
 * are declared with `testWith(vectors, …)` and skip by name where it is not there.
 * @module
 */
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Need } from "./helpers.ts";

const { VECTORS_DIR } = process.env;
const folder = resolve(VECTORS_DIR ?? resolve(import.meta.dir, "../../../shared/vectors"));

/** One file of the index. */
export type VectorEntry = Readonly<{
  file: string;
  kind: string;
  /** "pass", "expected-invalid", "not-checkable …" or "partial …". */
  result: string;
  height?: number;
  checks: Readonly<Record<string, unknown>>;
}>;

/** Whether the vectors are there. */
export const vectorsAvailable = existsSync(resolve(folder, "index.json"));

/** The vectors as a need of tests. */
export const vectors: Need = { there: vectorsAvailable, what: "VECTORS_DIR (real data)", isData: true };

/** Every entry of one kind, in the order of the index; none where the vectors are not there. */
export function vectorsOf(kind: string): readonly VectorEntry[] {
  if (!vectorsAvailable) return [];
  const index: { files: VectorEntry[] } = JSON.parse(vectorText("index.json"));
  return index.files.filter((entry) => entry.kind === kind);
}

/** A file as text. */
export function vectorText(file: string): string {
  return readFileSync(resolve(folder, file), "utf8");
}

/** A file as bytes. */
export function vectorBytes(file: string): Uint8Array {
  return new Uint8Array(readFileSync(resolve(folder, file)));
}

/** The name of a file without its folder and ending: an id or a height. */
export function vectorName(file: string): string {
  return (file.split("/").pop() ?? "").replace(/\.json$/, "");
}
