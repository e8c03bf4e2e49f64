/**
 * A network that drops everything from one command on: the ledger on PostgreSQL waits for a bounded time, and uses
 * another connection.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect, createServer } from "node:net";
import { openPostgresLedger, readPostgresIdentity } from "../../../src/store/ledger/postgres-ledger.ts";
import { describeWith } from "../../support/helpers.ts";
import { type PostgresServer, postgresServer, startPostgres } from "../../support/postgres-server.ts";

/** A network in front of a server. */
type Network = Readonly<{
  url: string;
  /** Drops the next packet with this text, and everything later of its connection, in both directions. */
  dropFrom: (text: string) => void;
  close: () => void;
}>;

async function openNetwork(server: string): Promise<Network> {
  const port = Number(new URL(server).port);
  const open = new Set<() => void>();
  let dropped: string | undefined;
  const listener = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    let isDropping = false;
    client.on("data", (bytes) => {
      if (dropped !== undefined && bytes.includes(dropped)) {
        dropped = undefined;
        isDropping = true;
      }
      if (!isDropping) upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      if (!isDropping) client.write(bytes);
    });
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    // The client is not notified that the server has closed the connection, either.
    const endUnlessDropping = () => {
      if (!isDropping) end();
    };
    for (const socket of [client, upstream]) socket.on("close", endUnlessDropping).on("error", endUnlessDropping);
    open.add(end);
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  const url = new URL(server);
  url.port = typeof address === "object" ? String(address?.port) : "";
  return {
    url: url.href,
    dropFrom: (text) => {
      dropped = text;
    },
    close: () => {
      for (const end of open) end();
      listener.close();
    },
  };
}

describeWith(postgresServer, "a network that drops everything from a command on", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  }, 120_000);
  afterAll(() => server?.remove());

  async function throughNetwork(use: (network: Network) => Promise<void>): Promise<void> {
    const network = await openNetwork(await server.createDatabase());
    try {
      await use(network);
    } finally {
      network.close();
    }
  }

  test(
    "ends no read that has its rows, and each of many of them frees its connection",
    () =>
      throughNetwork(async (network) => {
        const ledger = await openPostgresLedger(network.url);
        // More than there are connections.
        for (let read = 1; read <= 5; read += 1) {
          network.dropFrom("COMMIT");
          expect(await ledger.read((tx) => tx.get("SELECT 1 AS one"))).toEqual({ one: 1n });
        }
        expect(await ledger.read((tx) => tx.get("SELECT 2 AS two"))).toEqual({ two: 2n });
        await ledger.close();
      }),
    60_000,
  );

  test(
    "gives a failed read its own error",
    () =>
      throughNetwork(async (network) => {
        const ledger = await openPostgresLedger(network.url);
        network.dropFrom("ROLLBACK");
        const failed = ledger.read(async (tx) => {
          await tx.get("SELECT 1 AS one");
          throw new Error("of the work");
        });
        await expect(failed).rejects.toThrow("of the work");
        expect(await ledger.read((tx) => tx.get("SELECT 2 AS two"))).toEqual({ two: 2n });
        await ledger.close();
      }),
    60_000,
  );

  test.each(["read", "write"] as const)(
    "ends a %s whose statement has no response as a database that is unavailable",
    (kind) =>
      throughNetwork(async (network) => {
        const ledger = await openPostgresLedger(network.url);
        network.dropFrom("SELECT 1 AS one");
        const error = await ledger[kind]((tx) => tx.get("SELECT 1 AS one")).catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ code: "database_unavailable" });
        expect(await ledger.read((tx) => tx.get("SELECT 2 AS two"))).toEqual({ two: 2n });
        await ledger.close();
      }),
    60_000,
  );

  test.each([
    ["the start", "ledger_lock", openPostgresLedger],
    ["the comparison of a ledger with its folder", "to_regclass", readPostgresIdentity],
  ] as const)(
    "ends %s with a reason",
    (_, text, open) =>
      throughNetwork(async (network) => {
        network.dropFrom(text);
        const failure = await open(network.url).then(
          () => undefined,
          (error: Error) => error.message,
        );
        expect(failure).toStartWith("cannot open the ledger on PostgreSQL: ");
        expect(failure).toEndWith("its database does not respond");
      }),
    60_000,
  );
});
