/**
 * Uploads that x402 pays for with the request. The payment is settled before any byte is stored, held until the item is
 * accepted, and credited to the payer if the item is rejected.
 * Source: docs/reference/upload.md#paying-with-the-request.
 * @module
 */
import type { Tag } from "../../arweave/tags.ts";
import { winc } from "../../arweave/winston.ts";
import { Failure } from "../../failures.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { concatBytes, utf8Bytes } from "../../lib/bytes.ts";
import type { Clock } from "../../lib/clock.ts";
import { sha256 } from "../../lib/hash.ts";
import type { Log } from "../../lib/log.ts";
import type { UserAddress } from "../../payment/addresses.ts";
import type { Credits } from "../../payment/credits/credits.ts";
import { voidReservation } from "../../payment/credits/reservations.ts";
import { uploadPurpose, type X402, type X402Settled } from "../../payment/x402/x402.ts";
import type { X402Payment } from "../../payment/x402/x402-payment-reader.ts";
import type { UploadBlockList } from "../blocked-uploads.ts";
import { checkItemSize } from "../intake/arriving-item.ts";
import type { Taken } from "../intake/charge-item.ts";
import type { Arrival, Intake } from "../intake/item-intake.ts";
import type { MultipartUpload } from "../multipart/multipart-rows.ts";
import { chunkSizeMax, type Multipart } from "../multipart/multipart-uploads.ts";
import type { ArrivingPart } from "../multipart/part-writers.ts";
import type { ItemSigner } from "../upload-signing.ts";

/** A payment in the request of an upload. */
export type X402Sent = Readonly<{
  payment: X402Payment;
  /** Absolute URL of the paid resource. */
  resource: string;
}>;

/** Outcome of an upload. A rejection before the settlement of the payment is thrown. */
export type X402Outcome<Result> =
  /** `settled` is undefined for a free item, and for one that was accepted before. */
  | Readonly<{ kind: "done"; response: Result; settled: X402Settled | undefined }>
  /** The payment has settled, and the payer has the credits. */
  | Readonly<{ kind: "rejected"; error: unknown; settled: X402Settled }>;

/** The upload of a payment: the size of the complete item, bytes, and a unique name. */
export type X402Upload = Readonly<{ size: number; id: string }>;

/** After the settlement, the credits of the payer pay. */
export const listOrSigner = { paidBy: [], directive: "list-or-signer" } as const;

/** @throws Failure as `X402.settle` does. */
export function settleUpload(
  x402: X402,
  { size, id }: X402Upload,
  { payment, resource }: X402Sent,
  signal: AbortSignal,
): Promise<X402Settled> {
  const want = { kind: "bytes", size: BigInt(size) } as const;
  return x402.settle({ payment, want, purpose: uploadPurpose(id), resource }, signal);
}

/** Unique name of a payment: its payer uses a nonce once. */
export function paymentName({ terms }: X402, { authorization }: X402Payment): string {
  return `x402:${terms.network.name}:${terms.network.asset.address}:${authorization.from}:${authorization.nonce}`;
}

/** The failure for a settled payment that was used before. */
export function usedBefore(): Failure {
  return new Failure("settlement_failed", {
    reason: "the payment was used for another upload, or credited to its payer",
  });
}

/** Parameters of a paid multipart upload. */
export type ChunkedUpload = Readonly<{
  chunkSize: number | undefined;
  /** Size of the complete item. Bytes. */
  size: number;
  /** The account that receives a refund. */
  refundTo: UserAddress;
  client: string;
}>;

/** Calls may reject with the failures of `X402.settle`, before any byte is stored. */
export type X402Uploads = Readonly<{
  x402: UnsignedParts["x402"];
  /**
   * Rejects an upload that would not be accepted from any payer, before a payment is requested.
   * @param size - Of the complete item. Bytes.
   * @throws Failure `item_too_large` {reason}, `no_space`, `not_synced`.
   */
  checkSize: (size: number) => void;
  /** Whether an item of this size is free for every client. */
  isFree: (size: number) => boolean;
  /**
   * Size of the item of unsigned bytes if they are free, or if they are paid for: then a tag names the payer.
   * @throws Failure `malformed_input` {reason} for invalid tags.
   */
  freeSize: (upload: Pick<UnsignedUpload, "tags" | "size">) => number;
  paidSize: (upload: Pick<UnsignedUpload, "tags" | "size">) => number;
  takeSigned: (
    item: Pick<Arrival, "pieces"> & Readonly<{ size: number }>,
    sent: X402Sent,
    signal: AbortSignal,
  ) => Promise<X402Outcome<Taken>>;
  /** Accepts free bytes. @throws Failure as `Multipart.finalize` does. */
  takeFree: (upload: UnsignedUpload, signal: AbortSignal) => Promise<Taken>;
  takeUnsigned: (upload: UnsignedUpload, sent: X402Sent, signal: AbortSignal) => Promise<X402Outcome<Taken>>;
  createChunked: (upload: ChunkedUpload, sent: X402Sent, signal: AbortSignal) => Promise<X402Outcome<MultipartUpload>>;
}>;

export type X402UploadsParts = UnsignedParts &
  Readonly<{
    intake: Pick<Intake, "take">;
    credits: Pick<Credits, "reserve" | "void">;
    rules: Readonly<{ itemBytesMax: number; freeBytesMax: number; blocked: ReadonlySet<string> }>;
    /** Called before a payment. @throws Failure `no_space`, `not_synced` while no item could be accepted. */
    checkReady: (size: number) => void;
    clock: Clock;
    log: Log;
  }>;

/** Lifetime of a reservation: longer than an upload. After a crash its expiry returns the credits. Milliseconds. */
const holdMs = 3_600_000;

/** Time in which a client that lost the response may request its multipart upload again. Milliseconds. */
const askAgainMs = 10 * 60_000;
const makersMax = 1_000;

/** A placeholder of the length of every payer address, so that the quoted size is the size of the paid item. */
const somePayer = `0x${"0".repeat(40)}`;

export function createX402Uploads(parts: X402UploadsParts): X402Uploads {
  const { x402, multipart, signer, rules } = parts;
  const underWay = new Set<string>();
  const makers = createMakers(parts.clock);

  /** Serves the first of concurrent requests with one payment. */
  async function first<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    if (underWay.has(name)) throw new Failure("busy", { reason: "the payment is being used", name });
    underWay.add(name);
    try {
      return await work();
    } finally {
      underWay.delete(name);
    }
  }

  function checkTerms(size: number, ...addresses: readonly string[]): void {
    checkItemSize(size, rules.itemBytesMax);
    const address = addresses.find((one) => rules.blocked.has(one));
    if (address !== undefined) throw new Failure("upload_forbidden", { address });
    parts.checkReady(size);
  }

  const freeSize: X402Uploads["freeSize"] = ({ tags, size }) => size + signer.headerSize(tags);
  const paidSize: X402Uploads["paidSize"] = ({ tags, size }) => size + signer.headerSize(paidTags(tags, somePayer));

  return {
    x402,
    checkSize: (size) => checkTerms(size),
    isFree: (size) => size <= rules.freeBytesMax,
    freeSize,
    paidSize,
    takeSigned: (item, sent, signal) => {
      const { payment } = sent;
      checkTerms(item.size, payment.authorization.from);
      return first(paymentName(x402, payment), () => takeSigned(parts, item, sent, signal));
    },
    takeFree: async (upload, signal) => {
      checkTerms(freeSize(upload));
      const { id } = await multipart.create({ chunkSize: undefined, client: upload.client });
      return await bringUnsigned(parts, id, upload, signal);
    },
    takeUnsigned: async (upload, sent, signal) => {
      const { from } = sent.payment.authorization;
      const size = paidSize(upload);
      checkTerms(size, from);
      const paid = { ...upload, tags: paidTags(upload.tags, from) };
      return await first(paymentName(x402, sent.payment), () => takeUnsigned(parts, paid, size, sent, signal));
    },
    createChunked: async (upload, sent, signal) => {
      checkTerms(upload.size, sent.payment.authorization.from, upload.refundTo);
      return await first(paymentName(x402, sent.payment), () => createChunked(parts, makers, upload, sent, signal));
    },
  };
}

async function takeSigned(
  parts: X402UploadsParts,
  { pieces, size }: Readonly<{ pieces: AsyncIterable<Uint8Array>; size: number }>,
  sent: X402Sent,
  signal: AbortSignal,
): Promise<X402Outcome<Taken>> {
  const { x402, credits, clock, log } = parts;
  const name = paymentName(x402, sent.payment);
  const state: { settled?: X402Settled; hold?: string } = {};
  const arrival: Arrival = {
    ...listOrSigner,
    pieces,
    size,
    prepay: async (id, own) => {
      const settled = await settleUpload(x402, { size, id: `item:${id}` }, sent, own);
      state.settled = settled;
      const asked = { itemId: name, signer: settled.payer, ...listOrSigner, winc: settled.quotedWinc };
      state.hold = (await credits.reserve({ ...asked, expiresAt: clock() + holdMs })).id;
      return { payer: settled.payer, winc: winc(settled.quotedWinc), size };
    },
    alongside: async (tx, step) => {
      if (state.hold !== undefined) await voidReservation(tx, state.hold, step);
    },
  };
  try {
    return { kind: "done", response: await parts.intake.take(arrival, signal), settled: state.settled };
  } catch (error) {
    if (state.settled === undefined) throw error;
    if (state.hold !== undefined)
      await credits.void(state.hold).catch((cause: unknown) => {
        log.warn("the reservation of an upload is released later", { name, error: cause });
        return undefined;
      });
    return { kind: "rejected", error, settled: state.settled };
  }
}

async function createChunked(
  { x402, multipart }: X402UploadsParts,
  makers: Makers,
  { chunkSize, size, refundTo, client }: ChunkedUpload,
  sent: X402Sent,
  signal: AbortSignal,
): Promise<X402Outcome<MultipartUpload>> {
  const settled = await settleUpload(x402, { size, id: `chunks:${size}:${refundTo}` }, sent, signal);
  const payment = paymentName(x402, sent.payment);
  try {
    const known = await multipart.findPaid(payment);
    // The upload id authorizes writes, so it is returned again only to the client that created the upload.
    if (known !== undefined && makers.isMaker(payment, client)) return { kind: "done", response: known, settled };
    if (known !== undefined || settled.isReplay) throw usedBefore();
    const paid = { payer: refundTo, size, winc: winc(settled.quotedWinc), payment };
    const made = await multipart.createPaid({ chunkSize, paid, from: settled.payer });
    makers.note(payment, client);
    return { kind: "done", response: made, settled };
  } catch (error) {
    return { kind: "rejected", error, settled };
  }
}

function paidTags(tags: readonly Tag[], payer: string): readonly Tag[] {
  return [...tags, { name: "X402-Payer-Address", value: payer }];
}

type Makers = Readonly<{
  note: (payment: string, client: string) => void;
  isMaker: (payment: string, client: string) => boolean;
}>;

/** Remembers for a limited time which client created an upload with a payment. */
function createMakers(clock: Clock): Makers {
  const makers = new Map<string, Readonly<{ client: string; until: number }>>();
  return {
    note: (payment, client) => {
      makers.set(payment, { client, until: clock() + askAgainMs });
      for (const [oldest, { until }] of makers) {
        if (makers.size <= makersMax && until > clock()) break;
        makers.delete(oldest);
      }
    },
    isMaker: (payment, client) => {
      const maker = makers.get(payment);
      return maker !== undefined && maker.client === client && clock() < maker.until;
    },
  };
}

/** An upload that the service signs. */
export type UnsignedUpload = Readonly<{
  pieces: ArrivingBytes["pieces"];
  size: number;
  /** Tags of the item, without that of the payer. */
  tags: readonly Tag[];
  /** Key of the client for limits. */
  client: string;
}>;

export type UnsignedParts = Readonly<{
  x402: X402;
  multipart: Multipart;
  /** Ends a multipart upload before it expires. */
  drop: (id: string) => Promise<void>;
  signer: ItemSigner;
  blockList: Pick<UploadBlockList, "isBlockedDigest">;
  /** Path of an upload's file within the folder of uploads. */
  nameOf: (upload: string) => string;
}>;

/**
 * Bodies up to this size are read before the payment, which is bound to their hash: a repeated request can only buy the
 * same bytes.
 */
export const boundBytesMax = 64 * 2 ** 10;

/**
 * Accepts paid bytes.
 *
 * @param upload - With all tags of the item.
 * @param size - Of the complete item. Bytes.
 */
export async function takeUnsigned(
  parts: UnsignedParts,
  upload: UnsignedUpload,
  size: number,
  sent: X402Sent,
  signal: AbortSignal,
): Promise<X402Outcome<Taken>> {
  const { x402, multipart, blockList } = parts;
  const bound = upload.size <= boundBytesMax ? await readWhole(upload) : undefined;
  // Before the payment, if the complete body is in memory.
  if (bound !== undefined && blockList.isBlockedDigest(sha256(bound))) throw new Failure("blocked");
  const id = ["unsigned", size, digestOf(utf8Bytes(JSON.stringify(upload.tags)))];
  if (bound !== undefined) id.push(digestOf(bound));
  const settled = await settleUpload(x402, { size, id: id.join(":") }, sent, signal);
  const payment = paymentName(x402, sent.payment);
  try {
    const known = await multipart.findPaid(payment);
    const taken = known === undefined ? undefined : await takenBefore(parts, known, signal);
    if (taken !== undefined) return { kind: "done", response: taken, settled };
    // The program ended during the upload. Its bytes cannot be distinguished from what another client may send now.
    if (bound === undefined && (known !== undefined || settled.isReplay)) throw usedBefore();
    const paid = { payer: settled.payer, size, winc: winc(settled.quotedWinc), payment };
    const made = await multipart.createPaid({ chunkSize: undefined, paid, from: settled.payer });
    const pieces = bound === undefined ? upload.pieces : [bound].values();
    return {
      kind: "done",
      response: await bringUnsigned(parts, made.id, { ...upload, pieces }, signal),
      settled,
    };
  } catch (error) {
    return { kind: "rejected", error, settled };
  }
}

/** The item of an earlier request with the same payment. An interrupted upload is removed. */
async function takenBefore(
  { multipart, drop }: UnsignedParts,
  { id, state }: MultipartUpload,
  signal: AbortSignal,
): Promise<Taken | undefined> {
  if (state === "open" || state === "failed") {
    await drop(id);
    return undefined;
  }
  // All bytes had arrived: waits for the finalization, or continues one that was interrupted.
  return await multipart.finalize(id, { ...listOrSigner, token: undefined }, signal);
}

/** Reads a complete body. @throws Failure `upload_rejected` {reason} when it has another size than announced. */
async function readWhole({ pieces, size }: UnsignedUpload): Promise<Uint8Array> {
  const read: Uint8Array[] = [];
  let received = 0;
  for (let next = await pieces.next(); next.done !== true && received <= size; next = await pieces.next()) {
    read.push(next.value);
    received += next.value.length;
  }
  if (received !== size)
    throw new Failure("upload_rejected", { reason: `It has ${received} bytes, ${size} were announced.` });
  return concatBytes(read);
}

function digestOf(bytes: Uint8Array): string {
  return encodeBase64url(sha256(bytes));
}

/** Stores and signs bytes, and finalizes the item. Removes the upload after a failure. */
export async function bringUnsigned(
  { multipart, signer, nameOf: fileOf, drop }: UnsignedParts,
  id: string,
  { pieces, size, tags }: UnsignedUpload,
  signal: AbortSignal,
): Promise<Taken> {
  try {
    const start = signer.headerSize(tags);
    await putAll(multipart, id, { start, size, pieces }, signal);
    const header = await signer.sign({ file: fileOf(id), start, size, tags }, signal);
    await putAll(multipart, id, { start: 0, size: start, pieces: [header].values() }, signal);
    return await multipart.finalize(id, { ...listOrSigner, token: undefined }, signal);
  } catch (error) {
    await drop(id);
    throw error;
  }
}

/** Size of a part. Bytes. */
const partBytes = Math.min(chunkSizeMax, 256 * 2 ** 20);

/** A part whose bytes arrive or are in memory. */
export type ArrivingBytes = Omit<ArrivingPart, "pieces"> &
  Readonly<{ pieces: AsyncIterator<Uint8Array> | Iterator<Uint8Array> }>;

/** @throws Failure as `Multipart.put` does. */
export async function putAll(
  multipart: Pick<Multipart, "put">,
  id: string,
  { start, size, pieces }: ArrivingBytes,
  signal: AbortSignal,
): Promise<void> {
  const cutter = createCutter(pieces);
  for (let at = 0; at < size; at += partBytes) {
    const part = Math.min(partBytes, size - at);
    // The last part reads to the end, so that excess bytes are detected.
    const cut = cutter(at + part === size ? Number.POSITIVE_INFINITY : part);
    await multipart.put(id, { start: start + at, size: part, pieces: cut }, signal);
  }
}

/** Cuts a stream into runs of given sizes. */
function createCutter(pieces: ArrivingBytes["pieces"]): (bytes: number) => AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array(0);
  return async function* (bytes) {
    for (let left = bytes; left > 0; ) {
      if (rest.length === 0) {
        const next = await pieces.next();
        if (next.done === true) return;
        rest = next.value;
      }
      const taken = rest.subarray(0, Math.min(rest.length, left));
      rest = rest.subarray(taken.length);
      left -= taken.length;
      if (taken.length > 0) yield taken;
    }
  };
}
