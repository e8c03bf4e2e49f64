/**
 * The text of the operator's names: a JSON object of names with their ids.
 *
 * ```json
 * { "docs": "<id>",
 *   "app": { "id": "<id>", "ttlSeconds": 60, "undernameLimit": 2, "undernames": { "beta": "<id>" } } }
 * ```
 * @module
 */
import { readId } from "../../arweave/id.ts";
import { type NameRecord, ttlSecondsDefault, ttlSecondsMax } from "../../chain/name-gateways.ts";
import { Failure } from "../../failures.ts";
import { isJsonObject, type JsonObject, type JsonValue, readJson, repeatedKey } from "../../lib/json.ts";
import { baseRecord, readName } from "./name.ts";

export type GivenNames = Readonly<{
  /** By whole name, undernames included. */
  records: ReadonlyMap<string, NameRecord>;
  /** Base names: undernames of them that the file does not have are absent. */
  bases: ReadonlySet<string>;
}>;

const recordKeys: ReadonlySet<string> = new Set(["id", "ttlSeconds", "processId", "undernames", "undernameLimit"]);
const undernameKeys: ReadonlySet<string> = new Set(["id", "ttlSeconds", "index"]);
const processIdPattern = /^[A-Za-z0-9_-]{1,64}$/;

/** Largest undername limit of a base name. */
const undernamesMax = 1_000_000;

type Shared = Pick<NameRecord, "processId" | "limit">;

/**
 * Reads the text.
 *
 * @throws Failure `malformed_input` with the place of the first fault in `context.reason`.
 */
export function readNamesText(text: string): GivenNames {
  const names = readJson(text);
  if (!isJsonObject(names)) throw fault("$", "must be a JSON object of names");
  const repeated = repeatedKey(text);
  if (repeated !== undefined) throw fault(repeated, "is defined twice");
  const records = new Map<string, NameRecord>();
  const bases = new Set<string>();
  for (const [given, value] of Object.entries(names)) {
    const path = `$.${given}`;
    const name = readName(given);
    if (name === undefined || name.record !== baseRecord || name.text !== name.base)
      throw fault(path, 'must be a name of at most 63 characters: a to z, digits and "-"');
    if (bases.has(name.base)) throw fault(path, "is defined twice");
    bases.add(name.base);
    readBase(name.base, value, path, records);
  }
  return { records, bases };
}

function readBase(base: string, value: JsonValue, path: string, records: Map<string, NameRecord>): void {
  const fields = fieldsOf(value, recordKeys, path);
  const { processId, undernames = {}, undernameLimit } = fields;
  if (processId !== undefined && (typeof processId !== "string" || !processIdPattern.test(processId)))
    throw fault(`${path}.processId`, "must be the id of a process");
  if (!isJsonObject(undernames)) throw fault(`${path}.undernames`, "must be an object of undernames");
  const limit = countOf(undernameLimit, 0, undernamesMax, `${path}.undernameLimit`);
  const shared: Shared = {
    ...(processId === undefined ? {} : { processId }),
    ...(limit === undefined ? {} : { limit }),
  };
  records.set(base, { ...recordOf(fields, path), ...shared, index: 0 });
  for (const [position, [under, given]] of Object.entries(undernames).entries()) {
    const at = `${path}.undernames.${under}`;
    const name = readName(`${under}_${base}`);
    if (name === undefined || under === "" || records.has(name.text))
      throw fault(at, "must be an undername that fits into a host with its name, and be unique");
    const own = fieldsOf(given, undernameKeys, at);
    const index = countOf(own["index"], 1, undernamesMax, `${at}.index`) ?? position + 1;
    records.set(name.text, { ...recordOf(own, at), ...shared, index });
  }
}

/** An id alone is a complete record. */
function fieldsOf(value: JsonValue, keys: ReadonlySet<string>, path: string): JsonObject {
  if (typeof value === "string") return { id: value };
  if (!isJsonObject(value)) throw fault(path, "must be an id, or an object with one");
  const unknown = Object.keys(value).find((key) => !keys.has(key));
  if (unknown !== undefined) throw fault(`${path}.${unknown}`, `is unknown: expected one of ${[...keys].join(", ")}`);
  return value;
}

function recordOf({ id: text, ttlSeconds }: JsonObject, path: string): Pick<NameRecord, "id" | "ttlSeconds"> {
  const id = typeof text === "string" ? readId(text) : undefined;
  if (id === undefined) throw fault(path, "must have an id of 43 base64url characters");
  const ttl = countOf(ttlSeconds, 1, ttlSecondsMax, `${path}.ttlSeconds`);
  return { id, ttlSeconds: ttl ?? ttlSecondsDefault };
}

function countOf(value: JsonValue | undefined, min: number, max: number, path: string): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max)
    throw fault(path, `must be a whole number from ${min} to ${max}`);
  return value;
}

function fault(path: string, reason: string): Failure {
  return new Failure("malformed_input", { reason: `${path} ${reason}` });
}
