/**
 * A look at one transaction of an EVM chain, whatever it pays in.
 * @module
 */

import { atLeast } from "../../../lib/bounds.ts";
import { type Fault, fault } from "../../../lib/http-client.ts";
import type { EvmChain, EvmReceipt, EvmTransaction } from "../../evm/chain.ts";
import type { MinedSight, Sight } from "../sight.ts";

/** What a transaction pays us, and how it presents itself. */
export type Paid = Pick<MinedSight, "transfers" | "outline">;

/** How payments in one coin are read. */
export type EvmPaidReader = Readonly<{
  /** Of a transaction in no block; without `transfers` where only the block will show them. */
  waiting: (transaction: EvmTransaction) => Pick<Extract<Sight, { kind: "waiting" }>, "transfers" | "outline">;
  /** Of one in a block; `undefined` when its logs cannot be read. */
  mined: (transaction: EvmTransaction, receipt: EvmReceipt) => Paid | undefined;
}>;

/** Looks at a transaction. @param id - canonical. */
export async function lookAtEvm(
  evm: Pick<EvmChain, "transaction" | "receipt" | "latest">,
  reader: EvmPaidReader,
  id: string,
  signal: AbortSignal,
): Promise<Sight | Fault> {
  const [transaction, receipt] = await Promise.all([evm.transaction(id, signal), evm.receipt(id, signal)]);
  if (transaction.kind === "trouble") return transaction;
  if (receipt.kind === "trouble") return receipt;
  if (transaction.value === undefined) return { kind: "absent" };
  if (receipt.value === undefined) return { kind: "waiting", ...reader.waiting(transaction.value) };
  const paid = reader.mined(transaction.value, receipt.value);
  if (paid === undefined) return fault("malformed", "the logs of a receipt cannot be read");
  const latest = await evm.latest(signal);
  if (latest.kind === "trouble") return latest;
  const { height, blockHash: hash, succeeded } = receipt.value;
  return {
    kind: "mined",
    block: { height, hash },
    confirmations: confirmationsOf(height, latest.value),
    succeeded,
    ...paid,
  };
}

/** Confirmations of a block that is there: of several servers behind one address the next one may be behind it. */
export function confirmationsOf(height: number, latest: number): number {
  return atLeast(latest - height + 1, 1);
}
