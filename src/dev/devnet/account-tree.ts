/**
 * The root of the account tree: what a block commits to as `wallet_list`.
 *
 * A radix tree by the key of the address (`addressKey`), in which a node with one child is that child. Its shape
 * follows from the set of addresses alone.
 * Source: ArweaveTeam/arweave, ar_patricia_tree_core (compute_hash), ar_block (hash_wallet_list, from release 2.8).
 * @module
 */
import { deepHash } from "../../arweave/deep-hash.ts";
import { type Address, addressKey } from "../../arweave/id.ts";
import { decodeBase64url } from "../../lib/base64url.ts";
import { concatBytes, withSize, writeUnsigned } from "../../lib/bytes.ts";
import { sha256 } from "../../lib/hash.ts";
import type { Account } from "./accounts.ts";

type Leaf = Readonly<{ key: Uint8Array; hash: Uint8Array }>;

/**
 * Computes the root over all accounts.
 *
 * @returns 48 bytes, 32 for a single account, none when there is no account.
 */
export function accountTreeRoot(accounts: ReadonlyMap<Address, Account>): Uint8Array {
  const leaves = [...accounts].map(([address, account]): Leaf => {
    const key = addressKey(address);
    return { key, hash: leafHash(key, account) };
  });
  leaves.sort((left, right) => Buffer.compare(left.key, right.key));
  return leaves.length === 0 ? new Uint8Array(0) : nodeHash(leaves, 0);
}

/** Leaves share their first `depth` bytes. No key begins with another and a zero, so a lone leaf ends every branch. */
function nodeHash(leaves: readonly Leaf[], depth: number): Uint8Array {
  const [first] = leaves;
  if (first !== undefined && leaves.length === 1) return first.hash;
  const groups = new Map<number, Leaf[]>();
  for (const leaf of leaves) {
    const branch = leaf.key[depth] ?? 0;
    const group = groups.get(branch);
    if (group === undefined) groups.set(branch, [leaf]);
    else group.push(leaf);
  }
  const hashes = [...groups.values()].map((group) => nodeHash(group, depth + 1));
  const [only] = hashes;
  return only !== undefined && hashes.length === 1 ? only : deepHash(hashes);
}

/** Address, balance, last transaction, denomination 1, and the permission to mine. */
function leafHash(address: Uint8Array, { balance, lastTx }: Account): Uint8Array {
  const preimage = concatBytes([
    withSize(address, 1),
    withSize(writeUnsigned(balance), 1),
    withSize(decodeBase64url(lastTx) ?? new Uint8Array(0), 1),
    withSize(writeUnsigned(1n), 1),
    Uint8Array.of(1),
  ]);
  return sha256(preimage);
}
