/**
 * An index in a temporary folder, with a clock that tests set.
 * @module
 */
import { type IndexReaderOptions, openIndexReader } from "../../../src/store/index/index-reader.ts";
import type { IndexReader } from "../../../src/store/index/index-types.ts";
import { type IndexWriter, openIndexWriter } from "../../../src/store/index/index-writer.ts";
import { inspectIndex } from "../../support/inspect-index.ts";
import { temporaryFolder } from "../folder.ts";

/** An index with its writer, reader and clock. */
export type IndexFile = Disposable & {
  readonly path: string;
  readonly writer: IndexWriter;
  readonly reader: IndexReader;
  /** Unix milliseconds; tests set it. */
  nowMs: number;
  /** Faults that the inspection finds. */
  readonly faults: () => readonly string[];
};

/** Makes an empty index. `using` closes and removes it. */
export function indexFile(options: IndexReaderOptions = {}): IndexFile {
  const folder = temporaryFolder();
  const path = `${folder.path}/index.sqlite`;
  const file = { nowMs: 1_700_000_000_000 };
  const writer = openIndexWriter(path, { clock: () => file.nowMs });
  const reader = openIndexReader(path, options);
  return Object.assign(file, {
    path,
    writer,
    reader,
    faults: () => inspectIndex(path).faults,
    [Symbol.dispose]: () => {
      reader.close();
      writer.close();
      folder[Symbol.dispose]();
    },
  });
}
