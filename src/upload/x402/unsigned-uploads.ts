/**
 * Bytes that the service signs for their sender: brought to the disk as an upload in parts, signed there, and made an
 * item.
 * Source: docs/reference/upload.md#paying-with-the-request.
 * @module
 */
import type { Tag } from "../../arweave/tags.ts";
import { winc } from "../../arweave/winston.ts";
import { Failure } from "../../failures.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { concatBytes, utf8Bytes } from "../../lib/bytes.ts";
import { sha256 } from "../../lib/hash.ts";
import type { X402 } from "../../payment/x402/x402.ts";
import type { UploadBlockList } from "../blocked-uploads.ts";
import type { Taken } from "../intake/charge.ts";
import type { ItemSigner } from "../item-signing.ts";
import type { MultipartUpload } from "../multipart/multipart-rows.ts";
import type { Multipart } from "../multipart/multipart-uploads.ts";
import { type ArrivingBytes, putAll } from "../multipart/put-all.ts";
import { listOrSigner, paymentName, settleUpload, usedBefore, type X402Outcome, type X402Sent } from "./sent.ts";

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
    // It broke off with its program. What had come of it cannot be told from what anybody else may send now.
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
    return { kind: "refused", error, settled };
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
