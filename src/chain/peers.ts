/**
 * Peers: nodes and gateways that other machines list. The `/info` of each is requested periodically; its weight follows
 * from how often and how fast it responds. Peers are asked only for chunks, because chunks are proven.
 *
 * A peer is untrusted: connections go through `reach`, one list contributes a bounded number of peers, and a peer that
 * stops responding is removed.
 *
 * The lists are `/peers` of a node and `/ar-io/peers` of a gateway. Their entries are unchecked claims.
 * Source: docs/reference/node-api.md#peers; docs/decisions/061-peers.md; docs/reference/threats.md (S1).
 * @module
 */
import { LRUCache } from "lru-cache";
import type { Clock } from "../lib/clock.ts";
import { entryLimit } from "../lib/entry-limit.ts";
import type { HttpTimeouts, Reach } from "../lib/http-client.ts";
import { isJsonArray, isJsonObject, type JsonValue, readJson } from "../lib/json.ts";
import type { Log } from "../lib/log.ts";
import { type BackgroundLoop, openBackgroundLoop } from "../lib/loop.ts";
import { createSemaphore } from "../lib/semaphore.ts";
import { hopHeaders } from "./gateways.ts";
import { type Node, openNode } from "./node.ts";
import type { Nodes } from "./nodes.ts";
import { portOf } from "./reach.ts";

/** A machine that others named and that has responded. */
export type Peer = Readonly<{
  /** Origin, without a final slash. */
  url: string;
  kind: PeerKind;
  /** As it said of itself at last. */
  height: number;
  blocks: number;
  /** Time of its last response. Milliseconds since the epoch. */
  seenAt: number;
}>;

/** Machines that others named. */
export type Peers = Readonly<{
  list: () => readonly Peer[];
  /** Learns new peers and asks known ones, each when due. Rejects with the signal's reason only. */
  round: (signal: AbortSignal) => Promise<void>;
  /** Makes rounds until it is closed. */
  start: () => void;
  close: () => Promise<void>;
}>;

export type PeersOptions = Readonly<{
  /** Nodes and gateways that the operator chose: their lists are read; they are never peers themselves. */
  nodes: readonly Node[];
  gateways: readonly Node[];
  /** The nodes that chunks are requested from; peers are added to them. */
  chunkNodes: Pick<Nodes, "join" | "leave" | "noteResponse" | "noteFault">;
  reach: Reach;
  /** Whether a URL alone shows that it may not be reached. */
  isBlockedUrl: (url: URL) => boolean;
  /** Machines at one host: ports are cheap. */
  perHostMax: number;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  log: Log;
  timeouts?: HttpTimeouts;
}>;

/** Maximum number of peers. */
export const peersStoredMax = 200;

/** Interval between requests for `/info`. Milliseconds. */
export const infoEveryMs = 30_000;

/** Interval between requests for lists while there are peers; without peers it is `infoEveryMs`. Milliseconds. */
export const learnEveryMs = 600_000;

/** Entries that are taken from one list. */
const perListMax = 50;

/** Peers of each kind whose lists are requested in one round. */
const askedForListsMax = 4;

/** A peer without a response so often in a row, while others respond, is removed, and not added again for an hour. */
const silencesMax = 4;
const goneMs = 3_600_000;
const goneMax = 10_000;

/** Asked at once: 200 in 30 s are seven a second. */
const askedAtOnceMax = 8;

/** Pause between rounds. Milliseconds. */
const roundEveryMs = 2_000;

/** Strangers get less time than those that an operator chose. */
const timeoutsDefault: HttpTimeouts = { firstByteMs: 4_000, stallMs: 4_000, totalMs: 8_000 };

type Entry = {
  readonly node: Node;
  readonly kind: PeerKind;
  readonly key: string;
  readonly host: string;
  said: Readonly<{ height: number; blocks: number; at: number }> | undefined;
  askedAt: number;
  silences: number;
};

/** Opens an empty list of peers. */
export function openPeers(options: PeersOptions): Peers {
  const { clock, random, log } = options;
  const table = createTable(options);
  const semaphore = createSemaphore(askedAtOnceMax, peersStoredMax);
  let learnedAt = Number.NEGATIVE_INFINITY;
  let loop: BackgroundLoop | undefined;

  async function learn(signal: AbortSignal): Promise<void> {
    const heard = (kind: PeerKind) => {
      const known = table.all().filter((entry) => entry.kind === kind && entry.said !== undefined);
      return drawn(known, askedForListsMax, random).map(({ node }) => node);
    };
    const ask = (path: "/peers" | "/ar-io/peers") => (node: Node) =>
      askForPeers(node, path, perListMax, random, signal);
    const lists = await Promise.all([
      ...[...options.nodes, ...heard("node")].map(ask("/peers")),
      ...[...options.gateways, ...heard("gateway")].map(ask("/ar-io/peers")),
    ]);
    for (const named of lists.flat()) table.take(named);
  }

  /** @returns Whether the peer responded. */
  async function askInfo(entry: Entry, signal: AbortSignal): Promise<boolean> {
    const release = await semaphore.take(signal); // the queue has space for all of them
    try {
      entry.askedAt = clock();
      const startedAt = performance.now();
      const response = await entry.node.info(signal);
      const info = response.kind === "ok" ? readJson(response.value) : undefined;
      return table.note(entry, info, performance.now() - startedAt);
    } finally {
      release?.();
    }
  }

  async function round(signal: AbortSignal): Promise<void> {
    const hasPeers = table.all().length > 0;
    // Without peers the lists may have failed: at the start, or while this machine had no network.
    if (clock() - learnedAt >= (hasPeers ? learnEveryMs : infoEveryMs)) {
      learnedAt = clock();
      await learn(signal);
    }
    const due = table.all().filter(({ askedAt }) => clock() - askedAt >= infoEveryMs);
    const responded = await Promise.all(due.map((entry) => askInfo(entry, signal)));
    table.noteSilences(due.filter((_, index) => responded[index] === false));
  }

  const roundAndWait = async (signal: AbortSignal): Promise<number> => {
    await round(signal);
    return roundEveryMs;
  };

  return {
    list: () => table.all().flatMap(peerOf),
    round,
    start: () => {
      loop ??= openBackgroundLoop("peers", roundAndWait, (error) => {
        log.error("peers: round failed", { error });
        return roundEveryMs;
      });
    },
    close: async () => {
      await loop?.close();
      table.clear();
    },
  };
}

/** The peers there are, and who may become one. */
function createTable(options: PeersOptions) {
  const { chunkNodes, reach, clock, log } = options;
  const timeouts = options.timeouts ?? timeoutsDefault;
  const entries = new Map<string, Entry>();
  const gone = new LRUCache<string, true>({
    ...entryLimit(goneMax),
    ttl: goneMs,
    ttlResolution: 0,
    perf: { now: clock },
  });
  const chosen = new Set([...options.nodes, ...options.gateways].map(({ url }) => keyOf(new URL(url))));

  function end({ node, key }: Entry): void {
    entries.delete(key);
    chunkNodes.leave(node);
    node.close();
  }

  /** Whether all peers that responded before are silent: rather, this machine has no network. */
  function isAlone(): boolean {
    const times = [...entries.values()].flatMap(({ said }) => (said === undefined ? [] : [said.at]));
    return times.length > 1 && clock() - Math.max(...times) >= infoEveryMs;
  }

  function countSilence(entry: Entry): void {
    entry.silences += 1;
    if (entry.silences < silencesMax) return;
    gone.set(entry.key, true);
    end(entry);
    log.debug("peer removed: it does not respond", { peer: entry.node.url });
  }

  return {
    all: () => [...entries.values()],
    take: ({ kind, url }: NamedPeer) => {
      const key = keyOf(url);
      const host = url.hostname;
      const isKnown = entries.has(key) || chosen.has(key) || gone.has(key);
      if (isKnown || entries.size >= peersStoredMax || options.isBlockedUrl(url)) return;
      const atHost = [...entries.values()].filter((entry) => entry.host === host).length;
      if (atHost >= options.perHostMax) return;
      const node = openNode(url.origin, timeouts, { reach, headers: hopHeaders });
      const unasked = { said: undefined, askedAt: Number.NEGATIVE_INFINITY, silences: 0 };
      entries.set(key, { node, kind, key, host, ...unasked });
    },
    /** Notes a response. @returns Whether there is one. */
    note: (entry: Entry, info: JsonValue | undefined, ms: number): boolean => {
      const height = wholeNumber(info, "height");
      if (height === undefined) return false;
      if (entry.said === undefined) chunkNodes.join(entry.node);
      chunkNodes.noteResponse(entry.node, ms);
      entry.said = { height, blocks: wholeNumber(info, "blocks") ?? height + 1, at: clock() };
      entry.silences = 0;
      return true;
    },
    /** Called when all that were asked together have responded or not. */
    noteSilences: (silent: readonly Entry[]) => {
      for (const { node } of silent) chunkNodes.noteFault(node);
      if (!isAlone()) silent.forEach(countSilence);
    },
    clear: () => {
      for (const entry of [...entries.values()]) end(entry);
    },
  };
}

function peerOf({ node, kind, said }: Entry): Peer[] {
  if (said === undefined) return [];
  return [{ url: node.url, kind, height: said.height, blocks: said.blocks, seenAt: said.at }];
}

function wholeNumber(record: JsonValue | undefined, name: string): number | undefined {
  const value = isJsonObject(record) ? record[name] : undefined;
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Kind of a machine, from the list that named it. */
export type PeerKind = "node" | "gateway";

/** A machine that was named. */
export type NamedPeer = Readonly<{ kind: PeerKind; url: URL }>;

/** A list of a thousand machines has 100 KB. */
const listBytesMax = 2 ** 20;

const nameLengthMax = 300;

type Named = Readonly<{ kind: PeerKind; name: JsonValue }>;

/**
 * Requests a machine's list of peers.
 *
 * @param countMax - Entries taken, chosen at random: a long forged list must not fill all places.
 * @param random - In [0, 1).
 * @returns An empty list after a failure.
 */
export async function askForPeers(
  node: Node,
  path: "/peers" | "/ar-io/peers",
  countMax: number,
  random: () => number,
  signal: AbortSignal,
): Promise<readonly NamedPeer[]> {
  const response = await node.relay({ method: "GET", path, bodyBytesMax: listBytesMax }, signal);
  if (response.kind !== "ok" || response.value.status !== 200) return [];
  const list = readJson(new TextDecoder().decode(response.value.body));
  return drawn(namesOf(list), countMax, random).flatMap(readNamed);
}

/** `host:port`, the port also when it is the scheme's own. */
export function keyOf(url: URL): string {
  return `${url.hostname}:${portOf(url)}`;
}

/** Some of several, by chance (Fisher, Yates). */
export function drawn<Value>(values: readonly Value[], countMax: number, random: () => number): Value[] {
  const left = [...values];
  const taken: Value[] = [];
  while (taken.length < countMax && left.length > 0) {
    const at = Math.floor(random() * left.length);
    const last = left.pop();
    const value = at === left.length ? last : left[at];
    if (at < left.length && last !== undefined) left[at] = last;
    if (value !== undefined) taken.push(value);
  }
  return taken;
}

function namesOf(list: JsonValue | undefined): readonly Named[] {
  if (isJsonArray(list)) return list.map((name) => ({ kind: "node", name }));
  if (!isJsonObject(list)) return [];
  return [...recordsOf("gateway", list["gateways"]), ...recordsOf("node", list["arweaveNodes"])];
}

/** A peer record is keyed by `host:port` and tells the URL. */
function recordsOf(kind: PeerKind, records: JsonValue | undefined): readonly Named[] {
  if (!isJsonObject(records)) return [];
  return Object.entries(records).map(([key, record]) => {
    const url = isJsonObject(record) ? record["url"] : undefined;
    return { kind, name: url ?? key };
  });
}

/** A name as `host:port` or as an origin; nothing when it is neither. */
function readNamed({ kind, name }: Named): NamedPeer[] {
  if (typeof name !== "string" || name.length > nameLengthMax) return [];
  const url = URL.parse(/^[a-z]+:\/\//i.test(name) ? name : `http://${name}`);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") return [];
  const isOrigin = url.pathname === "/" && url.search === "" && url.hash === "";
  return isOrigin ? [{ kind, url }] : [];
}
