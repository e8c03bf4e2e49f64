/**
 * Uploads that are paid for by x402 as they come: settled before anything is stored, held until the item is there, and
 * credited where it is refused.
 * Source: docs/reference/upload.md#paying-with-the-request.
 * @module
 */
import type { Tag } from "../../arweave/tags.ts";
import { winc } from "../../arweave/winston.ts";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { UserAddress } from "../../payment/addresses.ts";
import type { Credits } from "../../payment/credits/credits.ts";
import { voidReservation } from "../../payment/credits/reservations.ts";
import type { X402Settled } from "../../payment/x402/x402.ts";
import type { Taken } from "../intake/charge.ts";
import type { Arrival, Intake } from "../intake/item-intake.ts";
import { refuseTooLarge } from "../item-size.ts";
import type { MultipartUpload } from "../multipart/multipart-rows.ts";
import { listOrSigner, paymentName, settleUpload, usedBefore, type X402Outcome, type X402Sent } from "./sent.ts";
import { bringUnsigned, takeUnsigned, type UnsignedParts, type UnsignedUpload } from "./unsigned-uploads.ts";

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
   * Refuses what would not be taken whoever pays for it: before anybody is asked to.
   * @param size - Of the whole item. Bytes.
   * @throws Failure `item_too_large` {reason}, `no_room`, `not_synced`.
   */
  refuse: (size: number) => void;
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

  function refuse(size: number, ...addresses: readonly string[]): void {
    refuseTooLarge(size, rules.itemBytesMax);
    const address = addresses.find((one) => rules.blocked.has(one));
    if (address !== undefined) throw new Failure("upload_forbidden", { address });
    parts.refuseAll(size);
  }

  const freeSize: X402Uploads["freeSize"] = ({ tags, size }) => size + signer.headerSize(tags);
  const paidSize: X402Uploads["paidSize"] = ({ tags, size }) => size + signer.headerSize(paidTags(tags, somePayer));

  return {
    x402,
    refuse: (size) => refuse(size),
    isFree: (size) => size <= rules.freeBytesMax,
    freeSize,
    paidSize,
    takeSigned: (item, sent, signal) => {
      const { payment } = sent;
      refuse(item.size, payment.authorization.from);
      return first(paymentName(x402, payment), () => takeSigned(parts, item, sent, signal));
    },
    takeFree: async (upload, signal) => {
      refuse(freeSize(upload));
      const { id } = await multipart.create({ chunkSize: undefined, client: upload.client });
      return await bringUnsigned(parts, id, upload, signal);
    },
    takeUnsigned: async (upload, sent, signal) => {
      const { from } = sent.payment.authorization;
      const size = paidSize(upload);
      refuse(size, from);
      const paid = { ...upload, tags: paidTags(upload.tags, from) };
      return await first(paymentName(x402, sent.payment), () => takeUnsigned(parts, paid, size, sent, signal));
    },
    createChunked: async (upload, sent, signal) => {
      refuse(upload.size, sent.payment.authorization.from, upload.refundTo);
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
    return { kind: "refused", error, settled: state.settled };
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
    // Who knows an upload's name may write to it: so it is told again only to who was told before.
    if (known !== undefined && makers.isMaker(payment, client)) return { kind: "done", response: known, settled };
    if (known !== undefined || settled.isReplay) throw usedBefore();
    const paid = { payer: refundTo, size, winc: winc(settled.quotedWinc), payment };
    const made = await multipart.createPaid({ chunkSize, paid, from: settled.payer });
    makers.note(payment, client);
    return { kind: "done", response: made, settled };
  } catch (error) {
    return { kind: "refused", error, settled };
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
