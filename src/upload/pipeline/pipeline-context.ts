/**
 * The dependencies of the pipeline's steps: the ledger, threads, the chain, and the rules.
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

/** The combined response of all nodes to a post. */
export type Posted =
  /** At least one node accepted the post. */
  | Readonly<{ kind: "taken" }>
  /** At least one node rejected the post, and none accepted it. */
  | Readonly<{
      kind: "rejected";
      /** Status and text of a node. */
      reason: string;
      /** The error code of the node; "" without one. */
      word: string;
      /** Whether every node rejected the post: none was silent or skipped. */
      isByAll: boolean;
    }>
  /** No node could be reached, or all are busy. */
  | Readonly<{ kind: "fault"; reason: string }>;

/** A block that transactions are anchored to: its hash, base64url. */
export type Anchor = Readonly<{ hash: string; height: number }>;

/** The chain, as the pipeline sees it. */
export type BundleChain = Readonly<{
  /** A block of our own index, known to all nodes. Rejects with Failure `not_synced` while the index is behind them. */
  anchor: (signal: AbortSignal) => Promise<Anchor>;
  /** Price of data, winston. Rejects with Failure `source_failed`, as the next two do. */
  price: (size: number, signal: AbortSignal) => Promise<bigint>;
  /** Balance of the wallet, winston. */
  balance: (signal: AbortSignal) => Promise<bigint>;
  /** Height of the newest block of the nodes. */
  nodesHeight: (signal: AbortSignal) => Promise<number>;
  post: (path: "/tx" | "/chunk", body: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<Posted>;
  /** Height up to which our own index has followed the chain; `undefined` before the first block. */
  height: () => number | undefined;
  /** Block and depth of a transaction in our own index. */
  status: (id: Id) => Readonly<{ height: number; confirmations: number }> | undefined;
  /**
   * Whether a transaction is unknown to every node, and no followed block names it. False if a node does not respond.
   */
  isUnknown: (id: Id, signal: AbortSignal) => Promise<boolean>;
  /** Whether our own index has read all items of a bundle back from the chain. */
  isReadBack: (id: Id, itemCount: number) => boolean;
  /** Requests our own index to read a bundle soon, regardless of its filters. */
  wantIndexed: (id: Id) => Promise<void>;
  /** Removes the pending rows of items from our own index. */
  forgetPending: (ids: readonly Id[]) => Promise<void>;
}>;

export type PipelineRules = Readonly<{
  plan: PlanRules;
  /** Depth at which a bundle is permanent. Blocks. */
  confirmations: number;
  /** Time between two checks of a bundle that waits for the chain. Milliseconds. */
  lookMs: number;
  /**
   * Time after which a bundle that is in no block, or cannot be read back, is posted or seeded again. Doubles each
   * time. Milliseconds.
   */
  againMs: number;
}>;

export type PipelineParts = Readonly<{
  ledger: LedgerDatabase;
  /** Pool of entry `bundles`. */
  threads: Pool<Workers["bundles"]>;
  chain: BundleChain;
  /** Blocked items are not posted. */
  blockList: UploadBlockList;
  /** Refunds an item in the transaction of its failure. */
  refund: (tx: Tx, reservationId: string, step: Step) => Promise<void>;
  /** Called with files that may be unneeded, after the change is durable. The callback checks before a removal. */
  onLeft: (files: readonly string[]) => void;
  /** Called for ended items, after the change is durable. */
  onEnded: (how: "permanent" | "failed", itemCount: number) => void;
  /** Called for a bundle that has left its block: the index may have no rows of its items. Never rejects. */
  onLeftBlock: (bundleId: string) => void;
  /** The folder of uploads, as an absolute path. */
  folder: string;
  /** Name of the folder of uploads. */
  storeName: string;
  /** File of the wallet that pays. */
  walletFile: string;
  rules: PipelineRules;
  makeId: MakeId;
  clock: Clock;
  log: Log;
}>;

export type StepParts = PipelineParts &
  Readonly<{
    /** Plans the items of dropped bundles. */
    planAgain: () => void;
    /** Runs work in sequence: two bundles must not be paid for with the same winston. */
    inOrder: (work: () => Promise<void>) => Promise<void>;
  }>;

/** Blocks after its anchor within which a transaction can be mined. */
export const anchorBlocks = 50;

/** The reason of a failure, for the operator. */
export function reasonOf(error: unknown): string {
  const stated = error instanceof Failure ? error.context["reason"] : undefined;
  if (typeof stated === "string") return stated;
  return error instanceof Error ? error.message : String(error);
}
