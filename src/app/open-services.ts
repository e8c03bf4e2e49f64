/**
 * Payment and uploads without a gateway: their listeners, the admin API on ADMIN_LISTEN, and as much of indexing as
 * they need.
 *
 * The chain is followed for the confirmations of bundles and of payments in AR. Only the bundles of uploads are
 * unbundled, because they must be read back before they are permanent.
 * Source: docs/operating.md#services.
 * @module
 */
import { EventEmitter } from "node:events";
import type { Config } from "../config/settings.ts";
import { createForkMetrics } from "../gateway/gateway-metrics.ts";
import { createConcerns, createHealth, type HealthCheck } from "../gateway/health.ts";
import type { IndexingHooks } from "../indexing/indexing.ts";
import { systemClock } from "../lib/clock.ts";
import { openAdministrationRoutes } from "./administration.ts";
import { type Base, createCheckList } from "./base.ts";
import { openChainIndexing } from "./chain-indexing.ts";
import { adminKeyOf } from "./keys.ts";
import {
  closeListenersFirst,
  noteListeners,
  openServiceListeners,
  prepareListening,
  requestMetricsOf,
  type ServicePlace,
} from "./listeners.ts";
import { type MonitoredIndexing, openMonitoring } from "./monitoring.ts";
import type { GatewayParts, OpenGateway } from "./open-gateway.ts";
import { openTraces } from "./traces.ts";

/** Parameters of {@link openServices}. */
export type ServicesParts = Omit<GatewayParts, "paid" | "rootHosts" | "testWallet" | "wallet"> &
  Readonly<{
    /** Whether a service reads blocks or its bundles from the index. */
    isChainNeeded: boolean;
  }>;

export type OpenServices = Pick<OpenGateway, "adminUrl" | "serviceUrls" | "wantBundle" | "shownKey"> &
  Readonly<{ url: undefined }>;

const never = '{"never":true}';

/** The settings without what only a gateway uses: no client reads the index or requests content here. */
export function withoutGateway(config: Config): Config {
  return {
    ...config,
    ANS104_UNBUNDLE_FILTER: never,
    ANS104_INDEX_FILTER: never,
    FILTER_CHANGE_REPROCESS: false,
    ENABLE_MEMPOOL_WATCHER: false,
    PEER_DISCOVERY: false,
    CDB64_ROOT_TX_INDEX_SOURCES: [],
  };
}

/** Opens the listeners and indexing; `closers` close them. @throws Misuse for an unavailable port. */
export function openServices(parts: ServicesParts, base: Base, services: readonly ServicePlace[]): OpenServices {
  const { config, log, damage = none, starting = none } = parts;
  const { metrics, threads, reader, sources } = base;
  const { content, extents, nodes } = sources;
  const events = new EventEmitter<{ bundleQueued: [] }>();
  const concerns = createCheckList([createConcerns({ extents, nodes, pools: threads })]);
  const status = (): MonitoredIndexing => indexing?.status() ?? notFollowing;
  const health = createHealth({
    clock: systemClock,
    checks: [concerns.check, damage],
    notes: [],
    readiness: [() => (parts.isChainNeeded && reader.tip() === undefined ? [noBlock] : []), starting],
    chain: () => {
      const { ours, theirHeight, lag } = status().follow;
      return { height: ours?.height ?? null, tip: theirHeight ?? null, lag: lag ?? null };
    },
  });
  const key = adminKeyOf(config, parts.folder.keys);
  const requests = requestMetricsOf(parts, metrics);
  const monitored = openMonitoring(parts, base, { requests, indexing: status, services: parts.monitored ?? {} });
  const administration = openAdministrationRoutes(parts, base, {
    key: key.key,
    listeners: {
      onBlockListChange: content.forgetAll,
      onItems: (ids) => ids.forEach(content.forget),
      onQueuedTransaction: () => undefined,
      onBundle: () => events.emit("bundleQueued"),
      concerns: concerns.check,
    },
    confirm: undefined,
    monitored,
    credits: parts.operatorEndpoints,
  });
  const isAdministered = config.ADMIN_LISTEN !== undefined;
  if (!isAdministered) log.info("the admin API is off: SERVICES leaves out gateway, and ADMIN_LISTEN is not set");
  const spans = openTraces(parts, metrics, parts.nodeUrls);
  const { listening, renew } = prepareListening(parts, metrics, requests, spans);
  const apart = isAdministered ? administration.routes : undefined;
  const listeners = openServiceListeners(listening, services, { administration: apart, metrics, health });
  renew(listeners.servers);
  noteListeners(parts.onListening, undefined, listeners);
  const indexing = parts.isChainNeeded ? openChainIndexing(parts, base, hooksOf(base), concerns) : undefined;
  if (indexing !== undefined) events.on("bundleQueued", indexing.wakeBundles);
  closeListenersFirst(parts, listeners.servers, health);
  return {
    url: undefined,
    adminUrl: listeners.adminUrl,
    serviceUrls: listeners.serviceUrls,
    wantBundle: administration.wantBundle,
    shownKey: isAdministered ? key.shown : {},
  };
}

const none: HealthCheck = () => [];

const noBlock = "No block has been followed yet.";

const notFollowing: MonitoredIndexing = {
  follow: { ours: undefined, theirHeight: undefined, lag: undefined },
  reasons: [],
};

/** The content cache follows the changes of the index. */
function hooksOf({ metrics, reader, sources: { content } }: Base): IndexingHooks {
  const forks = createForkMetrics(metrics, reader.tip()?.height ?? -1);
  return {
    onBlock: ({ height, ids }) => {
      forks.onBlock(height);
      ids.forEach(content.forget);
    },
    onItems: (ids) => ids.forEach(content.forget),
    onRollback: (fromHeight) => {
      forks.onRollback(fromHeight);
      content.forgetAll();
    },
  };
}
