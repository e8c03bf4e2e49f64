/**
 * The taking in alone, and kill -9 at any moment: what was acknowledged is there, whole and charged once; what was not is charged at
 * most once when it comes again, and leaves no file behind.
 *
 * KILLS is the number of kills (default 10); SEED repeats a run.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { revenue } from "../../../src/store/ledger/transfers.ts";
import { findUpload } from "../../../src/upload/upload-rows.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { openTestPayment, type TestPayment } from "../../support/payment.ts";
import { createRandom } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { eventually } from "../../support/until.ts";
import { type TestItem, testItem } from "../../support/upload.ts";
import { filesIn, makeReceiptKey } from "../../support/upload-parts.ts";
import { sendItem, startUploads, type UploadProcess } from "../upload-process.ts";

const kills = Number(process.env["KILLS"] ?? 10);
const root = mkdtempSync(join(tmpdir(), "cairn-kill-"));
afterAll(() => removeFolder(root));
const random = createRandom(newSeed());

/** Senders at once. */
const senders = 8;
/** Longest lifetime of a process after its first response. Milliseconds. */
const lifeMs = 500;

let made = 0;

function newItem(): TestItem {
  made += 1;
  const data = new Uint8Array(random.chance(0.15) ? 1_100_000 + random.below(2_000_000) : random.below(5_000));
  return testItem(data, { tags: [{ name: "number", value: String(made) }] });
}

for (const kind of ledgerKinds())
  describeWith(kind.need, `on ${kind.name}`, () => {
    test(
      `N2: after ${kills} kills no acknowledged item is lost, and none is charged twice`,
      async () => {
        const payment = await openTestPayment({ kind });
        const folder = join(root, kind.name);
        const keyFile = makeReceiptKey(join(root, "keys"));
        await payment.credit(newItem().account, 10n ** 15n);
        const receipts = new Map<TestItem, string>();
        let unanswered: TestItem[] = [];
        let lost = 0;
        for (let kill = 0; kill < kills; kill += 1) {
          const process_ = await startUploads({ place: payment.ledger.place, folder, keyFile });
          // Sends the items of the previous process without a response again, and some of the others.
          const again = unanswered.concat([...receipts.keys()].slice(-3));
          unanswered = await sendUntilKilled(process_, again, receipts);
          lost += unanswered.length;
          await verifyStored(payment, folder, receipts);
        }
        console.log(`${receipts.size} items were acknowledged, ${lost} sends were cut off`);
        expect(receipts.size).toBeGreaterThan(kills);
        const last = await startUploads({ place: payment.ledger.place, folder, keyFile });
        for (const item of unanswered) receipts.set(item, await receiptOf(last, item));
        for (const [item, receipt] of [...receipts].slice(-200)) expect(await receiptOf(last, item)).toBe(receipt);
        await verifyStored(payment, folder, receipts);
        await expectNoFileWithoutOwner(payment, folder);
        await last.kill();
        await payment.close();
      },
      60_000 + kills * 10_000,
    );
  });

/** Sends items, first the given ones, until the process is killed. @returns The items without a response. */
async function sendUntilKilled(
  process_: UploadProcess,
  first: readonly TestItem[],
  receipts: Map<TestItem, string>,
): Promise<TestItem[]> {
  const queue = [...first];
  const unanswered = new Set<TestItem>();
  let isAlive = true;
  const responded = Promise.withResolvers<void>();
  const sender = async () => {
    while (isAlive) {
      const item = queue.pop() ?? newItem();
      const { status, text } = await sendItem(process_.url, item.bytes).catch(() => ({
        status: 0,
        text: "",
      }));
      if (status === 0) unanswered.add(item);
      else if (status === 200) {
        expect(receipts.get(item) ?? text).toBe(text);
        receipts.set(item, text);
        responded.resolve();
      } else throw new Error(`an item got the response ${status} ${text}`);
    }
  };
  const sending = Promise.all(Array.from({ length: senders }, sender));
  // Some processes die before their first response, while their threads start.
  if (random.chance(0.8)) await Promise.race([sending, responded.promise]);
  await Promise.race([sending, Bun.sleep(random.below(lifeMs))]);
  isAlive = false;
  await process_.kill();
  await sending;
  return [...unanswered, ...queue].filter((item) => !receipts.has(item));
}

async function receiptOf({ url }: UploadProcess, { bytes }: TestItem): Promise<string> {
  const { status, text } = await sendItem(url, bytes);
  expect(status).toBe(200);
  return text;
}

/** Items whose bytes were compared once need not be compared again: files are never changed. */
const compared = new Set<TestItem>();

async function verifyStored(payment: TestPayment, folder: string, receipts: Map<TestItem, string>): Promise<void> {
  for (const item of receipts.keys()) {
    if (compared.has(item)) continue;
    const upload = await payment.database.read((tx) => findUpload(tx, item.id));
    if (upload === undefined) throw new Error(`an acknowledged item is lost: ${item.id}`);
    const { file, offset, size } = upload.bytes;
    const stored = readFileSync(join(folder, file)).subarray(offset, offset + size);
    expect(stored.equals(item.bytes)).toBe(true);
    compared.add(item);
  }
  const sum = await payment.database.read((tx) =>
    tx.get<{ size: bigint }>("SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) AS size FROM uploads"),
  );
  expect(await payment.held(revenue)).toBe(sum?.size ?? 0n);
  expect(await checkLedger(payment.database)).toEqual([]);
}

/** The process that started last has removed what those before it left behind. */
async function expectNoFileWithoutOwner(payment: TestPayment, folder: string): Promise<void> {
  const rows = await payment.database.read((tx) => tx.all<{ file: string }>("SELECT file FROM uploads"));
  const named = new Set(rows.map(({ file }) => file));
  await eventually(
    async () => Object.keys(filesIn(folder)).filter((file) => file.startsWith("items/") && !named.has(file)),
    (files) => files.length === 0,
  );
}
