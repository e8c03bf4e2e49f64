/**
 * The machines that this gateway works with.
 * Source: docs/reference/gateway.md#peers.
 * @module
 */
import type { JsonObject } from "../lib/json.ts";
import type { Network } from "./network.ts";

/** A gateway that is asked for content or chunks. */
export type GatewayPeer = Readonly<{
  /** Origin. */
  url: string;
  /** By how often and how fast it answers, 1 to 100. */
  dataWeight: number;
  chunkWeight: number;
}>;

/** A node that has answered. */
export type NodePeer = Readonly<{
  url: string;
  blocks: number;
  height: number;
  /** Milliseconds since the epoch. */
  seenAt: number;
}>;

/** The machines, but for the nodes that an operator chose. */
export type PeerList = Readonly<{
  gateways: () => readonly GatewayPeer[];
  nodes: () => readonly NodePeer[];
}>;

/** The peer record: gateways, and nodes that have answered, keyed by `host:port`. */
export async function peerRecord(list: PeerList, network: Network, signal: AbortSignal): Promise<JsonObject> {
  await network.look(signal);
  const gateways = list.gateways().map(({ url, dataWeight, chunkWeight }) => {
    return [hostPortOf(url), { url, dataWeight, chunkWeight }];
  });
  // Those that an operator chose last: they stand where both name the same one.
  const nodes = [...list.nodes(), ...network.nodes()].map(({ url, blocks, height, seenAt }) => {
    return [hostPortOf(url), { url, blocks, height, lastSeen: seenAt }];
  });
  return { gateways: Object.fromEntries(gateways), arweaveNodes: Object.fromEntries(nodes) };
}

/** `host:port` of an origin, the port also when it is the scheme's own. */
function hostPortOf(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? (protocol === "https:" ? "443" : "80") : port}`;
}
