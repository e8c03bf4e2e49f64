/**
 * Items of benches of the index, by number: the same in every run.
 *
 * They are as on the chain: 8 tags, of which 4 are common, a unique entity, a folder shared by 20 items, a time and a
 * hash; one in ten has a target; 10,000 owners.
 * @module
 */
import { addressOf, idFromBytes } from "../../src/arweave/id.ts";
import type { Tag } from "../../src/arweave/tags.ts";
import type { ItemRow } from "../../src/store/index/index-types.ts";

/** Size of an item in its bundle, bytes. */
export const itemBytes = 1_024;
export const itemsPerBlock = 50_000;
/** Of the first item. */
export const firstHeight = 1_000_000;

/** The height of the block of an item. */
export function heightOf(number: number): number {
  return firstHeight + Math.floor(number / itemsPerBlock);
}

/** Number of owners. */
export const ownersMax = 10_000;
const owners = new Map<number, Readonly<{ key: Uint8Array; address: ReturnType<typeof addressOf> }>>();

export function ownerOf(number: number) {
  const known = owners.get(number);
  if (known !== undefined) return known;
  const key = new Uint8Array(512);
  new DataView(key.buffer).setUint32(0, number);
  const owner = { key, address: addressOf(key) };
  owners.set(number, owner);
  return owner;
}

export function digestOf(text: string): Uint8Array {
  return new Bun.CryptoHasher("sha256").update(text).digest();
}

/** A pseudorandom number of 24 bits that is the same in every run. */
function scatter(number: number, salt: number): number {
  return Math.imul(number + salt * 7_919, 2_654_435_761) >>> 8;
}

/** A pseudorandom number from 0 to `count` that is the same in every run. @param count - At most 2^32; not reached. */
export function scatterBelow(count: number, number: number, salt: number): number {
  const share = (Math.imul(number + salt * 7_919, 2_654_435_761) >>> 0) / 2 ** 32;
  return Math.floor(share * count);
}

const appNames = ["ArDrive-App", "Bench", "Other", "Rare"];

function tagsOf(number: number): Tag[] {
  const app = scatter(number, 1) % 100;
  return [
    { name: "App-Name", value: appNames[app < 60 ? 0 : app < 90 ? 1 : app < 99 ? 2 : 3] ?? "" },
    { name: "App-Version", value: `2.${scatter(number, 2) % 12}.0` },
    { name: "Content-Type", value: scatter(number, 3) % 10 < 6 ? "application/json" : "image/png" },
    { name: "Entity-Type", value: scatter(number, 4) % 13 === 0 ? "folder" : "file" },
    { name: "File-Id", value: Buffer.from(digestOf(`file ${number}`)).toString("base64url") },
    { name: "Folder-Id", value: folderOf(number) },
    { name: "Unix-Time", value: String(1_600_000_000 + Math.floor(number / 4)) },
    { name: "Data-Hash", value: Buffer.from(digestOf(`data ${number}`)).toString("hex") },
  ];
}

export function folderOf(number: number): string {
  return Buffer.from(digestOf(`folder ${Math.floor(number / 20)}`)).toString("base64url");
}

export function itemOf(number: number): ItemRow {
  const owner = ownerOf(scatter(number, 5) % ownersMax);
  const hasTarget = number % 10 === 0;
  return {
    place: { height: heightOf(number), txIndex: 0, offset: 64_000 + (number % itemsPerBlock) * itemBytes },
    id: idFromBytes(digestOf(`item ${number}`)),
    parentOffset: null,
    signatureType: 1,
    owner: owner.key,
    ownerAddress: owner.address,
    target: hasTarget ? ownerOf(scatter(number, 6) % ownersMax).address : "",
    anchor: "",
    tags: tagsOf(number),
    headerSize: 1_044 - 300,
    size: 200,
    digest: digestOf(`payload ${number}`),
  };
}
