/**
 * Uploads that are paid for by x402 as they come: settled before anything is stored, held until the item is there, and
 * credited where it is refused.
 *
 * A payment can be read off the chain by anybody once it has settled. So it is bound to what it was sent for, and who
 * sends it again is told what came of it, and can do nothing else with it.
 * Source: contract.md §6; reference/upload.md §0 (2, 3), §1; reference/payment.md §6.
 * @module
 */
import type { Tag } from "../arweave/tags.ts";
import { winc } from "../arweave/winston.ts";
import { Failure } from "../failures.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import { utf8Bytes } from "../lib/bytes.ts";
import type { Clock } from "../lib/clock.ts";
import { sha256 } from "../lib/hash.ts";
import type { Log } from "../lib/log.ts";
import type { UserAddress } from "../payment/addresses.ts";
import type { Credits } from "../payment/credits.ts";
import { voidReservation } from "../payment/reservations.ts";
import type { X402Payment } from "../payment/x402/payload.ts";
import { uploadPurpose, type X402, type X402Purpose, type X402Settled } from "../payment/x402/x402.ts";
import type { Taken } from "./charge.ts";
import type { Arrival, Intake } from "./intake.ts";
import type { ItemSigner } from "./item-signing.ts";
import type { Multipart } from "./multipart.ts";
import type { MultipartUpload } from "./multipart-rows.ts";
import { putAll } from "./put-all.ts";

/** A payment that came with an upload. */
export type X402Sent = Readonly<{
  payment: X402Payment;
  /** Address of what is paid for, absolute. */
  resource: string;
}>;

/** What became of an upload; what is refused before its payment has settled is thrown. */
export type X402Outcome<Answer> =
  /** `settled` is undefined where nothing was asked for, or the item was there already. */
  | Readonly<{ kind: "done"; answer: Answer; settled: X402Settled | undefined }>
  /** The payment has settled all the same: the payer has the credits. */
  | Readonly<{ kind: "refused"; error: unknown; settled: X402Settled }>;

/** Bytes that the service signs. */
export type UnsignedUpload = Readonly<{
  pieces: AsyncIterator<Uint8Array>;
  size: number;
  /** What is said of them; the payer is added. */
  tags: readonly Tag[];
  /** Who asks, as far as limits are about it. */
  client: string;
}>;

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
  x402: X402;
  /** Whether a whole item costs nothing, whoever sends it. */
  isFree: (size: number) => boolean;
  /**
   * The size of the item that unsigned bytes become. @throws Failure `malformed_input` {reason} for tags that cannot
   * be.
   */
  unsignedSize: (upload: Pick<UnsignedUpload, "tags" | "size">, isPaid: boolean) => number;
  takeSigned: (
    item: Pick<Arrival, "pieces"> & Readonly<{ size: number }>,
    sent: X402Sent,
    signal: AbortSignal,
  ) => Promise<X402Outcome<Taken>>;
  /** @param sent - Undefined: it is free. */
  takeUnsigned: (
    upload: UnsignedUpload,
    sent: X402Sent | undefined,
    signal: AbortSignal,
  ) => Promise<X402Outcome<Taken>>;
  createChunked: (
    upload: ChunkedUpload,
    sent: X402Sent,
    signal: AbortSignal,
  ) => Promise<X402Outcome<MultipartUpload>>;
}>;

/** What they work with. */
export type X402UploadsParts = Readonly<{
  x402: X402;
  intake: Pick<Intake, "take">;
  multipart: Multipart;
  /** Ends an upload in parts before its time. */
  drop: (id: string) => Promise<void>;
  signer: ItemSigner;
  /** What the file of an upload is called below the folder of uploads. */
  nameOf: (upload: string) => string;
  credits: Pick<Credits, "reserve" | "void">;
  rules: Readonly<{ itemBytesMax: number; freeBytesMax: number; blocked: ReadonlySet<string> }>;
  /** @throws Failure `no_room`, `not_synced` while no item could be taken: before anybody pays. */
  refuseAll: (size: number) => void;
  clock: Clock;
  log: Log;
}>;

/**
 * What was paid is held no longer than an upload takes; after a crash the credits are the payer's then. Milliseconds.
 */
const holdMs = 3_600_000;

/** Who made an upload in parts may ask for it again for so long, when the answer was lost. Milliseconds. */
const askAgainMs = 10 * 60_000;
const makersMax = 1_000;

const listOrSigner = { paidBy: [], directive: "list-or-signer" } as const;

/** As long as any address of a payer: what is asked for does not change when it is paid. */
const somePayer = `0x${"0".repeat(40)}`;

/** Creates them. */
export function createX402Uploads(parts: X402UploadsParts): X402Uploads {
  const { x402, multipart, signer, rules } = parts;
  const underWay = new Set<string>();
  const makers = createMakers(parts.clock);

  /** Of requests that come at once with one payment the first is served. */
  async function first<Answer>(name: string, work: () => Promise<Answer>): Promise<Answer> {
    if (underWay.has(name)) throw new Failure("busy", { reason: "the payment is being used", name });
    underWay.add(name);
    try {
      return await work();
    } finally {
      underWay.delete(name);
    }
  }

  function refuse(size: number, ...addresses: readonly string[]): void {
    if (size > rules.itemBytesMax) {
      const { itemBytesMax } = rules;
      const reason = `Data item is too large, this service only accepts data items up to ${itemBytesMax} bytes!`;
      throw new Failure("item_too_large", { reason, size });
    }
    const address = addresses.find((one) => rules.blocked.has(one));
    if (address !== undefined) throw new Failure("upload_forbidden", { address });
    parts.refuseAll(size);
  }

  const unsignedSize: X402Uploads["unsignedSize"] = ({ tags, size }, isPaid) =>
    size + signer.headerSize(isPaid ? paidTags(tags, somePayer) : tags);

  return {
    x402,
    isFree: (size) => size <= rules.freeBytesMax,
    unsignedSize,
    takeSigned: (item, sent, signal) => {
      const { payment } = sent;
      refuse(item.size, payment.authorization.from);
      return first(nameOf(x402, payment), () => takeSigned(parts, item, sent, signal));
    },
    takeUnsigned: async (upload, sent, signal) => {
      if (sent === undefined) {
        refuse(unsignedSize(upload, false));
        const { id } = await multipart.create({ chunkSize: undefined, client: upload.client });
        return { kind: "done", answer: await bringOrDrop(parts, id, upload, signal), settled: undefined };
      }
      const { from } = sent.payment.authorization;
      const size = unsignedSize(upload, true);
      refuse(size, from);
      const paid = { ...upload, tags: paidTags(upload.tags, from) };
      return await first(nameOf(x402, sent.payment), () => takeUnsigned(parts, paid, size, sent, signal));
    },
    createChunked: async (upload, sent, signal) => {
      refuse(upload.size, sent.payment.authorization.from, upload.refundTo);
      return await first(nameOf(x402, sent.payment), () =>
        createChunked(parts, makers, upload, sent, signal),
      );
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
  const name = nameOf(x402, sent.payment);
  const state: { settled?: X402Settled; hold?: string } = {};
  const arrival: Arrival = {
    ...{ ...listOrSigner, pieces, size },
    prepay: async (id, own) => {
      const settled = await settle(x402, size, uploadPurpose(`item:${id}`), sent, own);
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
    return { kind: "done", answer: await parts.intake.take(arrival, signal), settled: state.settled };
  } catch (error) {
    if (state.settled === undefined) throw error;
    if (state.hold !== undefined)
      await credits.void(state.hold).catch((cause: unknown) => {
        log.warn("what was held for an upload is given back later", { name, error: cause });
        return undefined;
      });
    return { kind: "refused", error, settled: state.settled };
  }
}

async function takeUnsigned(
  parts: X402UploadsParts,
  upload: UnsignedUpload,
  size: number,
  sent: X402Sent,
  signal: AbortSignal,
): Promise<X402Outcome<Taken>> {
  const { x402, multipart } = parts;
  const digest = encodeBase64url(sha256(utf8Bytes(JSON.stringify(upload.tags))));
  const settled = await settle(x402, size, uploadPurpose(`unsigned:${size}:${digest}`), sent, signal);
  const payment = nameOf(x402, sent.payment);
  try {
    const known = await multipart.findPaid(payment);
    if (known !== undefined)
      return { kind: "done", answer: await takenBefore(parts, known, signal), settled };
    if (settled.isReplay) throw usedBefore();
    const paid = { payer: settled.payer, size, winc: winc(settled.quotedWinc), payment };
    const { id } = await multipart.createPaid({ chunkSize: undefined, paid, from: settled.payer });
    return { kind: "done", answer: await bringOrDrop(parts, id, upload, signal), settled };
  } catch (error) {
    return { kind: "refused", error, settled };
  }
}

/** What has come of bytes that were sent with a payment before. @throws Failure `settlement_failed` for nothing. */
async function takenBefore(
  { multipart, drop }: X402UploadsParts,
  { id }: MultipartUpload,
  signal: AbortSignal,
): Promise<Taken> {
  const status = await multipart.status(id);
  switch (status.kind) {
    case "finalized":
      return status.taken;
    case "finalizing":
      // All of it had come, and its sender had gone, or the program with it.
      return await multipart.finalize(id, { ...listOrSigner, token: undefined }, signal);
    case "open":
    case "failed":
      // It broke off with its program. What has come of it cannot be told from what anybody else may send now.
      await drop(id);
      throw usedBefore();
  }
}

async function createChunked(
  { x402, multipart }: X402UploadsParts,
  makers: Makers,
  { chunkSize, size, refundTo, client }: ChunkedUpload,
  sent: X402Sent,
  signal: AbortSignal,
): Promise<X402Outcome<MultipartUpload>> {
  const settled = await settle(x402, size, uploadPurpose(`chunks:${size}:${refundTo}`), sent, signal);
  const payment = nameOf(x402, sent.payment);
  try {
    const known = await multipart.findPaid(payment);
    // Who knows an upload's name may write to it: so it is told again only to who was told before.
    if (known !== undefined && makers.isMaker(payment, client))
      return { kind: "done", answer: known, settled };
    if (known !== undefined || settled.isReplay) throw usedBefore();
    const paid = { payer: refundTo, size, winc: winc(settled.quotedWinc), payment };
    const made = await multipart.createPaid({ chunkSize, paid, from: settled.payer });
    makers.note(payment, client);
    return { kind: "done", answer: made, settled };
  } catch (error) {
    return { kind: "refused", error, settled };
  }
}

/** Brings bytes to the disk, signs them, and makes an item of them; or leaves nothing. */
async function bringOrDrop(
  { multipart, signer, nameOf: fileOf, drop }: X402UploadsParts,
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

function settle(
  x402: X402,
  size: number,
  purpose: X402Purpose,
  { payment, resource }: X402Sent,
  signal: AbortSignal,
): Promise<X402Settled> {
  return x402.settle({ payment, want: { kind: "bytes", size: BigInt(size) }, purpose, resource }, signal);
}

/** Names a payment: its nonce is used once by its payer. */
function nameOf({ terms }: X402, { authorization }: X402Payment): string {
  return `x402:${terms.network.name}:${terms.network.asset.address}:${authorization.from}:${authorization.nonce}`;
}

function paidTags(tags: readonly Tag[], payer: string): readonly Tag[] {
  return [...tags, { name: "X402-Payer-Address", value: payer }];
}

function usedBefore(): Failure {
  return new Failure("settlement_failed", {
    reason: "the payment was used for another upload, or credited to its payer",
  });
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
