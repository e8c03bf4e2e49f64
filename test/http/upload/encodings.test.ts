/**
 * One signature is one upload: a public item that arrives again with its signature in another encoding gets the first
 * receipt with the first id, and is not charged, approved or revoked again.
 * Source: docs/reference/signatures.md; threat model U1, B4 (docs/reference/threats.md).
 * @module
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { ItemFields } from "../../../src/arweave/data-item.ts";
import type { Signer } from "../../../src/arweave/signers/scheme.ts";
import { refundReservation } from "../../../src/payment/credits/reservations.ts";
import { user } from "../../../src/store/ledger/transfers.ts";
import { validEncodings } from "../../support/encodings.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { testAddress } from "../../support/payment.ts";
import { createMultiAptosSigner, signers, testKey } from "../../support/signers.ts";
import { openTestUpload, type TestItem, type TestUpload, testItem } from "../../support/upload.ts";

const rich = 10n ** 12n;
const large = new Uint8Array(2 * 2 ** 20).fill(5);
const bela = testAddress("Bela");

const malleable: readonly (readonly [string, Signer])[] = [
  ...signers
    .filter(({ scheme }) => [3, 7, 101].includes(scheme.type))
    .map((signer) => [signer.scheme.name, signer] as const),
  ["multiAptos", createMultiAptosSigner([testKey(31), testKey(32), testKey(33)], 2)],
];

let made = 0;

/** An item that no other test has, and the same with its signature encoded in every other way. */
function encoded(signer: Signer, data?: Uint8Array, tags: ItemFields["tags"] = []) {
  made += 1;
  const item = testItem(data ?? `item ${made}`, {
    signer,
    tags: [...tags, { name: "Number", value: String(made) }],
  });
  const others = validEncodings(item.bytes);
  expect(others.length).toBeGreaterThan(0);
  return { item, others };
}

for (const kind of ledgerKinds())
  describeWith(kind.need, `on ${kind.name}`, () => {
    let upload: TestUpload;

    beforeEach(async () => {
      upload = await openTestUpload({ kind });
    });
    afterEach(async () => {
      expect((await upload.money()).faults).toEqual([]);
      await upload.close();
    });
    const balance = ({ account }: TestItem) => upload.payment.held(user(account));
    const approve = (winc: string) => [
      { name: "x-approve-payment", value: bela },
      { name: "x-amount", value: winc },
    ];

    /** Sends bytes and responses what came back. */
    async function send(bytes: Uint8Array<ArrayBuffer>, chunked = false) {
      const body = chunked ? new Blob([bytes]).stream() : bytes;
      const response = await upload.send(body);
      return { status: response.status, receipt: JSON.parse(await response.text()) };
    }

    describe.each(malleable)("U2: an item signed by %s", (_name, signer) => {
      test.each([
        ["small", undefined],
        ["large", large],
      ])("that is %s is charged once in every encoding, and has one receipt", async (_size, data) => {
        const { item, others } = encoded(signer, data);
        await upload.payment.credit(item.account, rich);
        const first = await send(item.bytes);
        expect([first.status, first.receipt.id]).toEqual([200, item.id]);
        const files = upload.files();
        upload.payment.clock.advance(5_000);
        for (const other of others) {
          for (const chunked of [false, true]) {
            const again = await send(other, chunked);
            expect(again).toEqual(first);
          }
        }
        expect(await balance(item)).toBe(rich - BigInt(item.bytes.length));
        expect((await upload.money()).revenue).toBe(BigInt(item.bytes.length));
        // Nothing stays of encodings that were not taken, but what shares a segment with others.
        expect(Object.keys(upload.files()).filter((name) => name.startsWith("items/"))).toEqual(
          Object.keys(files).filter((name) => name.startsWith("items/")),
        );
      });

      test("is charged once when another encoding comes first, and keeps that id", async () => {
        const { item, others } = encoded(signer);
        await upload.payment.credit(item.account, rich);
        const first = await send(others[0] ?? item.bytes);
        expect(first.status).toBe(200);
        expect(first.receipt.id).not.toBe(item.id);
        for (const bytes of [item.bytes, ...others]) expect(await send(bytes)).toEqual(first);
        expect(await upload.row(item.id)).toBeUndefined();
        expect(await balance(item)).toBe(rich - BigInt(item.bytes.length));
      });

      test.each([
        ["small", undefined, 24],
        ["large", large, 6],
      ])("is charged once when all encodings of a %s one come at once", async (_size, data, times) => {
        const { item, others } = encoded(signer, data);
        await upload.payment.credit(item.account, rich);
        const encodings = [item.bytes, ...others];
        const responses = await Promise.all(
          Array.from({ length: times }, (_, index) => send(encodings[index % encodings.length] ?? item.bytes)),
        );
        expect(new Set(responses.map((reply) => JSON.stringify(reply))).size).toBe(1);
        expect(responses[0]?.status).toBe(200);
        expect(await balance(item)).toBe(rich - BigInt(item.bytes.length));
      });

      test("gets its first receipt in another encoding also when nothing is left to pay with", async () => {
        const { item, others } = encoded(signer);
        await upload.payment.credit(item.account, BigInt(item.bytes.length));
        const first = await send(item.bytes);
        for (const other of others) expect(await send(other)).toEqual(first);
        expect(await balance(item)).toBe(0n);
      });

      test("gives one approval, and after its revocation no encoding gives it again", async () => {
        const { item, others } = encoded(signer, undefined, approve("1000000"));
        await upload.payment.credit(item.account, rich);
        const given = await send(item.bytes);
        expect(given.receipt.createdApproval.approvalDataItemId).toBe(item.id);
        for (const other of others) expect(await send(other)).toEqual(given);
        const revocation = encoded(signer, undefined, [{ name: "x-delete-payment-approval", value: bela }]);
        const revoked = await send(revocation.item.bytes);
        expect(revoked.receipt.revokedApprovals.length).toBe(1);
        for (const other of revocation.others) expect(await send(other)).toEqual(revoked);
        for (const bytes of [...others, item.bytes]) expect(await send(bytes)).toEqual(given);
        const balances = await upload.payment.credits.balance(bela);
        expect(balances?.effectiveBalance ?? 0n).toBe(0n);
        const size = BigInt(item.bytes.length + revocation.item.bytes.length);
        expect(await balance(item)).toBe(rich - size);
      });

      test("gives an approval that has expired not again in another encoding", async () => {
        const tags = [...approve("500"), { name: "x-expires-seconds", value: "60" }];
        const { item, others } = encoded(signer, undefined, tags);
        await upload.payment.credit(item.account, rich);
        const given = await send(item.bytes);
        upload.payment.clock.advance(61_000);
        for (const other of others) expect(await send(other)).toEqual(given);
        expect((await upload.payment.credits.balance(bela))?.effectiveBalance ?? 0n).toBe(0n);
      });

      test("may come in another encoding when it failed and was paid back: it is charged once", async () => {
        const { item, others } = encoded(signer, undefined, approve("50"));
        await upload.payment.credit(item.account, rich);
        const first = await send(item.bytes);
        const row = await upload.row(item.id);
        await upload.payment.database.write(async (tx) => {
          await tx.run("UPDATE uploads SET failed_reason = 'its bytes are gone' WHERE id = ?", item.id);
          const step = { now: upload.payment.clock.now(), makeId: upload.payment.makeId };
          await refundReservation(tx, row?.reservationId ?? "", step);
        });
        upload.payment.clock.advance(1_000);
        const again = await send(others[0] ?? item.bytes);
        expect(again.status).toBe(200);
        expect(again.receipt.id).not.toBe(item.id);
        expect(again.receipt.createdApproval).toEqual(first.receipt.createdApproval);
        for (const bytes of [item.bytes, ...others]) expect(await send(bytes)).toEqual(again);
        expect(await balance(item)).toBe(rich - 50n - BigInt(item.bytes.length));
        // The repeated receipt also has the approval, under the accepted id only.
        const lost = await fetch(`${upload.url}/tx/${again.receipt.id}/receipt`);
        expect([lost.status, await lost.json()]).toEqual([200, again.receipt]);
        expect((await fetch(`${upload.url}/tx/${item.id}/receipt`)).status).toBe(404);
      });
    });

    test("a type 6 signer without credits is rejected what it never uploaded", async () => {
      const { item, others } = encoded(malleable[3]?.[1] ?? (signers[0] as Signer));
      for (const bytes of [item.bytes, ...others]) expect((await send(bytes)).status).toBe(402);
    });

    test("an owner who signs the same content anew uploads it anew", async () => {
      const [signer] = signers;
      const items = [1, 2].map(() => testItem("the same content", { signer: signer as Signer }));
      const [first, second] = items;
      if (first === undefined || second === undefined) throw new Error("there are two items");
      await upload.payment.credit(first.account, rich);
      expect((await send(first.bytes)).receipt.id).toBe(first.id);
      expect((await send(second.bytes)).receipt.id).toBe(second.id);
      expect(await balance(first)).toBe(rich - BigInt(first.bytes.length + second.bytes.length));
    });
  });
