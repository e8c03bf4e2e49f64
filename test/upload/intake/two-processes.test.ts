/**
 * One item, sent a hundred times at once by mixed payers, in every encoding of its signature, to two processes of one
 * ledger, one of which is killed: one charge, one receipt.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEthereumSigner } from "../../../src/arweave/signers/ethereum.ts";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { revenue } from "../../../src/store/ledger/transfers.ts";
import { validEncodings } from "../../support/encodings.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { openTestPayment, testAddress } from "../../support/payment.ts";
import { createRandom } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { createMultiAptosSigner, testKey } from "../../support/signers.ts";
import { testItem } from "../../support/upload.ts";
import { makeReceiptKey } from "../../support/upload-parts.ts";
import { sendItem, startUploads } from "../upload-process.ts";

const root = mkdtempSync(join(tmpdir(), "cairn-two-"));
afterAll(() => removeFolder(root));
const random = createRandom(newSeed());
const sends = 100;
const rounds = 2;
const twoSigners = [
  ["ethereum", createEthereumSigner(testKey(41))],
  ["multiAptos", createMultiAptosSigner([testKey(42), testKey(43), testKey(44)], 2)],
] as const;
const payers = [testAddress("Anna"), testAddress("Bela"), testAddress("Carl")];

for (const kind of ledgerKinds())
  describeWith(kind.need, `on ${kind.name}`, () => {
    test.each(twoSigners)(
      "U2: one item by %s, two processes, one kill: one charge and one receipt",
      async (_name, signer) => {
        const payment = await openTestPayment({ kind });
        const keyFile = makeReceiptKey(join(root, "keys"));
        const start = (folder: string) =>
          startUploads({
            place: payment.ledger.place,
            folder: join(root, kind.name, signer.scheme.name, folder),
            keyFile,
          });
        let [first, second] = await Promise.all([start("a"), start("b")]);
        const { account } = testItem("", { signer });
        await payment.credit(account, 10n ** 12n);
        for (const payer of payers) {
          await payment.credit(payer, 10n ** 12n);
          const approvalId = `of ${payer}`;
          await payment.credits.approve({ approvalId, payer, approved: account, winc: 10n ** 11n });
        }
        let charged = 0n;
        for (let round = 0; round < rounds; round += 1) {
          const item = testItem(random.bytes(round % 2 === 0 ? 1_000 : 1_500_000), { signer });
          const encodings = [item.bytes, ...validEncodings(item.bytes)];
          const survivor = second.url;
          const send = async (index: number) => {
            const headers = { "x-paid-by": random.pick([...payers, account]) };
            const to = index % 2 === 0 ? first.url : survivor;
            const bytes = random.pick(encodings);
            // A request without a response from the killed process goes to the other one.
            return await sendItem(to, bytes, headers).catch(() => sendItem(survivor, bytes, headers));
          };
          const responses = Promise.all(Array.from({ length: sends }, (_, index) => send(index)));
          await Bun.sleep(random.below(60));
          await first.kill();
          const texts = new Set((await responses).map(({ status, text }) => `${status} ${text}`));
          expect(texts.size).toBe(1);
          charged += BigInt(item.bytes.length);
          expect(await payment.held(revenue)).toBe(charged);
          first = await start("a");
          for (const bytes of encodings) {
            const again = await sendItem(first.url, bytes);
            expect([...texts]).toEqual([`${again.status} ${again.text}`]);
            expect(again.status).toBe(200);
          }
        }
        expect(await payment.held(revenue)).toBe(charged);
        expect(await checkLedger(payment.database)).toEqual([]);
        await Promise.all([first.kill(), second.kill()]);
        await payment.close();
      },
      120_000,
    );
  });
