/**
 * Ids that the index does not have: transactions that a node has, and whatever a trusted gateway gives.
 * What nobody has is remembered for a moment, so that asking for nonsense costs others nothing.
 * @module
 */
import { LRUCache } from "lru-cache";
import type { Id } from "../arweave/id.ts";
import type { GatewayContent, Gateways } from "../chain/gateways.ts";
import { failureOf } from "../chain/http.ts";
import type { NodeAnswer } from "../chain/node.ts";
import { Failure } from "../failures.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import type { RootSpec } from "../store/extents.ts";
import type { Bodies, ValidTransaction } from "./bodies.ts";
import type { Fill } from "./fill.ts";

/** Something found elsewhere. */
export type Found =
  /** A transaction whose id was checked; its data is proven as every root's is, but its block was not accepted here. */
  | Readonly<{
      kind: "transaction";
      root: RootSpec;
      contentType: string | undefined;
      contentEncoding: string | undefined;
    }>
  /** Bytes on a gateway's word. */
  | Readonly<{ kind: "gateway"; content: GatewayContent }>;

/** Finding ids elsewhere. */
export type Elsewhere = Readonly<{
  /** @throws Failure `not_found` when all say so, `source_failed`, `source_timeout`, `busy` when any is in trouble. */
  find: (id: Id, signal: AbortSignal) => Promise<Found>;
  forget: (id: Id) => void;
}>;

/** How long an id stays unknown. Source: contract.md §1. */
const unknownMs = 10_000;

/** Unknown ids remembered: 10 MiB at most. */
const unknownMax = 100_000;

/** What was found is asked for again after so long: a transaction may have been mined, a gateway's file replaced. */
const foundMs = 60_000;
const foundMax = 10_000;

/** Makes the finding. */
export function createElsewhere(parts: {
  bodies: Bodies;
  gateways: Gateways;
  fill: Pick<Fill, "keep">;
}): Elsewhere {
  const { bodies, gateways, fill } = parts;
  const unknown = new LRUCache<Id, true>({ max: unknownMax, ttl: unknownMs });
  const known = new LRUCache<Id, Found>({ max: foundMax, ttl: foundMs });
  const flights = createSingleFlight<Found>();

  async function ask(id: Id, signal: AbortSignal): Promise<Found> {
    const onChain = await bodies.transaction(id, signal);
    if (onChain.kind === "ok") return remember(id, await transactionFound(onChain.value));
    const atGateway = await askGateways(id, signal);
    if (atGateway.kind === "ok") return remember(id, { kind: "gateway", content: atGateway.value });
    for (const answer of [onChain, atGateway]) {
      if (answer.kind === "trouble") throw failureOf(answer, { id });
    }
    // A pending transaction's data cannot be had yet; that it is unknown will not hold for long.
    if (onChain.kind !== "pending") unknown.set(id, true);
    throw new Failure("not_found", { id });
  }

  async function transactionFound({ row, data }: ValidTransaction): Promise<Found> {
    const root: RootSpec = { id: row.id, dataRoot: row.dataRoot, size: row.dataSize };
    if (data !== undefined && row.format === 1) await fill.keep(root, data.bytes); // it came with the answer
    const tagged = (name: string) => row.tags.find((tag) => tag.name.toLowerCase() === name)?.value;
    const [contentType, contentEncoding] = [tagged("content-type"), tagged("content-encoding")];
    return { kind: "transaction", root, contentType, contentEncoding };
  }

  function remember(id: Id, what: Found): Found {
    known.set(id, what);
    return what;
  }

  async function askGateways(id: Id, signal: AbortSignal): Promise<NodeAnswer<GatewayContent>> {
    return gateways.urls.length === 0 ? { kind: "absent" } : gateways.find(id, signal);
  }

  return {
    async find(id, signal) {
      const before = known.get(id);
      if (before !== undefined) return before;
      if (unknown.has(id)) throw new Failure("not_found", { id, remembered: true });
      return flights.run(id, signal, (own) => ask(id, own));
    },
    forget(id) {
      unknown.delete(id);
      known.delete(id);
    },
  };
}
