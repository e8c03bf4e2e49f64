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
import { type NodeResponse, policyStatuses } from "../chain/node.ts";
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

/** Content that was found for an id that the index does not have. */
export type Found =
  /** A transaction whose id was checked. Its data is proven as that of any root; its block was not accepted here. */
  | Readonly<{
      kind: "transaction";
      root: RootSpec;
      contentType: string | undefined;
      contentEncoding: string | undefined;
    }>
  /** A data item. {@link FoundItem} says how much of it was checked. */
  | Readonly<{ kind: "item"; item: FoundItem }>
  /** Unproven content of a trusted gateway. */
  | Readonly<{ kind: "gateway"; content: GatewayContent }>;

export type UnindexedLookup = Readonly<{
  /**
   * @param hint - From the client, which is not trusted.
   * @throws Failure `not_found` when all sources say so; `source_failed`, `source_timeout`, `busy` when any failed.
   */
  find: (id: Id, hint: Hint | undefined, signal: AbortSignal) => Promise<Found>;
  /** As `find` without the index files: for the content of these files, whose search would need the files. */
  findWithoutFiles: (id: Id, signal: AbortSignal) => Promise<Found>;
  /**
   * Finds an item at a place that was not verified here. The bytes are checked as those of any hint.
   *
   * @throws As `find`; `not_found` when the item is not at the place.
   */
  findAt: (id: Id, place: Hint, signal: AbortSignal) => Promise<Found>;
  /** Records the SHA-256 of an item's payload, after its signature was checked over all of the payload. */
  recordDigest: (id: Id, item: FoundItem, digest: Uint8Array) => void;
  /** Records that the bytes of a found item do not match its signature. */
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
  /** Forgotten together with the found and the unknown ids. */
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

/** Outcome of a look-up at one source. */
export const lookupOutcomes = ["found", "not_found", "error"] as const;

/** Counts an outcome of a look-up at one source. */
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

/** The next stage begins when a stage takes longer than this. Milliseconds. */
const stageMs = 1_500;

/** Time for other stages to find provable content, before the unproven content of a gateway is used. Milliseconds. */
const unverifiedFallbackDelayMs = 2_000;

/** One way to find an id. */
type Stage = (signal: AbortSignal) => Promise<NodeResponse<Found>>;

/** @throws Failure for a response that says nothing about the id. */
function throwFault(response: NodeResponse<Found>, id: Id): void {
  if (response.kind === "fault") throw failureOf(response, { id });
  if (response.kind === "rejected" && policyStatuses.has(response.status))
    throw new Failure("source_failed", { id, sourceStatus: response.status });
}

/** Counts the responses of a stage. An aborted stage has no response. */
function counted(source: LookupSource, stage: Stage, onLookup: LookupStats | undefined): Stage {
  if (onLookup === undefined) return stage;
  return async (signal) => {
    const response = await stage(signal);
    onLookup(source, response.kind === "ok" ? "found" : response.kind === "fault" ? "error" : "not_found");
    return response;
  };
}

export function createUnindexedLookup(parts: UnindexedLookupParts): UnindexedLookup {
  const { unknown, known, absentFiles, generation, remember, ...changes } = createMemory(parts);
  const flights = createSingleFlight<Found>();
  /** Requests do not join a search from before `forgetAll`: it may accept a root that has left its block. */
  const fly = (key: string, signal: AbortSignal, work: (own: AbortSignal) => Promise<Found>) =>
    flights.run(`${generation()} ${key}`, signal, work);
  const stages = createStages(parts);
  const findMsMax = parts.findMsMax ?? findMsMaxDefault;

  /**
   * Runs stages, and remembers the content that they find. Throws the fault of a stage when none finds any.
   * @returns Without `found`, all stages said that the id does not exist, or is pending.
   */
  async function searchStages(ofId: readonly Stage[], id: Id, signal: AbortSignal): Promise<SearchResult> {
    const before = generation();
    const result = await runStages(ofId, id, findMsMax, signal);
    if (result.found !== undefined) remember(id, result.found, before);
    else for (const response of result.otherResponses) throwFault(response, id);
    return result;
  }

  async function search(id: Id, hint: Hint | undefined, signal: AbortSignal): Promise<Found> {
    const isUnknown = unknown.has(id);
    const ofId = [
      ...stages.fromStoredPlace(id),
      ...(hint === undefined ? [] : [stages.byClientHint(id, hint)]),
      ...(isUnknown ? [] : stages.fromSources(id)),
    ];
    const { found, otherResponses } = await searchStages(ofId, id, signal);
    if (found !== undefined) return found;
    // The data of a pending transaction is not available yet, and may be soon: its id is not remembered as unknown.
    if (!isUnknown && otherResponses.every(({ kind }) => kind !== "pending")) unknown.set(ownId(id), true);
    throw new Failure("not_found", { id });
  }

  async function searchWithoutFiles(id: Id, signal: AbortSignal): Promise<Found> {
    const { found } = await searchStages(stages.withoutFiles(id), id, signal);
    if (found !== undefined) return found;
    absentFiles.set(ownId(id), true);
    throw new Failure("not_found", { id });
  }

  async function searchAt(id: Id, place: Hint, signal: AbortSignal): Promise<Found> {
    const { found } = await searchStages([...stages.fromStoredPlace(id), stages.at(id, place)], id, signal);
    if (found !== undefined) return found;
    throw new Failure("not_found", { id });
  }

  return {
    async findWithoutFiles(id, signal) {
      const remembered = known.get(id);
      if (remembered !== undefined) return remembered;
      if (absentFiles.has(id)) throw new Failure("not_found", { id, remembered: true });
      return await fly(`${id} without files`, signal, (own) => searchWithoutFiles(id, own));
    },
    async find(id, hint, signal) {
      const remembered = known.get(id);
      if (remembered !== undefined) {
        parts.onLookup?.("memory", "found");
        return remembered;
      }
      if (hint === undefined && unknown.has(id)) {
        parts.onLookup?.("memory", "not_found");
        throw new Failure("not_found", { id, remembered: true });
      }
      // A hint of one client must not affect the result of another.
      const key = hint === undefined ? id : [id, hint.rootId, ...hint.path, hint.itemOffset].join(" ");
      return await fly(key, signal, (own) => search(id, hint, own));
    },
    async findAt(id, place, signal) {
      const remembered = known.get(id);
      if (remembered?.kind === "item") return remembered;
      return await fly(`${id} in the index`, signal, (own) => searchAt(id, place, own));
    },
    ...changes,
  };
}

/** Ids that were found or not found a moment ago. */
function createMemory(parts: UnindexedLookupParts) {
  const unknown = new LRUCache<Id, true>({ ...entryLimit(unknownMax), ttl: unknownMs });
  const known = new LRUCache<Id, Found>({ ...entryLimit(foundMax), ttl: foundMs });
  const absentFiles = new LRUCache<Id, true>({ max: absentFilesMax, ttl: unknownMs });

  /** Number of calls of `forgetAll`. */
  let generation = 0;

  /** @param before - The generation when the search began: a root that it accepted may have left its block since. */
  function remember(id: Id, found: Found, before: number): void {
    if (found.kind === "item") parts.foundItems?.store(id, placeOf(found.item));
    if (before !== generation) return;
    const ttl = found.kind === "item" && found.item.root.isAccepted ? itemFoundMs : foundMs;
    known.set(ownId(id), found, { ttl });
  }

  return {
    unknown,
    known,
    absentFiles,
    generation: () => generation,
    remember,
    recordDigest(id: Id, item: FoundItem, digest: Uint8Array) {
      parts.foundItems?.store(id, placeOf({ ...item, digest }));
      // The read may have begun before a reorg: only the memory says whether the root is still accepted.
      const now = known.get(id);
      if (now?.kind === "item" && isSamePlace(now.item, item))
        remember(id, { kind: "item", item: { ...now.item, digest } }, generation);
    },
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
      generation += 1;
      unknown.clear();
      absentFiles.clear();
      known.clear();
      parts.roots.forgetAll();
    },
  };
}

/** The stages that find an id, in the order in which they run. */
function createStages(parts: UnindexedLookupParts) {
  const { bodies, gateways, files, queries, hintVerifier, foundItems, fetcher, onLookup } = parts;

  async function fromNodes(id: Id, signal: AbortSignal): Promise<NodeResponse<Found>> {
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

  const verifyHint = (id: Id) => async (hint: Hint, signal: AbortSignal) =>
    itemFound(await hintVerifier.verify(id, hint, "chosen", signal));

  /**
   * Verifies a gateway's hint of the item's position. When the hint cannot be verified, the result is the gateway's
   * unproven content; when it is wrong, the fault.
   */
  const preferProvenItem =
    (id: Id) =>
    async (content: GatewayContent, signal: AbortSignal): Promise<NodeResponse<Found>> => {
      const unverifiedFallback: NodeResponse<Found> = { kind: "ok", value: { kind: "gateway", content } };
      if (content.hint === undefined || content.hint.rootId === id) return unverifiedFallback;
      const verified = await verifyHint(id)(content.hint, signal);
      const isWrongHint = verified.kind === "fault" && verified.reason === "wrong";
      return verified.kind === "ok" || isWrongHint ? verified : unverifiedFallback;
    };

  /** No stage where no source of this kind is configured; nothing is counted then. */
  function ifConfigured(count: number, source: LookupSource, stage: Stage): readonly Stage[] {
    return count === 0 ? [] : [counted(source, stage, onLookup)];
  }

  const remoteStages = (id: Id, inFiles: readonly Stage[]): readonly Stage[] => [
    counted("nodes", (signal) => fromNodes(id, signal), onLookup),
    ...ifConfigured(gateways.urls.length, "gateways", (signal) => gateways.find(id, preferProvenItem(id), signal)),
    ...inFiles,
    ...ifConfigured(queries.count, "graphql", (signal) => queries.find(id, verifyHint(id), signal)),
  ];

  function fromStoredPlace(id: Id): readonly Stage[] {
    const stored = foundItems?.find(id);
    if (stored === undefined) return [];
    return [counted("memory", (signal) => verifyStoredPlace(parts, id, stored, signal), onLookup)];
  }

  return {
    fromStoredPlace,
    /** A client's hint that is wrong does not prove that the id does not exist. */
    byClientHint: (id: Id, hint: Hint): Stage => {
      const stage: Stage = async (signal) => {
        const response = itemFound(await hintVerifier.verify(id, hint, "anyone", signal));
        const isFault = response.kind === "fault" && !["wrong", "too_large"].includes(response.reason);
        return response.kind === "ok" || isFault ? response : { kind: "absent" };
      };
      return counted("hints", stage, onLookup);
    },
    at: (id: Id, place: Hint): Stage => {
      return async (signal) => {
        const response = await verifyHint(id)(place, signal);
        return response.kind === "fault" && response.reason === "wrong" ? { kind: "absent" } : response;
      };
    },
    fromSources: (id: Id): readonly Stage[] =>
      remoteStages(
        id,
        ifConfigured(files.count, "cdb64", (signal) => files.find(id, verifyHint(id), signal)),
      ),
    withoutFiles: (id: Id): readonly Stage[] => [...fromStoredPlace(id), ...remoteStages(id, [])],
  };
}

/** Verifies the place where the item was found before, as a hint. A place that is wrong is dropped. */
async function verifyStoredPlace(
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
  // The root proves the bytes of a place, so they never change.
  const digest = response.value.digest ?? (isSame ? stored.digest : undefined);
  return { kind: "ok", value: { kind: "item", item: { ...response.value, digest } } };
}

function placeOf({ root, parents, itemOffset, itemSize, digest }: FoundItem): StoredPlace {
  return { rootId: root.spec.id, path: parents, itemOffset, itemSize, digest };
}

function isSamePlace(one: FoundItem, other: FoundItem): boolean {
  const { root, itemOffset, itemSize } = one;
  return root.spec.id === other.root.spec.id && itemOffset === other.itemOffset && itemSize === other.itemSize;
}

function itemFound(response: NodeResponse<FoundItem>): NodeResponse<Found> {
  return response.kind === "ok" ? { kind: "ok", value: { kind: "item", item: response.value } } : response;
}

/** The found content, and the other responses. */
type SearchResult = Readonly<{ found: Found | undefined; otherResponses: readonly NodeResponse<Found>[] }>;

/**
 * Runs stages in order until one finds provable content. The unproven content of a gateway is used when no stage finds
 * provable content within {@link unverifiedFallbackDelayMs} after it.
 */
async function runStages(
  stages: readonly Stage[],
  id: Id,
  findMsMax: number,
  signal: AbortSignal,
): Promise<SearchResult> {
  const search = linkedController(signal);
  let unverifiedFallback: Found | undefined;
  let timer: Timer | undefined;

  async function run(stage: Stage, own: AbortSignal): Promise<NodeResponse<Found>> {
    const response = await stage(own);
    if (response.kind === "ok" && response.value.kind === "gateway" && unverifiedFallback === undefined) {
      unverifiedFallback = response.value;
      const stop = () => search.controller.abort(timeout(unverifiedFallbackDelayMs));
      timer = setTimeout(stop, unverifiedFallbackDelayMs);
    }
    return response;
  }

  try {
    return await withDeadline(search.controller.signal, findMsMax, async (own) => {
      const { final, others } = await askInOrder(
        {
          sources: stages,
          ask: run,
          isFinal: (response) => response.kind === "ok" && response.value.kind !== "gateway",
          hedgeAfterMs: () => stageMs,
        },
        own,
      );
      return { found: final?.kind === "ok" ? final.value : unverifiedFallback, otherResponses: others };
    });
  } catch (error) {
    if (signal.aborted || !isTimeout(error)) throw error;
    if (unverifiedFallback !== undefined) return { found: unverifiedFallback, otherResponses: [] };
    throw new Failure("source_timeout", { id, withinMs: findMsMax }, error);
  } finally {
    clearTimeout(timer);
    search.unlink();
  }
}
