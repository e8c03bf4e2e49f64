/**
 * Makes signed data items of Arweave wallets in a browser.
 * Source: ANS-104 §2 and §3; Avro 1.11 "Arrays"; docs/reference/signatures.md.
 * @module
 */
import { type Bytes, deepHash, join, sha256, toBase64url, utf8 } from "../verify/bytes.ts";

export type Tag = Readonly<{ name: string; value: string }>;

/** An item that is ready to be sent. */
export type SignedItem = Readonly<{ id: string; bytes: Blob }>;

/** Signs a deep hash with an Arweave key of 4096 bits. */
export type SignHash = (hash: Bytes) => Promise<Bytes>;

/** RSA of 4096 bits: type, signature, owner. Bytes. */
const signatureType = 1;
const signatureSize = 512;
const ownerSize = 512;
const signatureAt = 2;

/** The size of an item with these tags, bytes. */
export function itemSize(dataSize: number, tags: readonly Tag[]): number {
  return headerSize + writeTags(tags).length + dataSize;
}

/** Type, signature, owner, no target, no anchor, and the two counts of tags. */
const headerSize = signatureAt + signatureSize + ownerSize + 2 + 16;

/** Signs an item. @param owner - The modulus of the key. */
export async function signItem(
  data: Blob,
  tags: readonly Tag[],
  { owner, sign }: Readonly<{ owner: Bytes; sign: SignHash }>,
): Promise<SignedItem> {
  const section = writeTags(tags);
  const content = new Uint8Array(await data.arrayBuffer());
  const words = ["dataitem", "1", String(signatureType)].map(utf8);
  const none = new Uint8Array(0);
  const signature = await sign(await deepHash([...words, owner, none, none, section, content]));
  const type = Uint8Array.of(signatureType, 0);
  const header = join([
    type,
    signature,
    owner,
    Uint8Array.of(0, 0),
    count(tags.length),
    count(section.length),
    section,
  ]);
  return { id: toBase64url(await sha256(signature)), bytes: new Blob([header, data]) };
}

/** The item that a wallet has signed. @throws Error when the bytes are not an item of an Arweave key. */
export async function readSignedItem(bytes: Bytes): Promise<SignedItem> {
  if (bytes[0] !== signatureType || bytes[1] !== 0 || bytes.length <= headerSize)
    throw new Error("The wallet returned something that is not a data item.");
  const signature = bytes.slice(signatureAt, signatureAt + signatureSize);
  return { id: toBase64url(await sha256(signature)), bytes: new Blob([bytes]) };
}

/** Tags as Avro: an array of records of two strings. */
function writeTags(tags: readonly Tag[]): Bytes {
  if (tags.length === 0) return new Uint8Array(0);
  const text = (value: string) => {
    const bytes = utf8(value);
    return join([long(bytes.length), bytes]);
  };
  return join([long(tags.length), ...tags.flatMap(({ name, value }) => [text(name), text(value)]), long(0)]);
}

/** Avro's form of a number that is not negative: seven bits a byte, the lowest first. */
function long(value: number): Bytes {
  const bytes: number[] = [];
  let rest = value * 2;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Uint8Array.from([...bytes, rest]);
}

/** Eight bytes, little-endian. */
function count(value: number): Bytes {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}
