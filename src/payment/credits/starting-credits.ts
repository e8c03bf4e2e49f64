/**
 * Credits that an account begins with: once for ever, however often they are given.
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import { claimEvent, type MakeId, promo, transfer, user } from "../../store/ledger/transfers.ts";
import type { UserAddress } from "../addresses.ts";

export type StartingCreditsParts = Readonly<{ ledger: LedgerDatabase; clock: Clock; makeId: MakeId }>;

/** The event that each account is claimed under. */
const source = "starting-credits";

/**
 * Gives credits to each account that was never given any here.
 *
 * @param winc - To each, above 0.
 * @returns The accounts that were given them now; when it resolves, they are durable.
 */
export async function giveStartingCredits(
  { ledger, clock, makeId }: StartingCreditsParts,
  accounts: readonly UserAddress[],
  winc: bigint,
): Promise<UserAddress[]> {
  const at = clock();
  return await ledger.write(async (tx) => {
    const given: UserAddress[] = [];
    for (const account of accounts) {
      if (!(await claimEvent(tx, source, account, at))) continue;
      const legs = [
        { account: promo, amount: -winc },
        { account: user(account), amount: winc },
      ];
      await transfer(tx, { id: makeId(), kind: "promotion", at, legs, note: "credits to begin with" });
      given.push(account);
    }
    return given;
  });
}
