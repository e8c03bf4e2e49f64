/**
 * What the steps of the pipeline work with: the ledger, threads, the chain, and how long things may take.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Step } from "../../payment/credits/approvals.ts";
import type { LedgerDatabase, Tx } from "../../store/ledger/ledger-database.ts";
import type { MakeId } from "../../store/ledger/transfers.ts";
import type { Pool, Workers } from "../../threads/pool.ts";
import type { UploadBlockList } from "../blocked-uploads.ts";
import type { PlanRules } from "./plan-bundles.ts";

/** What the nodes made of something that was sent to all of them. */
export type Posted =
  /** Some of them have it. */
  | Readonly<{ kind: "taken" }>
  /** Somebody looked at it and does not want it, and nobody took it. */
  | Readonly<{
      kind: "rejected";
      /** The node's status and text. */
      reason: string;
      /** The node's word for it, "" where it has none. */
      word: string;
      /** Whether every node said so: none was silent, or left out. */
      isByAll: boolean;
    }>
  /** Nobody could be reached, or all are busy. */
  | Readonly<{ kind: "fault"; reason: string }>;

/** A block that transactions are anchored to: its hash, base64url. */
export type Anchor = Readonly<{ hash: string; height: number }>;

/** The chain, as far as bundles need it. */
export type BundleChain = Readonly<{
  /** A block of our own index, known to all nodes. Rejects with Failure `not_synced` while the index is behind them. */
  anchor: (signal: AbortSignal) => Promise<Anchor>;
  /** What data of a size costs, winston. Rejects with Failure `source_failed`, as the next two. */
  price: (size: number, signal: AbortSignal) => Promise<bigint>;
  /** What the wallet holds, winston. */
  balance: (signal: AbortSignal) => Promise<bigint>;
  /** Height of the nodes' newest block. */
  nodesHeight: (signal: AbortSignal) => Promise<number>;
  post: (path: "/tx" | "/chunk", body: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<Posted>;
  /** Height up to which our own index has followed the chain; `undefined` before the first block. */
  height: () => number | undefined;
  /** Where our own index has a transaction, and how deep. */
  status: (id: Id) => Readonly<{ height: number; confirmations: number }> | undefined;
  /**
   * Whether nobody knows of a transaction: every node says so, and no block that was followed names it.
   * False also where a node cannot be asked.
   */
  isUnknown: (id: Id, signal: AbortSignal) => Promise<boolean>;
  /** Whether our own index has read all items of a bundle back from the chain. */
  isReadBack: (id: Id, itemCount: number) => boolean;
  /** Has our own index read a bundle, whatever its filters say, and soon. */
  wantIndexed: (id: Id) => Promise<void>;
  /** Takes the rows of items that were in no block out of our own index. */
  forgetPending: (ids: readonly Id[]) => Promise<void>;
}>;

/** How long things take, and how deep is deep. */
export type PipelineRules = Readonly<{
  plan: PlanRules;
  /** Depth at which a bundle is permanent. Blocks. */
  confirmations: number;
  /** Between two looks at a bundle that waits for the chain. Milliseconds. */
  lookMs: number;
  /**
   * A bundle that nobody has seen in a block, or read back, for so long is posted or seeded again; each time it takes
   * twice as long. Milliseconds.
   */
  againMs: number;
}>;

/** What the steps work with. */
export type PipelineParts = Readonly<{
  ledger: LedgerDatabase;
  /** Of entry `bundles`. */
  threads: Pool<Workers["bundles"]>;
  chain: BundleChain;
  /** What is on it is not brought to the chain. */
  blockList: UploadBlockList;
  /** Gives back what was paid for an item; in the transaction in which it fails. */
  refund: (tx: Tx, reservationId: string, step: Step) => Promise<void>;
  /** Called with files that may be unneeded, when that is durable; the callback checks before it removes a file. */
  onLeft: (files: readonly string[]) => void;
  /** Called for items that ended, when that is durable. */
  onEnded: (how: "permanent" | "failed", itemCount: number) => void;
  /** Called for a bundle that has left its block: the index may have no rows of its items. Never rejects. */
  onLeftBlock: (bundleId: string) => void;
  /** That of uploads, as an absolute path, its name, and the file of the wallet that pays. */
  folder: string;
  storeName: string;
  walletFile: string;
  rules: PipelineRules;
  makeId: MakeId;
  clock: Clock;
  log: Log;
}>;

/** What a step works with, besides. */
export type StepParts = PipelineParts &
  Readonly<{
    /** Has items planned that a bundle has given back. */
    planAgain: () => void;
    /** Runs work when no other such work is under way: two bundles must not be paid for with the same winston. */
    inOrder: (work: () => Promise<void>) => Promise<void>;
  }>;

/** A transaction is mined within so many blocks after its anchor, or never. */
export const anchorBlocks = 50;

/** Why something failed, for people. */
export function reasonOf(error: unknown): string {
  const stated = error instanceof Failure ? error.context["reason"] : undefined;
  if (typeof stated === "string") return stated;
  return error instanceof Error ? error.message : String(error);
}
