/**
 * Readers that take too little of a response that is held in memory for them: their connections are cut.
 *
 * The runtime cuts a connection on which nothing moves. One that takes a few bytes now and then, in small segments or
 * by flow control of HTTP/2, would hold its response for hours.
 * @module
 */
import ipaddr from "ipaddr.js";
import type { FindConnections, Peer } from "../lib/tcp-connections.ts";

/** Cuts slow readers. */
export type SlowReaders = Readonly<{
  /**
   * Looks at the connections of responses under way.
   * @returns How many were cut.
   */
  look: (peers: readonly PeerAddress[], now: number) => number;
}>;

/** The other side of a connection, as the runtime names it. */
export type PeerAddress = Readonly<{ address: string; port: number }>;

/** In so many milliseconds … */
export const readerWindowMs = 60_000;

/** … a connection must take so many bytes. */
export const readerBytesMin = 32 * 2 ** 10;

/** What a connection had taken at some time. */
type Sample = Readonly<{ bytes: number; at: number }>;

/** Creates the watch. It remembers connections as long as it is told of them. */
export function createSlowReaders(find: FindConnections): SlowReaders {
  let samples: ReadonlyMap<string, Sample> = new Map();

  return {
    look: (addresses, now) => {
      const names = new Map([...namedPeers(addresses)].map(([name, peer]) => [peer, name]));
      const next = new Map<string, Sample>();
      let cut = 0;
      for (const [peer, connection] of find([...names.keys()])) {
        const name = names.get(peer) ?? "";
        const sample = { bytes: connection.bytesTaken(), at: now };
        const verdict = judge(samples.get(name), sample);
        if (verdict !== "slow") next.set(name, verdict);
        else {
          connection.cut();
          cut += 1;
        }
      }
      samples = next;
      return cut;
    },
  };
}

/** What a connection is measured by from now on, unless it took too little. */
function judge(before: Sample | undefined, now: Sample): Sample | "slow" {
  if (before === undefined) return now;
  if (now.at - before.at < readerWindowMs) return before;
  return now.bytes - before.bytes < readerBytesMin ? "slow" : now;
}

/** Each connection once, however many responses it carries. */
function namedPeers(addresses: readonly PeerAddress[]): ReadonlyMap<string, Peer> {
  const named = new Map<string, Peer>();
  for (const { address, port } of addresses) {
    const name = `${address} ${port}`;
    if (!named.has(name) && ipaddr.isValid(address))
      named.set(name, { address: ipaddr.process(address).toByteArray(), port });
  }
  return named;
}
