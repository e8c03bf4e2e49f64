/**
 * Thread entry: takes data items as `workers/intake.ts` does, and ends at once where an item says so: with all that the
 * thread has in hand.
 * @module
 */
import type {
  BeginItemJob,
  DigestItemJob,
  EndDigestJob,
  FeedItemJob,
  FinishItemJob,
  TakeItemsJob,
} from "../../../workers/intake.ts";
import * as intake from "../../../workers/intake.ts";

/** In the payload of an item that ends its thread. */
const fatal = Buffer.from("the thread ends here");

export function takeItems(job: TakeItemsJob) {
  if (job.items.some(isFatal)) process.exit(1);
  return intake.takeItems(job);
}

export const beginItem = (job: BeginItemJob) => intake.beginItem(job);
export const digestItem = (job: DigestItemJob) => intake.digestItem(job);
export const endDigest = (job: EndDigestJob) => intake.endDigest(job);
export const finishItem = (job: FinishItemJob) => intake.finishItem(job);
export const { dropItem, ping } = intake;

export function feedItem(job: FeedItemJob) {
  if (job.pieces.some(isFatal)) process.exit(1);
  return intake.feedItem(job);
}

function isFatal(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(fatal);
}
