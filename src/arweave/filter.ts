/**
 * Filters choose the transactions and data items that an operator wants. A filter is JSON; unknown keys are errors.
 *
 * Every object of a filter has exactly one key. An error names the path of the invalid part. Two filters are equal
 * when their canonical texts are.
 *
 * Attributes have the names and types of the JSON: amounts and sizes of a transaction are decimal text, those of a
 * data item are numbers.
 * Source: docs/reference/gateway.md#filters; RFC 8785 (canonical JSON); reference gateway, normalised forms of
 * both.
 * @module
 */
import { Failure } from "../failures.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import { utf8Bytes } from "../lib/bytes.ts";
import { sha256 } from "../lib/hash.ts";
import { isJsonArray, isJsonObject, type JsonValue, readJson, repeatedKey } from "../lib/json.ts";
import type { ItemHeader } from "./data-item.ts";
import type { Id } from "./id.ts";
import { type Tag, tagValue } from "./tags.ts";
import type { Transaction } from "./transaction.ts";

/** A condition on a tag. Without `value` and `valueStartsWith` the name suffices. Case-sensitive. */
export type TagCondition = Readonly<{ name: string; value?: string; valueStartsWith?: string }>;

/** A parsed filter. */
export type Filter =
  | Readonly<{ kind: "always" | "never" | "isNestedBundle" }>
  | Readonly<{ kind: "and" | "or"; filters: readonly Filter[] }>
  | Readonly<{ kind: "not"; filter: Filter }>
  | Readonly<{ kind: "tags"; conditions: readonly TagCondition[] }>
  | Readonly<{ kind: "attributes"; attributes: readonly (readonly [string, AttributeValue])[] }>
  | Readonly<{ kind: "hashPartition"; count: number; key: string; targets: readonly number[] }>;

export type AttributeValue = string | number | boolean | null;

/** A transaction or data item that a filter is applied to. */
export type FilterSubject = Readonly<{
  tags: readonly Tag[];
  /** True for a data item, which has a parent; false for a transaction. */
  hasParent: boolean;
  /** The field with this name (`owner_address`, `data_size`…); `undefined` when the subject lacks it. */
  attribute(name: string): unknown;
}>;

/** Most characters of a filter's text; a long list of owners still fits. */
export const filterLengthMax = 1_048_576;

/** Most levels of `and`, `or` and `not`. */
export const filterDepthMax = 32;

const kinds = ["tags", "attributes", "isNestedBundle", "not", "and", "or", "never", "always", "hashPartition"];

/**
 * Reads a filter.
 *
 * @param text - JSON.
 * @throws Failure `malformed_input` with `context.path` (such as `$.and[0].tags`) and `context.reason`.
 */
export function readFilter(text: string): Filter {
  if (text.length > filterLengthMax) throw fault("$", `is longer than ${filterLengthMax} characters`);
  const value = readJson(text);
  if (value === undefined) throw fault("$", "is not valid JSON");
  const repeated = repeatedKey(text);
  if (repeated !== undefined) throw fault(repeated, "occurs twice");
  return readNode(value, "$", 0);
}

/** Whether a filter chooses a subject. */
export function matches(filter: Filter, subject: FilterSubject): boolean {
  switch (filter.kind) {
    case "always":
      return true;
    case "never":
      return false;
    case "isNestedBundle":
      return subject.hasParent;
    case "and":
      return filter.filters.every((part) => matches(part, subject));
    case "or":
      return filter.filters.some((part) => matches(part, subject));
    case "not":
      return !matches(filter.filter, subject);
    case "tags":
      return filter.conditions.every((condition) => subject.tags.some((tag) => meets(tag, condition)));
    case "attributes":
      return filter.attributes.every(([name, value]) => subject.attribute(name) === value);
    case "hashPartition":
      return isInPartition(subject.attribute(filter.key), filter.count, filter.targets);
  }
}

/** Writes a filter as canonical text: sorted keys, no white space. */
export function canonical(filter: Filter): string {
  switch (filter.kind) {
    case "always":
    case "never":
    case "isNestedBundle":
      return `{"${filter.kind}":true}`;
    case "and":
    case "or":
      return `{"${filter.kind}":[${filter.filters.map(canonical).join(",")}]}`;
    case "not":
      return `{"not":${canonical(filter.filter)}}`;
    case "tags":
      return `{"tags":[${filter.conditions.map((condition) => writeSorted(Object.entries(condition))).join(",")}]}`;
    case "attributes":
      return `{"attributes":${writeSorted(filter.attributes)}}`;
    case "hashPartition":
      return `{"hashPartition":${writeSorted([
        ["partitionCount", filter.count],
        ["partitionKey", filter.key],
        ["targetPartitions", filter.targets],
      ])}}`;
  }
}

function meets(tag: Tag, { name, value, valueStartsWith }: TagCondition): boolean {
  if (tag.name !== name) return false;
  if (value !== undefined) return tag.value === value;
  return valueStartsWith === undefined || tag.value.startsWith(valueStartsWith);
}

/** The first six bytes of the value's SHA-256, big-endian, modulo the count. */
function isInPartition(value: unknown, count: number, targets: readonly number[]): boolean {
  if (typeof value !== "string") return false;
  const hash = sha256(utf8Bytes(value));
  let number = 0;
  for (let index = 0; index < 6; index += 1) number = number * 256 + (hash[index] ?? 0);
  return targets.includes(number % count);
}

function readNode(value: JsonValue, path: string, depth: number): Filter {
  if (depth > filterDepthMax) throw fault(path, `nests deeper than ${filterDepthMax}`);
  const [kind, content] = readOnlyMember(value, path);
  const place = `${path}.${kind}`;
  switch (kind) {
    case "always":
    case "never":
    case "isNestedBundle":
      if (content !== true) throw fault(place, "must be true");
      return { kind };
    case "and":
    case "or":
      return {
        kind,
        filters: readList(content, place).map((part, index) => readNode(part, `${place}[${index}]`, depth + 1)),
      };
    case "not":
      return { kind, filter: readNode(content, place, depth + 1) };
    case "tags":
      return {
        kind,
        conditions: readList(content, place).map((part, index) => readCondition(part, `${place}[${index}]`)),
      };
    case "attributes":
      return { kind, attributes: readAttributes(content, place) };
    case "hashPartition":
      return readPartition(content, place);
    default:
      throw fault(place, `is unknown; there are ${kinds.join(", ")}`);
  }
}

function readOnlyMember(value: JsonValue, path: string): readonly [string, JsonValue] {
  if (!isJsonObject(value)) throw fault(path, "must be an object");
  const members = Object.entries(value);
  const [first] = members;
  if (first === undefined || members.length > 1) {
    throw fault(path, `must have exactly one key, got ${members.map(([key]) => key).join(", ") || "none"}`);
  }
  return first;
}

function readList(value: JsonValue, path: string): readonly JsonValue[] {
  if (!isJsonArray(value)) throw fault(path, "must be a list");
  if (value.length === 0) throw fault(path, "must not be empty");
  return value;
}

function readCondition(value: JsonValue, path: string): TagCondition {
  const condition = readMembers(value, path, ["name", "value", "valueStartsWith"]);
  const name = readText(condition.get("name"), `${path}.name`);
  const exact = condition.get("value");
  const start = condition.get("valueStartsWith");
  if (exact !== undefined && start !== undefined) throw fault(path, "has both value and valueStartsWith");
  if (exact !== undefined) return { name, value: readText(exact, `${path}.value`) };
  if (start !== undefined) return { name, valueStartsWith: readText(start, `${path}.valueStartsWith`) };
  return { name };
}

function readAttributes(value: JsonValue, path: string): readonly (readonly [string, AttributeValue])[] {
  if (!isJsonObject(value)) throw fault(path, "must be an object");
  const members = Object.entries(value);
  if (members.length === 0) throw fault(path, "must not be empty");
  return members.map(([name, part]) => {
    if (typeof part === "object" && part !== null) throw fault(`${path}.${name}`, "must be a plain value");
    if (typeof part === "bigint") throw fault(`${path}.${name}`, "must be within 2^53");
    return [name, part];
  });
}

function readPartition(value: JsonValue, path: string): Filter {
  const members = readMembers(value, path, ["partitionCount", "partitionKey", "targetPartitions"]);
  const count = readWhole(members.get("partitionCount"), `${path}.partitionCount`, 1, Number.MAX_SAFE_INTEGER);
  const key = readText(members.get("partitionKey"), `${path}.partitionKey`);
  const list = `${path}.targetPartitions`;
  const targets = readList(members.get("targetPartitions") ?? null, list).map((target, index) =>
    readWhole(target, `${list}[${index}]`, 0, count - 1),
  );
  return { kind: "hashPartition", count, key, targets };
}

function readMembers(value: JsonValue, path: string, known: readonly string[]): ReadonlyMap<string, JsonValue> {
  if (!isJsonObject(value)) throw fault(path, "must be an object");
  const members = Object.entries(value);
  const stranger = members.find(([key]) => !known.includes(key));
  if (stranger !== undefined) throw fault(`${path}.${stranger[0]}`, `is unknown; there are ${known.join(", ")}`);
  return new Map(members);
}

function readText(value: JsonValue | undefined, path: string): string {
  if (typeof value !== "string") throw fault(path, "must be a text");
  return value;
}

/** @param least - Inclusive, as is `most`. */
function readWhole(value: JsonValue | undefined, path: string, least: number, most: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value;
  throw fault(path, `must be a whole number, ${least} to ${most}`);
}

/** Members in the order of RFC 8785: by UTF-16 code units. */
function writeSorted(members: readonly (readonly [string, unknown])[]): string {
  const sorted = members.toSorted(([left], [right]) => (left < right ? -1 : 1));
  return `{${sorted.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(",")}}`;
}

function fault(path: string, reason: string): Failure {
  return new Failure("malformed_input", { path, reason: `${path} ${reason}` });
}

/** The place of a data item: its payload's size in bytes, its bundle, and its root transaction. */
export type ItemSurroundings = Readonly<{ dataSize: number; parentId: Id; rootId: Id }>;

/** A data item as a filter's subject. */
export function itemSubject(header: ItemHeader, surroundings: ItemSurroundings): FilterSubject {
  return {
    tags: header.tags,
    hasParent: true,
    attribute: (name) => itemAttribute(header, surroundings, name),
  };
}

/** A transaction as a filter's subject. */
export function transactionSubject(transaction: Transaction): FilterSubject {
  return {
    tags: transaction.tags,
    hasParent: false,
    attribute: (name) => transactionAttribute(transaction, name),
  };
}

function itemAttribute(header: ItemHeader, around: ItemSurroundings, name: string): unknown {
  switch (name) {
    case "id":
      return header.id;
    case "signature":
      return encodeBase64url(header.signature);
    case "signature_type":
      return header.signatureType;
    case "owner":
      return encodeBase64url(header.owner);
    case "owner_address":
      return header.ownerAddress;
    case "target":
      return header.target;
    case "anchor":
      return header.anchor;
    case "content_type":
      return tagValue(header.tags, "Content-Type");
    case "data_size":
      return around.dataSize;
    case "parent_id":
      return around.parentId;
    case "root_tx_id":
      return around.rootId;
    default:
      return undefined;
  }
}

function transactionAttribute(transaction: Transaction, name: string): unknown {
  switch (name) {
    case "id":
      return transaction.id;
    case "signature":
      return transaction.signature;
    case "format":
      return transaction.format;
    case "last_tx":
      return transaction.lastTx;
    case "owner":
      return transaction.owner;
    case "owner_address":
      return transaction.ownerAddress;
    case "target":
      return transaction.target;
    case "quantity":
      return String(transaction.quantity);
    case "reward":
      return String(transaction.reward);
    case "data_size":
      return String(transaction.dataSize);
    case "data_root":
      return transaction.dataRoot;
    case "content_type":
      return tagValue(transaction.tags, "Content-Type");
    default:
      return undefined;
  }
}
