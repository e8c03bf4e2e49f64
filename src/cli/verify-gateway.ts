/**
 * Verifies content at a gateway: its proofs, in parts for large content, against its bytes, which are read once.
 * @module
 */
import { createItemHash, type ItemHash, type ItemHeader } from "../arweave/data-item.ts";
import type { Id } from "../arweave/id.ts";
import { type Proof, proofRangeSizeMax, proofTextSizeMax, readProof } from "../arweave/proof.ts";
import {
  type ProofQuestion,
  type ProofVerdict,
  signsWholeContent,
  verifyProof,
  type WholeContent,
} from "../arweave/proof-verify.ts";
import { provenHeader } from "../arweave/proof-walk.ts";
import { transactionDataSizeMax } from "../arweave/transaction.ts";
import { malformed } from "../arweave/wire.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { concatBytes, equalBytes } from "../lib/bytes.ts";
import { failureOf, type Http } from "../lib/http-client.ts";
import type { ByteSpan } from "../lib/range.ts";

/** The result of a verification. */
export type Verification = Readonly<{
  id: Id;
  outcome: ProofVerdict["outcome"] | "unavailable";
  /** Size of the whole content and the verified range; absent when the gateway did not report them. */
  size?: number;
  range?: ByteSpan;
  steps: ProofVerdict["steps"];
  fault?: Readonly<{ step: string; reason: string }>;
  trusted: readonly string[];
  open: readonly string[];
}>;

export type GatewayQuestion = Pick<ProofQuestion, "id" | "anchor" | "owner"> &
  Readonly<{
    http: Http;
    /** Without a trailing slash. */
    gateway: string;
    /** Range of the content; undefined for the whole. It may extend beyond the end. */
    range: ByteSpan | undefined;
    /** Receives the content as it arrives; it is verified only when the outcome says so. */
    onPiece?: (piece: Uint8Array) => void;
  }>;

/** Maximum length of a response text in a message. Characters. */
const shownMax = 200;

const noBytes: Uint8Array = new Uint8Array(0);

/** Verifies content. A missing or invalid proof is an outcome, not an error. */
export async function verifyAtGateway(question: GatewayQuestion, signal: AbortSignal): Promise<Verification> {
  const { id } = question;
  const open: string[] = [];
  try {
    const first = await firstProof(question, signal);
    if (first.block === undefined) open.push("it is in no block yet");
    const { size } = first;
    const end = Math.min(question.range?.end ?? size, size);
    const range = { start: question.range?.start ?? 0, end };
    const verdict = await verifyParts(question, first, range, signal);
    return { id, size, range, ...verdict };
  } catch (error) {
    signal.throwIfAborted(); // the reader has ended it, not the gateway
    if (!(error instanceof Failure)) throw error;
    const reason = String(error.context["reason"] ?? error.message);
    const known = { id, steps: [], trusted: [], open };
    // Malformed input was a response; otherwise the gateway returned none.
    return error.code === "malformed_input"
      ? { ...known, outcome: "rejected", fault: { step: "proof", reason } }
      : { ...known, outcome: "unavailable", fault: { step: "gateway", reason: detailed(error, reason) } };
  }
}

type Outcome = Pick<Verification, "outcome" | "steps" | "trusted" | "open" | "fault">;

/**
 * Verifies a range in parts, each with its own proof. Content with a signature over all of its bytes is read
 * completely.
 */
async function verifyParts(
  question: GatewayQuestion,
  first: Proof,
  range: ByteSpan,
  signal: AbortSignal,
): Promise<Outcome> {
  const { id, anchor, owner } = question;
  const asked = { id, anchor, ...(owner === undefined ? {} : { owner }) };
  const whole = createWhole(first, range);
  const from = whole === undefined ? range.start : 0;
  const to = whole === undefined ? range.end : first.size;
  const body = openBody(question, { start: from, end: to }, first.size, signal);
  const content = createTaker(body, (piece) => {
    whole?.update(piece);
    question.onPiece?.(piece);
  });
  try {
    await content.skip(range.start - from);
    let proof = first;
    let bytes = await content.take(proof.range.end - proof.range.start);
    let count = 1;
    for (; proof.range.end < range.end; count++) {
      const verdict = verifyProof({ ...asked, proof, bytes });
      if (verdict.outcome !== (whole === undefined ? "proven" : "placed")) return verdictFields(verdict);
      const next = await proofFrom(question, { start: proof.range.end, end: range.end }, signal);
      checkSame(proof, next);
      proof = next;
      bytes = await content.take(proof.range.end - proof.range.start);
    }
    await content.skip(to - range.end);
    await content.end();
    const all = whole?.finish();
    const verdict = verifyProof({ ...asked, proof, bytes, ...(all === undefined ? {} : { whole: all }) });
    return verdictFields(count === 1 ? verdict : { ...verdict, steps: [partsStep(count), ...verdict.steps] });
  } finally {
    await body.return(undefined);
  }
}

function partsStep(count: number): ProofVerdict["steps"][number] {
  return { step: "subject", says: `verified in ${count} parts; the following steps are of the last part` };
}

/** The whole content while it is read: hashed, or stored for a transaction of format 1. */
type Whole = Readonly<{ update: (piece: Uint8Array) => void; finish: () => WholeContent }>;

/** Undefined when the signature needs no more than the verified parts. */
function createWhole(first: Proof, range: ByteSpan): Whole | undefined {
  const { size } = first;
  const isOnePart = first.range.start === 0 && first.range.end === size && range.end === size;
  if (isOnePart || !signsWholeContent(first)) return undefined;
  const header = provenHeader(first);
  if (header !== undefined) return createWholeItem(header, size);
  return first.kind === "transaction" ? createWholeData(size) : undefined;
}

function createWholeItem(header: ItemHeader, size: number): Whole {
  const hash: ItemHash = createItemHash(header, size);
  return { update: hash.update, finish: () => ({ kind: "message", message: hash.finish().message }) };
}

function createWholeData(size: number): Whole {
  if (size > transactionDataSizeMax) throw malformed(`no transaction of format 1 has ${size} bytes`);
  const pieces: Uint8Array[] = [];
  return {
    update: (piece) => pieces.push(piece),
    finish: () => ({ kind: "bytes", bytes: concatBytes(pieces) }),
  };
}

/** All parts must be of the same content. */
function checkSame(one: Proof, other: Proof): void {
  const headers = [one, other].map(({ items }) => items.at(-1)?.header ?? new Uint8Array(0));
  const isSame =
    one.size === other.size &&
    one.kind === other.kind &&
    one.block?.hash === other.block?.hash &&
    one.transaction?.id === other.transaction?.id &&
    one.items.at(-1)?.start === other.items.at(-1)?.start &&
    equalBytes(headers[0] ?? noBytes, headers[1] ?? noBytes);
  if (!isSame) throw malformed("the proofs of two parts are of different places");
}

/** The proof of the whole range, or of its first part. */
async function firstProof(question: GatewayQuestion, signal: AbortSignal): Promise<Proof> {
  if (question.range !== undefined) return await proofFrom(question, question.range, signal);
  const whole = await askProof(question, undefined, signal);
  return whole ?? (await proofFrom(question, { start: 0, end: Number.MAX_SAFE_INTEGER }, signal));
}

/** The largest proof from the start of a span that the gateway accepts. */
async function proofFrom(question: GatewayQuestion, span: ByteSpan, signal: AbortSignal): Promise<Proof> {
  const { start } = span;
  for (let size = Math.min(proofRangeSizeMax, span.end - start); size >= 1; size = Math.floor(size / 2)) {
    const proof = await askProof(question, { start, end: start + size }, signal);
    if (proof !== undefined) return proof;
  }
  throw malformed("the gateway rejects even a range of one byte as too large");
}

/** Requests one proof; `undefined` when it would be too large. */
async function askProof(
  { id, gateway, http }: GatewayQuestion,
  span: ByteSpan | undefined,
  signal: AbortSignal,
): Promise<Proof | undefined> {
  const range = span === undefined ? "" : `?range=${span.start}-${span.end - 1}`;
  const request = { method: "GET", url: `${gateway}/svc/proof/${id}${range}` } as const;
  const response = await http.whole(request, proofTextSizeMax, signal);
  if (response.kind === "fault") throw failureOf(response);
  const text = new TextDecoder().decode(response.body);
  if (response.status === 413) return undefined;
  if (response.status !== 200) throw unexpected(response.status, text);
  const proof = readProof(text);
  const wanted = span ?? { start: 0, end: proof.size };
  if (proof.range.start !== wanted.start || proof.range.end !== Math.min(wanted.end, proof.size))
    throw malformed("the gateway's proof is of another range");
  return proof;
}

/** Reads exactly the bytes of the span. */
async function* openBody(
  { id, gateway, http }: GatewayQuestion,
  { start, end }: ByteSpan,
  size: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (start === end) return;
  const isWhole = start === 0 && end === size;
  const headers = isWhole ? {} : { range: `bytes=${start}-${end - 1}` };
  const url = `${gateway}/raw/${id}`;
  const response = await http.stream({ method: "GET", url, headers, keepsCoding: true }, signal);
  if (response.kind === "fault") throw failureOf(response);
  const place = isWhole ? null : `bytes ${start}-${end - 1}/${size}`;
  if (response.status !== (isWhole ? 200 : 206) || response.headers.get("content-range") !== place) {
    response.cancel();
    throw unexpected(response.status, "to the request for content");
  }
  let left = end - start;
  for await (const piece of response.body) {
    left -= piece.length;
    if (left < 0) throw malformed("the gateway sent more bytes than the content has");
    yield piece;
  }
  if (left > 0) throw malformed("the gateway sent fewer bytes than the content has");
}

/** Reads a given number of bytes from a stream. */
function createTaker(pieces: AsyncIterator<Uint8Array>, onPiece: (piece: Uint8Array) => void) {
  let rest = noBytes;
  const next = async (): Promise<Uint8Array> => {
    const { value, done } = await pieces.next();
    assert(done !== true, "a body is not shorter than the bytes that are read");
    onPiece(value);
    return value;
  };
  const each = async (count: number, use: (piece: Uint8Array) => void): Promise<void> => {
    for (let left = count; left > 0; ) {
      if (rest.length === 0) rest = await next();
      const piece = rest.subarray(0, left);
      use(piece);
      left -= piece.length;
      rest = rest.subarray(piece.length);
    }
  };
  return {
    take: async (count: number): Promise<Uint8Array> => {
      const bytes = new Uint8Array(count);
      let at = 0;
      await each(count, (piece) => {
        bytes.set(piece, at);
        at += piece.length;
      });
      return bytes;
    },
    skip: (count: number) => each(count, () => undefined),
    /** Asserts that the stream has ended. */
    end: async (): Promise<void> => {
      const { done } = await pieces.next();
      assert(rest.length === 0 && done === true, "a body is read completely");
    },
  };
}

/** The reason of a failed request, with the system's message. */
function detailed({ context }: Failure, reason: string): string {
  return typeof context["detail"] === "string" ? `${reason}: ${context["detail"]}` : reason;
}

function unexpected(status: number, text: string): Failure {
  return new Failure("source_failed", { reason: `it responded ${status} ${text.slice(0, shownMax)}` });
}

/** The fields of a verdict, without an undefined `fault`. */
export function verdictFields({ outcome, steps, fault, trusted, open }: ProofVerdict) {
  return { outcome, steps, trusted, open, ...(fault === undefined ? {} : { fault }) };
}
