/**
 * Accounts: what each address holds and which transaction it sent last.
 *
 * A block is tried on an overlay first; nothing changes until the overlay is taken over.
 * Source: ArweaveTeam/arweave, ar_node_utils (apply_tx).
 * @module
 */
import { type Address, type Id, readAddress } from "../../arweave/id.ts";
import type { Transaction } from "../../arweave/transaction.ts";

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
