/**
 * Signatures of rows, from the index and from cached bytes.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { idOfSignature } from "../../src/arweave/id.ts";
import { createSignatureSource, type SignatureIndex } from "../../src/graphql/signature-source.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openExtentFiles } from "../../src/store/extents/extent-files.ts";
import { rootName } from "../../src/store/extents/extent-roots.ts";
import type { Located, PageRow } from "../../src/store/index/index-types.ts";
import { encodedRow } from "../../src/store/index/pages/encoded-row.ts";
import { pendingHeight } from "../../src/store/index/place.ts";
import { idOf, rowAt } from "./memory-index.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-signatures-"));
afterAll(() => removeFolder(folder));

const rootId = idOf("root");
const root = { id: rootId, dataRoot: idOf("data root") as string, size: 100_000 };
const ed25519 = { type: 2, size: 64 };
const signatureOf = (seed: number) => new Uint8Array(ed25519.size).fill(seed);

/** An item whose header begins at `offset`, in a root that is cached or not. */
function itemAt(offset: number, signature: Uint8Array, height = 5): PageRow {
  return rowAt({ height, txIndex: 0, offset }, { id: idOfSignature(signature), signatureType: ed25519.type });
}

const right = itemAt(4_096, signatureOf(1));
const second = itemAt(9_000, signatureOf(2));
const hole = itemAt(20_000, signatureOf(3));
const damaged = itemAt(30_000, signatureOf(4));
const beyond = itemAt(99_990, signatureOf(5));
const pending = itemAt(64, signatureOf(6), pendingHeight);
const uploaded = itemAt(65, signatureOf(8), pendingHeight);
const replaced = itemAt(66, signatureOf(9), pendingHeight);
const strange = { ...itemAt(4_096, signatureOf(1)), signatureType: 99 };
const transaction = rowAt({ height: 5, txIndex: 1, offset: -1 });
const headerless = rowAt({ height: 5, txIndex: 2, offset: -1 });

const located = (row: PageRow, from: typeof root): Located => ({
  id: row.id,
  kind: "item",
  place: row.place,
  rootId: from.id,
  size: row.size,
  dataOffset: row.place.offset + row.headerSize,
  itemOffset: row.place.offset,
  headerSize: row.headerSize,
  signatureType: row.signatureType,
  ownerAddress: row.ownerAddress,
  verified: true,
  stable: true,
  pending: row.place.height === pendingHeight,
  dataRoot: from.dataRoot,
  rootSize: from.size,
});
const indexOf = (from: typeof root): SignatureIndex => ({
  locate: (id) => {
    const row = [right, second, hole, damaged, beyond, pending].find((candidate) => candidate.id === id);
    return row === undefined ? undefined : located(row, from);
  },
  pendingSignature: ({ offset }) =>
    offset === uploaded.place.offset ? signatureOf(8) : offset === replaced.place.offset ? signatureOf(1) : undefined,
  transactionText: (id) =>
    id === transaction.id ? { text: '{"format":2,"signature":"c2lnbmVk","tags":[]}', dataAt: null } : undefined,
});

beforeAll(() => {
  const path = openExtentFiles(folder).path(rootName(root));
  const bytes = new Uint8Array(root.size);
  bytes.set(signatureOf(1), 4_098);
  bytes.set(signatureOf(2), 9_002);
  bytes.set(signatureOf(7), 30_002);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, bytes);
});

describe("signatures", () => {
  const find = (rows: readonly PageRow[], from = root) => {
    const source = createSignatureSource(indexOf(from), folder);
    const encoded = rows.map(encodedRow);
    source.find(encoded);
    return new Map(
      encoded.flatMap((row, index) => {
        const signature = source.of(row);
        return signature === undefined ? [] : [[rows[index]?.id, signature] as const];
      }),
    );
  };
  const text = (signature: Uint8Array) => Buffer.from(signature).toString("base64url");

  test("of a transaction come from its header", () => {
    expect([...find([transaction])]).toEqual([[transaction.id, "c2lnbmVk"]]);
  });

  test("of items come from the bytes of their root, for several items at once", () => {
    expect([...find([right, transaction, second])]).toEqual([
      [right.id, text(signatureOf(1))],
      [transaction.id, "c2lnbmVk"],
      [second.id, text(signatureOf(2))],
    ]);
  });

  test("of an unconfirmed item come from its row", () => {
    expect([...find([uploaded])]).toEqual([[uploaded.id, text(signatureOf(8))]]);
  });

  const absent: [string, PageRow][] = [
    ["a hole in the file", hole],
    ["bytes that hash to another id", damaged],
    ["the end of the file", beyond],
    ["no block yet, and no signature in its row", pending],
    ["another signature in its row", replaced],
    ["an unknown signature type", strange],
    ["a header that the index does not have", headerless],
  ];
  test.each(absent)("are left out where there is %s", (_name, row) => {
    expect([...find([row, second]).keys()]).toEqual([second.id]);
  });

  test("are left out where the root is not cached", () => {
    expect(find([right], { ...root, dataRoot: idOf("elsewhere") }).size).toBe(0);
  });
});
