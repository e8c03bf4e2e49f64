/**
 * A transaction as a client posted it: its JSON read the way a node reads it, with what a node says of each fault.
 *
 * Data goes apart from the rest, and is cut out of a long text before that is parsed: 15 MiB are never handled as one.
 * Source: ArweaveTeam/arweave, ar_http_iface_middleware (post_tx_parse_id), ar_serialize (json_struct_to_tx).
 * @module
 */
import { readTransactionHeader, type Transaction } from "../../arweave/transaction.ts";
import { opensMoreThan } from "../../arweave/wire.ts";
import { Failure } from "../../failures.ts";
import { decodedSize } from "../../lib/base64url.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, readJson, writeJson } from "../../lib/json.ts";
import { type Fault, type FaultCode, inlineDataBytesMax, tagsBytesMax, tagsCountMax } from "./rules.ts";

/** A posted text, parsed. */
export type PostedTransaction =
  | Readonly<{
      kind: "read";
      transaction: Transaction /* without its data, whose size it states also in format 1 */;
      data: string /* that came with it, base64url that nobody has read yet; or "" */;
    }>
  | Readonly<{ kind: "invalid_json"; reason: string }>
  | Readonly<{ kind: "invalid_hash" }>
  | Readonly<{ kind: "invalid_signature_type"; reason: string }>
  | Readonly<{ kind: "faulty"; id: string; faults: readonly Fault[] }>;

/** Texts above this are searched for their data instead of being parsed with it. Nothing else needs so much. */
const parsedWholeMax = 2 ** 20;

/** Lists, and objects, that a post may open: twice the tags that fit. */
const openingsMax = 4_096;

const idCharacters = 43;

/** Fields that are base64url: the most bytes, and what a node says of more. */
const byteFields: readonly (readonly [key: string, max: number, code: FaultCode])[] = [
  ["last_tx", 48, "tx_fields_too_large"],
  ["owner", 512, "tx_fields_too_large"],
  ["signature", 512, "tx_fields_too_large"],
  ["data_root", 32, "tx_fields_too_large"],
  ["target", 32, "invalid_target_length"],
];

const amountFields: readonly (readonly [key: string, code: FaultCode])[] = [
  ["quantity", "quantity_negative"],
  ["data_size", "tx_data_size_negative"],
];

/** Reads a posted text. Never throws for what a client may send. */
export function readPosted(text: string): PostedTransaction {
  const [shell, cutData] = text.length > parsedWholeMax ? cutOutData(text) : [text, undefined];
  if (shell.length > parsedWholeMax || opensMoreThan(shell, openingsMax))
    return { kind: "invalid_json", reason: "the body is too large for what it is besides its data" };
  const json = readJson(shell);
  if (!isJsonObject(json)) return { kind: "invalid_json", reason: "the body is no JSON object" };
  const data = cutData ?? json["data"] ?? "";
  if (typeof data !== "string") return { kind: "invalid_json", reason: "data is no text" };
  const fields = normalised(json, data);
  const wrong = ["id", ...byteFields.map(([key]) => key)].find((key) => typeof fields[key] !== "string");
  if (wrong !== undefined) return { kind: "invalid_json", reason: `${wrong} is no text` };
  const id = `${fields["id"]}`;
  if (id.length > idCharacters) return { kind: "invalid_hash" };
  const faults = earlyFaults(fields, data);
  return faults.length > 0 ? { kind: "faulty", id, faults } : readNormalised(fields, data);
}

/** The fields as a node writes them, in its order and without the data; those it does not know are left out. */
function normalised(json: JsonObject, data: string): JsonObject {
  const isFirst = isFirstFormat(json);
  return {
    format: isFirst ? 1 : json["format"] === "2" ? 2 : (json["format"] ?? 1),
    id: json["id"] ?? null,
    last_tx: json["last_tx"] ?? null,
    owner: json["owner"] ?? null,
    tags: namedTags(json["tags"]),
    target: json["target"] ?? null,
    quantity: decimalText(json["quantity"]),
    data: "",
    data_size: isFirst ? `${decodedSize(data)}` : decimalText(json["data_size"]),
    data_tree: [],
    data_root: isFirst ? "" : (json["data_root"] ?? ""),
    reward: decimalText(json["reward"]),
    signature: json["signature"] ?? null,
    ...(json["denomination"] === undefined ? {} : { denomination: decimalText(json["denomination"]) }),
  };
}

function readNormalised(fields: JsonObject, data: string): PostedTransaction {
  try {
    return { kind: "read", transaction: readTransactionHeader(writeJson(fields)), data };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const reason = `${error.context["reason"]}`;
    const kind = reason.startsWith("owner is empty") ? "invalid_signature_type" : "invalid_json";
    return { kind, reason };
  }
}

/** Faults that a strict parser rejects as malformed, but that a node names. */
function earlyFaults(fields: JsonObject, data: string): Fault[] {
  const negative = amountFields
    .filter(([key]) => /^-\d+$/.test(`${fields[key]}`))
    .map(([key, code]) => ({ code, detail: `${key} is ${fields[key]}` }));
  const large = byteFields
    .filter(([key, max]) => sizeOf(fields[key]) > max)
    .map(([key, max, code]) => ({
      code,
      detail: `${sizeOf(fields[key])} bytes of ${key}, at most ${max}`,
    }));
  return [...negative, ...large, ...tagFaults(fields["tags"]), ...dataFaults(fields, data)];
}

function tagFaults(tags: JsonValue | undefined): Fault[] {
  if (!isJsonArray(tags)) return [];
  const parts = tags.flatMap((tag) => (isJsonObject(tag) ? [tag["name"], tag["value"]] : []));
  const size = parts.reduce<number>((sum, part) => sum + sizeOf(part), 0);
  if (size <= tagsBytesMax && tags.length <= tagsCountMax) return [];
  return [{ code: "tx_fields_too_large", detail: `${tags.length} tags of ${size} bytes, at most ${tagsBytesMax}` }];
}

function dataFaults(fields: JsonObject, data: string): Fault[] {
  const size = decodedSize(data);
  if (!isFirstFormat(fields) || size <= inlineDataBytesMax) return [];
  return [{ code: "tx_fields_too_large", detail: `${size} bytes of data, at most ${inlineDataBytesMax}` }];
}

/** A node leaves out of account what is not a name and a value. */
function namedTags(tags: JsonValue | undefined): readonly JsonValue[] {
  if (!isJsonArray(tags)) return [];
  return tags.filter((tag) => isJsonObject(tag) && Object.keys(tag).join() === "name,value");
}

function isFirstFormat(fields: JsonObject): boolean {
  const { format } = fields;
  return format === undefined || format === 1 || format === "1";
}

function decimalText(value: JsonValue | undefined): JsonValue {
  return typeof value === "number" || typeof value === "bigint" ? `${value}` : (value ?? "0");
}

function sizeOf(value: JsonValue | undefined): number {
  return typeof value === "string" ? decodedSize(value) : 0;
}

/** Splits a long text into the JSON without its data, and the data. */
function cutOutData(text: string): [shell: string, data: string | undefined] {
  const key = text.indexOf('"data"');
  const opening = key === -1 ? -1 : text.indexOf('"', key + 6);
  const closing = opening === -1 ? -1 : text.indexOf('"', opening + 1);
  if (closing === -1 || text.slice(key + 6, opening).trim() !== ":") return [text, undefined];
  return [text.slice(0, opening + 1) + text.slice(closing), text.slice(opening + 1, closing)];
}
