/**
 * Accounts: balance and last transaction of each address, and the root of the account tree (`wallet_list` of a block).
 *
 * A block is applied to an overlay first; the accounts change only when the overlay is committed. The account tree is a
 * radix tree by the key of the address (`addressKey`), in which a node with one child is replaced by the child. Its
 * shape depends only on the set of addresses.
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

/** An account exists after its first incoming or outgoing transaction. */
export type Account = Readonly<{
  balance: bigint; // winston; negative only inside a check that rejects it
  lastTx: Id | ""; // the last transaction that it sent; "" if it sent none
}>;

export type AccountView = Readonly<{ get: (address: Address) => Account | undefined }>;

/** Changes on top of other accounts, which stay unchanged. */
export type AccountOverlay = Readonly<{
  get: (address: Address) => Account | undefined;
  set: (address: Address, account: Account) => void;
  changes: ReadonlyMap<Address, Account>;
}>;

export function createAccountOverlay(base: AccountView): AccountOverlay {
  const changes = new Map<Address, Account>();
  return {
    get: (address) => changes.get(address) ?? base.get(address),
    set: (address, account) => void changes.set(address, account),
    changes,
  };
}

/**
 * Applies the transfer and the fee of a transaction. The balance may fall below zero: the caller checks it. A
 * transaction of an unknown sender changes nothing.
 */
export function applyTransaction(accounts: AccountOverlay, transaction: Transaction): void {
  const { id, ownerAddress, quantity, reward } = transaction;
  const sender = accounts.get(ownerAddress);
  if (sender === undefined) return;
  accounts.set(ownerAddress, { balance: sender.balance - quantity - reward, lastTx: id });
  const recipient = readAddress(transaction.target);
  if (quantity > 0n && recipient !== undefined) credit(accounts, recipient, quantity);
}

/** Adds to an account, and creates it if needed. */
export function credit(accounts: AccountOverlay, address: Address, amount: bigint): void {
  const account = accounts.get(address);
  accounts.set(address, { balance: (account?.balance ?? 0n) + amount, lastTx: account?.lastTx ?? "" });
}

type Leaf = Readonly<{ key: Uint8Array; hash: Uint8Array }>;

/**
 * Computes the root over all accounts.
 *
 * @returns 48 bytes; 32 for a single account; none without accounts.
 */
export function accountTreeRoot(accounts: ReadonlyMap<Address, Account>): Uint8Array {
  const leaves = [...accounts].map(([address, account]): Leaf => {
    const key = addressKey(address);
    return { key, hash: leafHash(key, account) };
  });
  leaves.sort((left, right) => Buffer.compare(left.key, right.key));
  return leaves.length === 0 ? new Uint8Array(0) : nodeHash(leaves, 0);
}

/** The leaves share their first `depth` bytes. No key is a prefix of another, so every branch ends with one leaf. */
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
