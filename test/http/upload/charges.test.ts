/**
 * Who pays for an item and how much: prices, free items, lists, approvals in their order, and rejections that say what
 * is missing.
 * Source: docs/reference/upload.md#posting-an-item; docs/reference/payment.md#approvals.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { addressOf } from "../../../src/arweave/id.ts";
import { createEthereumSigner, ethereum, kyve } from "../../../src/arweave/signers/ethereum.ts";
import { Failure } from "../../../src/failures.ts";
import { readAddress, type UserAddress } from "../../../src/payment/addresses.ts";
import { user } from "../../../src/store/ledger/transfers.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { testAddress } from "../../support/payment.ts";
import { testKey } from "../../support/signers.ts";
import { openTestUpload, type TestUpload, type TestUploadSetup, testItem } from "../../support/upload.ts";

const anna = testAddress("Anna");
const bela = testAddress("Bela");
const ethereumSigner = createEthereumSigner(testKey(71));

function known(text: string): UserAddress {
  const read = readAddress(text);
  if (read === undefined) throw new Error(`${text} is not a valid address`);
  return read.address;
}

for (const kind of ledgerKinds())
  describeWith(kind.need, `on ${kind.name}`, () => {
    let upload: TestUpload;

    const open = async (setup: TestUploadSetup = {}) => {
      upload = await openTestUpload({ kind, ...setup });
    };
    beforeEach(() => {
      made += 1;
    });
    afterEach(async () => {
      expect((await upload.money()).faults).toEqual([]);
      await upload.close();
    });
    let made = 0;
    const item = (size = 100, fields: Parameters<typeof testItem>[1] = {}) =>
      testItem(`${made}`.padEnd(size, "-"), fields);
    const balanceOf = (address: UserAddress) => upload.payment.held(user(address));

    test("an item costs its price, which its receipt says, and its signer pays", async () => {
      await open({ priceOf: async (bytes) => 3n * bytes + 1n });
      const { bytes, account, id } = item();
      await upload.payment.credit(account, 10_000n);
      const response = await upload.send(bytes);
      const price = 3n * BigInt(bytes.length) + 1n;
      expect([response.status, await response.json()]).toEqual([
        200,
        expect.objectContaining({ id, winc: String(price) }),
      ]);
      expect(await balanceOf(account)).toBe(10_000n - price);
      expect((await upload.money()).revenue).toBe(price);
    });

    test("a payer without enough credits gets the needed and the available amount, and nothing is stored", async () => {
      await open();
      const { bytes, account, id } = item();
      await upload.payment.credit(account, 99n);
      for (const body of [bytes, new Blob([bytes]).stream()]) {
        const response = await upload.send(body);
        expect([response.status, await response.json()]).toEqual([
          402,
          {
            error: "Insufficient balance",
            message: "Insufficient balance",
            needed: String(bytes.length),
            available: "99",
          },
        ]);
        expect(response.headers.get("cache-control")).toBe("no-store");
      }
      expect([await balanceOf(account), upload.files(), await upload.row(id)]).toEqual([99n, {}, undefined]);
    });

    test("an item whose size only its end tells is stored no further than twice what can be paid", async () => {
      await open();
      const data = new Uint8Array(20 * 2 ** 20);
      const { bytes, account, id } = testItem(data);
      await upload.payment.credit(account, 5n * 2n ** 20n);
      let sent = 0;
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          const piece = bytes.subarray(sent, sent + 2 ** 18);
          sent += piece.length;
          if (piece.length === 0) controller.close();
          else controller.enqueue(piece);
        },
      });
      const response = await upload.send(body);
      const { needed } = await response.json();
      expect(response.status).toBe(402);
      expect(Number(needed)).toBeGreaterThan(5 * 2 ** 20);
      expect(Number(needed)).toBeLessThanOrEqual(11 * 2 ** 20);
      expect([upload.files(), await upload.row(id)]).toEqual([{}, undefined]);
      expect(await balanceOf(account)).toBe(5n * 2n ** 20n);
    });

    test("items up to the free size cost nothing, those of one byte more their price", async () => {
      await open({ rules: { freeBytesMax: 1_000 } });
      const header = item().headerSize;
      const free = item(1_000 - header);
      const paid = item(1_001 - header);
      expect([free.bytes.length, paid.bytes.length]).toEqual([1_000, 1_001]);
      expect(await (await upload.send(free.bytes)).json()).toMatchObject({ winc: "0" });
      expect((await upload.send(paid.bytes)).status).toBe(402);
      await upload.payment.credit(paid.account, 1_001n);
      expect(await (await upload.send(paid.bytes)).json()).toMatchObject({ winc: "1001" });
    });

    test("free items are accepted while no price is known; others get Retry-After", async () => {
      await open({
        rules: { freeBytesMax: 1_000 },
        priceOf: async () => {
          throw new Failure("pricing_oracle_unavailable", {});
        },
      });
      expect((await upload.send(item(100).bytes)).status).toBe(200);
      const dear = item(5_000);
      for (const body of [dear.bytes, new Blob([dear.bytes]).stream()]) {
        const response = await upload.send(body);
        expect([response.status, await response.json(), response.headers.get("retry-after")]).toEqual([
          503,
          "Pricing Oracle Unavailable",
          "5",
        ]);
      }
      expect(Object.keys(upload.files())).toHaveLength(1);
      expect(await upload.row(dear.id)).toBeUndefined();
    });

    test("while the chain's height is unknown no item is accepted, and accepted items still get their receipts", async () => {
      let height: number | undefined = 7;
      await open({ rules: { freeBytesMax: 1_000 }, height: () => height });
      const early = item(10);
      const receipt = await (await upload.send(early.bytes)).text();
      expect(JSON.parse(receipt)).toMatchObject({ deadlineHeight: 207 });
      height = undefined;
      expect(await (await upload.send(early.bytes)).text()).toBe(receipt);
      const response = await upload.send(item(20).bytes);
      expect([response.status, response.headers.get("retry-after")]).toEqual([503, "5"]);
    });

    test("listed signers pay nothing, or are rejected, under whichever of their names they are listed", async () => {
      const { owner } = ethereumSigner;
      const names = [ethereum.nativeAddress(owner), kyve.nativeAddress(owner), addressOf(owner)];
      for (const name of names) {
        made += 1;
        await open({ rules: { allowed: new Set([name]) } });
        for (const path of ["/tx", "/tx/ethereum", "/tx/kyve"]) {
          made += 1;
          const response = await upload.send(item(50, { signer: ethereumSigner }).bytes, { path });
          expect([response.status, await response.json()]).toMatchObject([200, { winc: "0" }]);
        }
        expect((await upload.send(item().bytes)).status).toBe(402);
        await upload.close();

        await open({ rules: { blocked: new Set([name]), freeBytesMax: 1_000 } });
        for (const path of ["/tx", "/tx/ethereum", "/tx/kyve"]) {
          const response = await upload.send(item(50, { signer: ethereumSigner }).bytes, { path });
          expect([response.status, await response.json()]).toEqual([403, "Forbidden"]);
        }
        expect((await upload.send(item().bytes)).status).toBe(200);
        if (name !== names.at(-1)) await upload.close();
      }
    });

    test("an Ethereum key that comes as KYVE's pays with the account that it has there", async () => {
      await open();
      const ofKyve = known(kyve.nativeAddress(ethereumSigner.owner));
      await upload.payment.credit(ofKyve, 10_000n);
      const { bytes } = item(50, { signer: ethereumSigner });
      expect((await upload.send(bytes, { path: "/tx/ethereum" })).status).toBe(402);
      expect((await upload.send(bytes, { path: "/v1/tx/kyve" })).status).toBe(200);
      expect(await balanceOf(ofKyve)).toBe(10_000n - BigInt(bytes.length));
    });

    test("approvals pay in the order in which their payers are named, each payer's soonest to expire first", async () => {
      await open();
      const { bytes, account } = item(184); // 300 bytes
      expect(bytes.length).toBe(300);
      const { credits, clock, credit } = upload.payment;
      await credit(anna, 1_000n);
      await credit(bela, 1_000n);
      await credit(account, 1_000n);
      const approve = (approvalId: string, payer: UserAddress, winc: bigint, seconds?: number) =>
        credits.approve({
          approvalId,
          payer,
          approved: account,
          winc,
          expiresAt: seconds === undefined ? undefined : clock.now() + seconds * 1_000,
        });
      await approve("a-never", anna, 100n);
      await approve("a-late", anna, 60n, 90);
      await approve("a-soon", anna, 50n, 30);
      await approve("b", bela, 100n);
      const used = async () => {
        const names = ["a-never", "a-late", "a-soon", "b"];
        return await Promise.all(names.map(async (name) => (await credits.approval(name))?.usedWinc));
      };
      // 100 of Bela, then 50 that expire soon and 60 that expire later, then 90 of the others.
      const response = await upload.send(bytes, { headers: { "x-paid-by": `${bela}, ${anna}` } });
      expect(response.status).toBe(200);
      expect(await used()).toEqual([90n, 60n, 50n, 100n]);
      expect(await balanceOf(account)).toBe(1_000n);
    });

    test("the header of payers is read in any case, repeated and as a list", async () => {
      await open();
      const { account } = item();
      await upload.payment.credit(anna, 10_000n);
      await upload.payment.credit(bela, 10_000n);
      for (const payer of [anna, bela]) {
        const approvalId = `of ${payer}`;
        await upload.payment.credits.approve({ approvalId, payer, approved: account, winc: 9_000n });
      }
      const spent = async (headers: HeadersInit) => {
        made += 1;
        expect((await upload.send(item().bytes, { headers })).status).toBe(200);
        const of = async (payer: UserAddress) => (await upload.payment.credits.approval(`of ${payer}`))?.usedWinc ?? 0n;
        return [await of(anna), await of(bela)];
      };
      const size = BigInt(item().bytes.length);
      expect(await spent({ "X-PAID-BY": anna })).toEqual([size, 0n]);
      expect(await spent({ "X-Paid-By": ` ${bela} ,${anna}` })).toEqual([size, size]);
      expect(
        await spent([
          ["x-paid-by", bela],
          ["X-paid-by", anna],
        ]),
      ).toEqual([size, 2n * size]);
      expect(await spent({ "x-paid-by": `,, ${anna},` })).toEqual([2n * size, 2n * size]);
    });

    test.each([
      ["unnamed", "x-paid-by contains an invalid address"],
      [`${anna},unnamed`, "x-paid-by contains an invalid address"],
      [Array(91).fill(anna).join(","), "x-paid-by lists more than 90 addresses"],
    ])("payers who are none are rejected", async (header, reason) => {
      await open({ rules: { freeBytesMax: 1_000 } });
      const response = await upload.send(item().bytes, { headers: { "x-paid-by": header } });
      expect([response.status, await response.json()]).toEqual([400, reason]);
    });

    test("the signer pays what payers do not cover, unless only they are to", async () => {
      await open();
      const { bytes, account } = item(184);
      const { credit, credits } = upload.payment;
      await credit(anna, 100n);
      await credit(account, 250n);
      await credits.approve({ approvalId: "a", payer: anna, approved: account, winc: 100n });
      const headers = { "x-paid-by": anna, "x-payment-directive": "list-only" };
      const rejected = await upload.send(bytes, { headers });
      expect([rejected.status, await rejected.json()]).toMatchObject([402, { needed: "300", available: "100" }]);
      expect((await upload.send(bytes, { headers: { "x-paid-by": anna } })).status).toBe(200);
      expect(await balanceOf(account)).toBe(50n);
    });

    test("who is in debt can still spend what others approved", async () => {
      await open();
      const { bytes, account } = item(184);
      const { credit, chargeBack, credits } = upload.payment;
      await credit(account, 10n);
      await chargeBack(account, 500n);
      await credit(anna, 300n);
      await credits.approve({ approvalId: "a", payer: anna, approved: account, winc: 300n });
      expect((await upload.send(bytes, { headers: { "x-paid-by": anna } })).status).toBe(200);
      expect(await balanceOf(account)).toBe(-490n);
    });
  });
