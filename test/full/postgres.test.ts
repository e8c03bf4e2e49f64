/**
 * Behaviour of PostgreSQL only: lost connections, a server that dies, other processes on the same tables, other
 * languages' order of texts.
 * @module
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { SQL } from "bun";
import type { LedgerDatabase, Tx } from "../../src/store/ledger/ledger-database.ts";
import { openPostgresLedger } from "../../src/store/ledger/postgres-ledger.ts";
import { describeWith } from "../support/helpers.ts";
import { type PostgresServer, postgresServer, startPostgres } from "../support/postgres-server.ts";
import { until } from "../support/until.ts";

const add = (id: string) => (tx: Tx) => tx.run("INSERT INTO events (source, event_id, at) VALUES ('card', ?, 1)", id);
const idsIn = async (ledger: LedgerDatabase) => {
  const rows = await ledger.read((tx) => tx.all<{ event_id: string }>("SELECT event_id FROM events ORDER BY event_id"));
  return rows.map(({ event_id }) => event_id);
};

describeWith(postgresServer, "a ledger on PostgreSQL", () => {
  let server: PostgresServer;
  let url: string;
  let admin: SQL;
  const ledgers: LedgerDatabase[] = [];

  const openHere = async () => {
    const ledger = await openPostgresLedger(url);
    ledgers.push(ledger);
    return ledger;
  };
  /** Ends the program's connections from the server's side, and waits until they are gone there. */
  const endConnections = () =>
    admin.unsafe("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'cairn'");

  beforeAll(async () => {
    // It waits for the disk, for it is killed.
    server = await startPostgres(true);
  });
  afterAll(() => server.remove());
  beforeEach(async () => {
    url = await server.createDatabase();
    admin = new SQL(url, { max: 2, bigint: true });
  });
  afterEach(async () => {
    for (const ledger of ledgers.splice(0)) await ledger.close();
    await admin.close();
  });

  test("continues after its idle connections were closed, without any error", async () => {
    const ledger = await openHere();
    for (let round = 0; round < 3; round += 1) {
      await ledger.write(add(`${round}`));
      expect(await idsIn(ledger)).toHaveLength(round + 1);
      await endConnections();
      await Bun.sleep(20); // the client learns of its closed connections
    }
    expect(await idsIn(ledger)).toEqual(["0", "1", "2"]);
  });

  test("rejects a transaction whose connection is lost in the middle, keeps nothing of it, and takes the next", async () => {
    const ledger = await openHere();
    const cut = ledger.write(async (tx) => {
      await add("cut")(tx);
      await tx.get("SELECT pg_terminate_backend(pg_backend_pid())");
      return "never";
    });
    await expect(cut).rejects.toMatchObject({ code: "database_unavailable" });
    await ledger.write(add("next"));
    expect(await idsIn(ledger)).toEqual(["next"]);
  });

  test("keeps acknowledged changes when the server is killed, rejects meanwhile, and continues after a restart", async () => {
    const ledger = await openHere();
    const responded: string[] = [];
    let stopped = false;
    const streams = Array.from({ length: 8 }, async (_, stream) => {
      for (let index = 0; !stopped; index += 1) {
        const id = `${stream}-${index}`;
        await ledger.write(add(id));
        responded.push(id);
      }
    });
    const ends = Promise.allSettled(streams);
    await until(() => responded.length >= 100);
    await server.kill();
    const failed = (await ends).filter(({ status }) => status === "rejected");
    stopped = true;
    expect(failed).toHaveLength(8);
    for (const end of failed) expect(end).toMatchObject({ reason: { code: "database_unavailable" } });
    await expect(ledger.write(add("meanwhile"))).rejects.toMatchObject({ code: "database_unavailable" });
    await expect(idsIn(ledger)).rejects.toMatchObject({ code: "database_unavailable" });
    expect(ledger.faults()).toEqual(["Credits cannot be written: the ledger's database cannot be reached."]);
    await server.start();
    await ledger.write(add("after"));
    expect(ledger.faults()).toEqual([]);
    const found = new Set(await idsIn(ledger));
    expect(responded.filter((id) => !found.has(id))).toEqual([]);
    expect(found.has("meanwhile")).toBe(false);
    expect(found.has("after")).toBe(true);
    // What was under way may have been stored; no more than that.
    expect(found.size).toBeLessThanOrEqual(responded.length + 1 + 8);
  });

  test("runs its work again when another program's transaction was in the way", async () => {
    const ledger = await openHere();
    await ledger.write((tx) => tx.run("INSERT INTO accounts (account, balance) VALUES ('sum', 0)"));
    let runs = 0;
    const met = Promise.withResolvers<void>();
    const other = await admin.reserve();
    await other.unsafe("BEGIN ISOLATION LEVEL SERIALIZABLE");
    await other.unsafe("UPDATE accounts SET balance = balance + 1 WHERE account = 'sum'");
    const mine = ledger.write(async (tx) => {
      runs += 1;
      const row = await tx.get<{ balance: bigint }>("SELECT balance FROM accounts WHERE account = 'sum'");
      met.resolve();
      await tx.run("UPDATE accounts SET balance = ? WHERE account = 'sum'", (row?.balance ?? 0n) + 10n);
    });
    await met.promise;
    await Bun.sleep(50); // the update reaches the lock of the other transaction
    await other.unsafe("COMMIT");
    other.release();
    await mine;
    expect(runs).toBe(2);
    const sum = await ledger.read((tx) => tx.get("SELECT balance FROM accounts WHERE account = 'sum'"));
    expect(sum).toEqual({ balance: 11n });
  });

  test("tells a work of its own unique violation after it has run twice, and spares those beside it", async () => {
    const ledger = await openHere();
    await ledger.write(add("1"));
    let runs = 0;
    const twice = ledger.write(async (tx) => {
      runs += 1;
      await add("1")(tx);
    });
    const beside = [ledger.write(add("2")), ledger.write(add("3"))];
    await expect(twice).rejects.toThrow("duplicate key value");
    expect(await Promise.all(beside)).toEqual([1, 1]);
    expect(runs).toBe(2);
    expect(await idsIn(ledger)).toEqual(["1", "2", "3"]);
  });

  test("waits for a process that holds the ledger, and reads meanwhile", async () => {
    const ledger = await openHere();
    const other = await admin.reserve();
    await other.unsafe("BEGIN; LOCK TABLE ledger_lock IN EXCLUSIVE MODE");
    const state = { done: false };
    const writing = ledger.write(add("1")).then(() => {
      state.done = true;
    });
    await Bun.sleep(100); // time for a commit, which must not happen
    expect([state.done, await idsIn(ledger)]).toEqual([false, []]);
    await other.unsafe("COMMIT");
    other.release();
    await writing;
    expect(await idsIn(ledger)).toEqual(["1"]);
  });

  test("O: is opened by several programs at once, of whom one makes the tables", async () => {
    const opened = await Promise.all(Array.from({ length: 5 }, openHere));
    await Promise.all(opened.map((ledger, index) => ledger.write(add(`${index}`))));
    for (const ledger of opened) expect(await idsIn(ledger)).toEqual(["0", "1", "2", "3", "4"]);
  });

  test("O: speaks in the open or under TLS as its URL says, and does not fall back", async () => {
    const error: unknown = await openPostgresLedger(`${url}?sslmode=require`).catch((thrown: unknown) => thrown);
    expect(Bun.inspect(error)).toMatch(/cannot open the ledger on PostgreSQL: .*(TLS|SSL)/i);
    ledgers.push(await openPostgresLedger(`${url}?sslmode=disable`));
    ledgers.push(await openPostgresLedger(`${url}?sslmode=prefer`));
    expect(await idsIn(ledgers[1] ?? expect.unreachable())).toEqual([]);
  });

  test("orders texts by their bytes in a database of any language", async () => {
    await admin.unsafe(
      "CREATE DATABASE english TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en' ENCODING 'UTF8'",
    );
    const ledger = await openPostgresLedger(url.replace(/[^/]+$/, "english"));
    ledgers.push(ledger);
    for (const id of ["b", "B", "a", "A", "_", "-", "0"]) await ledger.write(add(id));
    expect(await idsIn(ledger)).toEqual(["-", "0", "A", "B", "_", "a", "b"]);
    const above = await ledger.read((tx) => tx.get("SELECT COUNT(*) AS count FROM events WHERE event_id > ?", "Z"));
    expect(above).toEqual({ count: 3n });
  });

  test("says why it cannot be opened, and keeps the password to itself", async () => {
    const rejections: readonly (readonly [string, RegExp])[] = [
      ["postgres://cairn:secret-word@127.0.0.1:1/ledger", /cannot open the ledger on PostgreSQL: .*connect/i],
      [url.replace("cairn@", "cairn:secret-word@").replace(/[^/]+$/, "none"), /database "none" does not exist/],
      [url.replace("cairn@", "nobody:secret-word@"), /role "nobody" does not exist/],
    ];
    for (const [wrong, reason] of rejections) {
      const error: unknown = await openPostgresLedger(wrong).catch((thrown: unknown) => thrown);
      expect(Bun.inspect(error)).toMatch(reason);
      expect(Bun.inspect(error)).not.toContain("secret-word");
    }
  });
});
