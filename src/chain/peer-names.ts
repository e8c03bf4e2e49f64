/**
 * Lists in which machines name others: `/peers` of a node, `/ar-io/peers` of a gateway. What is on them is
 * anybody's word.
 * Source: docs/reference/node-api.md#peers.
 * @module
 */
import { isJsonArray, isJsonObject, type JsonValue, readJson } from "../lib/json.ts";
import type { Node } from "./node.ts";
import { portOf } from "./reach.ts";

/** What kind of machine it is, by where it was named. */
export type PeerKind = "node" | "gateway";

/** A machine that was named. */
export type NamedPeer = Readonly<{ kind: PeerKind; url: URL }>;

/** A list of a thousand machines has 100 KB. */
const listBytesMax = 2 ** 20;

const nameLengthMax = 300;

type Named = Readonly<{ kind: PeerKind; name: JsonValue }>;

/**
 * Asks a machine whom it names.
 *
 * @param countMax - So many of them are taken, by chance: who makes up a thousand must not fill all places.
 * @param random - In [0, 1).
 * @returns Nobody when it gives no list.
 */
export async function askForPeers(
  node: Node,
  path: "/peers" | "/ar-io/peers",
  countMax: number,
  random: () => number,
  signal: AbortSignal,
): Promise<readonly NamedPeer[]> {
  const response = await node.relay({ method: "GET", path, bodyBytesMax: listBytesMax }, signal);
  if (response.kind !== "ok" || response.value.status !== 200) return [];
  const list = readJson(new TextDecoder().decode(response.value.body));
  return drawn(namesOf(list), countMax, random).flatMap(readNamed);
}

/** `host:port`, the port also when it is the scheme's own. */
export function keyOf(url: URL): string {
  return `${url.hostname}:${portOf(url)}`;
}

/** Some of several, by chance (Fisher, Yates). */
export function drawn<Value>(values: readonly Value[], countMax: number, random: () => number): Value[] {
  const left = [...values];
  const taken: Value[] = [];
  while (taken.length < countMax && left.length > 0) {
    const at = Math.floor(random() * left.length);
    const last = left.pop();
    const value = at === left.length ? last : left[at];
    if (at < left.length && last !== undefined) left[at] = last;
    if (value !== undefined) taken.push(value);
  }
  return taken;
}

function namesOf(list: JsonValue | undefined): readonly Named[] {
  if (isJsonArray(list)) return list.map((name) => ({ kind: "node", name }));
  if (!isJsonObject(list)) return [];
  return [...recordsOf("gateway", list["gateways"]), ...recordsOf("node", list["arweaveNodes"])];
}

/** A peer record is keyed by `host:port` and tells the URL. */
function recordsOf(kind: PeerKind, records: JsonValue | undefined): readonly Named[] {
  if (!isJsonObject(records)) return [];
  return Object.entries(records).map(([key, record]) => {
    const url = isJsonObject(record) ? record["url"] : undefined;
    return { kind, name: url ?? key };
  });
}

/** A name as `host:port` or as an origin; nothing when it is neither. */
function readNamed({ kind, name }: Named): NamedPeer[] {
  if (typeof name !== "string" || name.length > nameLengthMax) return [];
  const url = URL.parse(/^[a-z]+:\/\//i.test(name) ? name : `http://${name}`);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") return [];
  const isOrigin = url.pathname === "/" && url.search === "" && url.hash === "";
  return isOrigin ? [{ kind, url }] : [];
}
