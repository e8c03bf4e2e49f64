/**
 * Readers that take too little of a response that is held in memory for them: their connections are cut.
 *
 * The runtime cuts a connection on which nothing moves. One that takes a few bytes now and then, in small segments or
 * by flow control of HTTP/2, would hold its response for hours.
 * Source: docs/decisions/091-body-memory.md.
 * @module
 */
import ipaddr from "ipaddr.js";
import { inOrder } from "../lib/event-loop.ts";
import { peerKey, type TcpConnections } from "../lib/tcp-connections.ts";

/** Cuts slow readers. */
export type SlowReaders = Readonly<{
  /**
   * Checks the connections of responses under way, some in each iteration of the event loop.
   *
   * @param freeBytes - Bytes that others need: the slowest readers are cut until they are free. 0 when none are needed.
   * @returns How many connections were cut.
   */
  check: (readers: readonly Reader[], now: number, freeBytes: number) => Promise<number>;
  /** Cuts connections at once. @returns How many of them there were. */
  cut: (peers: readonly PeerAddress[]) => Promise<number>;
}>;

/** The other side of a connection, as the runtime names it. */
export type PeerAddress = Readonly<{ address: string; port: number }>;

/** The client of a response under way, and the memory that is held for it. */
export type Reader = Readonly<{ peer: PeerAddress; bytes: number }>;

/** In so many milliseconds … */
export const readerWindowMs = 60_000;

/** … a connection must take so many bytes. */
export const readerBytesMin = 32 * 2 ** 10;

/** Connections that are checked in one iteration of the event loop: 0.2 ms. */
const checksPerIteration = 100;

/** What a connection had taken at some time, and what it took in the window before, if it was there for all of it. */
type Sample = Readonly<{ bytes: number; at: number; taken?: number }>;

/** A connection that may be cut for others. */
type Candidate = Readonly<{ descriptor: number; peer: string; taken: number; held: number }>;

/** Creates the watch. It tracks connections that are passed to it. */
export function createSlowReaders(connections: TcpConnections): SlowReaders {
  let samples: ReadonlyMap<string, Sample> = new Map();

  /** Cuts a connection, unless its descriptor has become another one's. */
  const cut = (descriptor: number, peer: string): number => {
    const connection = connections.at(descriptor);
    if (connection?.peer !== peer) return 0;
    connection.cut();
    return 1;
  };
  /** Looks at each connection; cuts those that take too little, and gives those that may be cut for others. */
  const lookAtAll = async (held: ReadonlyMap<string, number>, now: number) => {
    const next = new Map<string, Sample>();
    const candidates: Candidate[] = [];
    let cuts = 0;
    for await (const descriptor of inOrder(connections.descriptors(), checksPerIteration)) {
      const connection = connections.at(descriptor);
      const bytes = held.get(connection?.peer ?? "");
      if (connection === undefined || bytes === undefined) continue;
      const { peer } = connection;
      const sample = classify(samples.get(peer), { bytes: connection.bytesTaken(), at: now });
      if (sample === "slow") cuts += cut(descriptor, peer);
      else next.set(peer, sample);
      if (sample !== "slow" && isLong(sample, bytes))
        candidates.push({ descriptor, peer, taken: sample.taken, held: bytes });
    }
    samples = next;
    return { cuts, candidates };
  };
  return {
    check: async (readers, now, freeBytes) => {
      const { cuts, candidates } = await lookAtAll(await heldByPeer(readers), now);
      let cutForOthers = 0;
      let left = freeBytes;
      for (const { descriptor, peer, held } of candidates.sort((one, other) => one.taken - other.taken)) {
        if (left <= 0) break;
        left -= held;
        cutForOthers += cut(descriptor, peer);
      }
      return cuts + cutForOthers;
    },
    cut: async (peers) => {
      const wanted = await heldByPeer(peers.map((peer) => ({ peer, bytes: 0 })));
      let cuts = 0;
      for await (const descriptor of inOrder(connections.descriptors(), checksPerIteration)) {
        const peer = connections.at(descriptor)?.peer ?? "";
        if (wanted.has(peer)) cuts += cut(descriptor, peer);
      }
      return cuts;
    },
  };
}

/** What a connection is measured by from now on, unless it took too little. */
function classify(before: Sample | undefined, now: Sample): Sample | "slow" {
  if (before === undefined || now.bytes < before.bytes) return now; // the second is another connection's
  if (now.at - before.at < readerWindowMs) return before;
  const taken = now.bytes - before.bytes;
  return taken < readerBytesMin ? "slow" : { ...now, taken };
}

/** Whether a connection has been there for a window, and will need more than another one for what is held for it. */
function isLong(sample: Sample, held: number): sample is Sample & Readonly<{ taken: number }> {
  return sample.taken !== undefined && sample.taken < held;
}

/** Each connection once, with what is held for all responses that it carries. */
async function heldByPeer(readers: readonly Reader[]): Promise<ReadonlyMap<string, number>> {
  const held = new Map<string, number>();
  for await (const { peer, bytes } of inOrder(readers, checksPerIteration)) {
    if (!ipaddr.isValid(peer.address)) continue;
    const key = peerKey({ address: ipaddr.process(peer.address).toByteArray(), port: peer.port });
    held.set(key, (held.get(key) ?? 0) + bytes);
  }
  return held;
}
