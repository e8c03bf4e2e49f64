/**
 * The nodes and gateways that this gateway uses.
 * Source: docs/reference/gateway.md#peers.
 * @module
 */
import type { JsonObject } from "../lib/json.ts";
import type { Network } from "./network.ts";

/** A gateway that is a source of content or chunks. */
export type GatewayPeer = Readonly<{
  /** Origin. */
  url: string;
  /** Rating by success and speed, 1 to 100. */
  dataWeight: number;
  chunkWeight: number;
}>;

/** A node that has responded. */
export type NodePeer = Readonly<{
  url: string;
  blocks: number;
  height: number;
  /** Milliseconds since the epoch. */
  seenAt: number;
}>;

/** Peers without the operator's own nodes. */
export type PeerList = Readonly<{
  gateways: () => readonly GatewayPeer[];
  nodes: () => readonly NodePeer[];
}>;

/** The peer record: gateways, and nodes that have responded, keyed by `host:port`. */
export async function peerRecord(list: PeerList, network: Network, signal: AbortSignal): Promise<JsonObject> {
  await network.look(signal);
  const gateways = list.gateways().map(({ url, dataWeight, chunkWeight }) => {
    return [hostPortOf(url), { url, dataWeight, chunkWeight }];
  });
  // The operator's own come last, so they win over the same peer from another source.
  const nodes = [...list.nodes(), ...network.nodes()].map(({ url, blocks, height, seenAt }) => {
    return [hostPortOf(url), { url, blocks, height, lastSeen: seenAt }];
  });
  return { gateways: Object.fromEntries(gateways), arweaveNodes: Object.fromEntries(nodes) };
}

/** `host:port` of an origin, with the default port written out. */
function hostPortOf(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? (protocol === "https:" ? "443" : "80") : port}`;
}
