/**
 * Monitoring for the operator: the history of metrics, and the status record of the console.
 *
 * One background loop reads slow values (ledger, balance of the wallet, disk) and takes the samples. Requests of the
 * console read only memory and the ledger.
 * @module
 */
import { statfs } from "node:fs/promises";
import type { SourceStatus } from "../chain/nodes.ts";
import type { Monitored } from "../http/gateway/admin-routes.ts";
import { createRecent, durationBuckets, type RequestMetrics } from "../http/request-metrics.ts";
import type { FollowStatus } from "../indexing/follow.ts";
import { systemClock } from "../lib/clock.ts";
import type { JsonObject, JsonValue } from "../lib/json.ts";
import { type Log, type RecordedLine, recordLines } from "../lib/log.ts";
import { openBackgroundLoop } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import { createMetricsHistory, type HistoryMetric, type MetricsHistory, sampleMs } from "../lib/metrics-history.ts";
import { withDeadline } from "../lib/stop.ts";
import type { LedgerMonitor } from "../payment/ledger-stats.ts";
import type { BundleOverview } from "../upload/pipeline/bundle-overview.ts";
import type { UploadCounts } from "../upload/upload-metrics.ts";
import type { WalletMonitor } from "../upload/wallet-monitor.ts";
import { version } from "../version.ts";
import type { AppContext, Base } from "./base.ts";
import { loadsOf } from "./threads.ts";

/** Uploads, as the operator sees them. */
export type MonitoredUploads = Readonly<{
  wallet: WalletMonitor;
  counts: () => Promise<UploadCounts>;
  bundles: () => Promise<readonly BundleOverview[]>;
  /** Makes the next step of a bundle due now. @returns Whether there is such an unfinished bundle. */
  retry: (id: string) => Promise<boolean>;
}>;

/** Parts that the ledger and the other services add; absent in a gateway without them. */
export type MonitoredServices = Readonly<{
  ledger?: LedgerMonitor | undefined;
  uploads?: MonitoredUploads | undefined;
  /** The latest lines of the log of level warn and error, newest first. */
  lines?: (() => readonly RecordedLine[]) | undefined;
}>;

/** Of indexing, what the operator sees. */
export type MonitoredIndexing = Readonly<{
  follow: Pick<FollowStatus, "ours" | "theirHeight" | "lag">;
  reasons: readonly string[];
}>;

type MonitoringParts = Readonly<{
  requests: Pick<RequestMetrics, "totals" | "recent">;
  indexing: () => MonitoredIndexing;
  services: MonitoredServices;
}>;

/** Lines of the log in memory. */
const linesMax = 100;

/** Records the latest lines of level warn and error. */
export function recordLog(log: Log): Readonly<{ log: Log; lines: () => readonly RecordedLine[] }> {
  const recent = createRecent<RecordedLine>(linesMax);
  return { log: recordLines(log, systemClock, recent.add), lines: recent.list };
}

/** Time between two reads of the wallet's balance, and the timeout of one. Milliseconds. */
const walletEveryMs = 5 * 60_000;
const walletTimeoutMs = 30_000;

/** Wait after a failed round. Milliseconds. */
const retryMs = sampleMs;

/** Winston of one AR, and of winc. */
const winstonPerAr = 1e12;

/** Opens monitoring; `closers` close it. */
export function openMonitoring(app: AppContext, base: Base, parts: MonitoringParts): Monitored {
  const { config, folder, log, closers } = app;
  const { metrics } = base;
  const { ledger, uploads } = parts.services;
  const startedAt = systemClock();
  const disks = createDisks(metrics, { data: folder.root, content: folder.content, uploads: folder.uploads });
  metrics.info({
    name: "cairn_build_info",
    help: "Version of the program and of its runtime; always 1.",
    labels: { version, runtime: `bun ${Bun.version}` },
  });
  const history = createMetricsHistory(historyMetrics(base, parts, disks.last), systemClock);
  // A value that cannot be read has none in the sample, and its metric is absent: the next round reads it again.
  const loop = openBackgroundLoop(
    "monitoring",
    async () => {
      const reads = await Promise.allSettled([ledger?.read(), disks.refresh()]);
      for (const read of reads)
        if (read.status === "rejected") log.debug("monitoring could not read a value", { error: read.reason });
      history.sample();
      return sampleMs;
    },
    (error) => {
      log.warn("monitoring failed", { error });
      return retryMs;
    },
  );
  const walletLoop = openBackgroundLoop(
    "balance of the wallet",
    async (signal) => {
      if (uploads !== undefined) await withDeadline(signal, walletTimeoutMs, uploads.wallet.refresh);
      return walletEveryMs;
    },
    (error) => {
      log.debug("the balance of the wallet could not be read", { error });
      return walletTimeoutMs;
    },
  );
  closers.add("monitoring", async () => {
    await Promise.all([loop.close(), walletLoop.close()]);
  });
  return {
    history: history.record,
    retryBundle: async (id) => (await uploads?.retry(id)) ?? false,
    status: async () => ({
      version,
      startedAt,
      now: systemClock(),
      settings: { cacheBytesMax: config.CACHE_BYTES_MAX, uploadBytesMax: config.UPLOAD_DISK_BYTES_MAX },
      ...statusOf(base, parts, history),
      disk: disks.last(),
      ...(await servicesStatus(parts.services, log)),
    }),
  };
}

function statusOf(base: Base, { requests, indexing, services }: MonitoringParts, history: MetricsHistory): JsonObject {
  const { sources, reader, threads } = base;
  const { follow, reasons } = indexing();
  const { durations, ...totals } = requests.totals();
  const cache = sources.extents.stats();
  const counts = reader.counts();
  return {
    chain: {
      height: follow.ours?.height ?? null,
      tip: follow.theirHeight ?? null,
      lag: follow.lag ?? null,
      ...progressOf(history, follow.lag),
    },
    reasons,
    index: {
      transactions: counts.transactions,
      items: counts.items,
      bundles: counts.bundles,
      bundlesQueued: counts.bundlesQueued,
      bundlesFailed: counts.bundlesFailed,
      missingTransactions: counts.missingTransactions,
    },
    queues: loadsOf(threads, "open"),
    requests: { ...totals, recent: asJson(requests.recent()) },
    lines: asJson(services.lines?.() ?? []),
    cache: { bytes: cache.bytes, bytesMax: cache.bytesMax, evictedRoots: cache.evictedRoots },
    sources: {
      nodes: sources.nodes.sourceStatus().map(sourceRecord),
      gateways: sources.gateways.sourceStatus().map(sourceRecord),
      chunks: sources.chunkNodes.sourceStatus().map(sourceRecord),
      peers: { gateways: sources.peers.gateways().length, nodes: sources.peers.nodes().length },
    },
  };
}

/** Blocks a second over the last five minutes, and the seconds to the tip; null while unknown or not catching up. */
function progressOf(history: MetricsHistory, lag: number | undefined): JsonObject {
  const rates = (history.record().hour.values["blocks"] ?? []).slice(-30).filter((rate) => rate !== null);
  if (rates.length === 0) return { blocksPerSecond: null, secondsToTip: null };
  const blocksPerSecond = rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  if (lag === undefined) return { blocksPerSecond, secondsToTip: null };
  if (lag <= 0) return { blocksPerSecond, secondsToTip: 0 };
  return { blocksPerSecond, secondsToTip: blocksPerSecond > 0 ? Math.round(lag / blocksPerSecond) : null };
}

function sourceRecord({ url, ...status }: SourceStatus & Readonly<{ url: string }>): JsonObject {
  const { successShare, latencyMs, faults, wrongs, restsUntil } = status;
  return { url: originOf(url), successShare, latencyMs, faults, wrongs, rests: restsUntil > systemClock() };
}

/** A URL of a source may have a key in its path or its credentials. */
function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : "invalid URL";
}

/** Services whose database cannot be read are null and named: an operator looks here most of all at such a time. */
async function servicesStatus({ ledger, uploads }: MonitoredServices, log: Log): Promise<JsonObject> {
  const unreadable: string[] = [];
  const orNull = async (name: string, record: Promise<JsonValue>): Promise<JsonValue> => {
    try {
      return await record;
    } catch (error) {
      unreadable.push(name);
      log.debug("a record of the status could not be read", { name, error });
      return null;
    }
  };
  const [ledgerValue, uploadsValue] = await Promise.all([
    orNull("ledger", ledgerRecord(ledger)),
    orNull("uploads", uploadsRecord(uploads)),
  ]);
  return { ledger: ledgerValue, uploads: uploadsValue, unreadable: unreadable.toSorted() };
}

async function ledgerRecord(ledger: LedgerMonitor | undefined): Promise<JsonValue> {
  if (ledger === undefined) return null;
  const { liabilities, revenue, promotions, adjustments, paid, transfers } = await ledger.read();
  return {
    liabilities: String(liabilities),
    revenue: String(revenue),
    promotions: String(promotions),
    adjustments: String(adjustments),
    paid: Object.fromEntries(Object.entries(paid).map(([name, winc]) => [name, String(winc)])),
    transfers,
  };
}

async function uploadsRecord(uploads: MonitoredUploads | undefined): Promise<JsonValue> {
  if (uploads === undefined) return null;
  const wallet = uploads.wallet.last();
  const [counts, bundles] = await Promise.all([uploads.counts(), uploads.bundles()]);
  return {
    ...counts,
    list: asJson(bundles),
    wallet:
      wallet === undefined
        ? null
        : {
            address: wallet.address,
            balance: String(wallet.balance),
            spentPerDay: String(wallet.spentPerDay),
            daysLeft: wallet.daysLeft ?? null,
            readAt: wallet.readAt,
          },
  };
}

/** A record of readonly data as JSON; the types of both are the same but for the index signature. */
function asJson(value: object): JsonValue {
  return JSON.parse(JSON.stringify(value));
}

type DiskStatus = Readonly<Record<string, Readonly<{ freeBytes: number; bytes: number }>>>;

function createDisks(metrics: Metrics, folders: Readonly<Record<string, string>>) {
  let last: DiskStatus = {};
  metrics.gaugesOf({
    name: "disk_free_bytes",
    help: "Free bytes of the disk of a folder, for this user.",
    label: "folder",
    values: Object.keys(folders),
    read: () => Object.fromEntries(Object.entries(last).map(([name, { freeBytes }]) => [name, freeBytes])),
  });
  const refresh = async (): Promise<void> => {
    const reads = await Promise.allSettled(
      Object.entries(folders).map(async ([name, path]) => {
        const { bavail, blocks, bsize } = await statfs(path);
        return [name, { freeBytes: bavail * bsize, bytes: blocks * bsize }] as const;
      }),
    );
    last = Object.fromEntries(reads.flatMap((read) => (read.status === "fulfilled" ? [read.value] : [])));
    const failed = reads.find((read) => read.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  };
  return { refresh, last: () => last };
}

function historyMetrics(base: Base, parts: MonitoringParts, disks: () => DiskStatus): readonly HistoryMetric[] {
  const { reader, sources, threads } = base;
  const { requests, indexing, services } = parts;
  const gauge = (name: string, unit: string, read: HistoryMetric["read"], fold: HistoryMetric["fold"] = "last") =>
    ({ name, unit, kind: "gauge", fold, read }) as const;
  const total = (name: string, unit: string, read: HistoryMetric["read"]) =>
    ({ name, unit, kind: "total", fold: "mean", read }) as const;
  const content = (tier: "memory" | "disk" | "source") => [
    total(`${tier}Responses`, "responses a second", () => requests.totals().content[tier].responses),
    total(`${tier}Bytes`, "bytes a second", () => requests.totals().content[tier].bytes),
  ];
  const latency = createLatency(requests);
  return [
    gauge("height", "blocks", () => reader.tip()?.height),
    gauge("lag", "blocks", () => indexing().follow.lag, "max"),
    total("blocks", "blocks a second", () => reader.tip()?.height),
    total("items", "items a second", () => reader.counts().items),
    total("responses", "responses a second", () => requests.totals().responses),
    total("serverErrors", "responses a second", () => requests.totals().serverErrors),
    ...(["memory", "disk", "source"] as const).flatMap(content),
    gauge("latencyMedian", "seconds", () => latency.next(0.5), "mean"),
    gauge("latency99", "seconds", () => latency.current(0.99), "max"),
    gauge("jobs", "jobs", () => sumOf(loadsOf(threads, "open")), "max"),
    gauge("bundlesQueued", "bundles", () => reader.counts().bundlesQueued),
    gauge("cacheBytes", "bytes", () => sources.extents.stats().bytes),
    gauge("diskFree", "bytes", () => disks()["data"]?.freeBytes),
    gauge("memory", "bytes", () => process.memoryUsage.rss(), "max"),
    total("processor", "processors", () => (process.cpuUsage().user + process.cpuUsage().system) / 1e6),
    gauge("liabilities", "AR", () => inAr(services.ledger?.last()?.liabilities)),
    gauge("walletBalance", "AR", () => inAr(services.uploads?.wallet.last()?.balance)),
  ];
}

function inAr(amount: bigint | undefined): number | undefined {
  return amount === undefined ? undefined : Number(amount) / winstonPerAr;
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** Quantiles of the durations since the last sample: the upper bound of the bucket; responses from memory excluded. */
function createLatency(requests: Pick<RequestMetrics, "totals">) {
  let before: readonly number[] = [];
  let counts: readonly number[] = [];
  const current = (share: number): number | undefined => {
    const total = counts.reduce((sum, count) => sum + count, 0);
    if (total === 0) return undefined;
    let seen = 0;
    for (const [at, count] of counts.entries()) {
      seen += count;
      if (seen >= share * total) return durationBuckets[at] ?? durationBuckets.at(-1);
    }
    return undefined;
  };
  return {
    /** Begins the next sample. */
    next: (share: number): number | undefined => {
      const { durations } = requests.totals();
      counts = durations.map((count, at) => count - (before[at] ?? 0));
      before = [...durations];
      return current(share);
    },
    current,
  };
}
