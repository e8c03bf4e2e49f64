/**
 * Hints from other machines about the place of a data item. A hint is used only after the bytes at that place are
 * verified.
 *
 * Sources of such hints.
 * Source: docs/reference/gateway.md#items-on-demand; docs/reference/formats.md#cdb64.
 * @module
 */
import { type Id, idFromBytes, idSize, readId } from "../arweave/id.ts";
import { type PackedMap, type PackedValue, readMessagePack } from "../lib/message-pack.ts";
import type { NodeResponse } from "./node.ts";

/** A place that may be an item's. */
export type Hint = Readonly<{
  /** The transaction whose data contains the item, according to the hint. */
  rootId: Id;
  /** Nested bundles around the item, the outermost first; empty when none or not said. */
  path: readonly Id[];
  /** Byte of the root's data at which the item's header is said to begin. */
  itemOffset: number | undefined;
}>;

/** Bundles that a hint may name, the root included. Source: the CDB64 format. */
const pathLengthMax = 10;

/** Names under which gateways tell, and clients ask. */
const names = {
  rootId: "x-ar-io-root-transaction-id",
  path: "x-ar-io-root-path",
  itemOffsets: ["x-ar-io-root-data-item-offset", "x-ar-io-root-item-offset"],
} as const;

const offsetPattern = /^\d{1,16}$/;

/**
 * Reads a hint from headers of a request or a response.
 *
 * @returns `undefined` without a readable hint.
 */
export function readHintHeaders(headers: Headers): Hint | undefined {
  const rootId = readId(headers.get(names.rootId) ?? "");
  if (rootId === undefined) return undefined;
  const path = readPath(headers.get(names.path) ?? "");
  if (path === undefined) return undefined;
  const offsetText = names.itemOffsets.map((name) => headers.get(name)).find((text) => text !== null);
  const itemOffset = offsetText === undefined ? undefined : readOffset(offsetText);
  return { rootId, path: path[0] === rootId ? path.slice(1) : path, itemOffset };
}

/**
 * Reads a value of a CDB64 file: a map of `r` (root) or `p` (root, nested bundles), and `i` (item offset).
 *
 * @returns `undefined` for any other value.
 */
export function readHintRecord(bytes: Uint8Array): Hint | undefined {
  const record = readMessagePack(bytes);
  if (!(record instanceof Map)) return undefined;
  const [rootId, ...path] = idsOf(record) ?? [];
  if (rootId === undefined) return undefined;
  const itemOffset = record.get("i");
  if (itemOffset !== undefined && typeof itemOffset !== "number") return undefined;
  return { rootId, path, itemOffset };
}

/** The root and the bundles in it. */
function idsOf(record: PackedMap): readonly Id[] | undefined {
  const path = record.get("p");
  const values = Array.isArray(path) ? path : [record.get("r")];
  if (values.length > pathLengthMax) return undefined;
  const ids = values.map(idOf);
  return ids.includes(undefined) ? undefined : ids.filter((id) => id !== undefined);
}

function idOf(value: PackedValue | undefined): Id | undefined {
  return value instanceof Uint8Array && value.length === idSize ? idFromBytes(value) : undefined;
}

function readPath(text: string): readonly Id[] | undefined {
  const parts = text === "" ? [] : text.split(",", pathLengthMax + 1).map((part) => readId(part.trim()));
  if (parts.length > pathLengthMax || parts.includes(undefined)) return undefined;
  return parts.filter((id) => id !== undefined);
}

function readOffset(text: string | null): number | undefined {
  if (text === null || !offsetPattern.test(text)) return undefined;
  const offset = Number(text);
  return Number.isSafeInteger(offset) ? offset : undefined;
}

/** Several of one kind. */
export type HintSources = Readonly<{
  count: number;
  /** Asks one after the other; absent only when none has the item. Parameters as in `Sources.ask`. */
  find: <Value>(
    id: Id,
    check: (hint: Hint, signal: AbortSignal) => Promise<NodeResponse<Value>>,
    signal: AbortSignal,
  ) => Promise<NodeResponse<Value>>;
  close: () => void;
}>;
