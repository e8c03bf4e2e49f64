/**
 * The machines that the gateway works with: those that an operator chose, and those that these name.
 * @module
 */
import type { Gateways } from "../chain/gateways.ts";
import { type Nodes, weightOf } from "../chain/nodes.ts";
import { openPeers, type Peer } from "../chain/peers.ts";
import { createReach, createRefusal } from "../chain/reach.ts";
import type { Config } from "../config/settings.ts";
import type { PeerList } from "../gateway/peers.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import { systemRandom } from "./random.ts";

/** What is needed. */
export type PeerListParts = Readonly<{
  config: Config;
  nodes: Nodes;
  /** Nodes, then the trusted gateways; peers help out here. */
  chunkNodes: Nodes;
  gateways: Gateways;
  log: Log;
  closers: Closers;
}>;

/** Machines at one host of the public Internet. */
const perHostMax = 2;

/** Opens the list; learning, where it is switched on, is ended by `closers`. */
export function openPeerList({ config, nodes, chunkNodes, gateways, log, closers }: PeerListParts): PeerList {
  const learnt = learnPeers({ config, nodes, chunkNodes, gateways, log, closers });
  const weights = () => new Map(chunkNodes.standing().map((standing) => [standing.url, weightOf(standing)]));
  return {
    gateways: () => {
      const chunkWeights = weights();
      const chosen = gateways.standing().map((standing) => {
        const chunkWeight = chunkWeights.get(standing.url) ?? 1;
        return { url: standing.url, dataWeight: weightOf(standing), chunkWeight };
      });
      const others = learnt().filter(({ kind }) => kind === "gateway");
      return [
        ...chosen,
        ...others.map(({ url }) => {
          const weight = chunkWeights.get(url) ?? 1;
          return { url, dataWeight: weight, chunkWeight: weight };
        }),
      ];
    },
    nodes: () => learnt().filter(({ kind }) => kind === "node"),
  };
}

function learnPeers({ config, nodes, chunkNodes, log, closers }: PeerListParts): () => readonly Peer[] {
  if (!config.PEER_DISCOVERY) return () => [];
  const rules = { ports: config.PEER_PORTS, allowsPrivate: config.PEER_PRIVATE_ADDRESSES };
  const chosen = new Set(nodes.all.map(({ url }) => url));
  const peers = openPeers({
    nodes: nodes.all,
    gateways: chunkNodes.all.filter(({ url }) => !chosen.has(url)),
    chunkNodes,
    reach: createReach(rules),
    isRefused: createRefusal(rules),
    // On a closed network one machine may be all there is.
    perHostMax: config.PEER_PRIVATE_ADDRESSES ? Number.POSITIVE_INFINITY : perHostMax,
    clock: systemClock,
    random: systemRandom,
    log,
  });
  closers.add("peers", peers.close);
  peers.start();
  return peers.list;
}
