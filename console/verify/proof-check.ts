/**
 * Checks a proof in the browser: from a block's `tx_root` through the data trees and bundles to the bytes, and the
 * owner's signature over them. The steps are those of docs/proof.md#by-hand.
 *
 * It checks less than `cairn verify`, and says so in each such step: the block's own hash, rebased data trees,
 * transactions of format 1 or with ECDSA, and rare types of signatures. It never calls such a step checked.
 * @module
 */
import { type Bytes, big, deepHash, equal, fromBase64url, join, little, sha256, toBase64url, utf8 } from "./bytes.ts";
import { isSignedBy } from "./signatures.ts";

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

type TagBytes = Readonly<{ name: Bytes; value: Bytes }>;

/** What a proof whose signature was checked says of the content. */
export type Signed = Readonly<{ owner: Bytes; tags: readonly TagBytes[] }>;

/** The signed fields of a proof. Only where `resultOf` says that it is signed can they be trusted. */
export function signedFieldsOf({ kind, transaction, signature }: ProofRecord): Signed {
  if (kind === "data_item" && signature !== null)
    return { owner: fromBase64url(signature.owner), tags: readTags(fromBase64url(signature.tags)) };
  if (kind === "data_item" || transaction === null) throw new Fault("The signature is not shown.");
  const fields = transactionFields(transaction.text);
  return { owner: fromBase64url(String(fields["owner"] ?? "")), tags: transactionTags(fields) };
}

/**
 * Reads the tag section of a data item: an Avro array of names and values.
 * Source: Avro 1.11 "Arrays".
 */
function readTags(section: Bytes): TagBytes[] {
  let at = 0;
  const readNumber = (): number => {
    let [value, unit] = [0, 1];
    for (let byte = 0x80; byte >= 0x80; unit *= 128) {
      byte = section[at] ?? 0;
      if (at >= section.length || unit > 2 ** 35) throw new Fault("The tags end in the middle.");
      value += (byte % 128) * unit;
      at += 1;
    }
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  };
  const readBytes = (): Bytes => {
    const size = readNumber();
    if (size < 0 || size > section.length - at) throw new Fault("The tags end in the middle.");
    at += size;
    return section.slice(at - size, at);
  };
  const tags: TagBytes[] = [];
  while (at < section.length) {
    const count = readNumber();
    if (count === 0) break;
    if (count < 0) readNumber(); // the size of the block in bytes
    for (let tag = 0; tag < Math.abs(count); tag += 1) tags.push({ name: readBytes(), value: readBytes() });
  }
  return tags;
}

/** What the steps of a proof amount to. */
export type ProofResult = Readonly<{
  /** The content is in the block that the gateway shows. */
  isPlaced: boolean;
  /** The owner of the id signed the content. */
  isSigned: boolean;
  /** The step that does not hold. */
  failed: ProofStep | undefined;
  /** The first step that was not checked. */
  open: ProofStep | undefined;
}>;

export function resultOf(steps: readonly ProofStep[]): ProofResult {
  const failed = steps.find(({ state }) => state === "failed");
  const isChecked = (name: string) => steps.some((step) => step.name === name && step.state === "checked");
  const hasContent = steps.every(
    ({ name, state }) => name === "Signature" || state === "checked" || state === "trusted",
  );
  const signed = steps.find(({ name }) => name === "Signature");
  const open = steps.find(({ state }) => state === "open");
  return {
    isPlaced: failed === undefined && isChecked("Chunks") && hasContent,
    isSigned: failed === undefined && signed?.state === "checked",
    failed,
    open,
  };
}

/**
 * Checks a proof. Yields each step when it is done, and ends after the first that fails.
 *
 * @param content - The content, or its first bytes: the proof's range.
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
        const step = await chunkSteps(proof, shared.root, content);
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
    ["Signature", async () => await signatureStep(proof, content, shared.data !== undefined)],
  ];
  let number = 1;
  for (const [name, check] of steps) {
    const key = `${name} ${number}`;
    number += 1;
    const step: ProofStep = { key, name, ...(await stateOf(check)) };
    yield step;
    if (step.state === "failed") return;
  }
}

/** Runs a check. Whatever of a proof cannot be read is a fault of the proof. */
async function stateOf(check: () => Promise<Done>): Promise<Omit<ProofStep, "key" | "name">> {
  try {
    return { state: "checked", ...(await check()) };
  } catch (error) {
    if (error instanceof Open) return { state: "open", text: error.message };
    const reason = error instanceof Error ? error.message : String(error);
    return { state: "failed", text: error instanceof Fault ? reason : `It cannot be read: ${reason}` };
  }
}

async function blockStep(proof: ProofRecord, id: string, content: Bytes): Promise<Done> {
  const { block, range, size } = proof;
  require(numbersOf(proof).every(Number.isSafeInteger), "A size or an offset is not a number.");
  require(proof.id === id, `The proof is about ${proof.id}.`);
  require(content.length === range.end - range.start, "The content is not as long as the proof says.");
  require(range.start === 0 && range.end <= size, "The proof is not of the first bytes of the content.");
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

/** Every number that steps calculate with. */
function numbersOf({ size, range, transaction, items, chunks }: ProofRecord): number[] {
  const entries = items.flatMap(({ entry }) => (entry === null ? [] : [entry.index, entry.count]));
  const places = items.flatMap(({ start, data_start, end }) => [start, data_start, end]);
  const bounds = chunks.flatMap(({ start, end }) => [start, end]);
  const data = transaction === null ? [] : [transaction.data_size];
  return [size, range.start, range.end, ...data, ...entries, ...places, ...bounds];
}

/** Follows the path from the block's root to the data of the transaction. @returns Its data root as `hash`. */
async function placeStep({ block, transaction, kind, size, items }: ProofRecord) {
  if (block === null || transaction === null || transaction.place === null)
    throw new Open("The place of the transaction in its block is not shown.");
  const { tx_root: root, weave_size, block_size } = blockFields(block.text);
  const blockStart = BigInt(weave_size) - BigInt(block_size);
  const { weave_start, tx_path } = transaction.place;
  const target = BigInt(weave_start) - blockStart;
  const leaf = await followPath(fromBase64url(root), fromBase64url(tx_path), target);
  require(leaf.end - leaf.start === BigInt(transaction.data_size), "The block has data of another size there.");
  require(toBase64url(leaf.hash) === transaction.data_root, "The block commits to another data root there.");
  // Otherwise a part of the content, or the bundle around it, would pass for the whole.
  if (kind === "transaction") require(size === transaction.data_size, "The data has another size than the content.");
  require((kind === "data_item") === items.length > 0, "The proof does not lead to the content.");
  return { text: `The block's hash covers the data of transaction ${transaction.id}.`, hash: toBase64url(leaf.hash) };
}

/** Checks every chunk that is shown. @returns Also a function that reads proven bytes of the data. */
async function chunkSteps({ chunks, items }: ProofRecord, root: Bytes | undefined, content: Bytes) {
  if (root === undefined) throw new Open("The place of the data in the block was not checked.");
  const contentStart = items.at(-1)?.data_start ?? 0;
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
  { items, transaction, id: subject, size }: ProofRecord,
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
  if (depth === items.length - 1)
    require(id === subject && end - data_start === size, "The index has an item of another id or size.");
  return { text: `Item ${entry.index + 1} of ${entry.count} in its bundle.`, hash: id };
}

function sizeOf(index: Bytes, entry: number): bigint {
  const at = hashBytes + entry * indexEntryBytes;
  return little(index.subarray(at, at + hashBytes));
}

/** @param hasChunks - Whether the content was found to be what the data root covers. */
async function signatureStep(proof: ProofRecord, content: Bytes, hasChunks: boolean): Promise<Done> {
  if (proof.kind === "transaction") {
    if (!hasChunks) throw new Open("The signature covers the data root, and the chunks were not checked.");
    return await transactionSignature(proof);
  }
  const { signature } = proof;
  if (signature === null) throw new Open("The signature is not shown.");
  const { type } = signature;
  const bytes = (name: "signature" | "owner" | "target" | "anchor" | "tags") => fromBase64url(signature[name]);
  const tags = bytes("tags");
  const header = proof.items.at(-1)?.header;
  if (header !== undefined)
    require(isHeaderOf(fromBase64url(header), signature), "The fields of the signature are not those of the header.");
  require(toBase64url(await sha256(bytes("signature"))) === proof.id, "The id is not the hash of the signature.");
  if (proof.range.end !== proof.size)
    throw new Open("A signature covers the whole content, and only a part of it was read.");
  const words = ["dataitem", "1", String(type)].map(utf8);
  const message = await deepHash([...words, bytes("owner"), bytes("target"), bytes("anchor"), tags, content]);
  await checkSignature(type, bytes("owner"), message, bytes("signature"));
  return {
    text: "The owner signed exactly these bytes and tags; the id is the hash of that signature.",
    hash: proof.id,
  };
}

/** Whether a header of a data item has these fields; it also has two counts before the tags. */
function isHeaderOf(header: Bytes, signature: NonNullable<ProofRecord["signature"]>): boolean {
  const bytes = (name: "signature" | "owner" | "target" | "anchor" | "tags") => fromBase64url(signature[name]);
  const optional = (field: Bytes) => (field.length === 0 ? [Uint8Array.of(0)] : [Uint8Array.of(1), field]);
  const fields = [bytes("signature"), bytes("owner"), ...optional(bytes("target")), ...optional(bytes("anchor"))];
  const start = join([Uint8Array.of(signature.type % 256, signature.type >> 8), ...fields]);
  const tags = bytes("tags");
  return (
    header.length === start.length + 16 + tags.length &&
    equal(header.subarray(0, start.length), start) &&
    equal(header.subarray(start.length + 16), tags)
  );
}

/** Format 2 with RSA: the signature covers the data root. */
async function transactionSignature({ transaction, id }: ProofRecord) {
  if (transaction === null) throw new Open("The transaction is not shown.");
  const fields = transactionFields(transaction.text);
  const text = (name: string) => String(fields[name] ?? "");
  if (text("format") !== "2" || text("owner") === "")
    throw new Open('Transactions of format 1 or with ECDSA are checked by "cairn verify".');
  require(text("data_root") === transaction.data_root, "The signed data root is another one.");
  require(text("data_size") === String(transaction.data_size), "The signed size is another one.");
  const signature = fromBase64url(text("signature"));
  require(toBase64url(await sha256(signature)) === id, "The id is not the hash of the signature.");
  const pairs = transactionTags(fields).map(({ name, value }) => [name, value]);
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
  await checkSignature(1, bytes("owner"), message, signature);
  return {
    text: "The owner signed the data root, the size and the tags; the id is the hash of that signature.",
    hash: id,
  };
}

type Fields = Readonly<Record<string, unknown>>;

function transactionFields(text: string): Fields {
  return JSON.parse(text);
}

function transactionTags({ tags }: Fields): TagBytes[] {
  if (!Array.isArray(tags)) throw new Fault("The tags are not a list.");
  return tags.map((tag: Readonly<{ name: string; value: string }>) => ({
    name: fromBase64url(tag.name),
    value: fromBase64url(tag.value),
  }));
}

async function checkSignature(type: number, owner: Bytes, message: Bytes, signature: Bytes): Promise<void> {
  const isSigned = await isSignedBy(type, owner, message, signature);
  if (isSigned === undefined) throw new Open(`Signatures of type ${type} are checked by "cairn verify".`);
  require(isSigned, "The signature is not the owner's over this content.");
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
function blockFields(text: string): Readonly<Record<"tx_root" | "weave_size" | "block_size", string>> {
  return JSON.parse(text);
}

function require(holds: boolean, reason: string): void {
  if (!holds) throw new Fault(reason);
}
