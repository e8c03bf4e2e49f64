/**
 * Arrow record batches, built row by row into typed arrays: a column costs some 20 ns a value, where Arrow's own
 * builders cost ten times as much.
 * Source: Apache Arrow columnar format 1.5, "Physical memory layout".
 * @module
 */
import {
  Binary,
  Bool,
  type Data,
  type DataType,
  Decimal,
  Field,
  Int64,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Uint8,
  Uint16,
  Uint32,
  Uint64,
  Utf8,
} from "apache-arrow";
import { assert } from "../lib/assert.ts";

/** Types of columns. `decimal` has 20 digits before the point and none after. */
export type ColumnType = "bytes" | "text" | "boolean" | "uint8" | "uint16" | "uint32" | "uint64" | "int64" | "decimal";

/**
 * A value of a column. Bytes and text: either, text as UTF-8. Integers: a safe integer; 64 bits also a bigint.
 * Decimals: a bigint. Null where the value is absent.
 */
export type ColumnValue = Uint8Array | string | number | bigint | boolean | null;

/** A column of a table. */
export type Column = Readonly<{ name: string; type: ColumnType; nullable?: true }>;

/** Rows that become a batch. */
export type BatchBuilder = Readonly<{
  /** @param values - One for each column, in their order. */
  add: (values: readonly ColumnValue[]) => void;
  /** Whether the batch must be taken before another row is added. */
  isFull: () => boolean;
  /** Rows since the last batch. */
  count: () => number;
  /** Takes the batch; the builder is empty afterwards. */
  take: () => RecordBatch;
}>;

/** Bytes of one variable column at which a batch is full: with 10,000 rows most batches are far below. */
const variableBytesMax = 8 * 2 ** 20;

const decimalEnd = 10n ** 20n;

/** A UTF-16 unit takes at most three bytes of UTF-8. */
const utf8BytesPerUnit = 3;

/** @param rowsMax - Rows of a batch. */
export function createBatchBuilder(columns: readonly Column[], rowsMax: number): BatchBuilder {
  const schema = schemaOf(columns);
  const start = () => columns.map((column) => createColumn(column, rowsMax));
  const variable = [...columns.keys()].filter((index) => ["bytes", "text"].includes(columns[index]?.type ?? ""));
  let building = start();
  let count = 0;
  return {
    add: (values) => {
      assert(count < rowsMax && values.length === columns.length, "a row fits into its batch");
      let index = 0;
      for (const column of building) {
        column.set(count, values[index] ?? null);
        index += 1;
      }
      count += 1;
    },
    isFull: () => count === rowsMax || variable.some((column) => building[column]?.isFull() === true),
    count: () => count,
    take: () => {
      const children = building.map((column) => column.take(count));
      const batch = new RecordBatch(
        schema,
        makeData({ type: new Struct(schema.fields), length: count, nullCount: 0, children }),
      );
      building = start();
      count = 0;
      return batch;
    },
  };
}

/** The schema of a table. */
export function schemaOf(columns: readonly Column[]): Schema {
  return new Schema(columns.map(({ name, type, nullable }) => new Field(name, arrowTypes[type](), nullable === true)));
}

const arrowTypes: Readonly<Record<ColumnType, () => DataType>> = {
  bytes: () => new Binary(),
  text: () => new Utf8(),
  boolean: () => new Bool(),
  uint8: () => new Uint8(),
  uint16: () => new Uint16(),
  uint32: () => new Uint32(),
  uint64: () => new Uint64(),
  int64: () => new Int64(),
  decimal: () => new Decimal(0, 20),
};

type ColumnBuilder = Readonly<{
  set: (row: number, value: ColumnValue) => void;
  /** Whether a variable column has as many bytes as a batch may have. */
  isFull: () => boolean;
  take: (count: number) => Data;
}>;

function createColumn({ name, type, nullable }: Column, rowsMax: number): ColumnBuilder {
  const validity = new Uint8Array(Math.ceil(rowsMax / 8));
  let nulls = 0;
  const values = createValues(type, rowsMax);
  return {
    set: (row, value) => {
      if (value === null) {
        assert(nullable === true, `column ${name} has a value in each row`);
        nulls += 1;
        values.skip(row);
        return;
      }
      validity[row >> 3] = (validity[row >> 3] ?? 0) | (1 << (row & 7));
      values.set(row, value);
    },
    isFull: values.isFull,
    take: (count) => values.take(count, nulls, nulls === 0 ? null : validity),
  };
}

type Values = Readonly<{
  set: (row: number, value: Exclude<ColumnValue, null>) => void;
  skip: (row: number) => void;
  isFull: () => boolean;
  take: (length: number, nullCount: number, nullBitmap: Uint8Array | null) => Data;
}>;

function createValues(type: ColumnType, rowsMax: number): Values {
  if (type === "bytes" || type === "text") return createVariable(type, rowsMax);
  if (type === "boolean") return createBits(rowsMax);
  if (type === "decimal") return createDecimals(rowsMax);
  return createNumbers(type, rowsMax);
}

function createVariable(type: "bytes" | "text", rowsMax: number): Values {
  const valueOffsets = new Int32Array(rowsMax + 1);
  let data = Buffer.allocUnsafeSlow(rowsMax * 16);
  let end = 0;
  const reserve = (size: number): void => {
    if (end + size <= data.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(data.length * 2, end + size));
    data.copy(larger, 0, 0, end);
    data = larger;
  };
  return {
    set: (row, value) => {
      if (typeof value === "string") {
        reserve(value.length * utf8BytesPerUnit);
        end += data.write(value, end);
      } else {
        assert(value instanceof Uint8Array, "a variable column takes bytes or text");
        reserve(value.length);
        data.set(value, end);
        end += value.length;
      }
      valueOffsets[row + 1] = end;
    },
    skip: (row) => {
      valueOffsets[row + 1] = end;
    },
    isFull: () => end >= variableBytesMax,
    take: (length, nullCount, nullBitmap) => {
      const common = { length, nullCount, nullBitmap, valueOffsets: valueOffsets.subarray(0, length + 1) };
      const bytes = data.subarray(0, end);
      return type === "bytes"
        ? makeData({ type: new Binary(), ...common, data: bytes })
        : makeData({ type: new Utf8(), ...common, data: bytes });
    },
  };
}

function createBits(rowsMax: number): Values {
  const data = new Uint8Array(Math.ceil(rowsMax / 8));
  return {
    set: (row, value) => {
      if (value === true) data[row >> 3] = (data[row >> 3] ?? 0) | (1 << (row & 7));
    },
    skip: () => undefined,
    isFull: () => false,
    take: (length, nullCount, nullBitmap) => makeData({ type: new Bool(), length, nullCount, nullBitmap, data }),
  };
}

function createDecimals(rowsMax: number): Values {
  const words = new BigUint64Array(rowsMax * 2);
  return {
    set: (row, value) => {
      assert(typeof value === "bigint" && value >= 0n && value < decimalEnd, "an amount has at most 20 digits");
      words[row * 2] = value & 0xffff_ffff_ffff_ffffn;
      words[row * 2 + 1] = value >> 64n;
    },
    skip: () => undefined,
    isFull: () => false,
    take: (length, nullCount, nullBitmap) =>
      makeData({
        type: new Decimal(0, 20),
        length,
        nullCount,
        nullBitmap,
        data: new Uint32Array(words.buffer, 0, length * 4),
      }),
  };
}

function createNumbers(type: "uint8" | "uint16" | "uint32" | "uint64" | "int64", rowsMax: number): Values {
  switch (type) {
    case "uint8":
      return createNarrow(new Uint8Array(rowsMax), (data, props) => makeData({ type: new Uint8(), ...props, data }));
    case "uint16":
      return createNarrow(new Uint16Array(rowsMax), (data, props) => makeData({ type: new Uint16(), ...props, data }));
    case "uint32":
      return createNarrow(new Uint32Array(rowsMax), (data, props) => makeData({ type: new Uint32(), ...props, data }));
    case "uint64":
      return createWide(new BigUint64Array(rowsMax), (data, props) => makeData({ type: new Uint64(), ...props, data }));
    case "int64":
      return createWide(new BigInt64Array(rowsMax), (data, props) => makeData({ type: new Int64(), ...props, data }));
  }
}

type DataProps = Readonly<{ length: number; nullCount: number; nullBitmap: Uint8Array | null }>;

function createNarrow<List extends Uint8Array | Uint16Array | Uint32Array>(
  data: List,
  make: (data: List, props: DataProps) => Data,
): Values {
  return {
    set: (row, value) => {
      assert(typeof value === "number", "a narrow column takes numbers");
      data[row] = value;
    },
    skip: () => undefined,
    isFull: () => false,
    take: (length, nullCount, nullBitmap) => make(data, { length, nullCount, nullBitmap }),
  };
}

function createWide<List extends BigUint64Array | BigInt64Array>(
  data: List,
  make: (data: List, props: DataProps) => Data,
): Values {
  // A bigint for each value would cost more than the rest of the column.
  const halves = new Int32Array(data.buffer);
  return {
    set: (row, value) => {
      if (typeof value === "bigint") data[row] = value;
      else {
        assert(Number.isSafeInteger(value), "a wide column takes integers");
        const integer = value as number;
        halves[row * 2] = integer;
        halves[row * 2 + 1] = Math.floor(integer / 2 ** 32);
      }
    },
    skip: () => undefined,
    isFull: () => false,
    take: (length, nullCount, nullBitmap) => make(data, { length, nullCount, nullBitmap }),
  };
}
