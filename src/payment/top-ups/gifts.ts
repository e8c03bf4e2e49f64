/**
 * Gifts: paid credits that the holder of a link's secret can redeem.
 *
 * The ledger knows a gift by the hash of its secret: the ledger alone does not allow redemption. No mail is sent; the
 * secret is returned once, in the response to the top-up.
 * Source: docs/reference/payment.md#gifts.
 * @module
 */
import { rejected } from "../../failures.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import type { Clock } from "../../lib/clock.ts";
import { sha256 } from "../../lib/hash.ts";
import { type LedgerDatabase, readTime, type Tx } from "../../store/ledger/ledger-database.ts";
import { balanceOf, gift, type MakeId, transfer, user } from "../../store/ledger/transfers.ts";
import type { UserAddress } from "../addresses.ts";

/** A gift's secret and the id that the ledger knows it by. */
export type NewGift = Readonly<{ secret: string; giftId: string }>;

/** The result of a redemption. */
export type Redemption = Readonly<{
  winc: bigint;
  /** The balance of the account. */
  balance: bigint;
  /** When credits first moved there, Unix ms. */
  since: number;
}>;

export type GiftParts = Readonly<{ ledger: LedgerDatabase; makeId: MakeId; clock: Clock }>;

/** Redeems gifts. */
export type Gifts = Readonly<{
  /**
   * Moves what a gift holds to an account, once.
   * @throws Failure `payment_rejected` with the reason: redeemed before, not paid for, unknown, or charged back.
   */
  redeem: (secret: string, address: UserAddress) => Promise<Redemption>;
}>;

/** Large enough to be unguessable. Bytes. */
const secretSize = 32;

export function createGift(randomBytes: (size: number) => Uint8Array): NewGift {
  const bytes = randomBytes(secretSize);
  return { secret: encodeBase64url(bytes), giftId: encodeBase64url(sha256(bytes)) };
}

export function createGifts({ ledger, makeId, clock }: GiftParts): Gifts {
  return {
    redeem: async (secret, address) => {
      const giftId = giftIdOf(secret);
      if (giftId === undefined) throw rejected("Failure to redeem payment receipt!");
      const now = clock();
      return await ledger.write((tx) => redeem(tx, giftId, address, now, makeId));
    },
  };
}

async function redeem(tx: Tx, giftId: string, address: UserAddress, now: number, makeId: MakeId): Promise<Redemption> {
  const row = await tx.get<{ state: string; quote_id: string }>(
    "SELECT state, quote_id FROM gifts WHERE id = ?",
    giftId,
  );
  if (row?.state === "redeemed") throw rejected("Gift has already been redeemed!");
  const winc = await balanceOf(tx, gift(giftId));
  if (row?.state !== "open" || winc <= 0n) throw rejected("Failure to redeem payment receipt!");
  await transfer(tx, {
    id: makeId(),
    kind: "gift_redemption",
    at: now,
    changeId: row.quote_id,
    legs: [
      { account: gift(giftId), amount: -winc },
      { account: user(address), amount: winc },
    ],
  });
  await tx.run(
    "UPDATE gifts SET state = 'redeemed', redeemed_by = ?, redeemed_at = ?, redeemed_winc = ? WHERE id = ?",
    address,
    BigInt(now),
    winc,
    giftId,
  );
  return { winc, balance: await balanceOf(tx, user(address)), since: await sinceOf(tx, address) };
}

/** Transfers sort by time. */
async function sinceOf(tx: Tx, address: UserAddress): Promise<number> {
  const first = await tx.get<{ at: bigint }>(
    "SELECT t.at FROM entries e JOIN transfers t ON t.id = e.transfer_id WHERE e.account = ? " +
      "ORDER BY e.transfer_id LIMIT 1",
    user(address),
  );
  if (first === undefined) throw new Error("an account that was credited has a history");
  return readTime(first.at);
}

function giftIdOf(secret: string): string | undefined {
  if (secret.length > 2 * secretSize) return undefined;
  const bytes = decodeBase64url(secret);
  return bytes?.length === secretSize ? encodeBase64url(sha256(bytes)) : undefined;
}
