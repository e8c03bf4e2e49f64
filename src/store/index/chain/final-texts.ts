/**
 * Blocks and transactions that never change, as the bytes of their JSON: they are sent as they are read.
 *
 * One statement for each table: a join of two takes longer than two reads in one snapshot (measured).
 * @module
 */
import type { Database } from "bun:sqlite";
import { blockHashBytes, idBytes } from "../../../arweave/id.ts";
import { inSnapshot, prepareQuery } from "../../sqlite.ts";
import type { IdPlaces } from "../id-places.ts";
import { type IndexReader, stableDepth } from "../index-types.ts";
import { heightOfHigh } from "../place.ts";
import { placeSql } from "../place-sql.ts";
import { unpackBytes } from "./header-texts.ts";

type Stored = Readonly<{ body: Uint8Array }>;

export function createFinalTexts(
  db: Database,
  ids: Pick<IdPlaces, "find">,
): Pick<IndexReader, "finalBlock" | "finalTransaction"> {
  type Block = Readonly<{ height: number }>;
  const tip = prepareQuery<Block>(db, "SELECT height FROM blocks WHERE followed = 1 ORDER BY height DESC LIMIT 1");
  const atHeight = prepareQuery<Block>(db, "SELECT height FROM blocks WHERE height = ?");
  const withHash = prepareQuery<Block>(db, "SELECT height FROM blocks WHERE hash = ?");
  const ofBlock = prepareQuery<Stored>(db, "SELECT body FROM block_texts WHERE height = ?");
  const ofTransaction = prepareQuery<Stored>(
    db,
    `SELECT body FROM transaction_texts WHERE n = ${placeSql()} AND data_at IS NULL`,
  );
  const isFinal = (height: number): boolean => height <= (tip.get()?.height ?? -1) - stableDepth;
  const unpacked = (stored: Stored | undefined) => stored && unpackBytes(stored.body);

  return {
    finalBlock: (wanted) =>
      inSnapshot(db, () => {
        if (typeof wanted === "number") return isFinal(wanted) ? unpacked(ofBlock.get(wanted)) : undefined;
        const height = withHash.get(blockHashBytes(wanted))?.height;
        return height === undefined ? undefined : unpacked(ofBlock.get(height));
      }),
    finalTransaction: (id) =>
      inSnapshot(db, () => {
        const place = ids.find(idBytes(id));
        // Only a transaction of a block has a lower half of 0.
        if (place === undefined || place.low !== 0) return undefined;
        const height = heightOfHigh(place.high);
        if (!isFinal(height) || atHeight.get(height) === undefined) return undefined;
        return unpacked(ofTransaction.get(place.high, place.low));
      }),
  };
}
