/**
 * The machines that this gateway works with.
 * Source: specification part 2 "Peer record".
 * @module
 */
import type { JsonObject } from "../lib/json.ts";
import type { Network } from "./network.ts";

/** Weight of a machine that an operator configured; the peer's scale is 1 to 100. */
const configuredWeight = 50;

/**
 * The peer record: gateways that are asked for content, and nodes that have answered, keyed by `host:port`.
 *
 * @param gatewayUrls - Origins of the trusted gateways.
 */
export function peerRecord(gatewayUrls: readonly string[], network: Network): JsonObject {
  const gateways = gatewayUrls.map((url) => [
    hostPortOf(url),
    { url, dataWeight: configuredWeight, chunkWeight: configuredWeight },
  ]);
  const nodes = network
    .nodes()
    .map(({ url, blocks, height, seenAt }) => [hostPortOf(url), { url, blocks, height, lastSeen: seenAt }]);
  return { gateways: Object.fromEntries(gateways), arweaveNodes: Object.fromEntries(nodes) };
}

/** `host:port` of an origin, the port also when it is the scheme's own. */
function hostPortOf(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? (protocol === "https:" ? "443" : "80") : port}`;
}
