/**
 * Verifies proofs, step by step from a block to the bytes; the first fault ends the verification.
 *
 * Content is *signed* when its id follows from an owner's signature over it. It is *placed* when a block's `tx_root`
 * commits to it at its place in the weave. Content is *proven* when it is both. Verification makes no requests; the
 * verdict lists all trusted assumptions.
 *
 * Both kinds of signature prove less than they seem to. An ECDSA header does not state its owner, so any signature fits
 * any header, with another owner. On the chain the accounts decide; to verify a proof the owner must be known. Format 1
 * concatenates its fields without separators, and only the transaction's place in a block tells where each ends.
 * Source: docs/reference/formats.md#data-trees-and-chunks; ANS-104; docs/proof.md;
 * docs/reference/formats.md#transactions.
 * @module
 */
import { Failure } from "../failures.ts";
import { decodeBase64url, encodeBase64url } from "../lib/base64url.ts";
import { equalBytes } from "../lib/bytes.ts";
import { type Block, readBlock } from "./block.ts";
import { verifyBlock } from "./block-check.ts";
import { hashItem, type ItemHeader, type SignedFields, verifyItem } from "./data-item.ts";
import { type Address, addressOf, type BlockHash, type Id, idOfSignature } from "./id.ts";
import { dataRootOf, rulesetAt, validatePath } from "./merkle.ts";
import type { Proof, ProofPlace, ProofTransaction } from "./proof.ts";
import { checkChunks, type KnownBytes, nothingKnown, type PlacedBytes, placedBytes, walkItems } from "./proof-walk.ts";
import { readTransaction, type Transaction, treeRootOf, verifyTransaction } from "./transaction.ts";
import { malformed, readFields } from "./wire.ts";

/** The result of a verification. */
export type ProofVerdict = Readonly<{
  /** "signed" and "placed" are one half of a proof; `open` lists the parts that are missing. */
  outcome: "proven" | "signed" | "placed" | "rejected";
  steps: readonly ProofStep[];
  /** The first failed step. Present when rejected. */
  fault: Readonly<{ step: ProofStep["step"]; reason: string }> | undefined;
  /** Trusted assumptions. */
  trusted: readonly string[];
  /** Parts that were not proven. */
  open: readonly string[];
}>;

const noBytes = new Uint8Array(0);

/**
 * Verifies a proof.
 *
 * Takes about 10 ms for each MiB of the proof and the bytes.
 */
export function verifyProof(question: ProofQuestion): ProofVerdict {
  const notes: ProofNotes = { steps: [], trusted: [], open: [], step: "subject" };
  try {
    const { isSigned, isPlaced } = check(question, notes);
    if (isSigned && isPlaced) return verdict("proven", notes);
    if (isSigned || isPlaced) return verdict(isSigned ? "signed" : "placed", notes);
    return verdict("rejected", notes, notes.open[0] ?? "nothing is shown");
  } catch (error) {
    if (!(error instanceof Failure && error.code === "malformed_input")) throw error;
    return verdict("rejected", notes, String(error.context["reason"] ?? error.message));
  }
}

function verdict(outcome: ProofVerdict["outcome"], notes: ProofNotes, reason?: string): ProofVerdict {
  const { steps, trusted, open, step } = notes;
  return { outcome, steps, trusted, open, fault: reason === undefined ? undefined : { step, reason } };
}

type Halves = Readonly<{ isSigned: boolean; isPlaced: boolean }>;

function check(question: ProofQuestion, notes: ProofNotes): Halves {
  const { proof } = question;
  checkSubject(question);
  notes.step = "block";
  const block = checkBlock(question, notes);
  notes.step = "transaction";
  const { transaction } = proof;
  if (transaction === undefined) {
    notes.open.push("neither a block nor a transaction is shown");
    return { isSigned: checkPendingItem(question, notes), isPlaced: false };
  }
  const signedRoot = checkTransaction(question, transaction, block, notes);
  notes.step = "place";
  const isDataPlaced = block !== undefined && checkPlace(question, transaction, block, notes);
  notes.step = "chunks";
  const content = placedBytes(proof, question.bytes);
  const known = checkData(question, transaction, block, content, notes);
  const isCovered = known.has({ start: content.start, end: content.start + content.bytes.length });
  if (proof.kind === "transaction") {
    const isSigned = signedRoot !== undefined && (isCovered || isUnderRoot(question, signedRoot, notes));
    return { isSigned, isPlaced: isDataPlaced && isCovered };
  }
  notes.step = "bundles";
  const walked = walkItems(proof, transaction, known);
  for (const says of walked.says) notes.steps.push({ step: "bundles", says });
  notes.open.push(...walked.open);
  notes.step = "signature";
  const isSigned = checkItemSignature(question, walked.header, notes);
  return { isSigned, isPlaced: isDataPlaced && isCovered && walked.isPlaced };
}

/** Checks that the proof is for the requested id, and that the bytes have the size of its range. */
function checkSubject({ id, proof, bytes, whole }: ProofQuestion): void {
  if (proof.id !== id) throw malformed(`the proof is about ${proof.id}`);
  const { start, end } = proof.range;
  if (bytes.length !== end - start)
    throw malformed(`the proof is about bytes ${start} to ${end}, and ${bytes.length} bytes were given`);
  if (start === end && proof.size > 0) throw malformed("the proof is about no bytes");
  const isItem = proof.kind === "data_item";
  if (!isItem && (proof.items.length > 0 || proof.signature !== undefined))
    throw malformed("a proof of a transaction shows a data item");
  if (whole?.kind !== "bytes") return;
  if (whole.bytes.length !== proof.size)
    throw malformed(`the content has ${proof.size} bytes, and ${whole.bytes.length} were given`);
  if (!equalBytes(whole.bytes.subarray(start, end), bytes))
    throw malformed("the part and the whole that were given are not the same");
}

/** Returns the block when its hash covers its fields; `undefined` when it cannot prove a place. */
function checkBlock({ proof, anchor }: ProofQuestion, notes: ProofNotes): Block | undefined {
  const shown = proof.block;
  if (shown === undefined) {
    notes.open.push("it is in no block yet");
    return undefined;
  }
  const block = readBlock(anchor.kind === "block" ? anchor.text : shown.text);
  if (block.hash !== shown.hash || block.height !== shown.height)
    throw malformed(`the header is that of block ${block.height} (${block.hash}), not of ${shown.hash}`);
  if (anchor.kind === "hash" && block.hash !== anchor.hash)
    throw malformed(`the block's hash is ${block.hash}, not the one that was given`);
  if (anchor.kind === "tx root" && block.txRoot !== encodeBase64url(anchor.txRoot))
    throw malformed(`the block's tx_root is ${block.txRoot}, not the one that was given`);
  const result = verifyBlock(block, undefined, undefined);
  if (result.kind === "rejected") throw malformed(result.reason);
  if (!result.checked.includes("hash")) {
    notes.open.push(
      `block ${block.height} is from before 2.0: its hash cannot be made again, and it commits to no data`,
    );
    return undefined;
  }
  notes.steps.push({
    step: "block",
    says: `the fields of block ${block.height} make its hash ${block.hash}`,
  });
  notes.trusted.push(...beliefs(anchor, block));
  return block;
}

/** The trusted assumptions about a block. */
function beliefs(anchor: Anchor, { height, hash, txRoot }: Block): string[] {
  switch (anchor.kind) {
    case "hash":
      return [`the block hash that was given: ${hash}`];
    case "block":
      return [`the block header that was given: block ${height}, hash ${hash}`];
    case "tx root":
      return [
        `the tx_root that was given: ${txRoot}`,
        `the start of the data of block ${hash} in the weave, and the rules by which it is split`,
      ];
    case "none":
      return [`that block ${height} of the chain has the hash ${hash}: the gateway is the only source`];
  }
}

/** Follows the path from the block's root to the transaction's data. @returns Whether the place is proven. */
function checkPlace(
  { anchor }: ProofQuestion,
  { id, dataSize, dataRoot, place }: ProofTransaction,
  block: Block,
  notes: ProofNotes,
): boolean {
  if (dataSize === 0) {
    if (anchor.kind !== "tx root") return true; // the block's hash covers the list of its transactions
    notes.open.push("a transaction without data has no place under a tx_root: give the block's hash");
    return false;
  }
  if (place === undefined) {
    notes.open.push("no path from the block's tx_root to the transaction is shown");
    return false;
  }
  const blockStart = startOf(block);
  const leaf = validatePath({
    root: decodeBase64url(block.txRoot) ?? noBytes,
    path: place.txPath,
    target: place.start - blockStart,
    size: block.blockSize,
    ruleset: "basic",
  });
  if (leaf === undefined) throw malformed("tx_path does not lead from the block's tx_root to this offset");
  if (!equalBytes(leaf.hash, dataRoot)) throw malformed("tx_path leads to another data root");
  checkLeaf(blockStart + leaf.start, blockStart + leaf.end, place, dataSize);
  const where = `bytes ${place.start} to ${place.end} of the weave`;
  const says = `tx_root of block ${block.height} commits to the data root of ${id} at ${where}`;
  notes.steps.push({ step: "place", says });
  return true;
}

function checkLeaf(start: bigint, end: bigint, place: ProofPlace, dataSize: number): void {
  if (start !== place.start || end !== place.end)
    throw malformed(`tx_path leads to bytes ${start} to ${end} of the weave`);
  if (end - start !== BigInt(dataSize)) throw malformed("the place is not as large as the data");
}

function startOf({ weaveSize, blockSize }: Block): bigint {
  if (blockSize > weaveSize) throw malformed("block_size is above weave_size");
  return weaveSize - blockSize;
}

function checkData(
  { proof }: ProofQuestion,
  transaction: ProofTransaction,
  block: Block | undefined,
  content: PlacedBytes,
  notes: ProofNotes,
): KnownBytes {
  // The start of the block determines the rules for the tree of chunks.
  if (block === undefined || transaction.dataRoot.length === 0) return nothingKnown;
  const known = checkChunks(proof.chunks, transaction, content, rulesetAt(startOf(block), block));
  if (known.count > 0) {
    const chunks = known.count === 1 ? "1 chunk is" : `${known.count} chunks are`;
    notes.steps.push({ step: "chunks", says: `${chunks} what the data root commits to` });
  }
  for (const { start, end } of known.withheld) {
    notes.open.push(`the chunk at bytes ${start} to ${end} of the data is not shown whole`);
  }
  if (!known.has({ start: content.start, end: content.start + content.bytes.length }) && known.withheld.length === 0)
    notes.open.push("no chunks are shown for a part of the bytes");
  return known;
}

/** An item in no block is verified by its signature alone. */
function checkPendingItem(question: ProofQuestion, notes: ProofNotes): boolean {
  const { kind, signature: shown } = question.proof;
  if (kind !== "data_item" || shown === undefined) return false;
  notes.step = "signature";
  const { type, signature, owner, target, anchor, tags } = shown;
  const id = idOfSignature(signature);
  if (id !== question.id) throw malformed(`the signature is that of ${id}`);
  const names = { id, ownerAddress: addressOf(owner), signatureType: type, signature, owner };
  const header = { ...names, targetBytes: target, anchorBytes: anchor, rawTags: tags };
  return checkItemSignature(question, header, notes);
}

function checkItemSignature(
  question: ProofQuestion,
  header: SignedFields & Pick<ItemHeader, "id" | "ownerAddress" | "signature">,
  notes: ProofNotes,
): boolean {
  const whole = wholeOf(question);
  const given = question.whole?.kind === "message" ? question.whole.message : undefined;
  const message = whole === undefined ? given : hashItem(header, whole).message;
  if (message === undefined) {
    notes.open.push(`the item's signature is over all ${question.proof.size} bytes of it, which are not at hand`);
    return false;
  }
  const result = verifyItem(header, message);
  if (!result.valid) throw malformed(result.reason);
  checkOwner(header.id, header.ownerAddress, question.owner);
  const says = `item ${header.id} is signed by ${header.ownerAddress} over all ${question.proof.size} bytes of it`;
  notes.steps.push({ step: "signature", says });
  return true;
}

/** The caller's trusted block. `none`: trusts that the proof's block is on the chain. */
export type Anchor = Readonly<
  | { kind: "none" }
  | { kind: "hash"; hash: BlockHash }
  /** The JSON of a block, used instead of the proof's. */
  | { kind: "block"; text: string }
  /** 32 bytes. */
  | { kind: "tx root"; txRoot: Uint8Array }
>;

/** The complete content when a part is verified: its bytes, or the signed 48-byte message of an item. */
export type WholeContent = Readonly<{ kind: "bytes"; bytes: Uint8Array } | { kind: "message"; message: Uint8Array }>;

/** A proof to verify, with its inputs. */
export type ProofQuestion = Readonly<{
  id: Id;
  proof: Proof;
  anchor: Anchor;
  /** The bytes of `proof.range`. */
  bytes: Uint8Array;
  /**
   * The required signer. An ECDSA transaction does not state its owner, so its signature fits any header with another
   * owner: without this its content is never signed.
   */
  owner?: Address;
  /**
   * Required for a part of an item, or of a transaction of format 1, whose signatures cover all of it. A message is the
   * deep hash with the header of the proof (`provenHeader`, `createItemHash`).
   */
  whole?: WholeContent;
}>;

/** The steps of a verification. */
export type ProofStepName = "subject" | "block" | "transaction" | "place" | "chunks" | "bundles" | "signature";

/** A completed step, in a sentence. */
export type ProofStep = Readonly<{ step: ProofStepName; says: string }>;

/** Collects results during a verification. A failed step throws Failure `malformed_input` with `context.reason`. */
export type ProofNotes = Readonly<{ steps: ProofStep[]; trusted: string[]; open: string[] }> & {
  /** The current step. */
  step: ProofStepName;
};

/** The complete content, if available. */
export function wholeOf({ proof, bytes, whole }: ProofQuestion): Uint8Array | undefined {
  if (whole?.kind === "bytes") return whole.bytes;
  return bytes.length === proof.size ? bytes : undefined;
}

/**
 * Checks the header and its signature.
 *
 * @param block - The block, if its hash was verified.
 * @returns The data root that a known owner signed. Format 1 signs its data itself: only with all of the data.
 * @throws Failure `malformed_input` with `context.reason` when a check fails.
 */
export function checkTransaction(
  question: ProofQuestion,
  shown: ProofTransaction,
  block: Block | undefined,
  notes: ProofNotes,
): Uint8Array | undefined {
  checkPart(question.proof, shown, block);
  const text = signedText(question, shown);
  if (text === undefined) {
    const why = "its signature is over all of its data, which is not at hand";
    notes.open.push(`transaction ${shown.id} is of format 1: ${why}`);
    return undefined;
  }
  const transaction = readTransaction(text);
  const result = verifyTransaction(transaction);
  if (!result.valid) throw malformed(result.reason);
  const signedRoot = checkHeader(transaction, shown);
  if (transaction.format === 1 && block === undefined) {
    notes.open.push("format 1 joins its fields without marks: without a block they may be cut elsewhere");
    if (!isCutOneWay(transaction)) return undefined;
  }
  return isOwnerKnown(question, transaction, notes) ? signedRoot : undefined;
}

/**
 * Whether a signature of format 1 fits no other fields, by what the chain requires since 2.4: the data does not end
 * with a digit, which could be the quantity's, and no target, which could be the data's, comes without a quantity. Of
 * transactions that were mined before 2.4 and break these rules, other fields may keep them.
 */
function isCutOneWay({ data, target, quantity, denomination }: Transaction): boolean {
  if (denomination !== "") return true; // signed as a deep hash
  const last = decodeBase64url(data)?.at(-1) ?? 0;
  const endsWithDigit = last >= 0x30 && last <= 0x39;
  return !endsWithDigit && (quantity > 0n || target === "");
}

/**
 * Whether a signature covers all of the content itself, and not a root of it: for data items, and for transactions of
 * format 1.
 *
 * @throws Failure `malformed_input` when the transaction's text cannot be read.
 */
export function signsWholeContent({ kind, transaction }: Proof): boolean {
  return kind === "data_item" || (transaction !== undefined && isFirstFormat(transaction));
}

/**
 * Whether the complete data is available and has the signed root; its chunks are then not needed.
 *
 * @throws Failure `malformed_input` when it has another root.
 */
export function isUnderRoot(question: ProofQuestion, signedRoot: Uint8Array, notes: ProofNotes): boolean {
  const whole = wholeOf(question);
  if (whole === undefined) return false;
  const isRoot = (["halved", "plain"] as const).some((rule) => equalBytes(dataRootOf(whole, rule), signedRoot));
  if (!isRoot) throw malformed("the data does not make the data root, however it is split");
  notes.steps.push({ step: "chunks", says: "the whole data makes the data root" });
  return true;
}

/**
 * Compares the owner of a signature with the required owner, if any.
 *
 * @throws Failure `malformed_input` when they differ.
 */
export function checkOwner(id: Id, found: Address, wanted: Address | undefined): void {
  if (wanted !== undefined && found !== wanted) throw malformed(`${id} is signed by ${found}, not by ${wanted}`);
}

/** Checks that the transaction belongs to the proof's content and block. */
function checkPart(proof: Proof, shown: ProofTransaction, block: Block | undefined): void {
  if (proof.kind === "transaction" && shown.id !== proof.id) throw malformed("another transaction is shown");
  if (proof.kind === "transaction" && shown.dataSize !== proof.size)
    throw malformed(`the transaction has ${shown.dataSize} bytes of data, not ${proof.size}`);
  if (block !== undefined && !block.txs.includes(shown.id))
    throw malformed(`block ${block.height} does not name transaction ${shown.id}`);
}

/** The JSON to verify the signature with; `undefined` when signed data is missing. */
function signedText(question: ProofQuestion, shown: ProofTransaction): string | undefined {
  const { text, dataAt } = shown;
  if (dataAt === null || !isFirstFormat(shown)) return text;
  const data = question.proof.kind === "transaction" ? wholeOf(question) : undefined;
  if (data === undefined) return undefined;
  return text.slice(0, dataAt) + encodeBase64url(data) + text.slice(dataAt);
}

/** Whether the JSON is of format 1 and its data was cut out. */
function isFirstFormat({ text, dataAt }: ProofTransaction): boolean {
  const { format } = readFields(text, text.length);
  return dataAt !== null && format !== 2 && format !== "2";
}

/** Compares the proof's fields with the header. @returns The signed root. */
function checkHeader(transaction: Transaction, shown: ProofTransaction): Uint8Array {
  const { id, dataSize, ownerAddress, format } = transaction;
  if (id !== shown.id) throw malformed(`the header is that of transaction ${id}`);
  if (dataSize !== shown.dataSize)
    throw malformed(`the header states ${dataSize} bytes of data, not ${shown.dataSize}`);
  if (ownerAddress !== shown.owner) throw malformed(`the header is signed by ${ownerAddress}, not by ${shown.owner}`);
  const signedRoot = decodeBase64url(treeRootOf(transaction)) ?? noBytes;
  const isRootShown = format === 2 || shown.dataRoot.length > 0;
  if (isRootShown && !equalBytes(signedRoot, shown.dataRoot))
    throw malformed("the data root is not that of the transaction");
  return signedRoot;
}

/** Whether the signature proves the owner of this header. */
function isOwnerKnown({ proof, owner }: ProofQuestion, transaction: Transaction, notes: ProofNotes): boolean {
  const { id, ownerAddress, signatureType, format, dataSize } = transaction;
  const given = proof.kind === "transaction" ? owner : undefined;
  checkOwner(id, ownerAddress, given);
  if (signatureType === "ecdsa" && given === undefined) {
    const why = `its ECDSA signature names no owner and fits any header, this one as ${ownerAddress}'s`;
    const remedy = proof.kind === "transaction" ? "; give the owner" : "";
    notes.open.push(`who signed transaction ${id}: ${why}${remedy}`);
    return false;
  }
  if (signatureType === "ecdsa") notes.trusted.push(`the owner that was given: ${ownerAddress}`);
  const over = format === 1 ? "its data" : `its data root, ${dataSize} bytes`;
  const says = `transaction ${id} is signed by ${ownerAddress} over ${over}`;
  notes.steps.push({ step: "transaction", says });
  return true;
}
