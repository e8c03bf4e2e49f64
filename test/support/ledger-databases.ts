/**
 * The databases on which the tests of the ledger and of the payment rules run: empty databases on request.
 *
 * SQLite always; with LEDGER_KINDS=sqlite,postgres (as `bun run test:full` has it) also on a PostgreSQL server.
 * @module
 */
import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LedgerDatabase } from "../../src/store/ledger/ledger-database.ts";
import type { Need } from "./helpers.ts";
import { openPlace } from "./ledger-place.ts";
import { type PostgresServer, postgresServer, startPostgres } from "./postgres-server.ts";

/** A ledger of a test. */
export type TestLedger = Readonly<{
  database: LedgerDatabase;
  /** Where it is, for another process: a file's path, or a `postgres://` URL. */
  place: string;
  /** Opens the same ledger again, beside the first or after its end; the caller closes it. */
  openAgain: () => Promise<LedgerDatabase>;
  /** Closes the first one and removes the data. */
  remove: () => Promise<void>;
}>;

/** One kind of database. */
export type LedgerKind = Readonly<{
  name: LedgerDatabase["kind"];
  /** For `describeWith`: whether it can be run here. */
  need: Need;
  /** An empty ledger of its own. */
  open: () => Promise<TestLedger>;
}>;

const { LEDGER_KINDS = "sqlite" } = process.env;

/** The kinds that this run is to test: `for (const kind of ledgerKinds()) describeWith(kind.need, …)`. */
export function ledgerKinds(): LedgerKind[] {
  afterAll(async () => {
    const last = await server;
    server = undefined;
    await last?.remove();
  });
  return LEDGER_KINDS.split(",").map((name) => {
    if (name === "sqlite") return sqlite;
    if (name === "postgres") return postgres;
    throw new Error(`LEDGER_KINDS names ${name}; known are sqlite and postgres`);
  });
}

const sqlite: LedgerKind = {
  name: "sqlite",
  need: { there: true, what: "Bun" },
  open: async () => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-ledger-"));
    return await openNew(join(folder, "ledger.sqlite"), () => rmSync(folder, { recursive: true }));
  },
};

/** The other kind, for tests that need a server whatever this run is to test. */
export const postgres: LedgerKind = {
  name: "postgres",
  need: postgresServer,
  open: async () => {
    // One server for all tests of a file.
    server ??= startPostgres();
    return await openNew(await (await server).createDatabase(), () => undefined);
  },
};

let server: Promise<PostgresServer> | undefined;

async function openNew(place: string, removeData: () => void): Promise<TestLedger> {
  const database = await openPlace(place);
  return {
    database,
    place,
    openAgain: () => openPlace(place),
    remove: async () => {
      await database.close();
      removeData();
    },
  };
}
