/**
 * Owners: each public key stands once, and rows name it by number.
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Address, idBytes } from "../../arweave/id.ts";
import { assert } from "../../lib/assert.ts";
import { prepareQuery } from "../sqlite.ts";
import type { Counts } from "./counts.ts";

/** Numbers of owners, for the writer. */
export type Owners = Readonly<{
  /** The owner's number; one that is new gets the next. */
  numberOf: (address: Address, key: Uint8Array) => number;
  /** Forgets what a failed transaction may have given out. */
  discard: () => void;
}>;

/** Owners are repeated within a bundle and between bundles: so many numbers are kept at hand (about 10 MB). */
const rememberedMax = 50_000;

/** Opens the owners of one database. */
export function createOwners(db: Database, counts: Counts): Owners {
  const find = prepareQuery<{ owner: number }>(db, "SELECT owner FROM owners WHERE address = ?");
  const add = prepareQuery<{ owner: number }>(db, "INSERT INTO owners (address, key) VALUES (?, ?) RETURNING owner");
  const remembered = new Map<Address, number>();

  return {
    numberOf: (address, key) => {
      const known = remembered.get(address);
      if (known !== undefined) return known;
      const bytes = idBytes(address);
      const found = find.get(bytes);
      const row = found ?? add.get(bytes, key);
      assert(row !== undefined, "an owner that was added has a number");
      if (found === undefined) counts.add("owners", 1);
      if (remembered.size >= rememberedMax) remembered.clear();
      remembered.set(address, row.owner);
      return row.owner;
    },
    discard: () => remembered.clear(),
  };
}
