/**
 * Writes Parquet files from record batches. A file has its name only when it is complete.
 *
 * parquet-wasm encodes as a stream, so that memory holds one row group, whatever the size of the file.
 * Source: Apache Parquet format 2.10.
 * @module
 */
import { createHash } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { type RecordBatch, Table, tableToIPC } from "apache-arrow";
import initParquet, {
  Compression,
  EnabledStatistics,
  Encoding,
  Table as ParquetTable,
  transformParquetStream,
  type RecordBatch as WasmBatch,
  type WriterProperties,
  WriterPropertiesBuilder,
} from "parquet-wasm/esm";
import wasmPath from "parquet-wasm/esm/parquet_wasm_bg.wasm" with { type: "file" };
import { syncFolder } from "../store/durable-file.ts";

/** Encodings of columns without a dictionary. Source: Apache Parquet format 2.10, "Encodings". */
const encodings = {
  plain: Encoding.PLAIN,
  delta: Encoding.DELTA_BINARY_PACKED,
  "delta length": Encoding.DELTA_LENGTH_BYTE_ARRAY,
  "delta bytes": Encoding.DELTA_BYTE_ARRAY,
} as const;

export type ColumnEncoding = keyof typeof encodings;

export type ParquetFileOptions = Readonly<{
  /** Texts of the file's key-value metadata. */
  metadata: Readonly<Record<string, string>>;
  /** Encodings of columns, by name; other columns have a dictionary. */
  encodings: Readonly<Record<string, ColumnEncoding>>;
  /** Columns, by name, that have no statistics. */
  withoutStatistics: readonly string[];
  /** Rows of a row group. The writer holds one row group; a reader skips row groups by their statistics. */
  rowGroupRows: number;
}>;

/** A complete file. `sha256` is hexadecimal. */
export type WrittenFile = Readonly<{ bytes: number; sha256: string }>;

/** A file that is being written. */
export type ParquetFile = Readonly<{
  append: (batch: RecordBatch) => Promise<void>;
  /** Completes the file, synchronises it, and gives it its name. */
  finish: () => Promise<WrittenFile>;
  /** Removes the incomplete file; nothing happens after `finish`. */
  discard: () => Promise<void>;
}>;

let loaded: Promise<unknown> | undefined;

/**
 * Begins a file. `{path}.part` exists until `finish`.
 *
 * @throws Error of the system when the file cannot be created or written (`append`, `finish`).
 */
export async function openParquetFile(path: string, options: ParquetFileOptions): Promise<ParquetFile> {
  loaded ??= Bun.file(wasmPath)
    .arrayBuffer()
    .then((bytes) => initParquet({ module_or_path: bytes }));
  await loaded;
  const part = `${path}.part`;
  const file = await open(part, "w");
  const batches = new TransformStream<WasmBatch, WasmBatch>();
  const input = batches.writable.getWriter();
  const written = drain(batches.readable, file, writerProperties(options));
  written.catch(() => {
    // `append` and `finish` report the failure.
  });
  let isOpen = true;
  let isComplete = false;
  const close = async (): Promise<void> => {
    if (!isOpen) return;
    isOpen = false;
    await file.close();
  };
  return {
    append: async (batch) => {
      const table = ParquetTable.fromIPCStream(tableToIPC(new Table([batch]), "stream"));
      const wasmBatches = table.recordBatches();
      // The batches have their own references. Memory of an object that is not freed grows until a garbage collection.
      table.free();
      for (const wasm of wasmBatches) await Promise.race([input.write(wasm), written]);
    },
    finish: async () => {
      await Promise.race([input.close(), written]);
      const result = await written;
      await file.sync();
      await close();
      await rename(part, path);
      isComplete = true;
      syncFolder(dirname(path));
      return result;
    },
    discard: async () => {
      if (isComplete) return;
      input.abort().catch(() => {
        // The stream had failed before; its failure was reported.
      });
      await close();
      await rm(part, { force: true });
    },
  };
}

async function drain(
  batches: ReadableStream<WasmBatch>,
  file: FileHandle,
  properties: WriterProperties,
): Promise<WrittenFile> {
  const encoded: ReadableStream<Uint8Array> = await transformParquetStream(batches, properties);
  const hash = createHash("sha256");
  let size = 0;
  for await (const bytes of encoded) {
    await file.writeFile(bytes);
    hash.update(bytes);
    size += bytes.length;
  }
  return { bytes: size, sha256: hash.digest("hex") };
}

function writerProperties(options: ParquetFileOptions): WriterProperties {
  const { metadata, rowGroupRows, withoutStatistics } = options;
  const encoded = Object.entries(options.encodings).reduce(
    (properties, [column, encoding]) =>
      properties.setColumnDictionaryEnabled(column, false).setColumnEncoding(column, encodings[encoding]),
    new WriterPropertiesBuilder()
      .setCompression(Compression.ZSTD)
      .setStatisticsEnabled(EnabledStatistics.Chunk)
      .setDictionaryEnabled(true)
      .setMaxRowGroupSize(rowGroupRows)
      .setCreatedBy("cairn"),
  );
  const builder = withoutStatistics.reduce(
    (properties, column) => properties.setColumnStatisticsEnabled(column, EnabledStatistics.None),
    encoded,
  );
  return builder.setKeyValueMetadata(new Map(Object.entries(metadata))).build();
}
