/**
 * A process to be killed: reports, follows and finds the payments of a chain that every start makes alike, as fast as
 * it can. As clients do, it reports a payment again while the watch over the address has not begun. Writes `seen` and `done` lines: the reference is the ledger afterwards.
 *
 * Arguments: the ledger's place, the number of payments, how many of them are mined, the seed.
 * @module
 */
import { winc } from "../../../src/arweave/winston.ts";
import { Failure } from "../../../src/failures.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { silentLog } from "../../../src/lib/log.ts";
import { createTokenPayments, type Submitted } from "../../../src/payment/tokens/token-payments.ts";
import { openTokenWatcher } from "../../../src/payment/tokens/token-watcher.ts";
import { createTransferIds } from "../../../src/store/ledger/transfers.ts";
import { openPlace } from "../../support/ledger-place.ts";
import { killedChain } from "./killed-chain.ts";

const [place = "", count = "0", mined = "0"] = process.argv.slice(2);
const chain = killedChain(Number(count), Number(mined));
const ledger = await openPlace(place);
const prices = {
  token: async (_token: string, amount: bigint) => {
    const fee = { adjustments: [], fees: [], actualPaymentAmount: amount, quotedPaymentAmount: amount };
    return { winc: winc(amount), ...fee };
  },
};
const payments = createTokenPayments({
  ledger,
  prices,
  chains: [chain],
  log: silentLog,
  excluded: new Set<string>(),
  clock: systemClock,
  random: Math.random,
  makeId: createTransferIds(systemClock, Math.random),
  lookAgainMs: 1,
});
const watcher = openTokenWatcher({
  payments,
  ledger,
  intervalMs: 1,
  log: silentLog,
  clock: systemClock,
  random: Math.random,
});
process.stdout.write("begun\n");
const never = new AbortController().signal;
await Promise.all(
  chain.ids.map(async (id) => {
    const { payment } = await report(id);
    process.stdout.write(`${payment.state} ${id}\n`);
  }),
);
process.stdout.write("reported\n");
// The process that kills it may have ended.
await Bun.sleep(120_000);
await watcher.close();
process.exit(1);

async function report(id: string): Promise<Submitted> {
  for (;;) {
    try {
      return await payments.submit("ethereum", id, never);
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== "transaction_fault") throw error;
    }
    await Bun.sleep(1);
  }
}
