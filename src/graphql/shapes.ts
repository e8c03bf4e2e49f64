/**
 * How every type of the schema is written from rows of the index.
 *
 * Ids, addresses and hashes are base64url and need no escaping; what owners wrote themselves goes through
 * `JSON.stringify`.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { type Tag, tagValue } from "../arweave/tags.ts";
import type { PageBlock, PageRow } from "../store/index/index-types.ts";
import { writeBlockCursor, writeTransactionCursor } from "./cursor.ts";
import {
  compileShape,
  leaf,
  list,
  object,
  type ResponseText,
  type Shape,
  type Writer,
  type WriteValue,
  writerOf,
} from "./response-text.ts";
import type { SelectedField } from "./selection.ts";

/** A page of rows for a response. */
export type Connection<Row> = Readonly<{
  rows: readonly Row[];
  hasNextPage: boolean;
  /** Rows on all pages; null when not known. */
  count: number | null;
}>;

/** The signatures that could be had, of the rows of a request. */
export type Signatures = ReadonlyMap<Id, string>;

const winstonDigits = 12;

/**
 * Writes an amount of winston as AR: all twelve digits, as clients get it elsewhere.
 *
 * @param winston - 0 or more.
 */
export function writeAr(winston: bigint): string {
  // Every amount of a data item.
  if (winston === 0n) return "0.000000000000";
  const digits = winston.toString().padStart(winstonDigits + 1, "0");
  return `${digits.slice(0, -winstonDigits)}.${digits.slice(-winstonDigits)}`;
}

const tagShape: Shape<Tag> = {
  name: "Tag",
  fields: {
    name: leaf(({ name }) => JSON.stringify(name)),
    value: leaf(({ value }) => JSON.stringify(value)),
  },
};

const writeAnyTags = list(tagShape, ({ tags }: PageRow) => tags);

/** Names and values in that order are what clients ask for, and what a tag is: five times as fast in one call. */
function writeTags(field: SelectedField): Writer<PageRow> {
  const asked = field.inner.map(({ key, name }) => `${key}:${name}`).join(" ");
  return asked === "name:name value:value" ? ({ tags }) => JSON.stringify(tags) : writeAnyTags(field);
}

const amountShape: Shape<bigint> = {
  name: "Amount",
  fields: {
    winston: leaf((winston) => `"${winston}"`),
    ar: leaf((winston) => `"${writeAr(winston)}"`),
  },
};

const ownerShape: Shape<PageRow> = {
  name: "Owner",
  fields: {
    address: leaf(({ ownerAddress }) => `"${ownerAddress}"`),
    key: leaf(({ ownerKey }) => (ownerKey === "" ? "null" : `"${ownerKey}"`)),
  },
};

const dataShape: Shape<PageRow> = {
  name: "MetaData",
  fields: {
    size: leaf(({ size }) => `"${size}"`),
    type: leaf(({ tags }) => {
      const type = tagValue(tags, "Content-Type");
      return type === undefined ? "null" : JSON.stringify(type);
    }),
  },
};

const idField = { id: leaf((id: Id) => `"${id}"`) };
const parentShape: Shape<Id> = { name: "Parent", fields: idField };
const bundleShape: Shape<Id> = { name: "Bundle", fields: idField };

/** A block. */
export const blockShape: Shape<PageBlock> = {
  name: "Block",
  fields: {
    id: leaf(({ hash }) => `"${hash}"`),
    timestamp: leaf(({ timestamp }) => `${timestamp}`),
    height: leaf(({ height }) => `${height}`),
    previous: leaf(({ previous }) => `"${previous}"`),
  },
};

/** A transaction or data item; signatures come from elsewhere and are null where they are not given. */
export function transactionShape(signatures: Signatures): Shape<PageRow> {
  return {
    name: "Transaction",
    fields: {
      id: leaf(({ id }) => `"${id}"`),
      anchor: leaf(({ anchor }) => JSON.stringify(anchor)),
      signature: leaf(({ id }) => {
        const signature = signatures.get(id);
        return signature === undefined ? "null" : `"${signature}"`;
      }),
      signatureType: leaf(({ signatureType }) => writeSignatureType(signatureType)),
      recipient: leaf(({ target }) => JSON.stringify(target)),
      owner: object(ownerShape, (row) => row),
      fee: object(amountShape, ({ reward }) => reward),
      quantity: object(amountShape, ({ quantity }) => quantity),
      data: object(dataShape, (row) => row),
      tags: writeTags,
      block: object(blockShape, ({ block }) => block ?? null),
      parent: object(parentShape, ({ parentId }) => parentId ?? null),
      bundledIn: object(bundleShape, ({ parentId }) => parentId ?? null),
      ingestedAt: leaf(({ ingestedAt }) => `${ingestedAt}`),
    },
  };
}

/** How a page is written: its rows one by one, the fields around them at once. */
export type ConnectionShape<Row> = Readonly<{
  edge: Shape<Row>;
  /** All fields but `edges`. */
  around: Shape<Connection<Row>>;
}>;

/** A page of transactions and data items. */
export function transactionConnectionShape(signatures: Signatures): ConnectionShape<PageRow> {
  return connectionShape("Transaction", transactionShape(signatures), ({ place }) => writeTransactionCursor(place));
}

/** A page of blocks. */
export const blockConnectionShape = connectionShape("Block", blockShape, ({ height }) => writeBlockCursor(height));

/** Makes the writer of a page from what is selected of it. */
export function compileConnection<Row>(
  { edge, around }: ConnectionShape<Row>,
  fields: readonly SelectedField[],
): (connection: Connection<Row>) => WriteValue {
  const parts = fields.map((field) => ({
    key: JSON.stringify(field.key),
    write: field.name === "edges" ? writeEdges(compileShape(edge, field.inner)) : writeAround(writerOf(around, field)),
  }));
  return (connection) => (response) => {
    for (const [index, { key, write }] of parts.entries()) {
      response.add(`${index === 0 ? "{" : ","}${key}:`);
      write(connection, response);
    }
    response.add(parts.length === 0 ? "{}" : "}");
  };
}

type WritePart<Row> = (connection: Connection<Row>, response: ResponseText) => void;

function writeAround<Row>(write: Writer<Connection<Row>>): WritePart<Row> {
  return (connection, response) => response.add(write(connection));
}

function writeEdges<Row>(write: Writer<Row>): WritePart<Row> {
  return ({ rows }, response) => {
    response.add("[");
    for (const [index, row] of rows.entries()) response.add(index === 0 ? write(row) : `,${write(row)}`);
    response.add("]");
  };
}

function connectionShape<Row>(name: string, shape: Shape<Row>, cursorOf: (row: Row) => string): ConnectionShape<Row> {
  const pageInfoShape: Shape<Connection<Row>> = {
    name: "PageInfo",
    fields: {
      hasNextPage: leaf(({ hasNextPage }) => `${hasNextPage}`),
      endCursor: leaf(({ rows }) => {
        const last = rows.at(-1);
        return last === undefined ? "null" : `"${cursorOf(last)}"`;
      }),
    },
  };
  return {
    edge: {
      name: `${name}Edge`,
      fields: {
        cursor: leaf((row) => `"${cursorOf(row)}"`),
        node: object(shape, (row) => row),
      },
    },
    around: {
      name: `${name}Connection`,
      fields: {
        pageInfo: object(pageInfoShape, (connection) => connection),
        count: leaf(({ count }) => (count === null ? "null" : `"${count}"`)),
      },
    },
  };
}

/** A transaction's RSA is type 1 of ANS-104; its ECDSA has no number there. */
function writeSignatureType(type: number): string {
  if (type === -1) return "1";
  return type > 0 ? `${type}` : "null";
}
