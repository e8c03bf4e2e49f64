/**
 * Arrow record batches, built value by value in typed arrays: a value costs some 10 ns, where Arrow's own builders cost
 * twenty times as much.
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

/** A column of a table. */
export type Column = Readonly<{ name: string; type: ColumnType; nullable?: true }>;

/** A column of a batch in progress. Each call adds one value; a call of another type than the column is a defect. */
export type ColumnBuilder = Readonly<{
  /** Bytes, or text as UTF-8. */
  bytes: (value: Uint8Array) => void;
  text: (value: string) => void;
  /** A safe integer. */
  number: (value: number) => void;
  /** 64 bits, or a decimal of 20 digits. */
  bigint: (value: bigint) => void;
  /** 64 bits as two halves of 32 bits each. */
  halves: (high: number, low: number) => void;
  boolean: (value: boolean) => void;
  null: () => void;
}>;

/** Rows that become a batch. */
export type BatchBuilder = Readonly<{
  /** In the order of the table's columns. */
  columns: readonly ColumnBuilder[];
  /** Ends a row, of which every column has a value. @returns Whether the batch must be taken. */
  endRow: () => boolean;
  /** Rows since the last batch. */
  count: () => number;
  /** Takes the batch, which is valid until the next row is added; the builder is empty afterwards. */
  take: () => RecordBatch;
}>;

/** Bytes of one variable column at which a batch is full: with 10,000 rows most batches are far below. */
const variableBytesMax = 8 * 2 ** 20;

const decimalEnd = 10n ** 20n;

/** A UTF-16 unit takes at most three bytes of UTF-8. */
const utf8BytesPerUnit = 3;

/** Up to this length, a loop writes text faster than a call. */
const shortText = 40;

/** @param rowsMax - Rows of a batch. */
export function createBatchBuilder(columns: readonly Column[], rowsMax: number): BatchBuilder {
  const schema = schemaOf(columns);
  const building = columns.map((column) => createColumn(column, rowsMax));
  const variable = building.filter((_, index) => ["bytes", "text"].includes(columns[index]?.type ?? ""));
  let count = 0;
  return {
    columns: building.map(({ builder }) => builder),
    endRow: () => {
      count += 1;
      return count === rowsMax || variable.some((column) => column.bytes() >= variableBytesMax);
    },
    count: () => count,
    take: () => {
      const children = building.map((column) => column.take(count));
      const batch = new RecordBatch(
        schema,
        makeData({ type: new Struct(schema.fields), length: count, nullCount: 0, children }),
      );
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

type BuildingColumn = Readonly<{
  builder: ColumnBuilder;
  /** Bytes of a variable column; 0 of another. */
  bytes: () => number;
  /** @param count - Rows, which must be the number of added values. */
  take: (count: number) => Data;
}>;

type DataProps = Readonly<{ length: number; nullCount: number; nullBitmap: Uint8Array | null }>;

/** The values of one type, without validity. */
type Values = Readonly<{
  set: Partial<ColumnSetters>;
  /** Fills the place of a null. */
  skip: (row: number) => void;
  bytes: () => number;
  take: (props: DataProps) => Data;
}>;

/** As `ColumnBuilder`, with the row. */
type ColumnSetters = {
  readonly [Name in Exclude<keyof ColumnBuilder, "null">]: (
    row: number,
    ...value: Parameters<ColumnBuilder[Name]>
  ) => void;
};

function createColumn(column: Column, rowsMax: number): BuildingColumn {
  const { name, type, nullable } = column;
  const { set, skip, bytes, take } = createValues(type, rowsMax);
  const validity = new Uint8Array(Math.ceil(rowsMax / 8));
  let rows = 0;
  let nulls = 0;
  /** The first null marks the values before it as valid: most columns have none. */
  const markNull = (row: number): void => {
    if (nulls === 0) validity.fill(255);
    nulls += 1;
    validity[row >> 3] = (validity[row >> 3] ?? 0) & ~(1 << (row & 7));
  };
  const rejecting = (kind: string) => (): never => {
    throw new Error(`the column ${name} of type ${type} takes no ${kind}`);
  };
  const { bytes: setBytes, text, number, bigint, halves, boolean } = set;
  return {
    builder: {
      bytes: setBytes === undefined ? rejecting("bytes") : (value) => setBytes(rows++, value),
      text: text === undefined ? rejecting("text") : (value) => text(rows++, value),
      number: number === undefined ? rejecting("number") : (value) => number(rows++, value),
      bigint: bigint === undefined ? rejecting("bigint") : (value) => bigint(rows++, value),
      halves: halves === undefined ? rejecting("halves") : (high, low) => halves(rows++, high, low),
      boolean: boolean === undefined ? rejecting("boolean") : (value) => boolean(rows++, value),
      null:
        nullable === true
          ? () => {
              markNull(rows);
              skip(rows++);
            }
          : rejecting("null"),
    },
    bytes,
    take: (count) => {
      assert(rows === count, "a row has a value in every column");
      const data = take({ length: count, nullCount: nulls, nullBitmap: nulls === 0 ? null : validity.slice() });
      rows = 0;
      nulls = 0;
      return data;
    },
  };
}

function createValues(type: ColumnType, rowsMax: number): Values {
  switch (type) {
    case "bytes":
      return createVariable(rowsMax, (props) => makeData({ type: new Binary(), ...props }));
    case "text":
      return createVariable(rowsMax, (props) => makeData({ type: new Utf8(), ...props }));
    case "boolean":
      return createBits(rowsMax);
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
    case "decimal":
      return createDecimals(rowsMax);
  }
}

function createVariable(
  rowsMax: number,
  make: (props: DataProps & Readonly<{ valueOffsets: Int32Array; data: Uint8Array }>) => Data,
): Values {
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
    set: {
      bytes: (row, value) => {
        reserve(value.length);
        data.set(value, end);
        end += value.length;
        valueOffsets[row + 1] = end;
      },
      text: (row, value) => {
        reserve(value.length * utf8BytesPerUnit);
        end += writeText(data, end, value);
        valueOffsets[row + 1] = end;
      },
    },
    skip: (row) => {
      valueOffsets[row + 1] = end;
    },
    bytes: () => end,
    take: (props) => {
      const taken = { valueOffsets: valueOffsets.subarray(0, props.length + 1), data: data.subarray(0, end) };
      end = 0;
      return make({ ...props, ...taken });
    },
  };
}

/** Writes text as UTF-8; returns its bytes. */
function writeText(data: Buffer, at: number, text: string): number {
  if (text.length > shortText) return data.write(text, at);
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code > 127) return data.write(text, at);
    data[at + index] = code;
  }
  return text.length;
}

function createBits(rowsMax: number): Values {
  const data = new Uint8Array(Math.ceil(rowsMax / 8));
  return {
    set: {
      boolean: (row, value) => {
        const bit = 1 << (row & 7);
        data[row >> 3] = value ? (data[row >> 3] ?? 0) | bit : (data[row >> 3] ?? 0) & ~bit;
      },
    },
    skip: () => undefined,
    bytes: () => 0,
    take: (props) => makeData({ type: new Bool(), ...props, data }),
  };
}

function createDecimals(rowsMax: number): Values {
  const words = new BigUint64Array(rowsMax * 2);
  return {
    set: {
      bigint: (row, value) => {
        assert(value >= 0n && value < decimalEnd, "an amount has at most 20 digits");
        words[row * 2] = value & 0xffff_ffff_ffff_ffffn;
        words[row * 2 + 1] = value >> 64n;
      },
    },
    skip: () => undefined,
    bytes: () => 0,
    take: (props) =>
      makeData({ type: new Decimal(0, 20), ...props, data: new Uint32Array(words.buffer, 0, props.length * 4) }),
  };
}

function createNarrow<List extends Uint8Array | Uint16Array | Uint32Array>(
  data: List,
  make: (data: List, props: DataProps) => Data,
): Values {
  return {
    set: {
      number: (row, value) => {
        data[row] = value;
      },
    },
    skip: () => undefined,
    bytes: () => 0,
    take: (props) => make(data, props),
  };
}

function createWide<List extends BigUint64Array | BigInt64Array>(
  data: List,
  make: (data: List, props: DataProps) => Data,
): Values {
  // A bigint for each value would cost more than the rest of the column.
  const words = new Int32Array(data.buffer);
  return {
    set: {
      number: (row, value) => {
        assert(Number.isSafeInteger(value), "a wide column takes integers");
        words[row * 2] = value;
        words[row * 2 + 1] = Math.floor(value / 2 ** 32);
      },
      bigint: (row, value) => {
        data[row] = value;
      },
      halves: (row, high, low) => {
        words[row * 2] = low;
        words[row * 2 + 1] = high;
      },
    },
    skip: () => undefined,
    bytes: () => 0,
    take: (props) => make(data, props),
  };
}
