/**
 * Record batches: every type of column gives back the values that were added.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { openParquetFile } from "../../src/columnar/parquet-file.ts";
import {
  type Column,
  type ColumnBuilder,
  type ColumnType,
  createBatchBuilder,
} from "../../src/columnar/record-batch.ts";
import { temporaryFolder } from "../store/folder.ts";
import { readParquet, readParquetMetadata } from "./read-parquet.ts";

/** A value as a test states it. */
type ColumnValue = Uint8Array | string | number | bigint | boolean | readonly [high: number, low: number] | null;

/** Adds a value by the call of its type. */
function addTo(column: ColumnBuilder, value: ColumnValue): void {
  if (value === null) column.null();
  else if (typeof value === "string") column.text(value);
  else if (typeof value === "number") column.number(value);
  else if (typeof value === "bigint") column.bigint(value);
  else if (typeof value === "boolean") column.boolean(value);
  else if (value instanceof Uint8Array) column.bytes(value);
  else column.halves(...value);
}

/** Values of each type at both edges, with what a reader gets. */
const edges: Readonly<Record<ColumnType, readonly (readonly [added: ColumnValue, read: unknown])[]>> = {
  bytes: [
    [new Uint8Array(0), new Uint8Array(0)],
    [Uint8Array.of(0, 255), Uint8Array.of(0, 255)],
    ["é", Uint8Array.of(0xc3, 0xa9)],
  ],
  text: [
    ["", ""],
    ["€\u0000😀", "€\u0000😀"],
    [Buffer.from("text"), "text"],
  ],
  boolean: [
    [true, true],
    [false, false],
  ],
  uint8: [
    [0, 0],
    [255, 255],
  ],
  uint16: [
    [0, 0],
    [65_535, 65_535],
  ],
  uint32: [
    [0, 0],
    [2 ** 32 - 1, 2 ** 32 - 1],
  ],
  uint64: [
    [0, 0n],
    [Number.MAX_SAFE_INTEGER, BigInt(Number.MAX_SAFE_INTEGER)],
    [2n ** 64n - 1n, 2n ** 64n - 1n],
  ],
  int64: [
    [-1, -1n],
    [-(2 ** 53) + 1, -(2n ** 53n) + 1n],
    [2 ** 32, 2n ** 32n],
    [-(2n ** 63n), -(2n ** 63n)],
    [[0, 2 ** 32 - 1], 2n ** 32n - 1n],
    [[2 ** 31 - 1, 2 ** 31], 2n ** 63n - 2n ** 31n],
  ],
  decimal: [
    [0n, 0],
    [10n ** 12n, 10 ** 12],
  ],
};

async function written(columns: readonly Column[], rows: readonly (readonly ColumnValue[])[], batchRows: number) {
  using folder = temporaryFolder();
  const path = join(folder.path, "rows.parquet");
  const file = await openParquetFile(path, {
    metadata: { name: "value" },
    encodings: {},
    withoutStatistics: [],
    rowGroupRows: 4,
  });
  const batch = createBatchBuilder(columns, batchRows);
  for (const row of rows) {
    for (const [index, column] of batch.columns.entries()) addTo(column, row[index] ?? null);
    if (batch.endRow()) await file.append(batch.take());
  }
  if (batch.count() > 0) await file.append(batch.take());
  await file.finish();
  return { rows: await readParquet(path), ...readParquetMetadata(path) };
}

describe("a column gives back what was added", () => {
  const types = Object.keys(edges) as ColumnType[];
  test.each(types)("%s", async (type) => {
    const values = edges[type];
    const { rows } = await written(
      [{ name: "value", type }],
      values.map(([added]) => [added]),
      100,
    );
    expect(rows).toEqual(values.map(([, read]) => ({ value: read })));
  });

  test.each(types)("%s, with nulls between values, over several batches and row groups", async (type) => {
    const values = Array.from({ length: 3 }, () => edges[type].flatMap((edge) => [edge, [null, null] as const])).flat();
    const { rows, groupRows } = await written(
      [{ name: "value", type, nullable: true }],
      values.map(([added]) => [added]),
      3,
    );
    expect(rows).toEqual(values.map(([, read]) => ({ value: read })));
    expect(groupRows.reduce((sum, count) => sum + count, 0)).toBe(values.length);
    expect(Math.max(...groupRows)).toBeLessThanOrEqual(4);
  });
});

test("a batch is full at its rows, or at 8 MiB of one variable column", () => {
  const batch = createBatchBuilder([{ name: "value", type: "bytes" }], 3);
  const add = (value: Uint8Array): boolean => {
    batch.columns[0]?.bytes(value);
    return batch.endRow();
  };
  expect(add(new Uint8Array(10))).toBe(false);
  expect(add(new Uint8Array(8 * 2 ** 20))).toBe(true);
  expect(batch.take().numRows).toBe(2);
  expect([0, 1, 2].map((row) => add(Uint8Array.of(row)))).toEqual([false, false, true]);
});

test.each([
  ["an amount of 21 digits", "decimal", 10n ** 20n],
  ["a negative amount", "decimal", -1n],
  ["a fraction", "uint64", 1.5],
  ["a null in a column without nulls", "text", null],
  ["a number where bytes are expected", "bytes", 1],
] as const)("%s is a defect of the caller", (_, type, value) => {
  const [column] = createBatchBuilder([{ name: "value", type }], 1).columns;
  if (column === undefined) throw new Error("the batch has a column");
  expect(() => addTo(column, value)).toThrow();
});

test("a row without a value in each column is a defect of the caller", () => {
  const columns = ["a", "b"].map((name) => ({ name, type: "uint8" }) as const);
  const batch = createBatchBuilder(columns, 2);
  batch.columns[0]?.number(1);
  batch.endRow();
  expect(() => batch.take()).toThrow("a row has a value in every column");
});

test("a file has its name only when it is complete, and carries its metadata", async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "rows.parquet");
  const options = { metadata: { name: "value" }, encodings: {}, withoutStatistics: [], rowGroupRows: 10 };
  const file = await openParquetFile(path, options);
  const batch = createBatchBuilder([{ name: "value", type: "uint8" }], 1);
  batch.columns[0]?.number(1);
  batch.endRow();
  await file.append(batch.take());
  expect([await Bun.file(path).exists(), await Bun.file(`${path}.part`).exists()]).toEqual([false, true]);
  const { bytes, sha256 } = await file.finish();
  expect([await Bun.file(path).exists(), await Bun.file(`${path}.part`).exists()]).toEqual([true, false]);
  expect(bytes).toBe(Bun.file(path).size);
  expect(sha256).toBe(new Bun.CryptoHasher("sha256").update(await Bun.file(path).bytes()).digest("hex"));
  expect(readParquetMetadata(path).metadata.get("name")).toBe("value");

  const dropped = await openParquetFile(join(folder.path, "dropped.parquet"), options);
  batch.columns[0]?.number(1);
  batch.endRow();
  await dropped.append(batch.take());
  await dropped.discard();
  expect(await Bun.file(join(folder.path, "dropped.parquet.part")).exists()).toBe(false);
});
