/**
 * JSON with one thing wrong in it: a byte of a binary field, a number, an id.
 * @module
 */

/** What a JSON text may mean. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** The fields of a proof that hold bytes. */
const binary = new Set([
  "tx_path",
  "data_path",
  "data_root",
  "chunk",
  "header",
  "signature",
  "owner",
  "target",
  "anchor",
  "tags",
]);

/**
 * Every text of the proof in which one bit of one byte of a binary field is another, with the field's name.
 *
 * @param isWanted - Asked before each, since each is a copy of all.
 */
export function* everyByte(proof: Json, isWanted: () => boolean): Generator<readonly [string, string]> {
  for (const [path, value] of leavesOf(proof)) {
    if (typeof value !== "string" || !binary.has(String(path.at(-1)))) continue;
    const bytes = Buffer.from(value, "base64url");
    const text = JSON.stringify(put(proof, path, marker));
    const [before = "", after = ""] = text.split(marker);
    for (const at of bytes.keys()) {
      if (!isWanted()) continue;
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8));
      yield [`${path.join(".")} byte ${at}`, before + bytes.toString("base64url") + after];
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8));
    }
  }
}

const marker = "~here~";

/** Every text in which one number, text or truth is another of its kind. */
export function* everyLeaf(json: Json, isApart: (path: string) => boolean): Generator<readonly [string, string]> {
  for (const [path, value] of leavesOf(json)) {
    const name = path.join(".");
    if (isApart(name)) continue;
    for (const other of othersThan(value)) {
      yield [
        `${name}: ${String(value).slice(0, 50)} → ${String(other).slice(0, 50)}`,
        JSON.stringify(put(json, path, other)),
      ];
    }
  }
}

/** What a value is changed to: one more and one less, or another byte at the front and at the end. */
function othersThan(value: Json): Json[] {
  if (typeof value === "number") return [value + 1, value - 1];
  if (typeof value === "boolean") return [!value];
  if (typeof value !== "string") return [];
  if (/^\d+$/.test(value)) return [`${BigInt(value) + 1n}`, `${BigInt(value) - 1n}`];
  const bytes = Buffer.from(value, "base64url");
  if (bytes.length === 0 || bytes.toString("base64url") !== value) return [`${value}A`];
  return [0, bytes.length - 1].map((at) => {
    const other = Buffer.from(bytes);
    other[at] = (other[at] ?? 0) ^ 16;
    return other.toString("base64url");
  });
}

type Path = readonly (string | number)[];

function* leavesOf(json: Json, path: Path = []): Generator<readonly [Path, Json]> {
  if (typeof json !== "object" || json === null) yield [path, json];
  else for (const [key, part] of Object.entries(json)) yield* leavesOf(part, [...path, key]);
}

function put(json: Json, path: Path, value: Json): Json {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  const part = json as Record<string | number, Json>;
  const changed = put(part[key] ?? null, rest, value);
  return Array.isArray(json)
    ? json.map((each, index) => (String(index) === key ? changed : each))
    : { ...part, [key]: changed };
}
