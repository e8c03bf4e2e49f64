/**
 * What a chain says of one transaction that may pay us, the same for every chain. Types only.
 * @module
 */
import type { Trouble } from "../../chain/http.ts";
import type { AddressType, Token, UserAddress } from "../addresses.ts";

/** What one sender pays us in one transaction. A transaction of several senders has one for each. */
export type TokenTransfer = Readonly<{
  sender: UserAddress;
  /** Smallest unit, 0 or more. */
  amount: bigint;
  /** Text with which the sender names another account; not checked. */
  destination: string | undefined;
}>;

/** The block in which a transaction stands. */
export type BlockRef = Readonly<{ height: number; hash: string }>;

/** What a chain says. */
export type Sight =
  | Readonly<{ kind: "absent" }>
  /** Known to nodes and in no block. Of some it shows only in the block what they pay: no `transfers`. */
  | Readonly<{ kind: "waiting"; transfers: readonly TokenTransfer[] | undefined; target: string }>
  | Readonly<{
      kind: "mined";
      block: BlockRef;
      /** 1 for a transaction in the newest block. */
      confirmations: number;
      /** Whether the chain carried it out. */
      succeeded: boolean;
      /** What it pays us, in the chain's own order; none when it pays us nothing. */
      transfers: readonly TokenTransfer[];
      /** Whom it pays, for people. */
      target: string;
    }>;

/** Whether a block that held a payment is still the chain's. */
export type Standing =
  | Readonly<{ kind: "stands"; confirmations: number }>
  /** Another block stands at its height. */
  | Readonly<{ kind: "replaced" }>
  /** The chain's tip is below it: it may be behind, or shorter. */
  | Readonly<{ kind: "unknown" }>;

/** What a step of looking for payments found. */
export type Found = Readonly<{
  kind: "found";
  /** Canonical transaction ids, oldest first; the same one may be found again. */
  ids: readonly string[];
  /** Where the next step begins, once these are dealt with. */
  cursor: string;
  /** Whether there is more to look through at once. */
  hasMore: boolean;
}>;

/** One token on one chain. Calls reject with the signal's reason when aborted, with nothing else. */
export type TokenChain = Readonly<{
  token: Token;
  /** What its senders' addresses are made of. */
  addressType: AddressType;
  /** Where payments go. */
  address: string;
  /** Confirmations at which a payment is credited. */
  confirmations: number;
  /** Confirmations after which a credited payment is no longer watched. */
  finalConfirmations: number;
  /** @param id - canonical. */
  look: (id: string, signal: AbortSignal) => Promise<Sight | Trouble>;
  standing: (block: BlockRef, signal: AbortSignal) => Promise<Standing | Trouble>;
  /**
   * Looks for payments that nobody reported.
   * @param cursor - Where the last step ended; `undefined` begins at the chain's tip.
   */
  scan: (cursor: string | undefined, signal: AbortSignal) => Promise<Found | Trouble>;
}>;
