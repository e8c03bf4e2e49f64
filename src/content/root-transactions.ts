/**
 * Root transactions whose data is searched for items: from the index, or from nodes with id, signature and block
 * checked.
 *
 * A block that was never followed is accepted when its hash is correct, it names the transaction, and the operator's
 * nodes say that it is on the chain: following the chain relies on the same. It is not accepted when the index has
 * another block at that height.
 * Source: docs/reference/gateway.md#verification; docs/reference/formats.md#blocks.
 * @module
 */
import { LRUCache } from "lru-cache";
import type { CheckBlockNamesJob } from "../../workers/verify.ts";
import { isBundleTags } from "../arweave/bundle.ts";
import { type BlockHash, type Id, readBlockHash } from "../arweave/id.ts";
import type { NodeResponse } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import type { IndexReader, Located } from "../store/index/index-types.ts";
import type { Place } from "../store/index/place.ts";
import type { RootSpec } from "../store/root-spec.ts";
import type { Bodies, ValidTransaction } from "./bodies.ts";
import type { CacheFetcher } from "./fetch-to-cache.ts";

/** A transaction that holds bundles. */
export type RootTransaction = Readonly<{
  spec: RootSpec;
  /** Whether it is in a block that we accept. */
  isAccepted: boolean;
  /** Too deep to be forked away; of transactions in the index only. */
  isStable: boolean;
  /** Where the index has it. */
  place: Place | undefined;
}>;

/** Finds them. */
export type RootTransactions = Readonly<{
  /** @returns The transaction; `no bundle` when it is one but holds none; else what nodes say. */
  find: (id: Id, signal: AbortSignal) => Promise<NodeResponse<RootTransaction> | Readonly<{ kind: "no bundle" }>>;
  forget: (id: Id) => void;
  forgetAll: () => void;
}>;

/** Returns why a block's text is not the requested block. Runs in a thread. */
export type CheckBlockNames = (job: CheckBlockNamesJob, signal: AbortSignal) => Promise<string | undefined>;

export type RootTransactionsParts = Readonly<{
  reader: Pick<IndexReader, "locate" | "block">;
  bodies: Bodies;
  nodes: Nodes;
  keep: CacheFetcher["keep"];
  checkBlockNames: CheckBlockNames;
}>;

/** Requested transactions are cached: many items of one bundle are requested together. */
const storedMax = 2_000;
const acceptedStoredMs = 600_000;

/** A transaction that is not accepted may be soon: it was too new, or a node failed. */
const otherStoredMs = 10_000;

export function createRootTransactions(parts: RootTransactionsParts): RootTransactions {
  const { reader, bodies, nodes } = parts;
  const stored = new LRUCache<Id, RootTransaction>({ max: storedMax });
  const flights = createSingleFlight<Awaited<ReturnType<RootTransactions["find"]>>>();
  /** Number of calls of `forgetAll`: a response to an earlier request may be of a block that was rolled back. */
  let generation = 0;

  async function ask(id: Id, signal: AbortSignal): ReturnType<RootTransactions["find"]> {
    const before = generation;
    const response = await bodies.transaction(id, signal);
    if (response.kind !== "ok") return response;
    const { row, data } = response.value;
    if (row.dataSize === 0 || !isBundleTags(row.tags)) return { kind: "no bundle" };
    const spec: RootSpec = { id, dataRoot: row.dataRoot, size: row.dataSize };
    if (data !== undefined) await parts.keep(spec, data.bytes); // it came with the response
    const root = {
      spec,
      isAccepted: isProvable(row) && (await isInBlock(id, signal)),
      isStable: false,
      place: undefined,
    };
    if (before === generation) stored.set(id, root, { ttl: root.isAccepted ? acceptedStoredMs : otherStoredMs });
    return { kind: "ok", value: root };
  }

  /** Whether a block that we accept names the transaction; false also when a node failed. */
  async function isInBlock(id: Id, signal: AbortSignal): Promise<boolean> {
    const status = await nodes.ask((node, own) => node.txStatus(id, own), signal);
    if (status.kind !== "ok") return false;
    const { height } = status.value;
    const hash = readBlockHash(status.value.blockHash);
    if (hash === undefined) return false;
    const followed = reader.block(height);
    if (followed !== undefined && followed.hash !== hash) return false;
    return await namesTransaction(id, height, hash, signal);
  }

  async function namesTransaction(id: Id, height: number, hash: BlockHash, signal: AbortSignal) {
    const text = await nodes.ask((node, own) => node.blockText(hash, own), signal);
    if (text.kind !== "ok") return false;
    const fault = await parts.checkBlockNames({ block: text.value, id, height, hash }, signal);
    return fault === undefined;
  }

  return {
    async find(id, signal) {
      const located = reader.locate(id);
      if (located !== undefined && !located.pending) return fromIndex(located);
      const before = stored.get(id);
      if (before !== undefined) return { kind: "ok", value: before };
      return await flights.run(`${generation} ${id}`, signal, (own) => ask(id, own));
    },
    forget: (id) => stored.delete(id),
    forgetAll: () => {
      generation += 1;
      stored.clear();
    },
  };
}

function fromIndex(located: Located): NodeResponse<RootTransaction> | Readonly<{ kind: "no bundle" }> {
  const { id, kind, rootSize, dataRoot, weaveStart, verified, stable, place } = located;
  if (kind !== "transaction" || rootSize === 0) return { kind: "no bundle" };
  const spec = { id, dataRoot, size: rootSize, ...(weaveStart === undefined ? {} : { weaveStart }) };
  const isAccepted = verified && (dataRoot !== "" || located.rootFormat === 1);
  return { kind: "ok", value: { spec, isAccepted, isStable: stable, place } };
}

/** Format 1 is proven by its signature, format 2 by its data root. */
function isProvable({ format, dataRoot }: ValidTransaction["row"]): boolean {
  return format === 1 || dataRoot !== "";
}
