/**
 * The ledger: durable credits per second (each claims an external event and changes two accounts), against a loop with
 * the minimum of a durable credit: two rows of bun:sqlite in a transaction that waits for the disk.
 *
 * The loop runs one request after another. The ledger runs 16 concurrently, whose transactions share the wait for the
 * disk, and also one at a time. PostgreSQL is measured too if there is a server.
 * @module
 */
import { Database } from "bun:sqlite";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert } from "../../src/lib/assert.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import type { LedgerDatabase } from "../../src/store/ledger/ledger-database.ts";
import { openPostgresLedger } from "../../src/store/ledger/postgres-ledger.ts";
import { openSqliteLedger } from "../../src/store/ledger/sqlite-ledger.ts";
import {
  balanceOf,
  claimEvent,
  createTransferIds,
  provider,
  transfer,
  user,
} from "../../src/store/ledger/transfers.ts";
import { postgresServer, startPostgres } from "../../test/support/postgres-server.ts";
import { type Bench, type BenchRow, type BenchSize, inOrder, perSecond, type Work } from "../harness.ts";

const sizes: Readonly<Record<BenchSize, { credits: number; rounds: number }>> = {
  small: { credits: 200, rounds: 1 },
  large: { credits: 20_000, rounds: 5 },
};

/** Concurrent requests. */
const streams = 16;
/** Number of addresses that are credited. */
const addresses = 1_000;
const winc = 7n;

/** Measures durable credits per second. */
export const ledgerBench: Bench = {
  name: "ledger",
  measure: async (size) => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-bench-ledger-"));
    try {
      const { credits, rounds } = sizes[size];
      const bare = openBare(join(folder, "bare.sqlite"));
      const ledger = await openSqliteLedger({ path: join(folder, "ledger.sqlite") });
      const atOnce = await inOrder(creditsOf(ledger, credits, streams), bare.work(credits), rounds);
      const alone = await inOrder(creditsOf(ledger, credits / 10, 1), bare.work(credits / 10), rounds);
      const rows: BenchRow[] = [
        { name: `durable credits, ${streams} at once`, ...cellsOf(atOnce), target: "≥ 0.7" },
        { name: "durable credits, one after another", ...cellsOf(alone) },
      ];
      if (size === "large") rows.push(...(await measurePostgres(credits / 4, bare.work(credits / 4), rounds)));
      await ledger.close();
      bare.close();
      return rows;
    } finally {
      removeFolder(folder);
    }
  },
};

type Semaphore = Awaited<ReturnType<typeof inOrder>>;

function cellsOf({ rate, against, ratio }: Semaphore) {
  const reference = `bare two-row loop, ${perSecond(against, "credits")}`;
  return { metric: perSecond(rate, "credits"), reference, ratio };
}

async function measurePostgres(credits: number, bare: Work, rounds: number): Promise<BenchRow[]> {
  if (!postgresServer.there) return [];
  const server = await startPostgres(true);
  const ledger = await openPostgresLedger(await server.createDatabase());
  const semaphore = await inOrder(creditsOf(ledger, credits, streams), bare, rounds);
  await ledger.close();
  await server.remove();
  return [{ name: `durable credits on PostgreSQL, ${streams} at once`, ...cellsOf(semaphore) }];
}

/** Work that credits a number of events; its digest is the credited amount. */
function creditsOf(ledger: LedgerDatabase, credits: number, atOnce: number): Work {
  const makeId = createTransferIds(Date.now, () => 0);
  const source = `events of ${atOnce}`;
  const card = provider(source);
  let event = 0;

  const credit = (): Promise<void> => {
    const name = `evt_${event}`;
    const account = user(`address-${event % addresses}`);
    const id = makeId();
    event += 1;
    return ledger.write(async (tx) => {
      assert(await claimEvent(tx, source, name, 1_800_000_000_000), "an event of the bench is new");
      const legs = [
        { account: card, amount: -winc },
        { account, amount: winc },
      ];
      await transfer(tx, { id, kind: "payment", at: 1_800_000_000_000, legs, changeId: name });
    });
  };

  return async () => {
    const before = await ledger.read((tx) => balanceOf(tx, card));
    let left = credits;
    const stream = async () => {
      while (left > 0) {
        left -= 1;
        await credit();
      }
    };
    await Promise.all(Array.from({ length: atOnce }, stream));
    const after = await ledger.read((tx) => balanceOf(tx, card));
    return { amount: credits, digest: `${before - after} winc` };
  };
}

/** The reference loop. */
function openBare(path: string) {
  const db = new Database(path, { create: true, strict: true, safeIntegers: true });
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = FULL");
  db.run("CREATE TABLE credits (id TEXT PRIMARY KEY, winc INTEGER NOT NULL) STRICT");
  db.run("CREATE TABLE balances (address TEXT PRIMARY KEY, winc INTEGER NOT NULL) STRICT");
  const addCredit = db.prepare("INSERT INTO credits VALUES (?, ?)");
  const addBalance = db.prepare(
    "INSERT INTO balances VALUES (?, ?) ON CONFLICT (address) DO UPDATE SET winc = winc + excluded.winc",
  );
  let event = 0;
  const credit = db.transaction((id: string, address: string) => {
    addCredit.run(id, winc);
    addBalance.run(address, winc);
  });
  return {
    work:
      (credits: number): Work =>
      () => {
        for (let index = 0; index < credits; index += 1) {
          credit.immediate(`evt_${event}`, `address-${event % addresses}`);
          event += 1;
        }
        return { amount: credits, digest: `${credits}` };
      },
    close: () => {
      addCredit.finalize();
      addBalance.finalize();
      db.close();
    },
  };
}
