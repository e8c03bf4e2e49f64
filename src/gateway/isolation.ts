/**
 * How pages of different ids are kept apart in a browser: whether a request is answered where it was asked or
 * sent to the id's own host.
 *
 * A script at `/{id}` shares its origin with every other id on the same host: it could read their storage,
 * and a service worker could answer in their place.
 * Source: docs/reference/gateway.md#isolation.
 * @module
 */

/** By host where a root host is known; with a content security policy as well; or not at all. */
export type IsolationMode = "auto" | "csp" | "off";

/** What decides. */
export type IsolationRules = Readonly<{
  mode: IsolationMode;
  /** Whether ids have hosts of their own. */
  hasRootHost: boolean;
  /** Whether everything is sent to the id's own host, not only what a browser opens as a page. */
  redirectAll: boolean;
}>;

/** What a browser says about a request. */
export type FetchMetadata = Readonly<{
  destination: string | null; // Sec-Fetch-Dest
  otherFetchMetadata: boolean; // whether any Sec-Fetch header came
  accept: string | null;
  serviceWorker: string | null; // the Service-Worker header
}>;

/** Destinations that give content an origin of its own. */
const pageDestinations: ReadonlySet<string> = new Set(["document", "iframe", "frame", "embed", "object"]);

/** Whether the browser is about to open the answer as a page. */
export function isNavigation(metadata: FetchMetadata): boolean {
  if (metadata.destination !== null) return pageDestinations.has(metadata.destination);
  return !metadata.otherFetchMetadata && (metadata.accept ?? "").toLowerCase().includes("text/html");
}

/** Whether content asked for at a shared host is sent to the id's own host. */
export function leavesSharedHost(rules: IsolationRules, metadata: FetchMetadata): boolean {
  return rules.mode !== "off" && rules.hasRootHost && (rules.redirectAll || isNavigation(metadata));
}

/** Whether a script asks to become a service worker of a host that many ids share. */
export function isServiceWorkerRequest(metadata: FetchMetadata): boolean {
  return metadata.serviceWorker?.trim().toLowerCase() === "script";
}

/** What an operator should know about the chosen rules; empty when ids are kept apart. */
export function isolationReasons(rules: IsolationRules): string[] {
  if (rules.mode === "off") return ["Content isolation is off: all ids share one origin."];
  if (rules.hasRootHost || rules.mode === "csp") return [];
  return ["No root host is set (ARNS_ROOT_HOST): all ids share one origin."];
}
