/**
 * The host of a request: the gateway's own, or that of a single id or name.
 * Source: docs/reference/gateway.md#which-route-serves-a-request; RFC 4648 §6 (base32).
 * @module
 */
import { type Id, idBytes, idFromBytes } from "../arweave/id.ts";
import { decodeBase32, encodeBase32 } from "../lib/base-encodings.ts";
import { hostName } from "./request-target.ts";

export type HostMeaning =
  /** A host of the gateway, with all routes. `root` is the parent of the hosts of ids; undefined without one. */
  | Readonly<{ kind: "shared"; root: string | undefined }>
  | Readonly<{ kind: "sandbox"; id: Id; root: string }> // the host of one id's content
  | Readonly<{ kind: "name"; label: string; root: string }>; // the host of a name or undername

/** Characters of 32 bytes in base32 without padding. */
const sandboxLabelLength = 52;

/** Labels of the gateway itself, not of names. */
const ownLabels: ReadonlySet<string> = new Set(["www"]);

/** Hosts whose meaning is remembered; requests come from a few of them. */
const rememberedMax = 1_000;

export type Hosts = Readonly<{
  /** Root hosts in lower case, without ports. The first is used for hosts that are not below a root host. */
  roots: readonly string[];
  /** Parses the value of a Host header. */
  meaningOf: (host: string) => HostMeaning;
  /** Whether it is a host of the gateway itself, and not of an id or a name. */
  isOwn: (host: string) => boolean;
}>;

/** @param rootHosts - The longest one that matches a host is used. */
export function createHosts(rootHosts: readonly string[]): Hosts {
  const roots = rootHosts.map((root) => root.toLowerCase());
  const longestFirst = roots.toSorted((a, b) => b.length - a.length);
  const remembered = new Map<string, HostMeaning>();
  const meaningOf = (host: string): HostMeaning => {
    const known = remembered.get(host);
    if (known !== undefined) return known;
    const meaning = readHost(hostName(host.toLowerCase()), longestFirst, roots[0]);
    if (remembered.size >= rememberedMax) remembered.clear();
    remembered.set(host, meaning);
    return meaning;
  };
  return { roots, meaningOf, isOwn: (host) => meaningOf(host).kind === "shared" };
}

/** The label of an id's own host: 52 characters of base32 in lower case. */
export function sandboxLabel(id: Id): string {
  return encodeBase32(idBytes(id));
}

/** Reads the label of an id's own host; `undefined` when it is not such a label. */
export function readSandboxLabel(label: string): Id | undefined {
  const bytes = label.length === sandboxLabelLength ? decodeBase32(label) : undefined;
  return bytes === undefined ? undefined : idFromBytes(bytes);
}

function readHost(name: string, roots: readonly string[], usual: string | undefined): HostMeaning {
  if (roots.includes(name)) return { kind: "shared", root: name };
  const root = roots.find((candidate) => name.endsWith(`.${candidate}`));
  if (root === undefined) return { kind: "shared", root: usual };
  const label =
    name
      .slice(0, -root.length - 1)
      .split(".")
      .at(-1) ?? "";
  if (ownLabels.has(label)) return { kind: "shared", root };
  const id = readSandboxLabel(label);
  return id === undefined ? { kind: "name", label, root } : { kind: "sandbox", id, root };
}
