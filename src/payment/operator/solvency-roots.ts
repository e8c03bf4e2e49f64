/**
 * The roots of solvency that the program publishes, as rows: signed before the first attempt to upload them, so that
 * every attempt sends the same data item.
 *
 * Source: docs/reference/payment.md#proof-of-solvency.
 * @module
 */
import { readTime, type Tx } from "../../store/ledger/ledger-database.ts";

/** A signed root. */
export type StoredRoot = Readonly<{
  /** The moment of the balances, Unix milliseconds. */
  at: number;
  /** Id of the data item. */
  id: string;
  /** The bytes of the data item, base64url. */
  item: string;
  /** The secret of the salts of its leaves. */
  secret: Uint8Array;
  /** Unix milliseconds. */
  signedAt: number;
  /** Undefined until the upload service has accepted it. */
  publishedAt: number | undefined;
}>;

/** Stores a root. @returns Whether it is the first of its moment: any other one changes nothing. */
export async function insertRoot(tx: Tx, root: Omit<StoredRoot, "publishedAt">): Promise<boolean> {
  const { at, id, item, secret, signedAt } = root;
  const changed = await tx.run(
    "INSERT INTO solvency_roots (at, id, item, secret, signed_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (at) DO NOTHING",
    ...[BigInt(at), id, item, secret.toHex(), BigInt(signedAt)],
  );
  return changed > 0;
}

/** Notes that a root is published. @returns Whether it was not before. */
export async function markPublished(tx: Tx, at: number, now: number): Promise<boolean> {
  const sql = "UPDATE solvency_roots SET published_at = ? WHERE at = ? AND published_at IS NULL";
  return (await tx.run(sql, BigInt(now), BigInt(at))) > 0;
}

/** The newest roots, the newest first. */
export async function newestRoots(tx: Tx, limit: number): Promise<StoredRoot[]> {
  const rows = await tx.all<RootRow>(`${select} ORDER BY at DESC LIMIT ?`, BigInt(limit));
  return rows.map(readRow);
}

/** The newest published root. */
export async function publishedRoot(tx: Tx): Promise<StoredRoot | undefined> {
  return read(await tx.get<RootRow>(`${select} WHERE published_at IS NOT NULL ORDER BY at DESC LIMIT 1`));
}

/** Finds a root by the id of its data item. */
export async function findRoot(tx: Tx, id: string): Promise<StoredRoot | undefined> {
  return read(await tx.get<RootRow>(`${select} WHERE id = ?`, id));
}

const select = "SELECT at, id, item, secret, signed_at, published_at FROM solvency_roots";

type RootRow = Readonly<{
  at: bigint;
  id: string;
  item: string;
  secret: string;
  signed_at: bigint;
  published_at: bigint | null;
}>;

function read(row: RootRow | undefined): StoredRoot | undefined {
  return row && readRow(row);
}

function readRow({ at, id, item, secret, signed_at, published_at }: RootRow): StoredRoot {
  return {
    id,
    item,
    at: readTime(at),
    secret: Uint8Array.fromHex(secret),
    signedAt: readTime(signed_at),
    publishedAt: published_at === null ? undefined : readTime(published_at),
  };
}
