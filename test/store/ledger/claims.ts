/**
 * Claims of outside events, many at once, each of which would credit its address if it won.
 * @module
 */
import type { LedgerDatabase } from "../../../src/store/ledger/ledger-database.ts";
import { adjustment, claimEvent, createTransferIds, transfer, user } from "../../../src/store/ledger/transfers.ts";
import { createRandom } from "../../support/random.ts";

/** How much is claimed. */
export type ClaimPlan = Readonly<{
  /** Events 0 to `events` − 1. */
  events: number;
  /** Claims of each. */
  claims: number;
  seed: number;
}>;

/** Winc of every event. */
export const eventWinc = 7n;

/** Claims that wait at once: fewer than a ledger lets wait. */
const atOnce = 4_000;

/** Claims every event so often, shuffled; returns the event of each claim that won. */
export async function claimAll(database: LedgerDatabase, { events, claims, seed }: ClaimPlan): Promise<string[]> {
  const random = createRandom(seed);
  const makeId = createTransferIds(Date.now, Math.random);
  const won: string[] = [];
  const claim = async (name: string) => {
    const id = makeId();
    const isFirst = await database.write(async (tx) => {
      if (!(await claimEvent(tx, "chain", name, 1))) return false;
      const legs = [
        { account: adjustment, amount: -eventWinc },
        { account: user(`payer of ${name}`), amount: eventWinc },
      ];
      await transfer(tx, { id, kind: "adjustment", at: 1, changeId: name, legs });
      return true;
    });
    if (isFirst) won.push(name);
  };
  const eventsAtOnce = Math.max(1, Math.floor(atOnce / claims));
  for (let first = 0; first < events; first += eventsAtOnce) {
    const count = Math.min(eventsAtOnce, events - first);
    const names = Array.from({ length: count * claims }, (_, index) => `event-${first + (index % count)}`);
    const order = names.map((name) => ({ name, at: random.below(2 ** 30) })).sort((a, b) => a.at - b.at);
    await Promise.all(order.map(({ name }) => claim(name)));
  }
  return won;
}
