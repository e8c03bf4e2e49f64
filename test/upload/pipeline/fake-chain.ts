/**
 * A chain in memory for the pipeline. A test can make it lose data, reject, reorganize and mine.
 *
 * Anchors, signatures and proofs of chunks are validated by the real rules. A dropped transaction is not lost: another
 * node may have stored it, and mine it later while its anchor is valid.
 * @module
 */
import { checkChunk, readPostedChunk } from "../../../src/arweave/chunk.ts";
import type { Id } from "../../../src/arweave/id.ts";
import { readTransactionHeader, type Transaction, verifyTransaction } from "../../../src/arweave/transaction.ts";
import { Failure } from "../../../src/failures.ts";
import { encodeBase64url } from "../../../src/lib/base64url.ts";
import { anchorBlocks, type BundleChain, type Posted } from "../../../src/upload/pipeline/pipeline-context.ts";

/** What becomes of something that was posted, before the chain itself looks at it. */
export type PostFault = "taken and dropped" | Posted | undefined;

/** Faults of posts; none by default. */
export type PostFaults = Readonly<{
  tx?: (transaction: Transaction) => PostFault;
  chunk?: (dataRoot: string, start: number) => PostFault;
}>;

type Block = Readonly<{ hash: string; txs: readonly string[] }>;

/** The chain. */
export type FakeChain = BundleChain &
  Readonly<{
    /** To be set by tests. */
    fixture: {
      faults: PostFaults;
      balance: bigint;
      /** Winston of a bundle of whatever size. */
      price: bigint;
      /** Our own index is so many blocks behind its nodes. */
      indexLag: number;
      /** Whether our own index can read what is there. */
      canReadBack: boolean;
      /** Nodes do not respond to queries. */
      areNodesSilent: boolean;
    };
    /** Mines what waits, as far as its anchor allows; blocks are empty without it. */
    mine: (count?: number) => void;
    /** Height of the newest block; the index may be behind it. */
    tip: () => number;
    /** Takes the newest blocks back. @param keeps - Whether nodes keep their transactions in the mempool. */
    rollBack: (depth: number, keeps: (id: string) => boolean) => void;
    /** Nodes lose a pending transaction and its chunks; another node may still have it. */
    forgetTx: (id: string) => void;
    /** Nodes forget chunks of data. */
    forgetChunks: (dataRoot: string, which: (start: number) => boolean) => void;
    /** Mines something that the nodes have forgotten, if its anchor still allows it. @returns What. */
    mineForgotten: (pick: (ids: readonly string[]) => string | undefined) => string | undefined;
    /** Begins the chain anew: nothing that was is known any more. */
    reset: () => void;
    /** Ids of the transactions that wait. */
    waiting: () => readonly string[];
    /** Mined transactions in order. */
    mined: () => readonly Transaction[];
    /** Greatest depth that a transaction has had, before any rollback; 1 is the newest block, at most 10. */
    deepest: (id: string) => number;
    /** The data of a transaction; `undefined` while chunks of it are missing. */
    dataOf: (transaction: Transaction) => Uint8Array | undefined;
    /** Every transaction that was ever taken, by id. */
    seen: ReadonlyMap<string, Transaction>;
    /** Posts that came, by path. */
    posts: { tx: number; chunk: number };
    /** Bundles that were asked to be indexed, and ids whose pending rows were taken back. */
    wanted: string[];
    forgotten: string[];
  }>;

const anchorDepth = 6;
const deepestMax = 10;

/** Creates a chain of some blocks. */
export function createFakeChain(height = 10): FakeChain {
  let blocks: Block[] = [];
  let made = 0;
  const mempool = new Map<string, Transaction>();
  const seen = new Map<string, Transaction>();
  const deepest = new Map<string, number>();
  /** By data root; the chunks by where they begin. */
  const data = new Map<string, Map<number, Uint8Array>>();
  const fixture: FakeChain["fixture"] = {
    faults: {},
    balance: 10n ** 15n,
    price: 1_000n,
    indexLag: 0,
    canReadBack: true,
    areNodesSilent: false,
  };
  const posts = { tx: 0, chunk: 0 };
  const wanted: string[] = [];
  const forgotten: string[] = [];

  const grow = (txs: readonly string[]): void => {
    made += 1;
    const hash = Buffer.alloc(48);
    hash.writeUInt32BE(made, 0);
    hash.writeUInt32BE(blocks.length, 4);
    blocks.push({ hash: encodeBase64url(hash), txs });
    for (let depth = 1; depth <= deepestMax; depth += 1)
      for (const id of blocks.at(-depth)?.txs ?? []) deepest.set(id, Math.max(depth, deepest.get(id) ?? 0));
  };
  for (let at = 0; at <= height; at += 1) grow([]);

  const tip = () => blocks.length - 1;
  const heightOf = (id: string): number | undefined => {
    const found = blocks.findIndex(({ txs }) => txs.includes(id));
    return found === -1 ? undefined : found;
  };
  const canMine = ({ lastTx }: Transaction): boolean => blocks.slice(-anchorBlocks).some(({ hash }) => hash === lastTx);
  const isKnownRoot = (root: string): boolean =>
    [...mempool.values()].some(({ dataRoot }) => dataRoot === root) ||
    blocks.some(({ txs }) => txs.some((id) => seen.get(id)?.dataRoot === root));
  const asked = <Result>(response: () => Result): Promise<Result> =>
    fixture.areNodesSilent
      ? Promise.reject(new Failure("source_failed", { reason: "no node responds" }))
      : Promise.resolve(response());

  const postTx = (body: Uint8Array): Posted => {
    posts.tx += 1;
    const transaction = readTransactionHeader(new TextDecoder().decode(body));
    const verdict = verifyTransaction(transaction);
    if (!verdict.valid) return rejected(`400 ${verdict.reason}`, "");
    const fault = fixture.faults.tx?.(transaction);
    if (typeof fault === "object" && fault.kind !== "taken") return fault;
    if (heightOf(transaction.id) !== undefined || mempool.has(transaction.id)) return { kind: "taken" };
    if (!canMine(transaction)) return rejected("400 Invalid anchor (last_tx).", "");
    seen.set(transaction.id, transaction);
    if (fault !== "taken and dropped") mempool.set(transaction.id, transaction);
    return { kind: "taken" };
  };

  const postChunk = (body: Uint8Array): Posted => {
    posts.chunk += 1;
    const chunk = readPostedChunk(new TextDecoder().decode(body));
    const root = encodeBase64url(chunk.dataRoot);
    const verdict = checkChunk({ ...chunk, ruleset: "relaxed" });
    const start = verdict.kind === "proven" ? verdict.start : -1;
    const fault = fixture.faults.chunk?.(root, start);
    if (typeof fault === "object" && fault.kind !== "taken") return fault;
    if (!isKnownRoot(root)) return rejected('400 {"error":"data_root_not_found"}', "data_root_not_found");
    if (verdict.kind === "rejected") return rejected('400 {"error":"invalid_proof"}', "invalid_proof");
    if (fault === "taken and dropped") return { kind: "taken" };
    const chunks = data.get(root) ?? new Map<number, Uint8Array>();
    chunks.set(start, chunk.chunk);
    data.set(root, chunks);
    return { kind: "taken" };
  };

  const dataOf = ({ dataRoot, dataSize }: Transaction): Uint8Array | undefined => {
    const parts: Uint8Array[] = [];
    for (let at = 0; at < dataSize; ) {
      const part = data.get(dataRoot)?.get(at);
      if (part === undefined) return undefined;
      parts.push(part);
      at += part.length;
    }
    return Buffer.concat(parts);
  };

  const forgetTx = (id: string): void => {
    const transaction = mempool.get(id);
    mempool.delete(id);
    if (transaction !== undefined && !isKnownRoot(transaction.dataRoot)) data.delete(transaction.dataRoot);
  };

  const indexTip = () => tip() - fixture.indexLag;

  return {
    fixture,
    posts,
    wanted,
    forgotten,
    seen,
    dataOf,
    forgetTx,
    anchor: () =>
      asked(() => {
        if (fixture.indexLag > anchorDepth) throw new Failure("not_synced", { reason: "the index is behind" });
        const at = Math.max(0, indexTip() - anchorDepth);
        return { hash: blocks[at]?.hash ?? "", height: at };
      }),
    price: () => asked(() => fixture.price),
    balance: () =>
      asked(() => {
        // As nodes tell it: what is in a block is paid for.
        const paid = blocks.flatMap(({ txs }) => txs).map((id) => seen.get(id)?.reward ?? 0n);
        return paid.reduce((left, reward) => left - reward, fixture.balance);
      }),
    nodesHeight: () => asked(tip),
    post: async (path, body) => (path === "/tx" ? postTx(body) : postChunk(body)),
    height: indexTip,
    status: (id) => {
      const at = heightOf(id);
      return at === undefined || at > indexTip() ? undefined : { height: at, confirmations: indexTip() - at + 1 };
    },
    isUnknown: async (id) => !fixture.areNodesSilent && heightOf(id) === undefined && !mempool.has(id),
    isReadBack: (id) => {
      const transaction = seen.get(id);
      return fixture.canReadBack && transaction !== undefined && dataOf(transaction) !== undefined;
    },
    wantIndexed: async (id) => {
      wanted.push(id);
    },
    forgetPending: async (ids: readonly Id[]) => {
      forgotten.push(...ids);
    },
    mine: (count = 1) => {
      for (let at = 0; at < count; at += 1) {
        const chosen = [...mempool.values()].filter(canMine).map(({ id }) => id);
        grow(chosen);
        for (const id of chosen) mempool.delete(id);
        // Nodes drop what can no longer be mined.
        for (const each of mempool.values()) if (!canMine(each)) forgetTx(each.id);
      }
    },
    tip: () => blocks.length - 1,
    rollBack: (depth, keeps) => {
      const gone = blocks.slice(-depth).flatMap(({ txs }) => txs);
      blocks = blocks.slice(0, -depth);
      for (const id of gone) {
        const transaction = seen.get(id);
        if (transaction !== undefined && keeps(id) && canMine(transaction)) mempool.set(id, transaction);
      }
    },
    forgetChunks: (dataRoot, which) => {
      for (const start of data.get(dataRoot)?.keys() ?? []) if (which(start)) data.get(dataRoot)?.delete(start);
    },
    mineForgotten: (pick) => {
      const possible = [...seen.values()]
        .filter((each) => !mempool.has(each.id) && heightOf(each.id) === undefined && canMine(each))
        .map(({ id }) => id);
      const id = possible.length === 0 ? undefined : pick(possible);
      if (id !== undefined) grow([id]);
      return id;
    },
    reset: () => {
      blocks = [];
      grow([]);
      mempool.clear();
      data.clear();
    },
    waiting: () => [...mempool.keys()],
    mined: () => blocks.flatMap(({ txs }) => txs).flatMap((id) => seen.get(id) ?? []),
    deepest: (id) => deepest.get(id) ?? 0,
  };
}

function rejected(reason: string, word: string): Posted {
  return { kind: "rejected", reason, word, isByAll: true };
}
