/**
 * Uploads that are paid for by x402 as they come: settled before anything is stored, held until the item is there, and
 * credited to the payer if it is rejected.
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
import { uploadPurpose, type X402, type X402Payment, type X402Settled } from "../../payment/x402/x402.ts";
import type { UploadBlockList } from "../blocked-uploads.ts";
import { checkItemSize } from "../intake/arriving-item.ts";
import type { Taken } from "../intake/charge-item.ts";
import type { Arrival, Intake } from "../intake/item-intake.ts";
import type { MultipartUpload } from "../multipart/multipart-rows.ts";
import { chunkSizeMax, type Multipart } from "../multipart/multipart-uploads.ts";
import type { ArrivingPart } from "../multipart/part-writers.ts";
import type { ItemSigner } from "../upload-signing.ts";

/** A payment that came with an upload. */
export type X402Sent = Readonly<{
  payment: X402Payment;
  /** Address of what is paid for, absolute. */
  resource: string;
}>;

/** What became of an upload; what is refused before its payment has settled is thrown. */
export type X402Outcome<Result> =
  /** `settled` is undefined where nothing was asked for, or the item was there already. */
  | Readonly<{ kind: "done"; response: Result; settled: X402Settled | undefined }>
  /** The payment has settled all the same: the payer has the credits. */
  | Readonly<{ kind: "rejected"; error: unknown; settled: X402Settled }>;

/** An upload that a payment is for: the whole item's size, bytes, and a name that no other upload has. */
export type X402Upload = Readonly<{ size: number; id: string }>;

/** Whose credits pay once a payment has settled: its payer's own. */
export const listOrSigner = { paidBy: [], directive: "list-or-signer" } as const;

/** Settles the payment of an upload. @throws Failure as `X402.settle` does. */
export function settleUpload(
  x402: X402,
  { size, id }: X402Upload,
  { payment, resource }: X402Sent,
  signal: AbortSignal,
): Promise<X402Settled> {
  const want = { kind: "bytes", size: BigInt(size) } as const;
  return x402.settle({ payment, want, purpose: uploadPurpose(id), resource }, signal);
}

/** Names a payment: its nonce is used once by its payer. */
export function paymentName({ terms }: X402, { authorization }: X402Payment): string {
  return `x402:${terms.network.name}:${terms.network.asset.address}:${authorization.from}:${authorization.nonce}`;
}

/** What is said of a payment that has settled, and buys nothing more than it has. */
export function usedBefore(): Failure {
  return new Failure("settlement_failed", {
    reason: "the payment was used for another upload, or credited to its payer",
  });
}

/** An upload in parts that is to be made. */
export type ChunkedUpload = Readonly<{
  chunkSize: number | undefined;
  /** Of the whole item. Bytes. */
  size: number;
  /** Who has the credits when they are given back. */
  refundTo: UserAddress;
  client: string;
}>;

/** Uploads by x402. Every call may reject with the failures of `X402.settle`, before anything is stored. */
export type X402Uploads = Readonly<{
  x402: UnsignedParts["x402"];
  /**
   * Rejects an upload that would not be accepted from any payer, before a payment is requested.
   * @param size - Of the whole item. Bytes.
   * @throws Failure `item_too_large` {reason}, `no_space`, `not_synced`.
   */
  checkSize: (size: number) => void;
  /** Whether a whole item costs nothing, whoever sends it. */
  isFree: (size: number) => boolean;
  /**
   * The size of the item that unsigned bytes become when they are free, and when they are paid for: then it says who
   * paid. @throws Failure `malformed_input` {reason} for tags that cannot be.
   */
  freeSize: (upload: Pick<UnsignedUpload, "tags" | "size">) => number;
  paidSize: (upload: Pick<UnsignedUpload, "tags" | "size">) => number;
  takeSigned: (
    item: Pick<Arrival, "pieces"> & Readonly<{ size: number }>,
    sent: X402Sent,
    signal: AbortSignal,
  ) => Promise<X402Outcome<Taken>>;
  /** Takes bytes that cost nothing. @throws Failure as `Multipart.finalize` does. */
  takeFree: (upload: UnsignedUpload, signal: AbortSignal) => Promise<Taken>;
  takeUnsigned: (upload: UnsignedUpload, sent: X402Sent, signal: AbortSignal) => Promise<X402Outcome<Taken>>;
  createChunked: (upload: ChunkedUpload, sent: X402Sent, signal: AbortSignal) => Promise<X402Outcome<MultipartUpload>>;
}>;

/** What they work with. */
export type X402UploadsParts = UnsignedParts &
  Readonly<{
    intake: Pick<Intake, "take">;
    credits: Pick<Credits, "reserve" | "void">;
    rules: Readonly<{ itemBytesMax: number; freeBytesMax: number; blocked: ReadonlySet<string> }>;
    /** @throws Failure `no_space`, `not_synced` while no item could be taken: before anybody pays. */
    checkReady: (size: number) => void;
    clock: Clock;
    log: Log;
  }>;

/**
 * What was paid is held no longer than an upload takes; after a crash the credits are the payer's then. Milliseconds.
 */
const holdMs = 3_600_000;

/** A client that lost the response may request its multipart upload again for so long. Milliseconds. */
const askAgainMs = 10 * 60_000;
const makersMax = 1_000;

/** As long as any address of a payer: what is asked for does not change when it is paid. */
const somePayer = `0x${"0".repeat(40)}`;

/** Creates them. */
export function createX402Uploads(parts: X402UploadsParts): X402Uploads {
  const { x402, multipart, signer, rules } = parts;
  const underWay = new Set<string>();
  const makers = createMakers(parts.clock);

  /** Of requests that come at once with one payment the first is served. */
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
        log.warn("what was held for an upload is given back later", { name, error: cause });
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

/** Who made what with a payment, for a while. */
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

/** Bytes that the service signs. */
export type UnsignedUpload = Readonly<{
  pieces: ArrivingBytes["pieces"];
  size: number;
  /** What is said of them; the payer is added. */
  tags: readonly Tag[];
  /** Who asks, as far as limits are about it. */
  client: string;
}>;

/** What it works with. */
export type UnsignedParts = Readonly<{
  x402: X402;
  multipart: Multipart;
  /** Ends an upload in parts before its time. */
  drop: (id: string) => Promise<void>;
  signer: ItemSigner;
  blockList: Pick<UploadBlockList, "isBlockedDigest">;
  /** What the file of an upload is called below the folder of uploads. */
  nameOf: (upload: string) => string;
}>;

/**
 * Bytes up to this size are read before they are paid for, as any small body is, and the payment is bound to them: who
 * sends it again, after whatever became of the first time, can buy nothing else with it.
 */
export const boundBytesMax = 64 * 2 ** 10;

/**
 * Takes bytes that are paid for.
 *
 * @param upload - With all the tags that the item gets.
 * @param size - Of the whole item. Bytes.
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
  // Before anybody pays, where all of it is at hand.
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

/** What has come of bytes that were sent with a payment before; of what broke off nothing is left. */
async function takenBefore(
  { multipart, drop }: UnsignedParts,
  { id, state }: MultipartUpload,
  signal: AbortSignal,
): Promise<Taken | undefined> {
  if (state === "open" || state === "failed") {
    await drop(id);
    return undefined;
  }
  // All of it had come: where its sender had gone before it was an item, or the program, somebody is at it.
  return await multipart.finalize(id, { ...listOrSigner, token: undefined }, signal);
}

/** All of a body. @throws Failure `upload_rejected` {reason} when it has another size than was announced. */
async function readWhole({ pieces, size }: UnsignedUpload): Promise<Uint8Array> {
  const read: Uint8Array[] = [];
  let come = 0;
  for (let next = await pieces.next(); next.done !== true && come <= size; next = await pieces.next()) {
    read.push(next.value);
    come += next.value.length;
  }
  if (come !== size) throw new Failure("upload_rejected", { reason: `It has ${come} bytes, ${size} were announced.` });
  return concatBytes(read);
}

function digestOf(bytes: Uint8Array): string {
  return encodeBase64url(sha256(bytes));
}

/** Brings bytes to the disk, signs them, and makes an item of them; or leaves nothing. */
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

/** Parts are cut so large. Bytes. */
const partBytes = Math.min(chunkSizeMax, 256 * 2 ** 20);

/** Bytes that arrive, or are at hand. */
export type ArrivingBytes = Omit<ArrivingPart, "pieces"> &
  Readonly<{ pieces: AsyncIterator<Uint8Array> | Iterator<Uint8Array> }>;

/** Writes them. @throws Failure as `Multipart.put` does. */
export async function putAll(
  multipart: Pick<Multipart, "put">,
  id: string,
  { start, size, pieces }: ArrivingBytes,
  signal: AbortSignal,
): Promise<void> {
  const cutter = createCutter(pieces);
  for (let at = 0; at < size; at += partBytes) {
    const part = Math.min(partBytes, size - at);
    // The last one takes all that comes, so that more than was announced is seen.
    const cut = cutter(at + part === size ? Number.POSITIVE_INFINITY : part);
    await multipart.put(id, { start: start + at, size: part, pieces: cut }, signal);
  }
}

/** Cuts a stream into runs of so many bytes. */
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
