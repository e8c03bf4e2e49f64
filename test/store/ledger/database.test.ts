/**
 * Transactions of the ledger, the same on every database: whole or absent, one after another, durable when reported.
 * @module
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { amountMax, type LedgerDatabase, type Tx } from "../../../src/store/ledger/ledger-database.ts";
import { migrate } from "../../../src/store/ledger/ledger-migration.ts";
import { ledgerSchema } from "../../../src/store/ledger/ledger-schema.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds, type TestLedger } from "../../support/ledger-databases.ts";

const add = (tx: Tx, source: string, id: string) =>
  tx.run("INSERT INTO events (source, event_id, at) VALUES (?, ?, ?)", source, id, 1n);

const idsOf = async (database: LedgerDatabase, source: string): Promise<string[]> => {
  const rows = await database.read((tx) =>
    tx.all<{ event_id: string }>("SELECT event_id FROM events WHERE source = ? ORDER BY event_id", source),
  );
  return rows.map(({ event_id }) => event_id);
};

for (const kind of ledgerKinds())
  describeWith(kind.need, `the ledger on ${kind.name}`, () => {
    let ledger: TestLedger;
    let database: LedgerDatabase;

    beforeEach(async () => {
      ledger = await kind.open();
      database = ledger.database;
    });
    afterEach(() => ledger.remove());

    test("returns the result of the work, and its kind of database", async () => {
      expect(await database.write(async () => "written")).toBe("written");
      expect(await database.read(async () => 7)).toBe(7);
      expect(database.kind).toBe(kind.name);
    });

    test("stores nothing of work that throws, and rejects with its error", async () => {
      const fault = new Error("the work's own");
      const work = database.write(async (tx) => {
        await add(tx, "card", "1");
        throw fault;
      });
      await expect(work).rejects.toBe(fault);
      expect(await idsOf(database, "card")).toEqual([]);
    });

    test("stores nothing of work that throws synchronously", async () => {
      const work = database.write(() => {
        throw new Error("at once");
      });
      await expect(work).rejects.toThrow("at once");
      expect(await database.write((tx) => add(tx, "card", "1"))).toBe(1);
    });

    test("rolls back one of several transactions of a group, and commits the others", async () => {
      const works = Array.from({ length: 20 }, (_, index) =>
        database.write(async (tx) => {
          await add(tx, "card", `${index + 10}`);
          if (index % 3 === 1) throw new Error(`no ${index}`);
          return index;
        }),
      );
      const ends = await Promise.allSettled(works);
      expect(ends.map(({ status }) => status === "fulfilled")).toEqual(works.map((_, at) => at % 3 !== 1));
      const stored = works.map((_, index) => index).filter((index) => index % 3 !== 1);
      expect(await idsOf(database, "card")).toEqual(stored.map((index) => `${index + 10}`));
    });

    test("stores nothing of work that continues after a failed statement", async () => {
      await database.write((tx) => add(tx, "card", "1"));
      const seen: unknown[] = [];
      const work = database.write(async (tx) => {
        // A database that cannot tell whose fault it is runs the work once more.
        seen.length = 0;
        await add(tx, "card", "2");
        await add(tx, "card", "1").catch((error: unknown) => seen.push(error));
        await add(tx, "card", "3").catch((error: unknown) => seen.push(error));
        return "went on";
      });
      await expect(work).rejects.toThrow(/unique/i);
      expect(seen).toHaveLength(2);
      expect(await idsOf(database, "card")).toEqual(["1"]);
      expect(await database.write((tx) => add(tx, "card", "4"))).toBe(1);
    });

    test("rejects a transaction that has ended", async () => {
      const stored: Tx[] = [];
      await database.write(async (tx) => {
        stored.push(tx);
      });
      await database.read(async (tx) => {
        stored.push(tx);
      });
      for (const tx of stored) await expect(add(tx, "card", "1")).rejects.toThrow("has ended");
      expect(await idsOf(database, "card")).toEqual([]);
    });

    test("loses no step when many read and then write the same row", async () => {
      await database.write((tx) => tx.run("INSERT INTO accounts (account, balance) VALUES ('sum', 0)"));
      const other = await ledger.openAgain();
      const step = async (tx: Tx) => {
        const row = await tx.get<{ balance: bigint }>("SELECT balance FROM accounts WHERE account = 'sum'");
        await tx.run("UPDATE accounts SET balance = ? WHERE account = 'sum'", (row?.balance ?? 0n) + 1n);
      };
      await Promise.all(Array.from({ length: 60 }, (_, index) => (index % 2 === 0 ? database : other).write(step)));
      await other.close();
      const sum = await database.read((tx) =>
        tx.get<{ balance: bigint }>("SELECT balance FROM accounts WHERE account = 'sum'"),
      );
      expect(sum).toEqual({ balance: 60n });
    });

    test("shows a read one state during concurrent writes", async () => {
      const counts = await database.read(async (tx) => {
        const count = () => tx.get<{ count: bigint }>("SELECT COUNT(*) AS count FROM events");
        const before = await count();
        const written = database.write((other) => add(other, "card", "1"));
        // A database behind a socket may have written it by now; a read of it must not see it.
        const after = await count();
        return { before, after, written };
      });
      await counts.written;
      expect([counts.before, counts.after]).toEqual([{ count: 0n }, { count: 0n }]);
      expect(await idsOf(database, "card")).toEqual(["1"]);
    });

    test("rejects a write within a read", async () => {
      await expect(database.read((tx) => add(tx, "card", "1"))).rejects.toThrow(/read.?only/i);
      expect(await idsOf(database, "card")).toEqual([]);
    });

    test("shows a completed write to every later read", async () => {
      for (let step = 1; step <= 20; step += 1) {
        await database.write((tx) => add(tx, "card", `${step}`));
        expect(await idsOf(database, "card")).toHaveLength(step);
      }
    });

    test("has all its data after it is opened again", async () => {
      await database.write((tx) => add(tx, "card", "1"));
      await database.close();
      const other = await ledger.openAgain();
      expect(await idsOf(other, "card")).toEqual(["1"]);
      await other.close();
    });

    test("finishes accepted transactions when it is closed, and rejects later ones", async () => {
      const works = Array.from({ length: 50 }, (_, index) => database.write((tx) => add(tx, "card", `${index}`)));
      const closing = database.close();
      const late = { code: "database_unavailable", context: { reason: "the ledger is closed" } };
      await expect(database.write((tx) => add(tx, "card", "late"))).rejects.toMatchObject(late);
      await expect(database.read((tx) => add(tx, "card", "late"))).rejects.toMatchObject(late);
      await closing;
      expect(await Promise.all(works)).toEqual(works.map(() => 1));
      const other = await ledger.openAgain();
      expect(await idsOf(other, "card")).toHaveLength(50);
      await other.close();
    });

    test("rejects transactions beyond the limit of its queue", async () => {
      const barrier = Promise.withResolvers<void>();
      const first = database.write(() => barrier.promise);
      const many = Array.from({ length: 10_100 }, () => database.write(async () => "waited"));
      const ends = Promise.allSettled(many);
      barrier.resolve();
      const rejected = (await ends).filter(({ status }) => status === "rejected");
      expect(rejected.length).toBeGreaterThan(0);
      expect(rejected.length).toBeLessThanOrEqual(101);
      expect(rejected[0]).toMatchObject({ reason: { code: "busy" } });
      await first;
    });

    describe("stores values unchanged:", () => {
      const values: readonly (readonly [name: string, value: string | bigint | null])[] = [
        ["nothing", null],
        ["zero", 0n],
        ["a number above 2^53", 2n ** 53n + 1n],
        ["the largest amount", amountMax],
        ["the smallest amount", -amountMax],
        ["an empty text", ""],
        ["a text of digits", "00123"],
        ["quotes, question marks and dollars", `'?' "?" ?? $1 -- ;`],
        ["a text beyond Latin", "Grüße 🪨 \u{10ffff}"],
        ["10,000 characters", "x".repeat(10_000)],
      ];
      test.each(values)("%s", async (_, value) => {
        const [column, sql] =
          typeof value === "bigint"
            ? ["at", "INSERT INTO events (source, event_id, at) VALUES ('v', '1', ?)"]
            : ["note", "INSERT INTO transfers (id, kind, at, note) VALUES ('1', 'v', 1, ?)"];
        await database.write((tx) => tx.run(sql, value));
        const table = column === "at" ? "events" : "transfers";
        const row = await database.read((tx) => tx.get(`SELECT ${column} AS stored FROM ${table}`));
        expect(row).toEqual({ stored: value });
      });

      test("and rejects an integer beyond ±(2^62 − 1)", async () => {
        for (const value of [amountMax + 1n, -amountMax - 1n, 2n ** 63n, 2n ** 64n])
          await expect(
            database.write((tx) => tx.run("INSERT INTO events (source, event_id, at) VALUES ('v', '1', ?)", value)),
          ).rejects.toThrow("is within");
        expect(await idsOf(database, "v")).toEqual([]);
      });
    });

    test("rejects a sum that leaves 64 bits, in SQL too", async () => {
      const work = database.write(async (tx) => {
        await tx.run("INSERT INTO accounts (account, balance) VALUES ('sum', ?)", amountMax);
        await tx.run("UPDATE accounts SET balance = balance + balance + balance");
      });
      await expect(work).rejects.toThrow(/cannot store REAL|out of range/);
      expect(await database.read((tx) => tx.all("SELECT * FROM accounts"))).toEqual([]);
    });

    test("returns every integer as a bigint: counts, sums, booleans, parameters", async () => {
      await database.write((tx) => add(tx, "card", "1"));
      const row = await database.read((tx) =>
        tx.get(
          "SELECT COUNT(*) AS count, CAST(SUM(at) AS BIGINT) AS sum, CAST(? AS BIGINT) AS given, " +
            "CASE WHEN COUNT(*) = 1 THEN 1 ELSE 0 END AS truth, 'text' AS text FROM events",
          5n,
        ),
      );
      expect(row).toEqual({ count: 1n, sum: 1n, given: 5n, truth: 1n, text: "text" });
    });

    test("returns the number of rows that a statement changed", async () => {
      const changed = await database.write(async (tx) => {
        const counts = [await add(tx, "card", "1"), await add(tx, "card", "2")];
        counts.push(await tx.run("UPDATE events SET at = 2 WHERE source = ?", "card"));
        counts.push(await tx.run("UPDATE events SET at = 2 WHERE source = ?", "none"));
        const insert =
          "INSERT INTO events (source, event_id, at) VALUES (?, ?, ?) ON CONFLICT (source, event_id) DO NOTHING";
        counts.push(await tx.run(insert, "card", "1", 5n), await tx.run(insert, "card", "3", 5n));
        counts.push(await tx.run("DELETE FROM events"));
        return counts;
      });
      expect(changed).toEqual([1, 1, 2, 0, 0, 1, 3]);
    });

    test("returns the rows of RETURNING, and the first row for get", async () => {
      const responses = await database.write(async (tx) => [
        await tx.all(
          "INSERT INTO events (source, event_id, at) VALUES ('a', '1', 1), ('a', '2', 2) RETURNING event_id, at",
        ),
        await tx.get("SELECT event_id FROM events ORDER BY event_id DESC"),
        await tx.get("SELECT event_id FROM events WHERE source = 'none'"),
      ]);
      expect(responses).toEqual([
        [
          { event_id: "1", at: 1n },
          { event_id: "2", at: 2n },
        ],
        { event_id: "2" },
        undefined,
      ]);
    });

    test("rejects a ledger that a newer program wrote", async () => {
      await database.write((tx) => tx.run("UPDATE ledger_version SET version = version + 1"));
      await expect(ledger.openAgain()).rejects.toThrow(
        /a newer program created this database: its version is \d+, this build knows \d+/,
      );
    });

    const edits: [string, string][] = [
      ["has another fingerprint", "UPDATE ledger_fingerprint SET fingerprint = 'other'"],
      ["is from before fingerprints were stored", "DELETE FROM ledger_fingerprint"],
    ];
    test.each(edits)(
      "rejects at once a ledger of edited scripts, which %s, and leaves it as it is",
      async (_, edit) => {
        await database.write((tx) => tx.run(edit));
        const rejected = /^cannot open the ledger.*: an unreleased build of this program created this database/;
        await expect(ledger.openAgain()).rejects.toThrow(rejected);
        await expect(ledger.openAgain()).rejects.toThrow(rejected);
      },
    );

    test("migrates a ledger of an older version by running only the new scripts", async () => {
      const newer = [...ledgerSchema, "CREATE TABLE later (at BIGINT NOT NULL);"];
      for (const _ of ["runs it", "has run it"]) await database.write((tx) => migrate(tx, undefined, newer));
      expect(await database.read((tx) => tx.all("SELECT * FROM later"))).toEqual([]);
      expect(await database.read((tx) => tx.all("SELECT version FROM ledger_version"))).toEqual([
        { version: BigInt(newer.length) },
      ]);
      await expect(ledger.openAgain()).rejects.toThrow("a newer program created this database");
    });
  });
