/**
 * Rows of uploads: data items that were taken, where their bytes lie, and how far they are on their way to the chain.
 *
 * Whoever moves an item on names the state that it must be in: a step that was taken already changes nothing.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { type Winc, winc } from "../arweave/winston.ts";
import { assert } from "../lib/assert.ts";
import { decodeBase64url, encodeBase64url } from "../lib/base64url.ts";
import type { UserAddress } from "../payment/addresses.ts";
import type { Row, Tx, Value } from "../store/ledger/database.ts";
import { readCount, readTime } from "../store/ledger/values.ts";

const states = ["stored", "planned", "posted", "permanent", "failed"] as const;

/** How far an item is on its way. */
export type UploadState = (typeof states)[number];

/** Bytes of an item on this disk. */
export type ItemBytes = Readonly<{
  /** Below the folder of uploads. */
  file: string;
  /** Where the item's first byte is in the file. */
  offset: number;
  /** Of the whole item, header and payload. */
  size: number;
}>;

/** An item as it was taken. */
export type TakenItem = Readonly<{
  id: Id;
  bytes: ItemBytes;
  headerSize: number;
  signatureType: number;
  /** SHA-256 of the owner, base64url: whatever the type of the signature. */
  ownerAddress: string;
  /** The account of who signed it. */
  signer: UserAddress;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  /** SHA-256 of the payload. */
  digest: Uint8Array;
  /** What was charged. */
  winc: Winc;
  /** What was paid with; `undefined` where nothing was. */
  reservationId: string | undefined;
  /** Unix milliseconds; in the receipt. */
  receivedAt: number;
  /** In the receipt: the height by which it is promised to be on the chain. */
  deadlineHeight: number;
}>;

/** Where an item stands in a bundle. */
export type BundlePlace = Readonly<{
  bundleId: string;
  /** Among the bundle's items, from 0. */
  position: number;
  /** The byte of the bundle's data at which the item begins; `undefined` until the bundle is planned out. */
  offset: number | undefined;
}>;

/** An item on its way. */
export type Upload = TakenItem &
  Readonly<{
    state: UploadState;
    place: BundlePlace | undefined;
    failedReason: string | undefined;
    /** Unix milliseconds of the last change of state. */
    changedAt: number;
  }>;

/** Writes the row of an item that was taken; its id must be new. */
export async function insertUpload(tx: Tx, item: TakenItem): Promise<void> {
  const values = valuesOf(item);
  await tx.run(
    `INSERT INTO uploads (id, state, ${takenColumns.join(", ")}, changed_at) ` +
      `VALUES (?, 'stored', ${values.map(() => "?").join(", ")}, ?)`,
    ...[item.id, ...values, BigInt(item.receivedAt)],
  );
}

/** Writes the row of an item that had failed and was taken again. */
export async function replaceUpload(tx: Tx, item: TakenItem): Promise<void> {
  const changed = await tx.run(
    `UPDATE uploads SET state = 'stored', ${takenColumns.map((column) => `${column} = ?`).join(", ")}, ` +
      "changed_at = ?, failed_reason = NULL WHERE id = ? AND state = 'failed'",
    ...[...valuesOf(item), BigInt(item.receivedAt), item.id],
  );
  assert(changed === 1, "only an item that has failed is taken again");
}

const takenColumns = [
  ...["file", "file_offset", "size", "header_size", "signature_type", "owner_address", "signer"],
  ...[
    "content_type",
    "content_encoding",
    "digest",
    "winc",
    "reservation_id",
    "received_at",
    "deadline_height",
  ],
] as const;

/** In the order of `takenColumns`. */
function valuesOf(item: TakenItem): Value[] {
  const { bytes, headerSize, signatureType, ownerAddress, signer } = item;
  return [
    ...[bytes.file, BigInt(bytes.offset), BigInt(bytes.size), BigInt(headerSize), BigInt(signatureType)],
    ...[ownerAddress, signer, item.contentType ?? null, item.contentEncoding ?? null],
    ...[encodeBase64url(item.digest), item.winc, item.reservationId ?? null],
    ...[BigInt(item.receivedAt), BigInt(item.deadlineHeight)],
  ];
}

/**
 * Fails an item of a bundle that was not posted.
 *
 * @returns The item, when it was in that bundle and failed now.
 */
export async function failUpload(
  tx: Tx,
  id: string,
  bundleId: string,
  reason: string,
  now: number,
): Promise<Upload | undefined> {
  const changed = await tx.run(
    "UPDATE uploads SET state = 'failed', failed_reason = ?, changed_at = ?, bundle_id = NULL, position = NULL, " +
      "bundle_offset = NULL WHERE id = ? AND bundle_id = ? AND state = 'planned'",
    ...[reason, BigInt(now), id, bundleId],
  );
  return changed === 0 ? undefined : await findUpload(tx, id);
}

/** The row of an item; `undefined` for one that was never taken. */
export async function findUpload(tx: Tx, id: string): Promise<Upload | undefined> {
  const row = await tx.get<UploadRow>("SELECT * FROM uploads WHERE id = ?", id);
  return row === undefined ? undefined : readUpload(row);
}

/** Items that wait to be bundled, oldest first, at most `limit`. */
export async function waitingUploads(tx: Tx, limit: number): Promise<Upload[]> {
  const rows = await tx.all<UploadRow>(
    "SELECT * FROM uploads WHERE state = 'stored' ORDER BY received_at, id LIMIT ?",
    BigInt(limit),
  );
  return rows.map(readUpload);
}

/** The items of a bundle in the order of their places, at most `limit`, from a position on. */
export async function uploadsOfBundle(
  tx: Tx,
  bundleId: string,
  firstPosition: number,
  limit: number,
): Promise<Upload[]> {
  const rows = await tx.all<UploadRow>(
    "SELECT * FROM uploads WHERE bundle_id = ? AND position >= ? ORDER BY position LIMIT ?",
    ...[bundleId, BigInt(firstPosition), BigInt(limit)],
  );
  return rows.map(readUpload);
}

/** Bytes of the items that are on this disk because the chain does not have them for good yet. */
export async function keptBytes(tx: Tx): Promise<number> {
  const row = await tx.get<{ bytes: bigint }>(
    "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) AS bytes FROM uploads WHERE state IN ('stored', 'planned', 'posted')",
  );
  return readCount(row?.bytes ?? 0n);
}

type UploadRow = Row &
  Readonly<{
    id: string;
    state: string;
    file: string;
    file_offset: bigint;
    size: bigint;
    header_size: bigint;
    signature_type: bigint;
    owner_address: string;
    signer: string;
    content_type: string | null;
    content_encoding: string | null;
    digest: string;
    winc: bigint;
    reservation_id: string | null;
    received_at: bigint;
    deadline_height: bigint;
    bundle_id: string | null;
    position: bigint | null;
    bundle_offset: bigint | null;
    failed_reason: string | null;
    changed_at: bigint;
  }>;

function readUpload(row: UploadRow): Upload {
  const digest = decodeBase64url(row.digest);
  assert(digest !== undefined, "the ledger holds digests as base64url");
  return {
    // Written from an `Id`, a `UserAddress`.
    id: row.id as Id,
    signer: row.signer as UserAddress,
    bytes: { file: row.file, offset: readCount(row.file_offset), size: readCount(row.size) },
    headerSize: readCount(row.header_size),
    signatureType: readCount(row.signature_type),
    ownerAddress: row.owner_address,
    contentType: row.content_type ?? undefined,
    contentEncoding: row.content_encoding ?? undefined,
    digest,
    winc: winc(row.winc),
    reservationId: row.reservation_id ?? undefined,
    receivedAt: readTime(row.received_at),
    deadlineHeight: readCount(row.deadline_height),
    state: readState(row.state),
    place: readPlace(row),
    failedReason: row.failed_reason ?? undefined,
    changedAt: readTime(row.changed_at),
  };
}

function readPlace({ bundle_id, position, bundle_offset }: UploadRow): BundlePlace | undefined {
  if (bundle_id === null || position === null) return undefined;
  return {
    bundleId: bundle_id,
    position: readCount(position),
    offset: bundle_offset === null ? undefined : readCount(bundle_offset),
  };
}

function readState(text: string): UploadState {
  const state = states.find((each) => each === text);
  assert(state !== undefined, "the ledger holds states that are known");
  return state;
}
