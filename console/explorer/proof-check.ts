/**
 * Checks a proof in the browser, by WebCrypto alone: from a block's `tx_root` through the data trees and bundles to the
 * bytes, and the owner's signature over them. The steps are those of docs/proof.md#by-hand.
 *
 * It checks less than `cairn verify`, and says so in each such step: the block's own hash, rebased data trees, and
 * signatures that WebCrypto does not know. It never calls such a step checked.
 * @module
 */

/** The response of `GET /svc/proof/{id}`; bytes are base64url, offsets are of the root transaction's data. */
export type ProofRecord = Readonly<{
  id: string;
  kind: "transaction" | "data_item";
  size: number;
  range: Readonly<{ start: number; end: number }>;
  block: Readonly<{ height: number; hash: string; text: string }> | null;
  transaction: Readonly<{
    id: string;
    text: string;
    data_size: number;
    data_root: string;
    place: Readonly<{ weave_start: number | string; tx_path: string }> | null;
  }> | null;
  items: readonly ProofItem[];
  signature: Readonly<Record<"signature" | "owner" | "target" | "anchor" | "tags", string> & { type: number }> | null;
  chunks: readonly Readonly<{ start: number; end: number; data_path: string; chunk: string | null }>[];
}>;

type ProofItem = Readonly<{
  id: string;
  entry: Readonly<{ index: number; count: number }> | null;
  start: number;
  data_start: number;
  end: number;
  header: string;
}>;

/** "open": not checked here, with the reason in the text; "trusted": taken from the gateway. */
export type StepState = "checked" | "open" | "trusted" | "failed";

/** One step of the path from the block to the bytes. */
export type ProofStep = Readonly<{ key: string; name: string; state: StepState; text: string; hash?: string }>;

type Bytes = Uint8Array<ArrayBuffer>;

/** What a step that holds shows. */
type Done = Readonly<{ text: string; hash?: string; state?: "trusted" }>;

/** A step that does not hold; its message is the reason. */
class Fault extends Error {}
/** A step that cannot be checked here. */
class Open extends Error {}

const branchBytes = 96;
const leafBytes = 64;
const hashBytes = 32;
const indexEntryBytes = 64;

/**
 * Checks a proof. Yields each step when it is done, and ends after the first that fails.
 *
 * @param content - The bytes of the proof's range.
 */
export async function* checkProof(proof: ProofRecord, id: string, content: Bytes): AsyncGenerator<ProofStep> {
  const shared: { root?: Bytes; data?: (start: number, end: number) => Bytes } = {};
  const steps: readonly (readonly [name: string, check: () => Promise<Done>])[] = [
    ["Block", async () => await blockStep(proof, id, content)],
    [
      "Transaction",
      async () => {
        const step = await placeStep(proof);
        shared.root = fromBase64url(step.hash);
        return step;
      },
    ],
    [
      "Chunks",
      async () => {
        const step = await chunkSteps(proof, shared.root ?? new Uint8Array(), content);
        shared.data = step.read;
        return step;
      },
    ],
    ...proof.items.map(
      (item, depth) =>
        [
          depth === proof.items.length - 1 ? "Data item" : "Nested bundle",
          async () => await itemStep(proof, depth, item, shared.data),
        ] as const,
    ),
    ["Signature", async () => await signatureStep(proof, content)],
  ];
  let number = 1;
  for (const [name, check] of steps) {
    const key = `${name} ${number}`;
    number += 1;
    let step: ProofStep;
    try {
      step = { key, name, state: "checked", ...(await check()) };
    } catch (error) {
      if (error instanceof Open) step = { key, name, state: "open", text: error.message };
      else if (error instanceof Fault) step = { key, name, state: "failed", text: error.message };
      else throw error;
    }
    yield step;
    if (step.state === "failed" || (step.state === "open" && name !== "Signature")) return;
  }
}

async function blockStep({ id: shown, block, range }: ProofRecord, id: string, content: Bytes): Promise<Done> {
  require(shown === id, `The proof is about ${shown}.`);
  require(content.length === range.end - range.start, "The content is not as long as the proof says.");
  if (block === null) throw new Open("It is in no block yet.");
  const { tx_root: root } = blockFields(block.text);
  return {
    state: "trusted",
    text:
      `By one hash, block ${block.height} commits to all of its data. ` +
      "Whether this block is on the chain, a node of your own can tell.",
    hash: root,
  };
}

/** Follows the path from the block's root to the data of the transaction. @returns Its data root as `hash`. */
async function placeStep({ block, transaction }: ProofRecord) {
  if (block === null || transaction === null || transaction.place === null)
    throw new Open("The place of the transaction in its block is not shown.");
  const { tx_root: root, weave_size, block_size } = blockFields(block.text);
  const blockStart = BigInt(weave_size) - BigInt(block_size);
  const { weave_start, tx_path } = transaction.place;
  const target = BigInt(weave_start) - blockStart;
  const leaf = await followPath(fromBase64url(root), fromBase64url(tx_path), target);
  require(leaf.end - leaf.start === BigInt(transaction.data_size), "The block has data of another size there.");
  require(toBase64url(leaf.hash) === transaction.data_root, "The block commits to another data root there.");
  return { text: `The block's hash covers the data of transaction ${transaction.id}.`, hash: toBase64url(leaf.hash) };
}

/** Checks every chunk that is shown. @returns Also a function that reads proven bytes of the data. */
async function chunkSteps({ chunks, items, range }: ProofRecord, root: Bytes, content: Bytes) {
  const contentStart = (items.at(-1)?.data_start ?? 0) + range.start;
  const known: { start: number; bytes: Bytes }[] = [];
  for (const { start, end, data_path, chunk } of chunks) {
    const isWithin = contentStart <= start && end <= contentStart + content.length;
    if (chunk === null && !isWithin) continue; // withheld
    const bytes = chunk === null ? content.slice(start - contentStart, end - contentStart) : fromBase64url(chunk);
    const leaf = await followPath(root, fromBase64url(data_path), BigInt(start));
    require(equal(await sha256(bytes), leaf.hash), `The bytes ${start} to ${end} are not what the data root covers.`);
    require(leaf.start === BigInt(start) && leaf.end === BigInt(end), `Chunk ${start} to ${end} has other bounds.`);
    known.push({ start, bytes });
  }
  const read = (start: number, end: number): Bytes => {
    const found = new Uint8Array(end - start);
    let at = start;
    for (const one of known.toSorted((a, b) => a.start - b.start)) {
      const oneEnd = one.start + one.bytes.length;
      if (one.start > at || oneEnd <= at || at >= end) continue;
      const part = one.bytes.subarray(at - one.start, Math.min(oneEnd, end) - one.start);
      found.set(part, at - start);
      at += part.length;
    }
    if (at < end) throw new Open("Not all chunks are shown: one of them has other content that is blocked.");
    return found;
  };
  require(equal(read(contentStart, contentStart + content.length), content), "The chunks hold other bytes.");
  const count = known.length === 1 ? "1 chunk is" : `${known.length} chunks are`;
  return {
    text: `${count} what the transaction's hash covers, and the content is in them.`,
    hash: toBase64url(root),
    read,
  };
}

/** Checks the entry of an item in the index of its bundle, and the item's header. */
async function itemStep(
  { items, transaction }: ProofRecord,
  depth: number,
  { id, entry, start, data_start, end, header }: ProofItem,
  read: ((start: number, end: number) => Bytes) | undefined,
) {
  if (read === undefined || transaction === null) throw new Open("The chunks were not checked.");
  const around = items[depth - 1];
  const bundleStart = around?.data_start ?? 0;
  const bundleEnd = around?.end ?? transaction.data_size;
  if (entry === null) throw new Open("The index of the bundle is too large to be shown.");
  require(start >= bundleStart &&
    data_start >= start &&
    end >= data_start &&
    end <= bundleEnd, "It is not in its bundle.");
  const index = read(bundleStart, bundleStart + hashBytes + (entry.index + 1) * indexEntryBytes);
  const count = little(index.subarray(0, hashBytes));
  require(count === BigInt(entry.count), `The bundle has ${count} items.`);
  let itemStart = BigInt(bundleStart + hashBytes) + count * BigInt(indexEntryBytes);
  for (let other = 0; other < entry.index; other += 1) itemStart += sizeOf(index, other);
  const own = hashBytes + entry.index * indexEntryBytes;
  require(equal(
    index.subarray(own + hashBytes, own + indexEntryBytes),
    fromBase64url(id),
  ), "The index names another item.");
  require(itemStart === BigInt(start) &&
    itemStart + sizeOf(index, entry.index) === BigInt(end), "The index has another place.");
  require(equal(read(start, data_start), fromBase64url(header)), "The header differs from the data.");
  return { text: `Item ${entry.index + 1} of ${entry.count} in its bundle.`, hash: id };
}

function sizeOf(index: Bytes, entry: number): bigint {
  const at = hashBytes + entry * indexEntryBytes;
  return little(index.subarray(at, at + hashBytes));
}

async function signatureStep(proof: ProofRecord, content: Bytes) {
  if (proof.kind === "transaction") return await transactionSignature(proof);
  const last = proof.items.at(-1);
  const { signature } = proof;
  if (last === undefined || signature === null) throw new Open("The signature is not shown.");
  if (proof.range.start !== 0 || proof.range.end !== proof.size)
    throw new Open("A signature covers the whole content, and only a part of it was read.");
  const { type } = signature;
  const bytes = (name: "signature" | "owner" | "target" | "anchor" | "tags") => fromBase64url(signature[name]);
  const optional = (field: Bytes) => (field.length === 0 ? [Uint8Array.of(0)] : [Uint8Array.of(1), field]);
  const fields = [bytes("signature"), bytes("owner"), ...optional(bytes("target")), ...optional(bytes("anchor"))];
  const start = join([Uint8Array.of(type % 256, type >> 8), ...fields]);
  const header = fromBase64url(last.header);
  const tags = bytes("tags");
  const isHeader =
    header.length === start.length + 16 + tags.length &&
    equal(header.subarray(0, start.length), start) &&
    equal(header.subarray(start.length + 16), tags);
  require(isHeader, "The fields of the signature are not those of the header.");
  require(toBase64url(await sha256(bytes("signature"))) === proof.id, "The id is not the hash of the signature.");
  const words = ["dataitem", "1", String(type)].map(utf8);
  const message = await deepHash([...words, bytes("owner"), bytes("target"), bytes("anchor"), tags, content]);
  await verifySignature(type, bytes("owner"), message, bytes("signature"));
  return {
    text: "The owner signed exactly these bytes and tags; the id is the hash of that signature.",
    hash: proof.id,
  };
}

/** Format 2 with RSA: the signature covers the data root. */
async function transactionSignature({ transaction, id }: ProofRecord) {
  if (transaction === null) throw new Open("The transaction is not shown.");
  const fields: Readonly<Record<string, unknown>> = JSON.parse(transaction.text);
  const text = (name: string) => String(fields[name] ?? "");
  if (text("format") !== "2" || text("owner") === "")
    throw new Open('Transactions of format 1 or with ECDSA are checked by "cairn verify".');
  require(text("data_root") === transaction.data_root, "The signed data root is another one.");
  const signature = fromBase64url(text("signature"));
  require(toBase64url(await sha256(signature)) === id, "The id is not the hash of the signature.");
  const tags: unknown = fields["tags"];
  if (!Array.isArray(tags)) throw new Fault("The tags are not a list.");
  const pairs = tags.map((tag: Readonly<{ name: string; value: string }>) => [
    fromBase64url(tag.name),
    fromBase64url(tag.value),
  ]);
  const bytes = (name: string) => fromBase64url(text(name));
  const message = await deepHash([
    utf8("2"),
    bytes("owner"),
    bytes("target"),
    utf8(text("quantity")),
    utf8(text("reward")),
    bytes("last_tx"),
    pairs,
    utf8(text("data_size")),
    bytes("data_root"),
  ]);
  await verifySignature(1, bytes("owner"), message, signature);
  return {
    text: "The owner signed the data root, the size and the tags; the id is the hash of that signature.",
    hash: id,
  };
}

/** Salt lengths of published signers besides the longest possible. */
const rsaSalts = [32, 0];
const rsaType = 1;
const ed25519Types = [2, 4];
/** Solana wallets sign the message as hexadecimal text. */
const hexType = 4;

async function verifySignature(type: number, owner: Bytes, message: Bytes, signature: Bytes): Promise<void> {
  if (type === rsaType) {
    const jwk = { kty: "RSA", n: toBase64url(owner), e: "AQAB", alg: "PS256" };
    const key = await crypto.subtle.importKey("jwk", jwk, { name: "RSA-PSS", hash: "SHA-256" }, false, ["verify"]);
    for (const saltLength of [...rsaSalts, owner.length - hashBytes - 2])
      if (await crypto.subtle.verify({ name: "RSA-PSS", saltLength }, key, signature, message)) return;
    throw new Fault("The signature is not the owner's over this content.");
  }
  if (!ed25519Types.includes(type)) throw new Open(`Signatures of type ${type} are checked by "cairn verify".`);
  const key = await crypto.subtle
    .importKey("raw", owner, { name: "Ed25519" }, false, ["verify"])
    .catch((error: unknown) => {
      throw new Open(`This browser cannot check Ed25519: ${error}`);
    });
  const signed = type === hexType ? utf8(hexText(message)) : message;
  const isValid = await crypto.subtle.verify({ name: "Ed25519" }, key, signature, signed);
  require(isValid, "The signature is not the owner's over this content.");
}

type Leaf = Readonly<{ hash: Bytes; start: bigint; end: bigint }>;

/** Follows a path of a data tree to the leaf at an offset. */
async function followPath(root: Bytes, path: Bytes, target: bigint): Promise<Leaf> {
  let [id, start, rest] = [root, 0n, path];
  for (; rest.length > leafBytes; rest = rest.subarray(branchBytes)) {
    if (rest.subarray(0, hashBytes).every((byte) => byte === 0))
      throw new Open('The data tree is made of other trees (rebased). "cairn verify" checks it.');
    require(rest.length >= branchBytes + leafBytes, "A path ends in the middle of a branch.");
    const [left, right, note] = [0, 1, 2].map((part) => rest.slice(part * hashBytes, (part + 1) * hashBytes));
    if (left === undefined || right === undefined || note === undefined) throw new Fault("A path has no branch.");
    require(equal(await hashOf([left, right, note]), id), "A branch does not have the hash that covers it.");
    const middle = big(note);
    if (target >= middle) start = middle;
    id = target < middle ? left : right;
  }
  require(rest.length === leafBytes, "A path has no leaf.");
  const [hash, note] = [rest.slice(0, hashBytes), rest.slice(hashBytes)];
  require(equal(await hashOf([hash, note]), id), "A leaf does not have the hash that covers it.");
  return { hash, start, end: big(note) };
}

/** The hash of the hashes of some parts. */
async function hashOf(parts: readonly Bytes[]): Promise<Bytes> {
  return await sha256(join(await Promise.all(parts.map(sha256))));
}

type Deep = Bytes | readonly Deep[];

async function deepHash(value: Deep): Promise<Bytes> {
  if (value instanceof Uint8Array)
    return await sha384(join([await sha384(utf8(`blob${value.length}`)), await sha384(value)]));
  let hash = await sha384(utf8(`list${value.length}`));
  for (const part of value) hash = await sha384(join([hash, await deepHash(part)]));
  return hash;
}

function blockFields(text: string): Readonly<Record<"tx_root" | "weave_size" | "block_size", string>> {
  return JSON.parse(text);
}

function require(holds: boolean, reason: string): void {
  if (!holds) throw new Fault(reason);
}

async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

async function sha384(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-384", bytes));
}

function utf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

function big(bytes: Bytes): bigint {
  return BigInt(`0x${hexText(bytes)}`);
}

function hexText(bytes: Bytes): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function little(bytes: Bytes): bigint {
  return big(bytes.slice().reverse());
}

function equal(one: Bytes, other: Bytes): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

function join(parts: readonly Bytes[]): Bytes {
  const joined = new Uint8Array(parts.reduce((size, { length }) => size + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

function fromBase64url(text: string): Bytes {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

function toBase64url(bytes: Bytes): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
