/**
 * The signatures of rows: a transaction's from its header in the index, a data item's from its bytes on this disk,
 * or from its row while it is in no block.
 *
 * The bytes are a signature only if they hash to the id, so that neither a hole in a sparse file nor a file that was
 * damaged or replaced can give a wrong one. Nothing is fetched: what is not here is null.
 * @module
 */
import { closeSync, openSync, readSync } from "node:fs";
import { type Id, idOfSignature } from "../arweave/id.ts";
import { signatureLayout } from "../arweave/signature.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import { isJsonObject, readJson } from "../lib/json.ts";
import { openExtentFiles } from "../store/extents/extent-files.ts";
import { rootName } from "../store/extents/extent-roots.ts";
import type { IndexReader, PageRow } from "../store/index/index-types.ts";
import { pendingHeight } from "../store/index/place.ts";
import type { Signatures } from "./shapes.ts";

/** Finds the signatures of rows; unavailable ones are left out. */
export type SignatureSource = (rows: readonly PageRow[]) => Signatures;

/** What the source asks of the index. */
export type SignatureIndex = Pick<IndexReader, "transactionText" | "locate" | "pendingSignature">;

/** Position of a signature in a root's file. */
type Spot = Readonly<{ id: Id; start: number; size: number }>;

/** An item begins with the two bytes of its signature's type. */
const signatureOffset = 2;

/**
 * Creates the source of one index.
 *
 * @param contentFolder - Folder of the files of cached roots.
 */
export function createSignatureSource(index: SignatureIndex, contentFolder: string): SignatureSource {
  const { path } = openExtentFiles(contentFolder);
  return (rows) => {
    const found = new Map<Id, string>();
    const spots = new Map<string, Spot[]>();
    for (const row of rows) {
      if (row.kind === "transaction") readHeader(row.id, index, found);
      else if (row.place.height === pendingHeight) readPending(row, index, found);
      else noteSpot(row, spots);
    }
    for (const ofRoot of spots.values()) {
      const name = nameOfRoot(ofRoot, index);
      if (name !== undefined) readSpots(path(name), ofRoot, found);
    }
    return found;
  };
}

function readHeader(id: Id, index: SignatureIndex, found: Map<Id, string>): void {
  const header = readJson(index.transactionText(id)?.text ?? "");
  const signature = isJsonObject(header) ? header["signature"] : undefined;
  if (typeof signature === "string") found.set(id, signature);
}

function readPending({ id, place }: PageRow, index: SignatureIndex, found: Map<Id, string>): void {
  const signature = index.pendingSignature(place);
  if (signature !== undefined && idOfSignature(signature) === id) found.set(id, encodeBase64url(signature));
}

/** Items of one root are read together: finding the file of a root costs more than reading from it. */
function noteSpot({ id, place, signatureType }: PageRow, spots: Map<string, Spot[]>): void {
  const size = signatureLayout(signatureType)?.signatureSize;
  if (size === undefined) return;
  const root = `${place.height}/${place.txIndex}`;
  const spot = { id, start: place.offset + signatureOffset, size };
  const ofRoot = spots.get(root);
  if (ofRoot === undefined) spots.set(root, [spot]);
  else ofRoot.push(spot);
}

function nameOfRoot(spots: readonly Spot[], index: SignatureIndex): string | undefined {
  const [first] = spots;
  const located = first === undefined ? undefined : index.locate(first.id);
  if (located === undefined) return undefined;
  return rootName({ id: located.rootId, dataRoot: located.dataRoot, size: located.rootSize });
}

function readSpots(path: string, spots: readonly Spot[], found: Map<Id, string>): void {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    // Not cached, or evicted since: these rows have no signature here, as the schema allows.
    if (isOfSystem(error)) return;
    throw error;
  }
  try {
    for (const { id, start, size } of spots) {
      const bytes = new Uint8Array(size);
      if (readSync(file, bytes, 0, size, start) === size && idOfSignature(bytes) === id)
        found.set(id, encodeBase64url(bytes));
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
