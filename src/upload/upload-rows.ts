/**
 * Rows of accepted uploads: where the bytes of an item are stored, and the state of the item.
 *
 * After planning, the state is that of the item's bundle (pipeline/bundle-rows.ts): one row changes for ten thousand
 * items.
 * @module
 */
import type { BundleItem } from "../../workers/bundles.ts";
import { bundleCountSize, bundleEntrySize } from "../arweave/bundle.ts";
import type { Id } from "../arweave/id.ts";
import { multiAptos } from "../arweave/signers/ed25519.ts";
import { isSignedByMessage, type Signing } from "../arweave/signing.ts";
import { type Winc, winc } from "../arweave/winston.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { decodeBase64url, encodeBase64url } from "../lib/base64url.ts";
import type { UserAddress } from "../payment/addresses.ts";
import {
  type LedgerDatabase,
  type Row,
  readCount,
  readTime,
  type Tx,
  type Value,
} from "../store/ledger/ledger-database.ts";

/** State of an item: waiting, in a bundle, in a posted bundle, permanent, or failed. */
export type UploadState = "stored" | "planned" | "posted" | "permanent" | "failed";

/** Bytes of an item on this disk. */
export type ItemBytes = Readonly<{
  /** Path within the folder of uploads. */
  file: string;
  /** Offset of the item in the file. Bytes. */
  offset: number;
  /** Size of the complete item, header and payload. Bytes. */
  size: number;
}>;

/** An accepted item. */
export type TakenItem = Readonly<{
  id: Id;
  /** Name of the folder of uploads that has its bytes (store/uploads/item-files.ts). */
  store: string;
  bytes: ItemBytes;
  headerSize: number;
  signatureType: number;
  /**
   * Id of the act of signing (arweave/signing.ts) if the signature type has several encodings; otherwise `undefined`,
   * because the id of the item is the only one.
   */
  signingId: Id | undefined;
  /** SHA-256 of the owner, base64url, for every signature type. */
  ownerAddress: string;
  /** The account of the signer. */
  signer: UserAddress;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  /** SHA-256 of the payload. */
  digest: Uint8Array;
  /** The charge. */
  winc: Winc;
  /** The paid reservation; `undefined` for a free item. */
  reservationId: string | undefined;
  /** Unix milliseconds; in the receipt. */
  receivedAt: number;
  /** In the receipt: the height by which the item is promised on the chain. */
  deadlineHeight: number;
}>;

/** An item that waits for a bundle. */
export type WaitingItem = BundleItem & Readonly<{ receivedAt: number }>;

/** Position of an item in a bundle. */
export type BundlePlace = Readonly<{
  bundleId: string;
  /** Among the bundle's items, from 0. */
  position: number;
  /** Offset of the item in the bundle's data, bytes; `undefined` until the bundle is planned. */
  offset: number | undefined;
  /** The transaction of the bundle; `undefined` until a node has accepted it. */
  transactionId: Id | undefined;
}>;

export type Upload = TakenItem &
  Readonly<{
    state: UploadState;
    place: BundlePlace | undefined;
    failedReason: string | undefined;
  }>;

/**
 * Inserts the row of an accepted item; its id must be new.
 *
 * @throws Failure `busy` when its file was removed meanwhile: the client must send the item again.
 */
export async function insertUpload(tx: Tx, item: TakenItem): Promise<void> {
  await checkFile(tx, item);
  const values = valuesOf(item);
  await tx.run(
    `INSERT INTO uploads (id, ${takenColumns.join(", ")}) VALUES (?, ${values.map(() => "?").join(", ")})`,
    ...[item.id, ...values],
  );
}

/** Replaces the row of a failed item that is accepted again. @throws Failure as `insertUpload`. */
export async function replaceUpload(tx: Tx, item: TakenItem): Promise<void> {
  await checkFile(tx, item);
  const changed = await tx.run(
    `UPDATE uploads SET ${takenColumns.map((column) => `${column} = ?`).join(", ")}, failed_reason = NULL ` +
      "WHERE id = ? AND failed_reason IS NOT NULL",
    ...[...valuesOf(item), item.id],
  );
  assert(changed === 1, "only an item that has failed is taken again");
}

/** A receipt must not promise bytes that were written to a segment just before its removal. */
async function checkFile(tx: Tx, { bytes }: TakenItem): Promise<void> {
  const removed = await tx.get("SELECT file FROM removed_files WHERE file = ?", bytes.file);
  if (removed !== undefined) throw new Failure("busy", { reason: "its file was removed", file: bytes.file });
}

const takenColumns = [
  "store",
  "file",
  "file_offset",
  "size",
  "header_size",
  "signature_type",
  "signing_id",
  "owner_address",
  "signer",
  "content_type",
  "content_encoding",
  "digest",
  "winc",
  "reservation_id",
  "received_at",
  "deadline_height",
] as const;

/** In the order of `takenColumns`. */
function valuesOf(item: TakenItem): Value[] {
  const { store, bytes, headerSize, signatureType, signingId, ownerAddress, signer } = item;
  return [
    store,
    bytes.file,
    BigInt(bytes.offset),
    BigInt(bytes.size),
    BigInt(headerSize),
    BigInt(signatureType),
    signingId ?? null,
    ownerAddress,
    signer,
    item.contentType ?? null,
    item.contentEncoding ?? null,
    encodeBase64url(item.digest),
    item.winc,
    item.reservationId ?? null,
    BigInt(item.receivedAt),
    BigInt(item.deadlineHeight),
  ];
}

/** Marks an item of a bundle as failed, and removes it from the bundle. @returns The item if it was in the bundle. */
export async function failUpload(tx: Tx, id: string, bundleId: string, reason: string): Promise<Upload | undefined> {
  const changed = await tx.run(
    "UPDATE uploads SET failed_reason = ?, bundle_id = NULL, position = NULL, behind = NULL " +
      "WHERE id = ? AND bundle_id = ?",
    ...[reason, id, bundleId],
  );
  return changed === 0 ? undefined : await findUpload(tx, id);
}

/** Finds an upload by its id; `undefined` if it was never accepted. */
export async function findUpload(tx: Tx, id: string): Promise<Upload | undefined> {
  const row = await tx.get<UploadRow>(
    "SELECT u.*, b.state AS bundle_state, b.item_count AS bundle_items, b.transaction_id FROM uploads u " +
      "LEFT JOIN bundles b ON b.id = u.bundle_id WHERE u.id = ?",
    id,
  );
  return row === undefined ? undefined : readUpload(row);
}

/** Properties of an item by which earlier uploads of the same act of signing are found. */
export type SignedItem = Readonly<{
  signing: Signing;
  signatureType: number;
  ownerAddress: string;
  headerSize: number;
  /** Size of the complete item, bytes; `undefined` while unknown. */
  size: number | undefined;
}>;

/** Ids of the uploads of one act of signing: first those that have not failed, then by age, oldest first. */
export async function uploadsOfSigning(tx: Tx, item: SignedItem): Promise<Id[]> {
  const { id, itemIds } = item.signing;
  const marks = itemIds.map(() => "?").join(", ");
  const rows = await tx.all<SigningRow>(`${signingRows} id IN (${marks})`, ...itemIds);
  if (isSignedByMessage(item.signatureType) && item.size !== undefined) {
    // Before the content is verified, only the row of a known encoding has the signing id of the item.
    const signingId = rows[0]?.signing_id ?? id;
    const others = await tx.all<SigningRow>(
      `${signingRows} ${sameShape} AND size = ? AND signing_id = ?`,
      ...[...shapeOf(item), BigInt(item.size), signingId],
    );
    rows.push(...others);
  }
  return [...new Set(rows.toSorted(byStateAndAge).map((row) => row.id as Id))];
}

const signingRows = "SELECT id, signing_id, received_at, failed_reason FROM uploads WHERE";

/** Whether an item that only its content identifies may match an earlier upload, according to its header. */
export async function mayBeTaken(tx: Tx, item: SignedItem): Promise<boolean> {
  if (!isSignedByMessage(item.signatureType)) return false;
  const [ofSize, size] = item.size === undefined ? ["", []] : [" AND size = ?", [BigInt(item.size)]];
  const row = await tx.get(`SELECT id FROM uploads WHERE ${sameShape}${ofSize} LIMIT 1`, ...shapeOf(item), ...size);
  return row !== undefined;
}

/** The condition of the index `uploads_signed_by_message`, and its first columns. */
const sameShape = `signature_type = ${multiAptos.type} AND owner_address = ? AND header_size = ?`;

function shapeOf({ ownerAddress, headerSize }: SignedItem): Value[] {
  return [ownerAddress, BigInt(headerSize)];
}

type SigningRow = Row &
  Readonly<{ id: string; signing_id: string | null; received_at: bigint; failed_reason: string | null }>;

function byStateAndAge(left: SigningRow, right: SigningRow): number {
  const failed = (row: SigningRow) => (row.failed_reason === null ? 0 : 1);
  if (failed(left) !== failed(right)) return failed(left) - failed(right);
  return left.received_at < right.received_at ? -1 : 1;
}

/** Rows of one page: they block the event loop for 4 ms (measured). */
const itemsAtOnce = 1_000;

/** Items of a bundle in their order, read in pages. Those of a bundle that still grows may be incomplete. */
export async function itemsOfBundle(ledger: Pick<LedgerDatabase, "read">, bundleId: string): Promise<BundleItem[]> {
  const items: BundleItem[] = [];
  for (let from = 0n; ; ) {
    const rows = await ledger.read((tx) =>
      tx.all<ItemRow & { position: bigint }>(
        "SELECT id, file, file_offset, size, header_size, digest, position FROM uploads " +
          "WHERE bundle_id = ? AND position >= ? ORDER BY position LIMIT ?",
        ...[bundleId, from, BigInt(itemsAtOnce)],
      ),
    );
    for (const row of rows) items.push(readItem(row));
    const last = rows.at(-1);
    if (last === undefined || rows.length < itemsAtOnce) return items;
    from = last.position + 1n;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** Items of a store that wait for a bundle, at most `limit`. @param after - The last item of the previous page. */
export async function waitingItems(
  tx: Tx,
  store: string,
  after: WaitingItem | undefined,
  limit: number,
): Promise<WaitingItem[]> {
  const receivedAt = BigInt(after?.receivedAt ?? 0);
  const rows = await tx.all<ItemRow & { received_at: bigint }>(
    "SELECT id, file, file_offset, size, header_size, digest, received_at FROM uploads " +
      "WHERE store = ? AND bundle_id IS NULL AND failed_reason IS NULL " +
      "AND (received_at > ? OR (received_at = ? AND id > ?)) ORDER BY received_at, id LIMIT ?",
    ...[store, receivedAt, receivedAt, after?.id ?? "", BigInt(limit)],
  );
  return rows.map((row) => ({ ...readItem(row), receivedAt: readTime(row.received_at) }));
}

/** Ids of failed items of a store, at most `limit`. @param after - The last id of the previous page. */
export async function failedItems(tx: Tx, store: string, after: string, limit: number): Promise<Id[]> {
  const rows = await tx.all<{ id: string }>(
    "SELECT id FROM uploads WHERE store = ? AND failed_reason IS NOT NULL AND id > ? ORDER BY id LIMIT ?",
    ...[store, after, BigInt(limit)],
  );
  return rows.map(({ id }) => id as Id);
}

/** Bytes of the items of a store that are on this disk because they are not permanent yet. */
export async function storedBytes(tx: Tx, store: string): Promise<number> {
  const row = await tx.get<{ waiting: bigint; bundled: bigint }>(
    "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) AS waiting, " +
      "(SELECT CAST(COALESCE(SUM(items_size), 0) AS BIGINT) FROM bundles " +
      "WHERE store = ? AND state NOT IN ('permanent', 'dropped')) AS bundled " +
      "FROM uploads WHERE store = ? AND bundle_id IS NULL AND failed_reason IS NULL",
    ...[store, store],
  );
  return readCount((row?.waiting ?? 0n) + (row?.bundled ?? 0n));
}

/** The files with items of a store that are not permanent yet, and the size that each must have at least, bytes. */
export async function neededFiles(tx: Tx, store: string): Promise<readonly Readonly<{ file: string; size: number }>[]> {
  const rows = await tx.all<{ file: string; size: bigint }>(
    "SELECT file, CAST(MAX(file_offset + size) AS BIGINT) AS size FROM uploads " +
      "WHERE store = ? AND failed_reason IS NULL AND (bundle_id IS NULL OR " +
      "bundle_id IN (SELECT id FROM bundles WHERE state NOT IN ('permanent', 'dropped'))) GROUP BY file",
    store,
  );
  return rows.map(({ file, size }) => ({ file, size: readCount(size) }));
}

type ItemRow = Row &
  Readonly<{
    id: string;
    file: string;
    file_offset: bigint;
    size: bigint;
    header_size: bigint;
    digest: string;
  }>;

type UploadRow = ItemRow &
  Readonly<{
    store: string;
    signature_type: bigint;
    signing_id: string | null;
    owner_address: string;
    signer: string;
    content_type: string | null;
    content_encoding: string | null;
    winc: bigint;
    reservation_id: string | null;
    received_at: bigint;
    deadline_height: bigint;
    bundle_id: string | null;
    position: bigint | null;
    behind: bigint | null;
    failed_reason: string | null;
    bundle_state: string | null;
    bundle_items: bigint | null;
    transaction_id: string | null;
  }>;

function readItem({ id, file, file_offset, size, header_size, digest }: ItemRow): BundleItem {
  return {
    id,
    file,
    offset: readCount(file_offset),
    size: readCount(size),
    headerSize: readCount(header_size),
    digest,
  };
}

function readUpload(row: UploadRow): Upload {
  const state = stateOf(row);
  return {
    // Written from an `Id`, a `UserAddress`.
    id: row.id as Id,
    signer: row.signer as UserAddress,
    store: row.store,
    bytes: { file: row.file, offset: readCount(row.file_offset), size: readCount(row.size) },
    headerSize: readCount(row.header_size),
    signatureType: readCount(row.signature_type),
    // Written from an `Id`.
    signingId: row.signing_id === null ? undefined : (row.signing_id as Id),
    ownerAddress: row.owner_address,
    contentType: row.content_type ?? undefined,
    contentEncoding: row.content_encoding ?? undefined,
    digest: readDigest(row.digest),
    winc: winc(row.winc),
    reservationId: row.reservation_id ?? undefined,
    receivedAt: readTime(row.received_at),
    deadlineHeight: readCount(row.deadline_height),
    state,
    place: readPlace(row, state),
    failedReason: row.failed_reason ?? undefined,
  };
}

function readDigest(text: string): Uint8Array {
  const digest = decodeBase64url(text);
  assert(digest !== undefined, "the ledger holds digests as base64url");
  return digest;
}

/** State of an item by the state of its bundle. */
const statesOfItems: Readonly<Record<string, UploadState>> = {
  filling: "stored",
  planned: "planned",
  prepared: "planned",
  posted: "posted",
  seeded: "posted",
  permanent: "permanent",
};

function stateOf({ failed_reason, bundle_state }: UploadRow): UploadState {
  if (failed_reason !== null) return "failed";
  if (bundle_state === null) return "stored";
  const state = statesOfItems[bundle_state];
  assert(state !== undefined, "an item is in a bundle that goes to the chain");
  return state;
}

function readPlace(row: UploadRow, state: UploadState): BundlePlace | undefined {
  const { bundle_id, position, behind, bundle_items, transaction_id } = row;
  if (bundle_id === null || position === null || behind === null || bundle_items === null) return undefined;
  const headerSize = bundleCountSize + bundleEntrySize * readCount(bundle_items);
  return {
    bundleId: bundle_id,
    position: readCount(position),
    offset: state === "stored" ? undefined : headerSize + readCount(behind),
    // Written from an `Id`.
    transactionId: transaction_id === null || state === "planned" ? undefined : (transaction_id as Id),
  };
}

/** An item, and the transaction of its bundle if nodes have accepted one. */
export type UploadStatus = Readonly<{ upload: Upload; transactionId: Id | undefined }>;

/** Finds the status of an item; `undefined` if it was never accepted. */
export async function findUploadStatus(tx: Tx, id: string): Promise<UploadStatus | undefined> {
  const upload = await findUpload(tx, id);
  return upload === undefined ? undefined : { upload, transactionId: upload.place?.transactionId };
}
