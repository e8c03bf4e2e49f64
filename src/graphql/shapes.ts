/**
 * How every type of the schema is written from rows of the index.
 *
 * Ids, addresses and hashes are base64url and need no escaping; what owners wrote themselves is escaped.
 * @module
 */
import { addressOfKey } from "../arweave/id.ts";
import type { EncodedBlock, EncodedOwner, EncodedRow, StoredColumns } from "../store/index/pages/encoded-types.ts";
import { placeOfRow } from "../store/index/place.ts";
import { transactionCursorBytes, writeBlockCursor } from "./cursor.ts";
import {
  addAscii,
  addBase64url,
  addBytes,
  addCharacter,
  addText,
  asciiLeaf,
  base64urlLeaf,
  compileShape,
  leaf,
  nullBytes,
  type Output,
  object,
  type Shape,
  sharedObject,
  textBytes,
  type Write,
  type WriteValue,
  writerOf,
} from "./response-bytes.ts";
import type { WrittenField } from "./selection.ts";
import { contentTypeTag, tagsField, writeTagValue } from "./tag-json.ts";

/** A page of rows for a response. */
export type Connection<Row> = Readonly<{
  rows: readonly Row[];
  hasNextPage: boolean;
  /** Rows on all pages; null when not known. */
  count: number | null;
}>;

/** Returns the signature of a row, base64url; undefined where it could not be had. */
export type SignatureOf = (row: EncodedRow) => string | undefined;

const winstonDigits = 12;

/**
 * Writes an amount of winston as AR: all twelve digits, as clients get it elsewhere.
 *
 * @param winston - Decimal digits.
 */
export function writeAr(winston: string): string {
  // Every amount of a data item.
  if (winston === "0") return "0.000000000000";
  const digits = winston.padStart(winstonDigits + 1, "0");
  return `${digits.slice(0, -winstonDigits)}.${digits.slice(-winstonDigits)}`;
}

const quote = 0x22;

const amountShape: Shape<string> = {
  name: "Amount",
  fields: {
    winston: asciiLeaf((winston) => `"${winston}"`),
    ar: asciiLeaf((winston) => `"${writeAr(winston)}"`),
  },
};

const ownerShape: Shape<EncodedOwner> = {
  name: "Owner",
  fields: {
    address: base64urlLeaf(({ address }) => address),
    key: leaf(({ key }, out) => {
      if (key === null || key.length === 0) addBytes(out, nullBytes);
      else writeBase64url(key, out);
    }),
  },
};

const dataShape: Shape<StoredColumns> = {
  name: "MetaData",
  fields: {
    size: asciiLeaf(({ size }) => `"${size}"`),
    type: leaf(({ tags }, out) => {
      const tag = tags === null ? undefined : contentTypeTag(tags);
      if (tag === undefined) addBytes(out, nullBytes);
      else writeTagValue(tag, out);
    }),
  },
};

const idField = { id: base64urlLeaf((id: Uint8Array) => id) };
const parentShape: Shape<Uint8Array> = { name: "Parent", fields: idField };
const bundleShape: Shape<Uint8Array> = { name: "Bundle", fields: idField };

/** A block. */
export const blockShape: Shape<EncodedBlock> = {
  name: "Block",
  fields: {
    id: base64urlLeaf(({ hash }) => hash),
    timestamp: asciiLeaf(({ timestamp }) => `${timestamp}`),
    height: asciiLeaf(({ height }) => `${height}`),
    previous: leaf(({ previous }, out) => writeBase64url(previous ?? noBytes, out)),
  },
};

/** A transaction or data item. */
export function transactionShape(signatureOf: SignatureOf): Shape<EncodedRow> {
  return {
    name: "Transaction",
    fields: {
      id: base64urlLeaf(({ stored }) => stored.id),
      anchor: leaf(({ stored }, out) => writeAnchor(stored.anchor, out)),
      signature: leaf((row, out) => {
        const signature = signatureOf(row);
        if (signature === undefined) addBytes(out, nullBytes);
        else addText(out, `"${signature}"`);
      }),
      signatureType: asciiLeaf(({ stored }) => writeSignatureType(stored.sig)),
      recipient: leaf(({ stored }, out) => writeTarget(stored.target, out)),
      owner: sharedObject(ownerShape, ({ owner }) => owner),
      fee: object(amountShape, ({ amounts }) => amounts?.reward ?? "0"),
      quantity: object(amountShape, ({ amounts }) => amounts?.quantity ?? "0"),
      data: object(dataShape, ({ stored }) => stored),
      tags: tagsField(({ stored }) => stored.tags),
      block: sharedObject(blockShape, ({ block }) => block),
      parent: object(parentShape, ({ parentId }) => parentId),
      bundledIn: object(bundleShape, ({ parentId }) => parentId),
      ingestedAt: asciiLeaf(({ stored }) => `${stored.ingested}`),
    },
  };
}

const noBytes = new Uint8Array(0);

function writeBase64url(bytes: Uint8Array, out: Output): void {
  addCharacter(out, quote);
  addBase64url(out, bytes);
  addCharacter(out, quote);
}

function writeAnchor(anchor: string | Uint8Array | null, out: Output): void {
  if (typeof anchor === "string") addText(out, JSON.stringify(anchor));
  else writeBase64url(anchor ?? noBytes, out);
}

/** Bytes of a target that is most likely 32 bytes in another spelling than the canonical one. */
const addressCharacters = 43;

function writeTarget(target: Uint8Array | null, out: Output): void {
  if (target?.length === addressCharacters) addText(out, JSON.stringify(addressOfKey(target)));
  else writeBase64url(target ?? noBytes, out);
}

/** How a page is written: its rows one by one, the fields around them at once. */
export type ConnectionShape<Row> = Readonly<{
  edge: Shape<Row>;
  /** All fields but `edges`. */
  around: Shape<Connection<Row>>;
}>;

/** A page of transactions and data items. */
export function transactionConnectionShape(signatureOf: SignatureOf): ConnectionShape<EncodedRow> {
  return connectionShape("Transaction", transactionShape(signatureOf), ({ stored }, out) =>
    writeBase64url(transactionCursorBytes(placeOfRow(stored)), out),
  );
}

/** A page of blocks. */
export const blockConnectionShape = connectionShape("Block", blockShape, ({ height }, out) =>
  addAscii(out, `"${writeBlockCursor(height)}"`),
);

/** Makes the writer of a page from what is selected of it. */
export function compileConnection<Row>(
  { edge, around }: ConnectionShape<Row>,
  fields: readonly WrittenField[],
): (connection: Connection<Row>) => WriteValue {
  const parts = fields.map((field, index) => ({
    prefix: textBytes(`${index === 0 ? "{" : ","}${JSON.stringify(field.key)}:`),
    write: field.name === "edges" ? writeEdges(compileShape(edge, field.inner)) : writerOf(around, field),
  }));
  return (connection) => (out) => {
    for (const { prefix, write } of parts) {
      addBytes(out, prefix);
      write(connection, out);
    }
    addAscii(out, parts.length === 0 ? "{}" : "}");
  };
}

const comma = 0x2c;

function writeEdges<Row>(write: Write<Row>): Write<Connection<Row>> {
  return ({ rows }, out) => {
    addAscii(out, "[");
    for (const [index, row] of rows.entries()) {
      if (index > 0) addCharacter(out, comma);
      write(row, out);
    }
    addAscii(out, "]");
  };
}

function connectionShape<Row>(name: string, shape: Shape<Row>, writeCursor: Write<Row>): ConnectionShape<Row> {
  const pageInfoShape: Shape<Connection<Row>> = {
    name: "PageInfo",
    fields: {
      hasNextPage: asciiLeaf(({ hasNextPage }) => `${hasNextPage}`),
      endCursor: leaf(({ rows }, out) => {
        const last = rows.at(-1);
        if (last === undefined) addBytes(out, nullBytes);
        else writeCursor(last, out);
      }),
    },
  };
  return {
    edge: {
      name: `${name}Edge`,
      fields: { cursor: leaf(writeCursor), node: object(shape, (row) => row) },
    },
    around: {
      name: `${name}Connection`,
      fields: {
        pageInfo: object(pageInfoShape, (connection) => connection),
        count: asciiLeaf(({ count }) => (count === null ? "null" : `"${count}"`)),
      },
    },
  };
}

/** A transaction's RSA is type 1 of ANS-104; its ECDSA has no number there. */
function writeSignatureType(type: number): string {
  if (type === -1) return "1";
  return type > 0 ? `${type}` : "null";
}
