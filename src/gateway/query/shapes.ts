/**
 * How every type of the schema is written from rows of the index.
 *
 * Ids, addresses and hashes are base64url and need no escaping; what owners wrote themselves goes through
 * `JSON.stringify`.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import { type Tag, tagValue } from "../../arweave/tags.ts";
import type { PageBlock, PageRow } from "../../store/rows.ts";
import { leaf, list, object, type Shape } from "./answer-text.ts";
import { writeBlockCursor, writeTransactionCursor } from "./cursor.ts";

/** A page of rows as an answer needs it. */
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
      tags: list(tagShape, ({ tags }) => tags),
      block: object(blockShape, ({ block }) => block ?? null),
      parent: object(parentShape, ({ parentId }) => parentId ?? null),
      bundledIn: object(bundleShape, ({ parentId }) => parentId ?? null),
      ingestedAt: leaf(({ ingestedAt }) => `${ingestedAt}`),
    },
  };
}

/** A page of transactions and data items. */
export function transactionConnectionShape(signatures: Signatures): Shape<Connection<PageRow>> {
  return connectionShape("Transaction", transactionShape(signatures), ({ place }) =>
    writeTransactionCursor(place),
  );
}

/** A page of blocks. */
export const blockConnectionShape = connectionShape("Block", blockShape, ({ height }) =>
  writeBlockCursor(height),
);

function connectionShape<Row>(
  name: string,
  shape: Shape<Row>,
  cursorOf: (row: Row) => string,
): Shape<Connection<Row>> {
  const edgeShape: Shape<Row> = {
    name: `${name}Edge`,
    fields: {
      cursor: leaf((row) => `"${cursorOf(row)}"`),
      node: object(shape, (row) => row),
    },
  };
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
    name: `${name}Connection`,
    fields: {
      pageInfo: object(pageInfoShape, (connection) => connection),
      edges: list(
        edgeShape,
        ({ rows }) => rows,
        (answer) => answer.flush(),
      ),
      count: leaf(({ count }) => (count === null ? "null" : `"${count}"`)),
    },
  };
}

/** A transaction's RSA is type 1 of ANS-104; its ECDSA has no number there. */
function writeSignatureType(type: number): string {
  if (type === -1) return "1";
  return type > 0 ? `${type}` : "null";
}
