/**
 * An item that comes again: the receipt of the first time, to the byte, and one charge, however often, from whomever and
 * by however many programs it is taken.
 * Source: docs/reference/upload.md#posting-an-item; docs/reference/threats.md (U1).
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { refundReservation } from "../../../src/payment/credits/reservations.ts";
import { user } from "../../../src/store/ledger/transfers.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { testAddress } from "../../support/payment.ts";
import { openTestUpload, type TestUpload, testItem } from "../../support/upload.ts";

const anna = testAddress("Anna");
const small = testItem("an item that comes again");
const large = testItem(new Uint8Array(2 * 2 ** 20).fill(7));
const { account } = small;

for (const kind of ledgerKinds())
  describeWith(kind.need, `on ${kind.name}`, () => {
    let upload: TestUpload;

    beforeEach(async () => {
      upload = await openTestUpload({ kind });
      await upload.payment.credit(account, 10n ** 9n);
      await upload.payment.credit(anna, 10n ** 9n);
      await upload.payment.credits.approve({
        approvalId: "a",
        payer: anna,
        approved: account,
        winc: 10n ** 8n,
      });
    });
    afterEach(async () => {
      expect((await upload.money()).faults).toEqual([]);
      await upload.close();
    });

    test.each([
      ["small", small],
      ["large", large],
    ])("U1: a %s item gets its receipt again, however it is sent", async (_size, { bytes }) => {
      const first = await (await upload.send(bytes)).text();
      const charged = (await upload.money()).revenue;
      const files = upload.files();
      upload.payment.clock.advance(86_400_000);
      const ways: readonly (readonly [BodyInit, Parameters<TestUpload["send"]>[1]])[] = [
        [bytes, {}],
        [bytes, { path: "/v1/tx/arweave" }],
        [bytes, { headers: { "x-paid-by": anna } }],
        [new Blob([bytes]).stream(), {}],
        // Its header is all that is looked at: the id is the item's.
        [bytes.with(bytes.length - 1, 0), {}],
      ];
      for (const [body, init] of ways) {
        const again = await upload.send(body, init);
        expect([again.status, await again.text()]).toEqual([200, first]);
      }
      expect((await upload.money()).revenue).toBe(charged);
      expect(upload.files()).toEqual(files);
    });

    test.each([
      ["small", small, 100],
      ["large", large, 8],
    ])("U1: a %s item that comes many times at once is taken once", async (_size, { bytes, id }, times) => {
      const responses = await Promise.all(
        Array.from({ length: times }, async (_, index) => {
          const headers = { "x-paid-by": index % 2 === 0 ? anna : account };
          const response = await upload.send(bytes, { headers });
          return `${response.status} ${await response.text()}`;
        }),
      );
      expect(new Set(responses).size).toBe(1);
      expect(responses[0]).toStartWith("200 ");
      const size = BigInt(bytes.length);
      expect((await upload.money()).revenue).toBe(size);
      const used = (await upload.payment.credits.approval("a"))?.usedWinc ?? 0n;
      expect([
        [0n, 10n ** 9n - size],
        [size, 10n ** 9n],
      ]).toContainEqual([used, await upload.payment.held(user(account))]);
      // Of those that were late nothing stays, but what shares a segment with others.
      const row = await upload.row(id);
      const own = Object.keys(upload.files()).filter((name) => name.startsWith("items/"));
      expect(own).toEqual(bytes.length > 2 ** 20 ? [row?.bytes.file ?? ""] : []);
    });

    test("an item that failed and was paid back may come again, and is charged again", async () => {
      for (const { bytes, id } of [small, large]) {
        const first = JSON.parse(await (await upload.send(bytes)).text());
        const before = await upload.row(id);
        await upload.payment.database.write(async (tx) => {
          await tx.run("UPDATE uploads SET failed_reason = 'its bytes are gone' WHERE id = ?", id);
          const step = { now: upload.payment.clock.now(), makeId: upload.payment.makeId };
          await refundReservation(tx, before?.reservationId ?? "", step);
        });
        const paid = (await upload.money()).revenue;
        upload.payment.clock.advance(1_000);
        const responses = await Promise.all([upload.send(bytes), upload.send(bytes), upload.send(bytes)]);
        const texts = await Promise.all(responses.map((response) => response.text()));
        expect(new Set(texts).size).toBe(1);
        const again = JSON.parse(texts[0] ?? "");
        expect(again.timestamp).toBe(first.timestamp + 1_000);
        expect((await upload.money()).revenue).toBe(paid + BigInt(bytes.length));
        const after = await upload.row(id);
        expect(after).toMatchObject({ state: "stored", failedReason: undefined });
        expect(after?.bytes).not.toEqual(before?.bytes ?? after?.bytes);
      }
    });

    test("what an item that failed said of approvals is not done twice", async () => {
      const tags = [
        { name: "x-approve-payment", value: anna },
        { name: "x-amount", value: "50" },
      ];
      const { bytes, id } = testItem("approves, and fails", { tags });
      const first = JSON.parse(await (await upload.send(bytes)).text());
      await upload.payment.database.write((tx) => tx.run("UPDATE uploads SET failed_reason = 'lost' WHERE id = ?", id));
      const again = JSON.parse(await (await upload.send(bytes)).text());
      expect(again.createdApproval).toEqual(first.createdApproval);
    });
  });
