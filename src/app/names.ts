/**
 * The names of the settings: an operator's own file, trusted gateways, the apex, and the page for names that
 * nobody has.
 * @module
 */
import { type Id, readId } from "../arweave/id.ts";
import { openNameGateways } from "../chain/name-gateways.ts";
import type { Config } from "../config/settings.ts";
import { Failure } from "../failures.ts";
import { createStoredNames, type StoredNames } from "../gateway/names/name-cache.ts";
import { createNames, type Names } from "../gateway/names/names.ts";
import { createNamesFile, type NamesFile, readNamesFile } from "../gateway/names/names-file.ts";
import type { Apex } from "../http/gateway/content-address.ts";
import type { NotFoundPage } from "../http/gateway/named-content.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { BlockList } from "../store/block-list.ts";
import { badSettings } from "./complaints.ts";

/** Names, open. */
export type OpenNames = Readonly<{
  names: Names;
  apex: Apex | undefined;
  notFoundPage: NotFoundPage;
  /** What an operator should know of the file. */
  notes: () => readonly string[];
}>;

/** What is needed to open them. */
export type NamesParts = Readonly<{
  config: Config;
  blockList: Pick<BlockList, "isBlockedName">;
  metrics: Metrics;
  log: Log;
  closers: Closers;
}>;

/**
 * Opens them; what has to be closed is closed by `closers`.
 *
 * @throws Misuse when the file cannot be read.
 */
export function openNames({ config, blockList, metrics, log, closers }: NamesParts): OpenNames {
  const file = openFile(config.NAMES_FILE, log);
  const names = createNames({
    blockList,
    file,
    gateways: openGateways({ config, metrics, log, closers }),
    isLimitEnforced: config.ARNS_RESOLVER_ENFORCE_UNDERNAME_LIMIT,
    clock: systemClock,
  });
  const apexId = idOf(config.APEX_TX_ID);
  const apexName = config.APEX_REGISTRY_NAME;
  const namedApex = apexName === undefined ? undefined : { name: apexName };
  return {
    names,
    apex: apexId === undefined ? namedApex : { id: apexId },
    notFoundPage: { id: idOf(config.ARNS_NOT_FOUND_TX_ID), name: config.ARNS_NOT_FOUND_ARNS_NAME },
    notes: () => file?.reasons() ?? [],
  };
}

function openFile(path: string | undefined, log: Log): NamesFile | undefined {
  return path === undefined ? undefined : complaining(() => createNamesFile(path, systemClock, log));
}

/** Reads the file of names once. @throws Misuse when it cannot be read, or holds something else. */
export function checkNamesFile(path: string): void {
  complaining(() => readNamesFile(path));
}

function complaining<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    // The fault becomes one line of the complaint.
    if (error instanceof Failure) throw badSettings([`NAMES_FILE: ${error.context["reason"]}`]);
    throw error;
  }
}

function openGateways({ config, metrics, log, closers }: Omit<NamesParts, "blockList">): StoredNames | undefined {
  if (config.TRUSTED_ARNS_GATEWAY_URL.length === 0) return undefined;
  const gateways = openNameGateways(config.TRUSTED_ARNS_GATEWAY_URL, config.ARNS_COMPOSITE_RESOLVER_TIMEOUT_MS);
  closers.add("name gateways", gateways.close);
  const stored = createStoredNames({
    gateways,
    retentionMs: config.ARNS_CACHE_TTL_SECONDS * 1_000,
    storedMax: config.ARNS_CACHE_MAX_KEYS,
    patienceMs: config.ARNS_CACHED_RESOLUTION_FALLBACK_TIMEOUT_MS,
    metrics,
    clock: systemClock,
    log,
  });
  closers.add("names", stored.close);
  return stored;
}

/** A setting's reader has checked it. */
function idOf(text: string | undefined): Id | undefined {
  return text === undefined ? undefined : readId(text);
}
