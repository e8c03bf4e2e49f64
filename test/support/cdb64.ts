/**
 * Writers of what the program only reads: CDB64 files, and the MessagePack values in them.
 * Source: docs/reference/formats.md#cdb64.
 * @module
 */
import { type Id, idBytes } from "../../src/arweave/id.ts";
import { concatBytes, utf8Bytes } from "../../src/lib/bytes.ts";
import { cdb64Hash, cdb64HeaderSize } from "../../src/lib/cdb64.ts";

/** A value to be packed; keys of a map in their order. */
export type Packable = number | string | Uint8Array | readonly Packable[] | { readonly [key: string]: Packable };

/** Packs a value as the published writer does: a whole number beyond 32 bits becomes a float. */
export function writeMessagePack(value: Packable): Uint8Array {
  if (typeof value === "number") return packNumber(value);
  if (typeof value === "string") {
    const text = utf8Bytes(value);
    return concatBytes([text.length < 32 ? bytesOf(0xa0 | text.length) : bytesOf(0xd9, text.length), text]);
  }
  if (value instanceof Uint8Array) return concatBytes([bytesOf(0xc4, value.length), value]);
  if (Array.isArray(value)) return concatBytes([bytesOf(0x90 | value.length), ...value.map(writeMessagePack)]);
  const members = Object.entries(value);
  return concatBytes([
    bytesOf(0x80 | members.length),
    ...members.flatMap(([key, part]) => [writeMessagePack(key), writeMessagePack(part)]),
  ]);
}

function packNumber(value: number): Uint8Array {
  if (value < 0x80) return bytesOf(value);
  const bytes = new Uint8Array(9);
  const view = new DataView(bytes.buffer);
  if (value < 2 ** 32) {
    bytes[0] = 0xce;
    view.setUint32(1, value);
    return bytes.subarray(0, 5);
  }
  bytes[0] = 0xcb;
  view.setFloat64(1, value);
  return bytes;
}

function bytesOf(...bytes: number[]): Uint8Array {
  return Uint8Array.from(bytes);
}

/** Writes a file of records; a key that comes twice is there twice, and the first is found. */
export function writeCdb64(records: readonly (readonly [key: Uint8Array, value: Uint8Array])[]): Uint8Array {
  const parts: Uint8Array[] = [];
  const tables = Array.from({ length: 256 }, (): { hash: bigint; place: bigint }[] => []);
  let at = cdb64HeaderSize;
  for (const [key, value] of records) {
    const hash = cdb64Hash(key);
    tables[Number(hash % 256n)]?.push({ hash, place: BigInt(at) });
    const record = concatBytes([numberBytes(BigInt(key.length), BigInt(value.length)), key, value]);
    parts.push(record);
    at += record.length;
  }
  const header: Uint8Array[] = [];
  for (const entries of tables) {
    const slots = entries.length * 2;
    header.push(numberBytes(BigInt(at), BigInt(slots)));
    const table = writeTable(entries, slots);
    parts.push(table);
    at += table.length;
  }
  return concatBytes([...header, ...parts]);
}

function writeTable(entries: readonly { hash: bigint; place: bigint }[], slots: number): Uint8Array {
  const filled: ({ hash: bigint; place: bigint } | undefined)[] = Array.from({ length: slots });
  for (const entry of entries) {
    let slot = Number((entry.hash / 256n) % BigInt(slots));
    while (filled[slot] !== undefined) slot = (slot + 1) % slots;
    filled[slot] = entry;
  }
  return concatBytes(filled.map((entry) => numberBytes(entry?.hash ?? 0n, entry?.place ?? 0n)));
}

/** Writes an index of items by id. */
export function writeRootIndex(
  records: readonly (readonly [id: Id, value: Readonly<Record<string, Packable>>])[],
): Uint8Array {
  return writeCdb64(records.map(([id, value]) => [idBytes(id), writeMessagePack(value)]));
}

function numberBytes(...numbers: bigint[]): Uint8Array {
  const bytes = new Uint8Array(numbers.length * 8);
  const view = new DataView(bytes.buffer);
  for (const [index, number] of numbers.entries()) view.setBigUint64(index * 8, number, true);
  return bytes;
}
