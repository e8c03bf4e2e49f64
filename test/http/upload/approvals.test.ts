/**
 * Items whose tags give or revoke approvals: their receipts, and rejections.
 * Source: docs/reference/upload.md#approvals-by-tags.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { approvalRecord } from "../../../src/http/payment/payment-records.ts";
import { user } from "../../../src/store/ledger/transfers.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { testAddress } from "../../support/payment.ts";
import { openTestUpload, type TestUpload, testItem } from "../../support/upload.ts";

const bela = testAddress("Bela");
const carl = testAddress("Carl");
const rich = 100_000n;

let made = 0;

/** An item with tags; none comes twice. */
function tagged(tags: Readonly<Record<string, string>>) {
  made += 1;
  return testItem(`item ${made}`, { tags: Object.entries(tags).map(([name, value]) => ({ name, value })) });
}

const { account } = tagged({});

for (const kind of ledgerKinds())
  describeWith(kind.need, `on ${kind.name}`, () => {
    let upload: TestUpload;

    beforeEach(async () => {
      upload = await openTestUpload({ kind });
      await upload.payment.credit(account, rich);
    });
    afterEach(async () => {
      expect((await upload.money()).faults).toEqual([]);
      await upload.close();
    });
    const balance = () => upload.payment.held(user(account));

    test("an item gives an approval, and its receipt shows it", async () => {
      const { bytes, id } = tagged({
        "x-approve-payment": bela,
        "x-amount": "500",
        "x-expires-seconds": "60",
      });
      const receipt = await (await upload.send(bytes)).json();
      const now = upload.payment.clock.now();
      expect(receipt.createdApproval).toEqual({
        approvalDataItemId: id,
        payingAddress: account,
        approvedAddress: bela,
        approvedWincAmount: "500",
        usedWincAmount: "0",
        creationDate: new Date(now).toISOString(),
        expirationDate: new Date(now + 60_000).toISOString(),
      });
      expect(receipt).not.toHaveProperty("revokedApprovals");
      expect(await balance()).toBe(rich - 500n - BigInt(bytes.length));
    });

    test("an approval has no end unless its item tells one, or tells one in another age", async () => {
      for (const tags of [{}, { "x-expires-seconds": "999999999999" }]) {
        const { bytes } = tagged({ "x-approve-payment": bela, "x-amount": "5", ...tags });
        const { createdApproval } = await (await upload.send(bytes)).json();
        expect(createdApproval).not.toHaveProperty("expirationDate");
      }
    });

    test("an approval that was used since changes nothing of the receipt, to the byte", async () => {
      const { bytes, id } = tagged({ "x-approve-payment": bela, "x-amount": "500" });
      const receipt = await (await upload.send(bytes)).text();
      const spent = await upload.payment.credits.reserve({
        itemId: "other",
        signer: bela,
        paidBy: [account],
        directive: "list-only",
        winc: 200n,
        expiresAt: upload.payment.clock.now() + 1_000,
      });
      await upload.payment.credits.post(spent.id);
      expect(await upload.payment.credits.approval(id)).toMatchObject({ usedWinc: 200n });
      upload.payment.clock.advance(5_000);
      expect(await (await upload.send(bytes)).text()).toBe(receipt);
      const revocation = tagged({ "x-delete-payment-approval": bela });
      expect((await upload.send(revocation.bytes)).status).toBe(200);
      expect(await (await upload.send(bytes)).text()).toBe(receipt);
    });

    test("an item takes approvals back, and its receipt shows them, also when it comes again", async () => {
      for (const amount of ["1", "20", "300"])
        await upload.send(tagged({ "x-approve-payment": bela, "x-amount": amount }).bytes);
      await upload.send(tagged({ "x-approve-payment": carl, "x-amount": "4000" }).bytes);
      const before = await balance();
      const { bytes } = tagged({ "x-delete-payment-approval": bela });
      const first = await (await upload.send(bytes)).text();
      const { revokedApprovals } = JSON.parse(first);
      expect(revokedApprovals).toHaveLength(3);
      expect(revokedApprovals.map((each: ReturnType<typeof approvalRecord>) => each.approvedWincAmount).sort()).toEqual(
        ["1", "20", "300"],
      );
      expect(await balance()).toBe(before + 321n - BigInt(bytes.length));
      // An older item does not revoke a later approval.
      await upload.send(tagged({ "x-approve-payment": bela, "x-amount": "7" }).bytes);
      const after = await balance();
      expect(await (await upload.send(bytes)).text()).toBe(first);
      expect(await balance()).toBe(after);
    });

    const create = "Unable to create delegated payment approval : ";
    const revoke = "Unable to revoke delegated payment approval : ";
    test.each<[Record<string, string>, string]>([
      [{ "x-approve-payment": bela }, "Approval x-amount tag missing a winc value!"],
      [{ "x-approve-payment": bela, "x-amount": "0" }, `${create}the tag x-amount is not a valid winc amount`],
      [{ "x-approve-payment": bela, "x-amount": "-1" }, `${create}the tag x-amount is not a valid winc amount`],
      [{ "x-approve-payment": bela, "x-amount": "1.5" }, `${create}the tag x-amount is not a valid winc amount`],
      [{ "x-approve-payment": bela, "x-amount": "1e3" }, `${create}the tag x-amount is not a valid winc amount`],
      [{ "x-approve-payment": bela, "x-amount": " 1" }, `${create}the tag x-amount is not a valid winc amount`],
      [{ "x-approve-payment": "Bela", "x-amount": "1" }, `${create}Invalid approved address`],
      [{ "x-approve-payment": account, "x-amount": "1" }, `${create}An address cannot approve itself`],
      ...["0", "-1", "1.5", "soon", ""].map((text): [Record<string, string>, string] => [
        { "x-approve-payment": bela, "x-amount": "1", "x-expires-seconds": text === "" ? "x" : text },
        `${create}the tag x-expires-seconds is not a valid number of seconds`,
      ]),
      [
        { "x-approve-payment": bela, "x-delete-payment-approval": bela, "x-amount": "1" },
        `${create}one item cannot both approve and revoke`,
      ],
      [{ "x-delete-payment-approval": "Bela" }, `${revoke}Invalid approved address`],
      [
        { "x-delete-payment-approval": bela },
        `${revoke}No valid approvals found for approved address '${bela}' and paying address '${account}'`,
      ],
    ])("an item that says %p is rejected, and nothing is charged", async (tags, reason) => {
      const { bytes, id } = tagged(tags);
      const response = await upload.send(bytes);
      expect([response.status, await response.json()]).toEqual([400, reason]);
      expect([await balance(), await upload.row(id)]).toEqual([rich, undefined]);
    });

    test("more is not approved than is left when the item itself is paid for", async () => {
      const { bytes, id } = tagged({ "x-approve-payment": bela, "x-amount": String(rich) });
      const response = await upload.send(bytes);
      expect([response.status, await response.json()]).toEqual([400, `${create}Insufficient balance for '${account}'`]);
      expect([await balance(), await upload.row(id)]).toEqual([rich, undefined]);
    });
  });
