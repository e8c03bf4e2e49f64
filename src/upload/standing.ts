/**
 * Where an item stands on its way: its own row, and the transaction that carries it.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import type { Tx } from "../store/ledger/database.ts";
import { findBundle } from "./bundles.ts";
import { findUpload, type Upload } from "./uploads.ts";

/** An item, and the newest transaction that carries it, where one is signed. */
export type UploadStanding = Readonly<{ upload: Upload; transactionId: Id | undefined }>;

/** Finds where an item stands; `undefined` for one that was never taken. */
export async function findStanding(tx: Tx, id: string): Promise<UploadStanding | undefined> {
  const upload = await findUpload(tx, id);
  if (upload === undefined) return undefined;
  const bundle = upload.place === undefined ? undefined : await findBundle(tx, upload.place.bundleId);
  return { upload, transactionId: bundle?.transaction?.id };
}
