/**
 * The signatures of rows: a transaction's from its header in the index, a data item's from its bytes on this disk,
 * or from its row while it is in no block.
 *
 * The bytes are a signature only if they hash to the id, so that neither a hole in a sparse file nor a file that was
 * damaged or replaced can give a wrong one. Nothing is fetched: what is not here is null.
 * @module
 */
import { closeSync, openSync, readSync } from "node:fs";
import { idFromBytes, idOfSignature } from "../arweave/id.ts";
import { signatureLayout } from "../arweave/signature.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import { isJsonObject, readJson } from "../lib/json.ts";
import { openExtentFiles } from "../store/extents/extent-files.ts";
import { rootName } from "../store/extents/extent-roots.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { EncodedRow } from "../store/index/pages/encoded-types.ts";
import { heightOfHigh, pendingHeight, placeOfRow } from "../store/index/place.ts";
import type { SignatureOf } from "./shapes.ts";

/** Signatures of rows. */
export type SignatureSource = Readonly<{
  /** Finds the signatures of rows. */
  find: (rows: readonly EncodedRow[]) => void;
  /** The signature of a row that `find` has found, base64url. */
  of: SignatureOf;
}>;

/** The reads of the index that the source uses. */
export type SignatureIndex = Pick<IndexReader, "transactionText" | "locate" | "pendingSignature">;

/** Position of a signature in a root's file. */
type Spot = Readonly<{ row: EncodedRow; start: number; size: number }>;

type Found = WeakMap<EncodedRow, string>;

/** An item begins with the two bytes of its signature's type. */
const signatureOffset = 2;

/**
 * Creates the source of one index.
 *
 * @param contentFolder - Folder of the files of cached roots.
 */
export function createSignatureSource(index: SignatureIndex, contentFolder: string): SignatureSource {
  const { path } = openExtentFiles(contentFolder);
  const found: Found = new WeakMap();
  const find = (rows: readonly EncodedRow[]): void => {
    const spots = new Map<number, Spot[]>();
    for (const row of rows) {
      if (row.stored.sig < 0) readHeader(row, index, found);
      else if (heightOfHigh(row.stored.high) === pendingHeight) readPending(row, index, found);
      else noteSpot(row, spots);
    }
    for (const ofRoot of spots.values()) {
      const name = nameOfRoot(ofRoot, index);
      if (name !== undefined) readSpots(path(name), ofRoot, found);
    }
  };
  return { find, of: (row) => found.get(row) };
}

function readHeader(row: EncodedRow, index: SignatureIndex, found: Found): void {
  const header = readJson(index.transactionText(idFromBytes(row.stored.id))?.text ?? "");
  const signature = isJsonObject(header) ? header["signature"] : undefined;
  if (typeof signature === "string") found.set(row, signature);
}

function readPending(row: EncodedRow, index: SignatureIndex, found: Found): void {
  const signature = index.pendingSignature(placeOfRow(row.stored));
  if (signature !== undefined && isSignatureOf(row, signature)) found.set(row, encodeBase64url(signature));
}

function isSignatureOf({ stored }: EncodedRow, signature: Uint8Array): boolean {
  return idOfSignature(signature) === idFromBytes(stored.id);
}

/** Items of one root are read together: finding the file of a root costs more than reading from it. */
function noteSpot(row: EncodedRow, spots: Map<number, Spot[]>): void {
  const size = signatureLayout(row.stored.sig)?.signatureSize;
  if (size === undefined) return;
  const spot = { row, start: placeOfRow(row.stored).offset + signatureOffset, size };
  const ofRoot = spots.get(row.stored.high);
  if (ofRoot === undefined) spots.set(row.stored.high, [spot]);
  else ofRoot.push(spot);
}

function nameOfRoot(spots: readonly Spot[], index: SignatureIndex): string | undefined {
  const [first] = spots;
  const located = first === undefined ? undefined : index.locate(idFromBytes(first.row.stored.id));
  if (located === undefined) return undefined;
  return rootName({ id: located.rootId, dataRoot: located.dataRoot, size: located.rootSize });
}

function readSpots(path: string, spots: readonly Spot[], found: Found): void {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    // Not cached, or evicted since: these rows have no signature here, as the schema allows.
    if (isOfSystem(error)) return;
    throw error;
  }
  try {
    for (const { row, start, size } of spots) {
      const bytes = new Uint8Array(size);
      if (readSync(file, bytes, 0, size, start) === size && isSignatureOf(row, bytes))
        found.set(row, encodeBase64url(bytes));
    }
  } catch (error) {
    // The disk did not give them: the rest of these rows have no signature here, as the schema allows.
    if (!isOfSystem(error)) throw error;
  } finally {
    closeSync(file);
  }
}

function isOfSystem(error: unknown): boolean {
  return error instanceof Error && "syscall" in error;
}
