/**
 * Where an item stands on its way: its own row, and the transaction that carries it.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import type { Tx } from "../store/ledger/ledger-database.ts";
import { findUpload, type Upload } from "./upload-rows.ts";

/** An item, and the transaction that carries it, where nodes have taken one. */
export type UploadStanding = Readonly<{ upload: Upload; transactionId: Id | undefined }>;

/** Finds where an item stands; `undefined` for one that was never taken. */
export async function findStanding(tx: Tx, id: string): Promise<UploadStanding | undefined> {
  const upload = await findUpload(tx, id);
  return upload === undefined ? undefined : { upload, transactionId: upload.place?.transactionId };
}
