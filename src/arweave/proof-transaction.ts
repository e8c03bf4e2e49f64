/**
 * The root transaction of a proof: its header, who signed it, and the data root that is signed.
 *
 * Neither kind of signature says all that one would think. An ECDSA header does not state its owner, so that any
 * signature fits any header, as that of somebody else: on the chain the accounts decide, and who checks a proof must
 * know the owner. Format 1 joins its fields without saying where each ends: its place in a block shows which reading
 * is meant.
 * Source: docs/reference/formats.md#transactions.
 * @module
 */
import { decodeBase64url, encodeBase64url } from "../lib/base64url.ts";
import { equalBytes } from "../lib/bytes.ts";
import type { Block } from "./block.ts";
import { dataRootOf } from "./data-root.ts";
import type { Address, Id } from "./id.ts";
import type { Proof, ProofTransaction } from "./proof.ts";
import { type ProofNotes, type ProofQuestion, wholeOf } from "./proof-question.ts";
import { readTransaction, type Transaction, treeRootOf } from "./transaction.ts";
import { verifyTransaction } from "./transaction-verify.ts";
import { malformed, readFields } from "./wire.ts";

const noBytes = new Uint8Array(0);

/**
 * Checks the header and its signature.
 *
 * @param block - The block, where its hash was made again.
 * @returns The data root that is signed by a known owner; of format 1, which signs its data itself, only with all of
 *   the data at hand.
 * @throws Failure `malformed_input` with `context.reason` when something is not so.
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
  if (transaction.format === 1 && block === undefined)
    notes.open.push("format 1 joins its fields without marks: without a block they may be cut elsewhere");
  return isOwnerKnown(question, transaction, notes) ? signedRoot : undefined;
}

/**
 * Whether a signature is over all of the content itself, so that no part of it is signed alone: of data items, and of
 * transactions of format 1.
 *
 * @throws Failure `malformed_input` when the transaction's text cannot be read.
 */
export function signsWholeContent({ kind, transaction }: Proof): boolean {
  return kind === "data_item" || (transaction !== undefined && isFirstFormat(transaction));
}

/**
 * Whether all of the data, at hand, makes the root that was signed; its chunks are then not needed for that.
 *
 * @throws Failure `malformed_input` when it does not.
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
 * Holds a signature to the owner that was given, if one was.
 *
 * @throws Failure `malformed_input` when it is another's.
 */
export function checkOwner(id: Id, found: Address, wanted: Address | undefined): void {
  if (wanted !== undefined && found !== wanted) throw malformed(`${id} is signed by ${found}, not by ${wanted}`);
}

/** Whether the transaction is the one that belongs here. */
function checkPart(proof: Proof, shown: ProofTransaction, block: Block | undefined): void {
  if (proof.kind === "transaction" && shown.id !== proof.id) throw malformed("another transaction is shown");
  if (proof.kind === "transaction" && shown.dataSize !== proof.size)
    throw malformed(`the transaction has ${shown.dataSize} bytes of data, not ${proof.size}`);
  if (block !== undefined && !block.txs.includes(shown.id))
    throw malformed(`block ${block.height} does not name transaction ${shown.id}`);
}

/** The text that the signature can be checked on; `undefined` when it lacks signed data that is not at hand. */
function signedText(question: ProofQuestion, shown: ProofTransaction): string | undefined {
  const { text, dataAt } = shown;
  if (dataAt === null || !isFirstFormat(shown)) return text;
  const data = question.proof.kind === "transaction" ? wholeOf(question) : undefined;
  if (data === undefined) return undefined;
  return text.slice(0, dataAt) + encodeBase64url(data) + text.slice(dataAt);
}

/** Whether a text is of format 1 with its data cut out. */
function isFirstFormat({ text, dataAt }: ProofTransaction): boolean {
  const { format } = readFields(text, text.length);
  return dataAt !== null && format !== 2 && format !== "2";
}

/** Holds what is shown beside a header to the header. @returns The root that it signs. */
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

/** Whether the signature can only be its owner's over this header. */
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
