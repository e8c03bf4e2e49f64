/**
 * An upload service under measurement: it accepts items, charges for them, notifies the index and signs receipts.
 *
 * Run as `bun bench/uploads/uploads-served.ts <folder>`; it prints `open <url>`. A byte costs one winc. The accounts in
 * the following arguments have credits.
 * @module
 */
import { writeSync } from "node:fs";
import { join } from "node:path";
import { silentLog } from "../../src/lib/log.ts";
import { readAddress } from "../../src/payment/addresses.ts";
import { openIndexWriter } from "../../src/store/index/index-writer.ts";
import { createIndexWriterCalls, type WriteJob } from "../../src/store/index/index-writer-calls.ts";
import { openLedger } from "../../src/store/ledger/open-ledger.ts";
import { createTransferIds, provider, transfer, user } from "../../src/store/ledger/transfers.ts";
import { openPool } from "../../src/threads/pool.ts";
import { createAnnouncer } from "../../src/upload/intake/index-announcements.ts";
import { openPaymentServer } from "../../test/support/payment-server.ts";
import { makeReceiptKey, openUploadParts } from "../../test/support/upload-parts.ts";

const [folder = "", ...accounts] = process.argv.slice(2);
const credits = 10n ** 15n;

const ledger = await openLedger({ url: undefined, path: join(folder, "ledger.sqlite") });
const makeId = createTransferIds(Date.now, () => (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) / 2 ** 32);
for (const text of accounts) {
  const account = readAddress(text)?.address;
  if (account === undefined) throw new Error(`${text} is not a valid address`);
  const legs = [
    { account: provider("stripe"), amount: -credits },
    { account: user(account), amount: credits },
  ];
  await ledger.write((tx) => transfer(tx, { id: makeId(), kind: "payment", at: Date.now(), legs }));
}

const indexPath = join(folder, "index.sqlite");
openIndexWriter(indexPath, { clock: Date.now }).close();
const idleMs = Number.POSITIVE_INFINITY;
const pool = openPool({ entry: "index", threads: 1, queueMax: 1_024, timeoutMs: 60_000, idleMs });
const index = createIndexWriterCalls(indexPath, (job: WriteJob) => pool.run("write", job));
const announcer = createAnnouncer({ addPending: index.addPending, log: silentLog });

const parts = await openUploadParts({
  ledger,
  folder: join(folder, "uploads"),
  keyFile: makeReceiptKey(folder, 4_096),
  clock: Date.now,
  makeId,
  rules: { itemBytesMax: 2 ** 40 },
  onTaken: (item) => announcer.announce(item.row),
});
const server = openPaymentServer(() => [parts.createRoutes()], Number.MAX_SAFE_INTEGER);
writeSync(1, `open ${server.url}\n`);
