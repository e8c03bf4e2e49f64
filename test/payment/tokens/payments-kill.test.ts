/**
 * Token payments and kill -9 at any moment, between first observation and credit too: every payment on the chain is credited
 * once in the end, and what a process said before it died is so.
 *
 * KILLS sets how many (25 by default).
 * @module
 */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { balanceOf, user } from "../../../src/store/ledger/transfers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { createRandom } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { eventually } from "../../support/until.ts";
import { killedSender } from "./killed-chain.ts";

const { KILLS = "25" } = process.env;
const kills = Number(KILLS);
const count = 200;

test(
  `after ${kills} kills no payment is lost, and none is credited twice`,
  async () => {
    const random = createRandom(newSeed());
    const [kind] = ledgerKinds();
    const ledger = await kind!.open();
    const states = new Map<string, number>();
    try {
      for (let kill = 0; kill < kills; kill += 1) {
        const mined = Math.floor((count * kill) / kills);
        // Some are killed while they begin, some amid their work, which on a server begins late.
        const after = kill % 3 === 0 ? "begun\n" : " 0x";
        const said = await runAndKill(ledger.place, mined, after, random.below(120));
        for (const [id, state] of said) {
          const row = await ledger.database.read((tx) =>
            tx.get<{ state: string }>("SELECT state FROM token_payments WHERE transaction_id = ?", id),
          );
          expect(["pending", "credited"]).toContain(row?.state ?? `nothing of ${id}, which was ${state}`);
          if (state === "credited") expect(row?.state).toBe("credited");
        }
        expect(await checkLedger(ledger.database)).toEqual([]);
        const rows = await ledger.database.read((tx) =>
          tx.all<{ state: string; n: bigint }>("SELECT state, COUNT(*) AS n FROM token_payments GROUP BY state"),
        );
        const key = rows
          .map(({ state, n }) => `${state} ${bucket(n)}`)
          .sort()
          .join(", ");
        states.set(key, (states.get(key) ?? 0) + 1);
      }
      console.log("at the kill:", Object.fromEntries(states));
      const last = start(ledger.place, count);
      const balances = () =>
        ledger.database.read((tx) =>
          Promise.all(Array.from({ length: count }, (_, index) => balanceOf(tx, user(killedSender(index))))),
        );
      const wanted = Array.from({ length: count }, (_, index) => BigInt(index + 1));
      await eventually(balances, (found) => found.every((balance, index) => balance === wanted[index]), 60_000);
      last.kill("SIGKILL");
      await last.exited;
      expect(await checkLedger(ledger.database)).toEqual([]);
    } finally {
      await ledger.remove();
    }
  },
  600_000 + kills * 20_000,
);

function start(place: string, mined: number) {
  const child = resolve(import.meta.dir, "payments-kill-child.ts");
  return Bun.spawn([process.execPath, child, place, String(count), String(mined)], {
    stdout: "pipe",
    stderr: "inherit",
  });
}

/** Runs one; kills it a while after it has said something. @returns what it said of payments. */
async function runAndKill(
  place: string,
  mined: number,
  after: string,
  waitMs: number,
): Promise<[id: string, state: string][]> {
  const child = start(place, mined);
  const decoder = new TextDecoder();
  let text = "";
  let killed: Promise<unknown> | undefined;
  for await (const piece of child.stdout) {
    text += decoder.decode(piece, { stream: true });
    if (killed === undefined && text.includes(after)) killed = Bun.sleep(waitMs).then(() => child.kill("SIGKILL"));
  }
  await killed;
  await child.exited;
  const lines = text.slice(0, text.lastIndexOf("\n")).split("\n");
  return lines.flatMap((line) => {
    const [state = "", id] = line.split(" ");
    return id === undefined ? [] : [[id, state] as [string, string]];
  });
}

function bucket(count: bigint): string {
  return count < 10n ? "few" : count < 150n ? "some" : "many";
}
