/**
 * What the gateway says of itself.
 * Source: specification part 2 "Gateway information record"; contract.md §3.
 * @module
 */
import { manifestVersions } from "../arweave/manifest.ts";
import type { JsonValue } from "../lib/json.ts";

/** What an operator set, and what is switched on. */
export type InfoOptions = Readonly<{
  /** Address of the gateway's wallet. */
  wallet: string | undefined;
  processId: string | undefined;
  /** The filters as they were set, parsed JSON. */
  unbundleFilter: JsonValue;
  indexFilter: JsonValue;
  release: string;
  /** Other services that this program offers, and where; only what is switched on. */
  services: Readonly<Record<string, JsonValue>>;
}>;

/** The gateway information record: all six fields always, then what is switched on. */
export function gatewayInfo(options: InfoOptions): JsonValue {
  return {
    wallet: options.wallet ?? "",
    processId: options.processId ?? "",
    ans104UnbundleFilter: options.unbundleFilter,
    ans104IndexFilter: options.indexFilter,
    supportedManifestVersions: manifestVersions,
    release: options.release,
    services: options.services,
  };
}
