/**
 * The admin API, as the console reads it. The key is in the memory of this page only.
 * @module
 */
import { useCallback } from "react";
import type { RecentRequest } from "../../src/http/request-metrics.ts";
import type { RecordedLine } from "../../src/lib/log.ts";
import type { MetricsHistory } from "../../src/lib/metrics-history.ts";
import type { BundleOverview } from "../../src/upload/pipeline/bundle-overview.ts";
import { type Reading, useReading } from "../use-reading.ts";

type Counts = Readonly<Record<string, number>>;

export type Source = Readonly<{
  url: string;
  successShare: number;
  latencyMs: number;
  faults: number;
  wrongs: number;
  rests: boolean;
}>;

type Tier = Readonly<{ responses: number; bytes: number }>;

/** The record of `GET /svc/admin/status`. Times are Unix milliseconds, amounts decimal texts. */
export type OperatorStatus = Readonly<{
  version: string;
  startedAt: number;
  now: number;
  settings: Readonly<{ cacheBytesMax: number; uploadBytesMax: number }>;
  chain: Readonly<{
    height: number | null;
    tip: number | null;
    lag: number | null;
    blocksPerSecond: number | null;
    secondsToTip: number | null;
  }>;
  reasons: readonly string[];
  index: Counts;
  queues: Counts;
  requests: Readonly<{
    responses: number;
    serverErrors: number;
    bytes: number;
    content: Readonly<Record<"memory" | "disk" | "source", Tier>>;
    recent: Readonly<{ requests: readonly RecentRequest[]; errors: readonly RecentRequest[] }>;
  }>;
  lines: readonly RecordedLine[];
  cache: Readonly<{ bytes: number; bytesMax: number; evictedRoots: number }>;
  sources: Readonly<{
    nodes: readonly Source[];
    gateways: readonly Source[];
    chunks: readonly Source[];
    peers: Readonly<{ gateways: number; nodes: number }>;
  }>;
  disk: Readonly<Record<string, Readonly<{ freeBytes: number; bytes: number }>>>;
  ledger: Ledger | null;
  uploads: Uploads | null;
  /** Names of the records that are null because their database could not be read. */
  unreadable: readonly string[];
}>;

export type Ledger = Readonly<{
  liabilities: string;
  revenue: string;
  promotions: string;
  adjustments: string;
  paid: Readonly<Record<string, string>>;
  transfers: Counts;
}>;

export type Uploads = Readonly<{
  items: Counts;
  bytes: Counts;
  bundles: Counts;
  oldest: Counts;
  list: readonly BundleOverview[];
  wallet: Readonly<{
    address: string;
    balance: string;
    spentPerDay: string;
    daysLeft: number | null;
    readAt: number;
  }> | null;
}>;

export type History = ReturnType<MetricsHistory["record"]>;

/** A page of `GET /svc/admin/blocks`. */
export type BlockList = Readonly<{
  blocks: readonly Readonly<{
    kind: "id" | "hash" | "name";
    value: string;
    source: string | null;
    notes: string | null;
    blockedAt: number /* Unix seconds */;
  }>[];
  next: string | null;
}>;

/** The server rejected the request: nothing was changed. */
export class Rejected extends Error {}

/** The server rejected the key. */
export class WrongKey extends Rejected {}

export type OperatorClient = Readonly<{
  /**
   * Rejects with {@link Rejected}, or with another Error where the outcome is unknown.
   * @param path - Below `/svc/admin/`.
   */
  get: <Value>(path: string, signal: AbortSignal) => Promise<Value>;
  /** As `get`; resolves with the bytes. A report over a large ledger may take minutes. */
  file: (path: string) => Promise<Blob>;
  /** As `get`; resolves with the server's message. Pruning may take minutes. */
  send: (method: "POST" | "PUT", path: string, body: unknown) => Promise<string>;
}>;

const readTimeoutMs = 15_000;
const changeTimeoutMs = 10 * 60_000;

export function createOperatorClient(key: string): OperatorClient {
  const ask = async (path: string, options: RequestInit, signal: AbortSignal | undefined, timeoutMs: number) => {
    const timeout = AbortSignal.timeout(timeoutMs);
    const response = await fetch(new URL(`admin/${path}`, document.baseURI), {
      ...options,
      headers: { authorization: `Bearer ${key}` },
      cache: "no-store",
      credentials: "omit",
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
    });
    if (response.status === 401) throw new WrongKey("The gateway did not accept this key.");
    if (!response.ok) {
      const message = `${response.status}: ${messageOf(await response.text())}`;
      throw response.status < 500 ? new Rejected(message) : new Error(message);
    }
    return response;
  };
  return {
    get: async (path, signal) => await (await ask(path, {}, signal, readTimeoutMs)).json(),
    file: async (path) => await (await ask(path, {}, undefined, changeTimeoutMs)).blob(),
    send: async (method, path, body) => {
      const response = await ask(path, { method, body: JSON.stringify(body) }, undefined, changeTimeoutMs);
      return messageOf(await response.text());
    },
  };
}

/** Reads a record of the admin API. @param everyMs - As for `useReading`. */
export function useRecord<Value>(client: OperatorClient, path: string, everyMs?: number): Reading<Value> {
  return useReading(
    useCallback((signal: AbortSignal) => client.get<Value>(path, signal), [client, path]),
    everyMs,
  );
}

/**
 * The cursors of a list's pages when its next page is chosen. A second click, before the page is read, changes nothing:
 * the page in view still names the same next one.
 */
export function withNextPage(cursors: readonly string[], next: string): readonly string[] {
  return cursors.at(-1) === next ? cursors : [...cursors, next];
}

/** The words of a body: a JSON text, or a record with `message`, `error` or `effect`. */
function messageOf(text: string): string {
  if (text === "") return "Done";
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "string") return value;
    if (typeof value !== "object" || value === null) return text;
    const message: unknown =
      Reflect.get(value, "message") ?? Reflect.get(value, "error") ?? Reflect.get(value, "effect");
    if (typeof message === "string") return message;
    return Reflect.has(value, "idempotencyKey") ? "Done" : text;
  } catch {
    return text; // not JSON, as from a proxy
  }
}
