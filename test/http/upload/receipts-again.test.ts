/**
 * `GET /tx/{id}/receipt`: the first receipt again, to the byte, on every ledger and in both places of the routes.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { refundReservation } from "../../../src/payment/credits/reservations.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { testAddress } from "../../support/payment.ts";
import { openTestUpload, type TestUpload, testItem } from "../../support/upload.ts";

const anna = testAddress("Anna");
const small = testItem("an item whose receipt is requested again");
const approval = testItem("an approval", {
  tags: [
    { name: "x-approve-payment", value: anna },
    { name: "x-amount", value: "1000" },
  ],
});
const revocation = testItem("a revocation", { tags: [{ name: "x-delete-payment-approval", value: anna }] });

for (const kind of ledgerKinds())
  describeWith(kind.need, `on ${kind.name}`, () => {
    let upload: TestUpload;
    const ask = (id: string, place = "") => fetch(`${upload.url}${place}/tx/${id}/receipt`);

    beforeEach(async () => {
      upload = await openTestUpload({ kind });
      await upload.payment.credit(small.account, 10n ** 9n);
    });
    afterEach(async () => {
      expect((await upload.money()).faults).toEqual([]);
      await upload.close();
    });

    test("a receipt is returned again unchanged to any client, and nothing is charged", async () => {
      for (const { bytes, id } of [small, approval, revocation]) {
        const first = await (await upload.send(bytes)).text();
        const { revenue } = await upload.money();
        upload.payment.clock.advance(86_400_000);
        for (const place of ["", "/v1"]) {
          const again = await ask(id, place);
          expect([again.status, await again.text()]).toEqual([200, first]);
          expect(again.headers.get("cache-control")).toBe("no-store");
        }
        expect((await upload.money()).revenue).toBe(revenue);
      }
    });

    test("items that were not accepted or have failed have no receipt", async () => {
      const wanted = [404, "TX doesn't exist"];
      for (const id of [small.id, "short", "A".repeat(43), `${"A".repeat(42)}%00`, "A".repeat(5_000)]) {
        const response = await ask(id);
        expect([response.status, await response.json()]).toEqual(wanted);
      }
      await upload.send(small.bytes);
      const row = await upload.row(small.id);
      await upload.payment.database.write(async (tx) => {
        await tx.run("UPDATE uploads SET failed_reason = 'lost' WHERE id = ?", small.id);
        const step = { now: upload.payment.clock.now(), makeId: upload.payment.makeId };
        await refundReservation(tx, row?.reservationId ?? "", step);
      });
      const failed = await ask(small.id);
      expect([failed.status, await failed.json()]).toEqual(wanted);
    });

    test("many concurrent requests wait or get Retry-After; uploads get their receipts meanwhile", async () => {
      await upload.send(small.bytes);
      const asked = Array.from({ length: 40 }, () => ask(small.id));
      const other = testItem("another item");
      expect((await upload.send(other.bytes)).status).toBe(200);
      const responses = await Promise.all(asked);
      const statuses = new Set(responses.map(({ status }) => status));
      expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
      expect(statuses.has(200)).toBe(true);
      for (const response of responses)
        if (response.status === 503) expect(response.headers.get("retry-after")).toBe("5");
    });
  });
