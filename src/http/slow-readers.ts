/**
 * Cuts the connections of clients that read too slowly a response that is held in memory for them.
 *
 * The runtime cuts an idle connection. A client that reads a few bytes now and then, in small segments or by flow
 * control of HTTP/2, would hold its response for hours.
 * Source: docs/decisions/091-body-memory.md.
 * @module
 */
import ipaddr from "ipaddr.js";
import { inOrder } from "../lib/event-loop.ts";
import { peerKey, type TcpConnections } from "../lib/tcp-connections.ts";

export type SlowReaders = Readonly<{
  /**
   * Checks the connections of responses in flight, some in each iteration of the event loop.
   *
   * @param freeBytes - Bytes that other clients need: the slowest readers are cut until so many are free. 0 for none.
   * @returns The number of connections that were cut.
   */
  check: (readers: readonly Reader[], now: number, freeBytes: number) => Promise<number>;
  /** Cuts connections at once. @returns The number of connections that were cut. */
  cut: (peers: readonly PeerAddress[]) => Promise<number>;
}>;

/** The peer of a connection, as the runtime reports it. */
export type PeerAddress = Readonly<{ address: string; port: number }>;

/** The client of a response in flight, and the memory that is held for it. */
export type Reader = Readonly<{ peer: PeerAddress; bytes: number }>;

/** Window in which a client must read `readerBytesMin`. Milliseconds. */
export const readerWindowMs = 60_000;

export const readerBytesMin = 32 * 2 ** 10;

/** Connections that are checked in one iteration of the event loop: 0.2 ms. */
const checksPerIteration = 100;

/** Bytes that a client had read at a time, and in the window before if it was connected for all of it. */
type Sample = Readonly<{ bytes: number; at: number; taken?: number }>;

/** A connection that may be cut to free memory. */
type Candidate = Readonly<{ descriptor: number; peer: string; taken: number; held: number }>;

export function createSlowReaders(connections: TcpConnections): SlowReaders {
  let samples: ReadonlyMap<string, Sample> = new Map();

  /** Cuts a connection, unless another connection has its descriptor by now. */
  const cut = (descriptor: number, peer: string): number => {
    const connection = connections.at(descriptor);
    if (connection?.peer !== peer) return 0;
    connection.cut();
    return 1;
  };
  /** Checks each connection: cuts those that are too slow, and returns those that may be cut to free memory. */
  const checkAll = async (held: ReadonlyMap<string, number>, now: number) => {
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
      const { cuts, candidates } = await checkAll(await heldByPeer(readers), now);
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

/** The sample for the next check, or "slow". */
function classify(before: Sample | undefined, now: Sample): Sample | "slow" {
  if (before === undefined || now.bytes < before.bytes) return now; // a smaller count is of another connection
  if (now.at - before.at < readerWindowMs) return before;
  const taken = now.bytes - before.bytes;
  return taken < readerBytesMin ? "slow" : { ...now, taken };
}

/** Whether a connection lasted a window and needs more than another window for the memory that is held for it. */
function isLong(sample: Sample, held: number): sample is Sample & Readonly<{ taken: number }> {
  return sample.taken !== undefined && sample.taken < held;
}

/** The memory held by each connection, for all of its responses. */
async function heldByPeer(readers: readonly Reader[]): Promise<ReadonlyMap<string, number>> {
  const held = new Map<string, number>();
  for await (const { peer, bytes } of inOrder(readers, checksPerIteration)) {
    if (!ipaddr.isValid(peer.address)) continue;
    const key = peerKey({ address: ipaddr.process(peer.address).toByteArray(), port: peer.port });
    held.set(key, (held.get(key) ?? 0) + bytes);
  }
  return held;
}
