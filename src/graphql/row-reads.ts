/**
 * What a selection reads of the index. Without graphql-js, because the main thread also reads rows (lookups.ts).
 * @module
 */
import { isBlockHash } from "../arweave/id.ts";
import type { IndexReader, PageColumns } from "../store/index/index-types.ts";
import { encodedBlock } from "../store/index/pages/encoded-row.ts";
import type { EncodedBlock } from "../store/index/pages/encoded-types.ts";
import type { WrittenField } from "./selection.ts";

/** The names of all fields selected in and below some fields. */
export function namesWithin(fields: readonly WrittenField[], names = new Set<string>()): ReadonlySet<string> {
  for (const field of fields) {
    names.add(field.name);
    namesWithin(field.inner, names);
  }
  return names;
}

/** The columns of rows of which these fields are selected. */
export function columnsOf(names: ReadonlySet<string>): PageColumns {
  return {
    tags: names.has("tags") || names.has("type"),
    ownerKey: names.has("key"),
    parent: names.has("bundledIn") || names.has("parent"),
    block: names.has("block"),
    target: names.has("recipient"),
    anchor: names.has("anchor"),
    size: names.has("data"),
    signature: names.has("signature") || names.has("signatureType"),
    ingestedAt: names.has("ingestedAt"),
  };
}

/** Reads a block. @param hash - Any text. */
export function readBlock(index: Pick<IndexReader, "block">, hash: string): EncodedBlock | undefined {
  const block = isBlockHash(hash) ? index.block(hash) : undefined;
  return block === undefined ? undefined : encodedBlock(block);
}
