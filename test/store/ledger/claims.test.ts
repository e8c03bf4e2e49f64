/**
 * An outside event is credited exactly once, however many claim it at once, from two processes, and after a restart.
 *
 * EVENTS sets how many events.
 * @module
 */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import type { LedgerDatabase } from "../../../src/store/ledger/ledger-database.ts";
import { claimEvent } from "../../../src/store/ledger/transfers.ts";
import { describeWith } from "../../support/helpers.ts";
import { type LedgerKind, ledgerKinds, type TestLedger } from "../../support/ledger-databases.ts";
import { newSeed } from "../../support/seed.ts";
import { type ClaimPlan, claimAll, eventWinc } from "./claims.ts";

const { EVENTS } = process.env;
/** How many events; a server is slower than a file. */
const eventsOf = (kind: LedgerKind) => Number(EVENTS ?? (kind.name === "sqlite" ? 1_000 : 100));
/** Claims of each event at once, over all who claim. */
const claims = 100;

const namesOf = (events: number) => Array.from({ length: events }, (_, index) => `event-${index}`).sort();

async function claimInProcess({ place }: TestLedger, { events, claims: share, seed }: ClaimPlan): Promise<string[]> {
  const script = resolve(import.meta.dir, "claim-child.ts");
  const child = Bun.spawn([process.execPath, script, place, `${events}`, `${share}`, `${seed}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said = await new Response(child.stdout).text();
  expect(await child.exited).toBe(0);
  return JSON.parse(said);
}

/** Each event has moved its winc once. */
async function expectOneCreditEach(database: LedgerDatabase, names: readonly string[]): Promise<void> {
  const rows = await database.read((tx) =>
    tx.all<{ account: string; balance: bigint }>(
      "SELECT account, balance FROM accounts WHERE account LIKE 'user:%' ORDER BY account",
    ),
  );
  expect(rows).toEqual(names.map((name) => ({ account: `user:payer of ${name}`, balance: eventWinc })));
  const counted = await database.read((tx) =>
    tx.get("SELECT COUNT(*) AS transfers, COUNT(DISTINCT change_id) AS causes FROM transfers"),
  );
  expect(counted).toEqual({ transfers: BigInt(names.length), causes: BigInt(names.length) });
  expect(await checkLedger(database)).toEqual([]);
}

for (const kind of ledgerKinds())
  describeWith(kind.need, `an outside event on ${kind.name}`, () => {
    const events = eventsOf(kind);
    const names = namesOf(events);
    const timeoutMs = 60_000 + events * 1_000;

    test(
      `L1: is credited once when ${claims} claim it at once`,
      async () => {
        const ledger = await kind.open();
        const won = await claimAll(ledger.database, { events, claims, seed: newSeed() });
        expect(won.sort()).toEqual(names);
        await expectOneCreditEach(ledger.database, names);
        await ledger.remove();
      },
      timeoutMs,
    );

    test(
      "is credited once when two processes claim it at once, and again after a restart",
      async () => {
        const ledger = await kind.open();
        const seed = newSeed();
        await ledger.database.close();
        const claim = (one: number) => claimInProcess(ledger, { events, claims: claims / 2, seed: seed + one });
        const first = await Promise.all([claim(1), claim(2)]);
        expect(first.flat().sort()).toEqual(names);
        const again = await Promise.all([claim(3), claim(4)]);
        expect(again.flat()).toEqual([]);
        const database = await ledger.openAgain();
        await expectOneCreditEach(database, names);
        await database.close();
        await ledger.remove();
      },
      timeoutMs,
    );

    test("is free again when the transaction that claimed it fails", async () => {
      const ledger = await kind.open();
      const { database } = ledger;
      const failed = database.write(async (tx) => {
        expect(await claimEvent(tx, "chain", "1", 1)).toBe(true);
        throw new Error("the credit failed");
      });
      await expect(failed).rejects.toThrow("the credit failed");
      expect(await database.write((tx) => claimEvent(tx, "chain", "1", 1))).toBe(true);
      expect(await database.write((tx) => claimEvent(tx, "chain", "1", 1))).toBe(false);
      await ledger.remove();
    });

    test("is separate for each source", async () => {
      const ledger = await kind.open();
      const claimed = await ledger.database.write(async (tx) => [
        await claimEvent(tx, "stripe", "1", 1),
        await claimEvent(tx, "x402", "1", 1),
        await claimEvent(tx, "x402", "1", 2),
        await claimEvent(tx, "x402", "01", 1),
      ]);
      expect(claimed).toEqual([true, true, false, true]);
      await ledger.remove();
    });
  });
