/**
 * Work that waits for something other than its transaction is aborted, because it blocks all others. This takes ten
 * seconds, so the test is not in the first tier.
 * @module
 */
import { expect, test } from "bun:test";
import type { Tx } from "../../src/store/ledger/ledger-database.ts";
import { describeWith } from "../support/helpers.ts";
import { ledgerKinds, postgres } from "../support/ledger-databases.ts";

const add = (id: string) => (tx: Tx) => tx.run("INSERT INTO events (source, event_id, at) VALUES ('card', ?, 1)", id);

for (const kind of [...ledgerKinds(), postgres])
  describeWith(kind.need, `work on ${kind.name} that waits for something else`, () => {
    test("is aborted after ten seconds, with nothing stored, and the next transaction runs", async () => {
      const ledger = await kind.open();
      const { database } = ledger;
      const never = Promise.withResolvers<void>();
      const late = database.write(async (tx) => {
        await add("late")(tx);
        await never.promise;
        await add("later")(tx);
      });
      const reading = database.read(() => never.promise);
      const rejected = Promise.allSettled([late, reading]);
      await Bun.sleep(50); // time for the late transaction to start
      const next = database.write(add("next"));
      for (const outcome of await rejected)
        expect(String(outcome.status === "rejected" ? outcome.reason : "stored")).toContain(
          "waits for something other than its transaction",
        );
      expect(await next).toBe(1);
      never.resolve();
      await database.write(add("last"));
      const rows = await database.read((tx) => tx.all("SELECT event_id FROM events ORDER BY event_id"));
      expect(rows).toEqual([{ event_id: "last" }, { event_id: "next" }]);
      await ledger.remove();
    }, 120_000);
  });
