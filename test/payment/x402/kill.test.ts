/**
 * x402 payments and kill -9: before anything was sent, after the facilitator has the order, after the dollars moved, at
 * any other moment. A payer is credited once in the end, and only a payer.
 *
 * KILLS sets how many (12 by default).
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
import { openEvmNode } from "./evm-node.ts";
import { openFakeFacilitator } from "./facilitators.ts";
import { authorizationRecord, headerOf, nonce, type Payer, payer, payTo, sign } from "./payers.ts";

const { KILLS = "12" } = process.env;
const kills = Number(KILLS);

/** Requests of one process. */
const payments = 8;
const paid = 5_000n;

test(
  `after ${kills} kills any client that paid is credited once, and no other party`,
  async () => {
    const random = createRandom(newSeed());
    const [kind] = ledgerKinds();
    const ledger = await kind!.open();
    let ahead = 0;
    const node = openEvmNode(() => Date.now() + ahead);
    const facilitator = await openFakeFacilitator(node);
    const payers: Payer[] = [];
    const states = new Map<string, number>();

    const start = () => startChild(ledger.place, node.url, facilitator.url, ahead);

    async function send(url: string): Promise<number> {
      const anyPayer = payer(payers.length);
      payers.push(anyPayer);
      node.mint(anyPayer.address, paid);
      const now = BigInt(Math.floor((Date.now() + ahead) / 1_000));
      const authorization = {
        from: anyPayer.address,
        to: payTo,
        value: paid,
        validAfter: now - 600n,
        validBefore: now + 900n,
        nonce: nonce(1),
      };
      const signature = `0x${sign(node.domain, authorization, anyPayer.key).toHex()}`;
      const payload = { signature, authorization: authorizationRecord(authorization) };
      const header = headerOf({ x402Version: 1, scheme: "exact", network: "base", payload });
      try {
        const response = await fetch(`${url}/v1/x402/top-up?type=bytes&qty=${paid}`, {
          headers: { "x-payment": header },
        });
        return response.status;
      } catch {
        return 0; // it was killed
      }
    }

    try {
      for (let kill = 0; kill < kills; kill += 1) {
        const child = await start();
        const moment = ["asked", "sent", "any"][kill % 3] ?? "any";
        let left = 1 + random.below(payments - 1);
        facilitator.hook((reached) => {
          if (reached !== moment) return;
          left -= 1;
          if (left === 0) child.process.kill("SIGKILL");
        });
        if (moment === "any") setTimeout(() => child.process.kill("SIGKILL"), random.below(400));
        const first = payers.length;
        const responses = await Promise.all(Array.from({ length: payments }, () => send(child.url)));
        child.process.kill("SIGKILL");
        await child.process.exited;
        facilitator.hook(undefined);
        for (const [index, status] of responses.entries()) {
          const { address } = payers[first + index] ?? payer(0);
          const row = await ledger.database.read((tx) =>
            tx.get<{ state: string }>("SELECT state FROM x402_payments WHERE payer = ?", address),
          );
          const key = `${row?.state ?? "nothing"} (${status})`;
          states.set(key, (states.get(key) ?? 0) + 1);
          if (status === 200) expect(row?.state).toBe("settled");
          if (row === undefined) expect(node.balanceOf(address)).toBe(paid);
        }
        expect(await checkLedger(ledger.database)).toEqual([]);
        ahead += 61_000; // any client that held a payment in hand holds it no longer
      }
      console.log("at the kill:", Object.fromEntries(states));
      expect([...states.keys()].filter((key) => /^(seen|settling) \(0\)/.test(key))).not.toEqual([]);
      const last = await start();
      const open = () =>
        ledger.database.read((tx) => tx.all("SELECT id FROM x402_payments WHERE state IN ('seen', 'settling')"));
      // Some five of each life are left open: hundreds, of which a look follows a hundred.
      await eventually(open, (rows) => rows.length === 0, 60_000 + kills * 3_000);
      last.process.kill("SIGKILL");
      await last.process.exited;
      for (const { address } of payers) {
        const credited = await ledger.database.read((tx) => balanceOf(tx, user(address)));
        expect(credited + node.balanceOf(address)).toBe(paid);
      }
      expect(await checkLedger(ledger.database)).toEqual([]);
    } finally {
      await facilitator.close();
      await node.close();
      await ledger.remove();
    }
  },
  600_000 + kills * 20_000,
);

async function startChild(place: string, nodeUrl: string, facilitatorUrl: string, ahead: number) {
  const child = resolve(import.meta.dir, "kill-child.ts");
  const started = Bun.spawn([process.execPath, child, place, nodeUrl, facilitatorUrl, String(ahead)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await started.stdout.getReader().read();
  if (value === undefined) throw new Error("the process ended before it listened");
  return { process: started, url: new TextDecoder().decode(value).trim() };
}
