/**
 * Isolates pages of different ids in a browser: a request is served where it was sent, or redirected to the id's own
 * host.
 *
 * A script at `/{id}` shares its origin with every other id on the same host: it could read their storage,
 * and a service worker could respond in their place.
 * Source: docs/reference/gateway.md#isolation.
 * @module
 */

/** By host where a root host is known; with a content security policy as well; or off. */
export type IsolationMode = "auto" | "csp" | "off";

export type IsolationRules = Readonly<{
  mode: IsolationMode;
  /** Whether each id has its own host. */
  hasRootHost: boolean;
  /** Whether all requests are redirected to the id's own host, not only page navigations. */
  redirectAll: boolean;
}>;

/** Fetch metadata that a browser sends. */
export type FetchMetadata = Readonly<{
  destination: string | null; // Sec-Fetch-Dest
  otherFetchMetadata: boolean; // whether any Sec-Fetch header came
  accept: string | null;
  serviceWorker: string | null; // the Service-Worker header
}>;

/** Destinations that open content as a document. */
const pageDestinations: ReadonlySet<string> = new Set(["document", "iframe", "frame", "embed", "object"]);

/** Whether the browser opens the response as a page. */
export function isNavigation(metadata: FetchMetadata): boolean {
  if (metadata.destination !== null) return pageDestinations.has(metadata.destination);
  return !metadata.otherFetchMetadata && (metadata.accept ?? "").toLowerCase().includes("text/html");
}

/** Whether what a shared host sends depends on what the browser wants it for. */
export function variesByDestination(rules: IsolationRules): boolean {
  return rules.mode !== "off" && rules.hasRootHost;
}

/** Whether a request at a shared host is redirected to the id's own host. */
export function leavesSharedHost(rules: IsolationRules, metadata: FetchMetadata): boolean {
  return variesByDestination(rules) && (rules.redirectAll || isNavigation(metadata));
}

/** Whether a request registers a service worker, which a shared host does not allow. */
export function isServiceWorkerRequest(metadata: FetchMetadata): boolean {
  return metadata.serviceWorker?.trim().toLowerCase() === "script";
}

/** Warnings about the chosen rules; empty when ids are isolated. */
export function isolationReasons(rules: IsolationRules): string[] {
  if (rules.mode === "off") return ["Content isolation is off: all ids share one origin."];
  if (rules.hasRootHost || rules.mode === "csp") return [];
  return ["No root host is set (ARNS_ROOT_HOST): all ids share one origin."];
}
