/**
 * Payments on Solana, in its coin and in tokens, once they are final.
 *
 * A final transaction is never taken back, so nothing is watched after it is credited. Payments that nobody reported
 * are found by the signatures of the accounts that receive them, from the newest back to the last one that was seen.
 * Source: https://solana.com/docs/rpc; docs/reference/payment.md#sources-of-payments.
 * @module
 */
import type { Fault } from "../../../lib/http-client.ts";
import type { Token } from "../../addresses.ts";
import type { Asked, JsonRpc } from "../../evm/json-rpc.ts";
import type { Sight, TokenChain } from "../sight.ts";
import { beginningOf } from "./beginning.ts";
import { createSolanaServer, type SolanaServer } from "./solana-server.ts";
import { sweepSignatures } from "./solana-sweep.ts";
import { coinsPaid, type SolanaPayment, type SolanaTransaction, tokensPaid } from "./solana-transaction.ts";

/** What payments on Solana are read from. */
export type SolanaChainOptions = Readonly<{
  token: Token;
  /** The owner's address. */
  address: string;
  /** The token's mint; undefined for the coin. */
  mint: string | undefined;
  rpc: JsonRpc;
  /** Hash of the first block of the cluster that is meant. */
  genesisHash: string;
}>;

/** Creates the chain of the coin or of a token. */
export function createSolanaChain(options: SolanaChainOptions): TokenChain {
  const { token, address, mint } = options;
  const server = createSolanaServer(options.rpc, options.genesisHash);
  const paid = (transaction: SolanaTransaction): SolanaPayment =>
    mint === undefined ? coinsPaid(transaction, address) : tokensPaid(transaction, address, mint);
  const receivers = async (signal: AbortSignal): Promise<Asked<readonly string[]>> =>
    mint === undefined ? { kind: "ok", value: [address] } : await server.tokenAccounts(address, mint, signal);
  return {
    token,
    addressType: "solana",
    address,
    confirmations: 1,
    finalConfirmations: 1,
    look: (id, signal) => lookAt(server, paid, id, signal),
    standing: () => Promise.resolve({ kind: "stands", confirmations: 1 }),
    beginsAt: beginningOf,
    scan: async (cursor, signal) => {
      const accounts = await receivers(signal);
      if (accounts.kind === "trouble") return accounts;
      return await sweepSignatures(server, accounts.value, cursor, signal);
    },
  };
}

async function lookAt(
  server: SolanaServer,
  paid: (transaction: SolanaTransaction) => SolanaPayment,
  id: string,
  signal: AbortSignal,
): Promise<Sight | Fault> {
  const final = await server.transaction(id, "finalized", signal);
  if (final.kind === "trouble") return final;
  if (final.value !== undefined) {
    const { slot, succeeded } = final.value;
    const block = { height: slot, hash: "" };
    return { kind: "mined", block, confirmations: 1, succeeded, ...paid(final.value) };
  }
  const confirmed = await server.transaction(id, "confirmed", signal);
  if (confirmed.kind === "trouble") return confirmed;
  return confirmed.value === undefined ? { kind: "absent" } : { kind: "waiting", ...paid(confirmed.value) };
}
