/**
 * Numbers of owners: each public key is stored once in `owners`, and rows refer to it by number.
 * @module
 */
import type { Database } from "bun:sqlite";
import { assert } from "../../../lib/assert.ts";
import { encodeBase64url } from "../../../lib/base64url.ts";
import { prepareQuery } from "../../sqlite.ts";
import type { Counts } from "../index-counters.ts";
import type { BatchOwner } from "./row-batch.ts";

/** Numbers of owners, for the writer. */
export type Owners = Readonly<{
  /** The owner's number; a new owner gets the next number. */
  numberOf: (owner: BatchOwner) => number;
  /** Drops cached numbers that a failed transaction may have assigned. */
  discard: () => void;
}>;

/** Limit of cached numbers (about 10 MB). Owners repeat within a bundle and between bundles. */
const rememberedMax = 50_000;

export function createOwners(db: Database, counts: Counts): Owners {
  const find = prepareQuery<{ owner: number }>(db, "SELECT owner FROM owners WHERE address = ?");
  const add = prepareQuery<{ owner: number }>(db, "INSERT INTO owners (address, key) VALUES (?, ?) RETURNING owner");
  const remembered = new Map<string, number>();

  return {
    numberOf: ({ address, key }) => {
      const text = encodeBase64url(address);
      const known = remembered.get(text);
      if (known !== undefined) return known;
      const found = find.get(address);
      const row = found ?? add.get(address, key);
      assert(row !== undefined, "an owner that was added has a number");
      if (found === undefined) counts.add("owners", 1);
      if (remembered.size >= rememberedMax) remembered.clear();
      remembered.set(text, row.owner);
      return row.owner;
    },
    discard: () => remembered.clear(),
  };
}
