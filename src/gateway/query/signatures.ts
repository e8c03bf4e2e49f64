/**
 * The signatures of rows: a transaction's from its header in the index, a data item's from its bytes on this disk.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import { isJsonObject, readJson } from "../../lib/json.ts";
import type { IndexReader } from "../../store/index-reader.ts";
import type { PageRow } from "../../store/rows.ts";
import type { Signatures } from "./shapes.ts";

/** Finds the signatures of rows; those that cannot be had are not in the answer. */
export type SignatureSource = (rows: readonly PageRow[]) => Signatures;

type Headers = Pick<IndexReader, "transactionText">;

/** Creates the source of one index. */
export function createSignatureSource(index: Headers): SignatureSource {
  return (rows) => {
    const found = new Map<Id, string>();
    for (const row of rows) {
      const signature = row.kind === "transaction" ? ofTransaction(row.id, index) : undefined;
      if (signature !== undefined) found.set(row.id, signature);
    }
    return found;
  };
}

function ofTransaction(id: Id, index: Headers): string | undefined {
  const header = readJson(index.transactionText(id)?.text ?? "");
  const signature = isJsonObject(header) ? header["signature"] : undefined;
  return typeof signature === "string" ? signature : undefined;
}
