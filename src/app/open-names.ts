/**
 * Opens the name service: the operator's names file, the trusted gateways, the apex, and the page for unknown names.
 * @module
 */
import { type Id, readId } from "../arweave/id.ts";
import { openNameGateways } from "../chain/name-gateways.ts";
import { Failure } from "../failures.ts";
import { createStoredNames, type StoredNames } from "../gateway/names/name-cache.ts";
import { createNames, type Names } from "../gateway/names/names.ts";
import { createNamesFile, type NamesFile, readNamesFile } from "../gateway/names/names-file.ts";
import type { Apex } from "../http/gateway/content-address.ts";
import type { NotFoundPage } from "../http/gateway/named-content.ts";
import { systemClock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { BlockList } from "../store/block-list.ts";
import type { AppContext } from "./base.ts";
import { badSettings } from "./complaints.ts";

export type OpenNames = Readonly<{
  names: Names;
  apex: Apex | undefined;
  notFoundPage: NotFoundPage;
  /** Faults of the names file, for the operator. */
  notes: () => readonly string[];
}>;

/** Opens the name service; `closers` close it. @throws Misuse when the names file cannot be read. */
export function openNames(app: AppContext, blockList: Pick<BlockList, "isBlockedName">, metrics: Metrics): OpenNames {
  const { config, log } = app;
  const file = openFile(config.NAMES_FILE, log);
  const names = createNames({
    blockList,
    file,
    gateways: openGateways(app, metrics),
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
  return path === undefined ? undefined : asSetting(() => createNamesFile(path, systemClock, log));
}

/** Checks the names file. @throws Misuse when it cannot be read or is invalid. */
export function checkNamesFile(path: string): void {
  asSetting(() => readNamesFile(path));
}

/** Reports a failure as an invalid NAMES_FILE. */
function asSetting<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (error instanceof Failure) throw badSettings([`NAMES_FILE: ${error.context["reason"]}`]);
    throw error;
  }
}

function openGateways({ config, log, closers }: AppContext, metrics: Metrics): StoredNames | undefined {
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

/** The parser of the setting has validated the id. */
function idOf(text: string | undefined): Id | undefined {
  return text === undefined ? undefined : readId(text);
}
