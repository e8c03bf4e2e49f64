/**
 * A chain that does what a test says, behind the interface by which payments see every chain: blocks, a mempool,
 * forks, servers that are behind, late, or out of reach.
 * @module
 */
import { type Fault, fault } from "../../../src/lib/http-client.ts";
import type { Token, UserAddress } from "../../../src/payment/addresses.ts";
import type {
  BlockRef,
  Found,
  Observation,
  TokenChain,
  TokenTransfer,
  TransferStatus,
} from "../../../src/payment/tokens/token-chain.ts";

/** What a test says of one transaction. */
export type ScriptedTransaction = Readonly<{
  transfers: readonly TokenTransfer[];
  succeeded?: boolean;
  /** What it shows before it is mined; the transfers by default. */
  shown?: readonly TokenTransfer[] | "nothing";
}>;

/** The chain and its strings. */
export type ScriptedChain = TokenChain &
  Readonly<{
    /** Puts a transaction into the mempool. */
    send: (id: string, transaction: ScriptedTransaction) => void;
    /** Mines blocks; the first takes what waits, or the named ones of it. */
    mine: (count?: number, only?: readonly string[]) => void;
    /** Takes back blocks from the newest on; their transactions go to the mempool, or are gone. */
    takeBack: (count: number, fate?: "waiting" | "gone") => void;
    height: () => number;
    /** Whether a transaction waits or is in a block. */
    knows: (id: string) => boolean;
    /** Makes every call response fault until it is set to undefined. */
    fail: (reason: Fault["reason"] | undefined) => void;
    /** Transactions that no server can give, with the reason. */
    unreadable: Map<string, Fault["reason"]>;
    /** Transactions that a scan lists, and the next of several servers does not know. */
    unknown: Set<string>;
    /** Mined transactions whose receipt the next of several servers does not have. */
    behind: Set<string>;
    looks: () => number;
    scans: () => number;
  }>;

/** How it is made. */
export type ScriptedOptions = Readonly<{
  token?: Token;
  address?: string;
  confirmations?: number;
  finalConfirmations?: number;
  /** Ids that a step of looking finds at most. */
  foundMax?: number;
  /** Where the watch began, whatever the cursor: from the first block on unless given. */
  begin?: number | "not yet";
}>;

type Block = { readonly hash: string; readonly ids: readonly string[] };

/** Makes a chain with one block. */
export function createScriptedChain(options: ScriptedOptions = {}): ScriptedChain {
  const { token = "ethereum", address = `0x${"0".repeat(38)}AA` } = options;
  const { confirmations = 3, finalConfirmations = 10, foundMax = 5 } = options;
  const transactions = new Map<string, ScriptedTransaction>();
  const waiting = new Set<string>();
  const blocks: Block[] = [{ hash: "genesis", ids: [] }];
  const unreadable = new Map<string, Fault["reason"]>();
  const unknown = new Set<string>();
  const behind = new Set<string>();
  const calls = { looks: 0, scans: 0, blocks: 0 };
  let failing: Fault["reason"] | undefined;

  const height = () => blocks.length - 1;
  const problem = (): Fault | undefined => (failing === undefined ? undefined : fault(failing, "as the test says"));

  function viewOf(id: string): Observation {
    const transaction = transactions.get(id);
    const outline = { target: address, amount: transaction?.transfers[0]?.amount ?? 0n };
    if (transaction === undefined) return { kind: "absent" };
    const { transfers, succeeded = true, shown = transfers } = transaction;
    if (waiting.has(id) || behind.has(id))
      return { kind: "waiting", transfers: shown === "nothing" ? undefined : shown, outline };
    const at = blocks.findIndex(({ ids }) => ids.includes(id));
    const block = blocks[at];
    if (block === undefined) return { kind: "absent" };
    const seen = { block: { height: at, hash: block.hash }, confirmations: height() - at + 1 };
    return { kind: "mined", ...seen, succeeded, transfers, outline };
  }

  function scan(cursor: string | undefined): Found {
    const confirmed = height() - confirmations + 1;
    const from = /^\d+$/.test(cursor ?? "") ? Number(cursor) : height() + 1;
    const found: string[] = [];
    let next = from;
    while (next <= confirmed && found.length < foundMax) {
      found.push(...(blocks[next]?.ids ?? []));
      next += 1;
    }
    return { kind: "found", ids: found, cursor: String(next), hasMore: next <= confirmed };
  }

  return {
    token,
    addressType: "ethereum",
    address,
    confirmations,
    finalConfirmations,
    look: async (id, signal) => {
      signal.throwIfAborted();
      calls.looks += 1;
      await Bun.sleep(0);
      const reason = unreadable.get(id);
      if (reason !== undefined) return fault(reason, "as the test says");
      if (unknown.has(id)) return problem() ?? { kind: "absent" };
      return problem() ?? viewOf(id);
    },
    status: async ({ height: at, hash }: BlockRef): Promise<TransferStatus | Fault> => {
      const block = blocks[at];
      if (block === undefined) return problem() ?? { kind: "unknown" };
      const depth = height() - at + 1;
      return problem() ?? { kind: block.hash === hash ? "unchanged" : "replaced", confirmations: depth };
    },
    beginsAt: () => (options.begin === "not yet" ? undefined : (options.begin ?? 0)),
    scan: async (cursor) => {
      calls.scans += 1;
      return problem() ?? scan(cursor);
    },
    send: (id, transaction) => {
      transactions.set(id, transaction);
      waiting.add(id);
    },
    mine: (count = 1, only) => {
      for (let mined = 0; mined < count; mined += 1) {
        calls.blocks += 1;
        const ids = [...waiting].filter((id) => only === undefined || only.includes(id));
        for (const id of ids) waiting.delete(id);
        blocks.push({ hash: `block ${calls.blocks}`, ids });
      }
    },
    takeBack: (count, fate = "waiting") => {
      for (const { ids } of blocks.splice(blocks.length - count, count))
        for (const id of ids) {
          if (fate === "waiting") waiting.add(id);
          else transactions.delete(id);
        }
    },
    height,
    knows: (id) => transactions.has(id),
    fail: (reason) => {
      failing = reason;
    },
    unreadable,
    unknown,
    behind,
    looks: () => calls.looks,
    scans: () => calls.scans,
  };
}

/** A transaction id of an EVM chain, from a number. */
export function testHash(number: number): string {
  return `0x${number.toString(16).padStart(64, "0")}`;
}

/** A transfer. */
export function transferOf(sender: UserAddress, amount: bigint, destination?: string): TokenTransfer {
  return { sender, amount, destination };
}
