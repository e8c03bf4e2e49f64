/**
 * Which content an address names: by host, by first segment, by apex, or none.
 * Source: contract.md §0a.
 * @module
 */
import { type Id, isId } from "../../arweave/id.ts";
import type { HostMeaning } from "../hosts.ts";
import { reservedSegments } from "../reserved.ts";

/** What an address names. */
export type ContentAddress =
  | Readonly<{ kind: "none" }>
  | Readonly<{ kind: "invalid id" }>
  | Readonly<{ kind: "absent" }> // shaped like an id, and the name of nothing
  | ContentPath;

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

const idShape = /^[A-Za-z0-9_-]{43}$/;
const none: ContentAddress = { kind: "none" };

/**
 * Reads an address.
 *
 * @param segments - Decoded, at least one.
 * @param apex - Content of the root, and of every path that names nothing else.
 */
export function readContentAddress(
  segments: readonly string[],
  host: HostMeaning,
  apex: Id | undefined,
): ContentAddress {
  const [first = ""] = segments;
  if (host.kind === "name") return { kind: "absent" };
  if (idShape.test(first)) return addressBelow(first, segments.slice(1));
  if (first === "raw") return readRaw(segments);
  // On a host of its own an id's path space is all there is.
  if (host.kind === "sandbox") return pathIn(host.id, segments, false);
  if (apex === undefined || reservedSegments.has(first)) return none;
  return pathIn(apex, segments, true);
}

function addressBelow(text: string, rest: readonly string[]): ContentAddress {
  if (!isId(text)) return { kind: "absent" };
  const path = rest.length === 0 ? undefined : rest.join("/");
  return { kind: "content", id: text, path, raw: false, changing: false };
}

function readRaw(segments: readonly string[]): ContentAddress {
  const [, text = "", slash = "", ...more] = segments;
  if (slash !== "" || more.length > 0) return none;
  if (!idShape.test(text)) return { kind: "invalid id" };
  if (!isId(text)) return { kind: "absent" };
  return { kind: "content", id: text, path: undefined, raw: true, changing: false };
}

function pathIn(id: Id, segments: readonly string[], changing: boolean): ContentPath {
  return { kind: "content", id, path: segments.join("/"), raw: false, changing };
}
