/**
 * Accounts: what each address holds and which transaction it sent last.
 *
 * A block is tried on an overlay first; nothing changes until the overlay is taken over.
 *
 * The root of the account tree: what a block commits to as `wallet_list`.
 *
 * A radix tree by the key of the address (`addressKey`), in which a node with one child is that child. Its shape
 * follows from the set of addresses alone.
 * Source: ArweaveTeam/arweave, ar_node_utils (apply_tx); ArweaveTeam/arweave, ar_patricia_tree_core
 * (compute_hash), ar_block (hash_wallet_list, from release 2.8).
 * @module
 */

import { deepHash } from "../../arweave/deep-hash.ts";
import { type Address, addressKey, type Id, readAddress } from "../../arweave/id.ts";
import type { Transaction } from "../../arweave/transaction.ts";
import { decodeBase64url } from "../../lib/base64url.ts";
import { concatBytes, withSize, writeUnsigned } from "../../lib/bytes.ts";
import { sha256 } from "../../lib/hash.ts";

/** One account. An account exists once it has been paid or has sent. */
export type Account = Readonly<{
  balance: bigint; // winston; negative only inside a check that rejects it
  lastTx: Id | ""; // the last transaction it sent; "" when it never sent one
}>;

/** Accounts to look at. */
export type AccountView = Readonly<{ get: (address: Address) => Account | undefined }>;

/** Changes over other accounts, which stay as they are. */
export type AccountOverlay = Readonly<{
  get: (address: Address) => Account | undefined;
  set: (address: Address, account: Account) => void;
  changes: ReadonlyMap<Address, Account>;
}>;

/** Starts with no change over the given accounts. */
export function createAccountOverlay(base: AccountView): AccountOverlay {
  const changes = new Map<Address, Account>();
  return {
    get: (address) => changes.get(address) ?? base.get(address),
    set: (address, account) => void changes.set(address, account),
    changes,
  };
}

/**
 * Moves what a transaction spends and sends. Funds are not checked here: a balance may fall below zero, and the
 * caller rejects it. An unknown sender changes nothing.
 */
export function applyTransaction(accounts: AccountOverlay, transaction: Transaction): void {
  const { id, ownerAddress, quantity, reward } = transaction;
  const sender = accounts.get(ownerAddress);
  if (sender === undefined) return;
  accounts.set(ownerAddress, { balance: sender.balance - quantity - reward, lastTx: id });
  const recipient = readAddress(transaction.target);
  if (quantity > 0n && recipient !== undefined) credit(accounts, recipient, quantity);
}

/** Adds to an account, which comes into being when it is new. */
export function credit(accounts: AccountOverlay, address: Address, amount: bigint): void {
  const account = accounts.get(address);
  accounts.set(address, { balance: (account?.balance ?? 0n) + amount, lastTx: account?.lastTx ?? "" });
}

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
