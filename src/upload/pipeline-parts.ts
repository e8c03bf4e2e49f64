/**
 * What the steps of the pipeline work with: the ledger, threads, the chain, and how long things may take.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Step } from "../payment/approvals.ts";
import type { LedgerDatabase, Tx } from "../store/ledger/database.ts";
import type { MakeId } from "../store/ledger/transfer-ids.ts";
import type { Pool } from "../threads/pool.ts";
import type { PlanRules } from "./plan.ts";

/** What the nodes made of something that was sent to all of them. */
export type Posted =
  /** Enough of them have it. */
  | Readonly<{ kind: "taken" }>
  /** Somebody looked at it and does not want it, and nobody took it. */
  | Readonly<{ kind: "refused"; reason: string }>
  /** Nobody could be reached, or all are busy. */
  | Readonly<{ kind: "trouble"; reason: string }>;

/** The chain, as far as bundles need it. */
export type BundleChain = Readonly<{
  /** An anchor for a new transaction, base64url. Rejects with Failure when no node gives one. */
  anchor: (signal: AbortSignal) => Promise<string>;
  /** What data of a size costs, winston. */
  price: (size: number, signal: AbortSignal) => Promise<bigint>;
  /** What the wallet holds, winston. */
  balance: (signal: AbortSignal) => Promise<bigint>;
  post: (path: "/tx" | "/chunk", body: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<Posted>;
  /** Height up to which our own index has followed the chain; `undefined` before the first block. */
  height: () => number | undefined;
  /** Where our own index has a transaction, and how deep. */
  status: (id: Id) => Readonly<{ height: number; confirmations: number }> | undefined;
  /** Whether nodes know of a transaction that is in no block that we have: in their memory, or in a block to come. */
  isKnown: (id: Id, signal: AbortSignal) => Promise<boolean>;
  /** Whether our own index has read the whole bundle back from the chain. */
  isReadBack: (id: Id) => boolean;
  /** Asks our own index to read a bundle, whatever its filters say. */
  wantIndexed: (id: Id) => Promise<void>;
}>;

/** How long things take, and how deep is deep. */
export type PipelineRules = Readonly<{
  plan: PlanRules;
  /** Depth at which a bundle is permanent. Blocks. */
  confirmations: number;
  /** Between two looks at a bundle that waits for the chain. Milliseconds. */
  lookMs: number;
  /** A seeded bundle that nobody has seen in a block, or read back, for so long is posted or seeded again. Milliseconds. */
  againMs: number;
}>;

/** What the steps work with. */
export type PipelineParts = Readonly<{
  ledger: LedgerDatabase;
  /** Of entry `bundles`. */
  threads: Pool;
  chain: BundleChain;
  /** Gives back what was paid for an item; in the transaction in which it fails. */
  refund: (tx: Tx, reservationId: string, step: Step) => Promise<void>;
  /** That of uploads, as an absolute path, and the file of the wallet that pays. */
  folder: string;
  walletFile: string;
  rules: PipelineRules;
  makeId: MakeId;
  clock: Clock;
  log: Log;
}>;
