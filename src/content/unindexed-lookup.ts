/**
 * Finds ids that the index does not have: transactions at nodes, data items by hints of their position, and unproven
 * content of trusted gateways. Ids that no source has are remembered for a moment, so that requests for them cost the
 * sources nothing.
 * @module
 */
import { LRUCache } from "lru-cache";
import { type Id, ownId } from "../arweave/id.ts";
import type { GatewayContent, Gateways } from "../chain/gateways.ts";
import type { Hint, HintSources } from "../chain/hint.ts";
import type { NodeResponse } from "../chain/node.ts";
import { askInOrder } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import { entryLimit } from "../lib/entry-limit.ts";
import { failureOf } from "../lib/http-client.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import { isTimeout, linkedController, timeout, withDeadline } from "../lib/stop.ts";
import type { FoundItems, StoredPlace } from "../store/found-items.ts";
import type { RootSpec } from "../store/root-spec.ts";
import type { Bodies, ValidTransaction } from "./bodies.ts";
import type { CacheFetcher } from "./fetch-to-cache.ts";
import type { RootTransactions } from "./root-transactions.ts";
import type { FoundItem, HintVerifier } from "./verify-hint.ts";

/** Something found elsewhere. */
export type Found =
  /** A transaction whose id was checked; its data is proven as every root's is, but its block was not accepted here. */
  | Readonly<{
      kind: "transaction";
      root: RootSpec;
      contentType: string | undefined;
      contentEncoding: string | undefined;
    }>
  /** A data item, as far as it was checked. */
  | Readonly<{ kind: "item"; item: FoundItem }>
  | Readonly<{ kind: "gateway"; content: GatewayContent }>;

export type UnindexedLookup = Readonly<{
  /**
   * @param hint - Of the client, which is not trusted.
   * @throws Failure `not_found` when all sources say so; `source_failed`, `source_timeout`, `busy` when any failed.
   */
  find: (id: Id, hint: Hint | undefined, signal: AbortSignal) => Promise<Found>;
  /** As `find`, but asks no index files: for their own content, which they would ask for themselves. */
  findWithoutFiles: (id: Id, signal: AbortSignal) => Promise<Found>;
  /**
   * Finds an item at a place that was not verified here. The bytes are checked as those of any hint.
   *
   * @throws As `find`; `not_found` when the item is not at the place.
   */
  findAt: (id: Id, place: Hint, signal: AbortSignal) => Promise<Found>;
  /** Notes what an item's payload is, its signature having been checked over all of it. */
  learnt: (id: Id, item: FoundItem, digest: Uint8Array) => void;
  /** Notes that an item that was found is not what it should be. */
  markWrong: (id: Id, item: FoundItem) => void;
  forget: (id: Id) => void;
  forgetAll: () => void;
}>;

export type UnindexedLookupParts = Readonly<{
  bodies: Bodies;
  gateways: Gateways;
  files: HintSources;
  queries: HintSources;
  hintVerifier: HintVerifier;
  /** Places that were found before, also before a restart. */
  foundItems?: FoundItems | undefined;
  /** What it remembers is forgotten with the rest. */
  roots: Pick<RootTransactions, "forget" | "forgetAll">;
  fetcher: Pick<CacheFetcher, "keep">;
  /** Longest search for an id, over all sources. Milliseconds; {@link findMsMaxDefault} by default. */
  findMsMax?: number | undefined;
  /** Called with the outcome at each source. */
  onLookup?: LookupStats | undefined;
}>;

/** Where an id was looked for: in memory, by the client's hint, and at each kind of source. */
export const lookupSources = ["memory", "hints", "nodes", "gateways", "cdb64", "graphql"] as const;
export type LookupSource = (typeof lookupSources)[number];

/** What became of a look-up at one source. */
export const lookupOutcomes = ["found", "not_found", "error"] as const;

/** Takes note of what became of a look-up at one source. */
export type LookupStats = (source: LookupSource, status: (typeof lookupOutcomes)[number]) => void;

/** How long an id stays unknown. */
const unknownMs = 10_000;

/** Unknown ids remembered: 20 MiB at most. */
const unknownMax = 100_000;

/** Absent index files are remembered separately: an index may still know them as items. */
const absentFilesMax = 1_000;

/** Found items are searched again after this time: a transaction may have been mined, a gateway's file replaced. */
const foundMs = 60_000;

/** The same for an item in an accepted block, which only a reorganisation can move. */
const itemFoundMs = 600_000;
const foundMax = 10_000;

/** Milliseconds. */
const findMsMaxDefault = 10_000;

/** A stage that takes longer than this is joined by the next. Milliseconds. */
const stageMs = 1_500;

/** Unproven content of a gateway waits no longer than this for a proof of its position. Milliseconds. */
const betterMsMax = 2_000;

/** One way to find an id. */
type Stage = (signal: AbortSignal) => Promise<NodeResponse<Found>>;

/** A stage whose responses are counted; an aborted stage has no response. */
function counted(source: LookupSource, stage: Stage, note: LookupStats | undefined): Stage {
  if (note === undefined) return stage;
  return async (signal) => {
    const response = await stage(signal);
    note(source, response.kind === "ok" ? "found" : response.kind === "fault" ? "error" : "not_found");
    return response;
  };
}

export function createUnindexedLookup(parts: UnindexedLookupParts): UnindexedLookup {
  const { unknown, known, absentFiles, remember, ...changes } = createMemory(parts);
  const flights = createSingleFlight<Found>();
  const stages = createStages(parts);
  const findMsMax = parts.findMsMax ?? findMsMaxDefault;

  async function ask(id: Id, hint: Hint | undefined, signal: AbortSignal): Promise<Found> {
    const isUnknown = unknown.has(id);
    const own = [
      ...stages.fromStored(id),
      ...(hint === undefined ? [] : [stages.byHint(id, hint)]),
      ...(isUnknown ? [] : stages.of(id)),
    ];
    const { found, others } = await askStages(own, id, findMsMax, signal);
    if (found !== undefined) return remember(id, found);
    for (const response of others) if (response.kind === "fault") throw failureOf(response, { id });
    // A pending transaction's data cannot be had yet; that it is unknown will not hold for long.
    if (!isUnknown && others.every(({ kind }) => kind !== "pending")) unknown.set(ownId(id), true);
    throw new Failure("not_found", { id });
  }

  /** Returns undefined when all stages say that the id does not exist. */
  async function askThese(own: readonly Stage[], id: Id, signal: AbortSignal): Promise<Found | undefined> {
    const { found, others } = await askStages(own, id, findMsMax, signal);
    if (found !== undefined) return remember(id, found);
    for (const response of others) if (response.kind === "fault") throw failureOf(response, { id });
    return undefined;
  }

  async function askWithoutFiles(id: Id, signal: AbortSignal): Promise<Found> {
    const found = await askThese(stages.withoutFiles(id), id, signal);
    if (found !== undefined) return found;
    absentFiles.set(ownId(id), true);
    throw new Failure("not_found", { id });
  }

  async function askAt(id: Id, place: Hint, signal: AbortSignal): Promise<Found> {
    const found = await askThese([...stages.fromStored(id), stages.at(id, place)], id, signal);
    if (found !== undefined) return found;
    throw new Failure("not_found", { id });
  }

  return {
    async findWithoutFiles(id, signal) {
      const before = known.get(id);
      if (before !== undefined) return before;
      if (absentFiles.has(id)) throw new Failure("not_found", { id, remembered: true });
      return await flights.run(`${id} without files`, signal, (own) => askWithoutFiles(id, own));
    },
    async find(id, hint, signal) {
      const before = known.get(id);
      if (before !== undefined) {
        parts.onLookup?.("memory", "found");
        return before;
      }
      if (hint === undefined && unknown.has(id)) {
        parts.onLookup?.("memory", "not_found");
        throw new Failure("not_found", { id, remembered: true });
      }
      // A hint of one client must not affect the result of another.
      const key = hint === undefined ? id : [id, hint.rootId, ...hint.path, hint.itemOffset].join(" ");
      return await flights.run(key, signal, (own) => ask(id, hint, own));
    },
    async findAt(id, place, signal) {
      const before = known.get(id);
      if (before?.kind === "item") return before;
      return await flights.run(`${id} in the index`, signal, (own) => askAt(id, place, own));
    },
    ...changes,
  };
}

/** What was found, and what was not, a moment ago. */
function createMemory(parts: UnindexedLookupParts) {
  const unknown = new LRUCache<Id, true>({ ...entryLimit(unknownMax), ttl: unknownMs });
  const known = new LRUCache<Id, Found>({ ...entryLimit(foundMax), ttl: foundMs });
  const absentFiles = new LRUCache<Id, true>({ max: absentFilesMax, ttl: unknownMs });

  function remember(id: Id, found: Found): Found {
    const ttl = found.kind === "item" && found.item.root.isAccepted ? itemFoundMs : foundMs;
    known.set(ownId(id), found, { ttl });
    if (found.kind === "item") parts.foundItems?.store(id, placeOf(found.item));
    return found;
  }

  return {
    unknown,
    known,
    absentFiles,
    remember,
    learnt: (id: Id, item: FoundItem, digest: Uint8Array) =>
      void remember(id, { kind: "item", item: { ...item, digest } }),
    markWrong: (id: Id, item: FoundItem) => {
      parts.hintVerifier.markWrong(id, item);
      parts.foundItems?.drop(id);
      known.delete(id);
    },
    forget(id: Id) {
      unknown.delete(id);
      absentFiles.delete(id);
      known.delete(id);
      parts.roots.forget(id);
    },
    forgetAll() {
      unknown.clear();
      absentFiles.clear();
      known.clear();
      parts.roots.forgetAll();
    },
  };
}

/** The ways to find an id, in their order. */
function createStages(parts: UnindexedLookupParts) {
  const { bodies, gateways, files, queries, hintVerifier, foundItems, fetcher, onLookup } = parts;

  async function onChain(id: Id, signal: AbortSignal): Promise<NodeResponse<Found>> {
    const response = await bodies.transaction(id, signal);
    return response.kind === "ok" ? { kind: "ok", value: await transactionFound(response.value) } : response;
  }

  async function transactionFound({ row, data }: ValidTransaction): Promise<Found> {
    const root: RootSpec = { id: row.id, dataRoot: row.dataRoot, size: row.dataSize };
    if (data !== undefined) await fetcher.keep(root, data.bytes); // it came with the response
    const tagged = (name: string) => row.tags.find((tag) => tag.name.toLowerCase() === name)?.value;
    const [contentType, contentEncoding] = [tagged("content-type"), tagged("content-encoding")];
    return { kind: "transaction", root, contentType, contentEncoding };
  }

  const follow = (id: Id) => async (hint: Hint, signal: AbortSignal) =>
    itemFound(await hintVerifier.verify(id, hint, "chosen", signal));

  /** A gateway's hint of the item's position is followed. If it cannot be, the gateway's unproven content is used. */
  const weigh =
    (id: Id) =>
    async (content: GatewayContent, signal: AbortSignal): Promise<NodeResponse<Found>> => {
      const word: NodeResponse<Found> = { kind: "ok", value: { kind: "gateway", content } };
      if (content.hint === undefined || content.hint.rootId === id) return word;
      const followed = await follow(id)(content.hint, signal);
      const isUntrue = followed.kind === "fault" && followed.reason === "wrong";
      return followed.kind === "ok" || isUntrue ? followed : word;
    };

  /** A source that is not configured is not asked, and counts nothing. */
  function named(count: number, source: LookupSource, stage: Stage): readonly Stage[] {
    return count === 0 ? [] : [counted(source, stage, onLookup)];
  }

  const others = (id: Id, inFiles: readonly Stage[]): readonly Stage[] => [
    counted("nodes", (signal) => onChain(id, signal), onLookup),
    ...named(gateways.urls.length, "gateways", (signal) => gateways.find(id, weigh(id), signal)),
    ...inFiles,
    ...named(queries.count, "graphql", (signal) => queries.find(id, follow(id), signal)),
  ];

  function fromStored(id: Id): readonly Stage[] {
    const stored = foundItems?.find(id);
    if (stored === undefined) return [];
    return [counted("memory", (signal) => atStored(parts, id, stored, signal), onLookup)];
  }

  return {
    fromStored,
    /** By the client's hint. A hint that leads nowhere does not prove that the id does not exist. */
    byHint: (id: Id, hint: Hint): Stage => {
      const stage: Stage = async (signal) => {
        const response = itemFound(await hintVerifier.verify(id, hint, "anyone", signal));
        const isFault = response.kind === "fault" && !["wrong", "too_large"].includes(response.reason);
        return response.kind === "ok" || isFault ? response : { kind: "absent" };
      };
      return counted("hints", stage, onLookup);
    },
    at: (id: Id, place: Hint): Stage => {
      return async (signal) => {
        const response = await follow(id)(place, signal);
        return response.kind === "fault" && response.reason === "wrong" ? { kind: "absent" } : response;
      };
    },
    of: (id: Id): readonly Stage[] =>
      others(
        id,
        named(files.count, "cdb64", (signal) => files.find(id, follow(id), signal)),
      ),
    withoutFiles: (id: Id): readonly Stage[] => [...fromStored(id), ...others(id, [])],
  };
}

/** Where the item was found before: checked as a hint is, and dropped when it is not there. */
async function atStored(
  { hintVerifier, foundItems }: Pick<UnindexedLookupParts, "hintVerifier" | "foundItems">,
  id: Id,
  stored: StoredPlace,
  signal: AbortSignal,
): Promise<NodeResponse<Found>> {
  const response = await hintVerifier.verify(id, stored, "chosen", signal);
  if (response.kind === "fault" && response.reason === "wrong") {
    foundItems?.drop(id);
    return { kind: "absent" };
  }
  if (response.kind !== "ok") return response;
  const { root, itemOffset, itemSize } = response.value;
  const isSame = root.spec.id === stored.rootId && itemOffset === stored.itemOffset && itemSize === stored.itemSize;
  // The bytes of a place are proven by its root: what they were once, they are for ever.
  const digest = response.value.digest ?? (isSame ? stored.digest : undefined);
  return { kind: "ok", value: { kind: "item", item: { ...response.value, digest } } };
}

function placeOf({ root, parents, itemOffset, itemSize, digest }: FoundItem): StoredPlace {
  return { rootId: root.spec.id, path: parents, itemOffset, itemSize, digest };
}

function itemFound(response: NodeResponse<FoundItem>): NodeResponse<Found> {
  return response.kind === "ok" ? { kind: "ok", value: { kind: "item", item: response.value } } : response;
}

type Asked = Readonly<{ found: Found | undefined; others: readonly NodeResponse<Found>[] }>;

/**
 * Goes from stage to stage until one finds something provable; a gateway's word is taken when nothing
 * better comes soon.
 */
async function askStages(stages: readonly Stage[], id: Id, findMsMax: number, signal: AbortSignal): Promise<Asked> {
  const soon = linkedController(signal);
  let word: Found | undefined;
  let timer: Timer | undefined;

  async function run(stage: Stage, own: AbortSignal): Promise<NodeResponse<Found>> {
    const response = await stage(own);
    if (response.kind === "ok" && response.value.kind === "gateway" && word === undefined) {
      word = response.value;
      timer = setTimeout(() => soon.controller.abort(timeout(betterMsMax)), betterMsMax);
    }
    return response;
  }

  try {
    return await withDeadline(soon.controller.signal, findMsMax, async (own) => {
      const { final, others } = await askInOrder(
        {
          sources: stages,
          ask: run,
          isFinal: (response) => response.kind === "ok" && response.value.kind !== "gateway",
          hedgeAfterMs: () => stageMs,
        },
        own,
      );
      return { found: final?.kind === "ok" ? final.value : word, others };
    });
  } catch (error) {
    if (signal.aborted || !isTimeout(error)) throw error;
    if (word !== undefined) return { found: word, others: [] };
    throw new Failure("source_timeout", { id, withinMs: findMsMax }, error);
  } finally {
    clearTimeout(timer);
    soon.unlink();
  }
}
