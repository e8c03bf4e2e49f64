/**
 * Which content an address names: by host, by first segment, by apex, or none.
 * Source: docs/reference/gateway.md#which-route-serves-a-request.
 * @module
 */
import { type Id, idShape, isId } from "../../arweave/id.ts";
import type { HostMeaning } from "../hosts.ts";
import { reservedSegments } from "../reserved-paths.ts";

/** Content that an address names, or the reason why it names none. */
export type ContentAddress =
  | Readonly<{ kind: "none" }>
  | Readonly<{ kind: "invalid id" }>
  | Readonly<{ kind: "absent" }> // shaped like an id, and the name of nothing
  | ContentPath
  | NamedPath;

/** Content, or a path in a manifest. */
export type ContentPath = Readonly<{
  kind: "content";
  id: Id;
  /** Below the id, decoded; "" after a slash, `undefined` without one. */
  path: string | undefined;
  /** As stored, whatever it is: manifests are not followed. */
  raw: boolean;
  /** Whether the same address may mean other content one day. */
  changing: boolean;
}>;

/** A path below the id of a name, which is resolved first. */
export type NamedPath = Readonly<{
  kind: "named";
  /** As requested, or as configured; not validated. */
  name: string;
  /** Decoded, without its leading slash. */
  path: string;
  /** Whether the request is for the apex, on a host of this gateway. */
  isApex: boolean;
}>;

/** The content at the root of our own hosts and at unknown paths: an id's, or a name's. */
export type Apex = Readonly<{ id: Id }> | Readonly<{ name: string }>;

const none: ContentAddress = { kind: "none" };

/**
 * Reads an address.
 *
 * @param segments - Decoded, at least one.
 */
export function readContentAddress(
  segments: readonly string[],
  host: HostMeaning,
  apex: Apex | undefined,
): ContentAddress {
  const [first = "", second = ""] = segments;
  if (idShape.is(first)) return addressBelow(first, segments.slice(1));
  // On the host of an id or a name every path belongs to its content, except `/raw/{id}`.
  if (first === "raw" && (host.kind === "shared" || idShape.is(second))) return readRaw(segments);
  if (host.kind === "sandbox") return pathIn(host.id, segments, false);
  if (host.kind === "name") return namedPath(host.label, segments, false);
  if (apex === undefined || reservedSegments.has(first)) return none;
  return "id" in apex ? pathIn(apex.id, segments, true) : namedPath(apex.name, segments, true);
}

function namedPath(name: string, segments: readonly string[], isApex: boolean): NamedPath {
  return { kind: "named", name, path: segments.join("/"), isApex };
}

function addressBelow(text: string, rest: readonly string[]): ContentAddress {
  if (!isId(text)) return { kind: "absent" };
  const path = rest.length === 0 ? undefined : rest.join("/");
  return { kind: "content", id: text, path, raw: false, changing: false };
}

function readRaw(segments: readonly string[]): ContentAddress {
  const [, text = "", slash = "", ...more] = segments;
  if (slash !== "" || more.length > 0) return none;
  if (!idShape.is(text)) return { kind: "invalid id" };
  if (!isId(text)) return { kind: "absent" };
  return { kind: "content", id: text, path: undefined, raw: true, changing: false };
}

function pathIn(id: Id, segments: readonly string[], changing: boolean): ContentPath {
  return { kind: "content", id, path: segments.join("/"), raw: false, changing };
}
