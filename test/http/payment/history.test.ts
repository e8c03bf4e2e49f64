/**
 * A wallet's payments over HTTP: its own, by a signature or a token, page by page.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHistoryRoutes } from "../../../src/http/payment/account-routes.ts";
import {
  createWalletAccess,
  createWalletTokens,
  type WalletAccess,
} from "../../../src/payment/access/wallet-access.ts";
import { readAddress, type UserAddress } from "../../../src/payment/addresses.ts";
import { pendingPaymentsOf } from "../../../src/payment/tokens/token-payment-store.ts";
import { readPayments } from "../../../src/payment/top-ups/payment-history.ts";
import { keepCard, keepGift, keepToken } from "../../payment/top-ups/payments-made.ts";
import { openTestPayment, type TestPayment } from "../../support/payment.ts";
import { openPaymentServer, type PaymentServer } from "../../support/payment-server.ts";
import { arweaveWallet, ethereumWallet, signedHeaders, solanaWallet } from "../../support/signed-headers.ts";
import { rsaKey, testKey } from "../../support/signers.ts";

const arweave = arweaveWallet(rsaKey);
const ethereum = ethereumWallet(testKey(0x11));
const solana = solanaWallet(testKey(0x07));
const forbidden = "Invalid signature or missing required headers";

type Result = Readonly<{ status: number; headers: Headers; body: Page }>;
type Page = {
  payments: Record<string, unknown>[];
  pending?: Record<string, unknown>[];
  hasMore: boolean;
  cursor: string | null;
};

let payment: TestPayment;
let access: WalletAccess;
let server: PaymentServer;
let nonces = 0;

beforeAll(async () => {
  payment = await openTestPayment();
  const { database, clock } = payment;
  access = createWalletAccess({
    database,
    tokens: createWalletTokens(testKey(99), clock.now),
    clock: clock.now,
  });
  server = openPaymentServer(() => [
    createHistoryRoutes({
      access,
      payments: (address, page) => database.read((tx) => readPayments(tx, address, page)),
      pending: (address, limit) => database.read((tx) => pendingPaymentsOf(tx, address, limit)),
    }),
  ]);
  const address = known(ethereum.address);
  await payment.credit(address, 100n);
  await payment.credit(known(arweave.address), 100n);
  await database.write(async (tx) => {
    await keepCard(tx, { id: "quote", address, at: 3_000, winc: 30n, amount: 1_000n });
    await keepGift(tx, { id: "given", address, at: 2_000, winc: 20n, message: "a joy" });
    await keepToken(tx, {
      id: "usdc:x:0",
      address,
      at: 1_000,
      winc: 10n,
      quantity: 2_500_000n,
      token: "usdc",
    });
    await keepCard(tx, { id: "other", address: known(arweave.address), at: 5_000, winc: 50n });
  });
});

afterAll(async () => {
  await server.close();
  await payment.close();
});

async function ask(query: string, headers: Record<string, string> = {}): Promise<Result> {
  const response = await fetch(`${server.url}/v1/account/payments${query}`, { headers });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

function fresh(wallet = ethereum): Record<string, string> {
  nonces += 1;
  return signedHeaders(wallet, `nonce ${nonces}`);
}

const payments = [
  {
    type: "fiat",
    date: "1970-01-01T00:00:03.000Z",
    wincCredited: "30",
    paymentAmount: "1000",
    currencyType: "usd",
    paymentProvider: "stripe",
    receiptId: "quote",
    giftMessage: null,
  },
  {
    type: "fiat",
    date: "1970-01-01T00:00:02.000Z",
    wincCredited: "20",
    paymentAmount: "0",
    currencyType: "usd",
    paymentProvider: "stripe",
    receiptId: "given",
    giftMessage: "a joy",
  },
  {
    type: "crypto",
    date: "1970-01-01T00:00:01.000Z",
    wincCredited: "10",
    tokenType: "usdc",
    tokenQuantity: "2500000",
    usdEquivalent: "2.5",
    senderAddress: "sender",
    transactionId: "usdc:x:0",
    blockHeight: "77",
  },
];

describe("GET /account/payments", () => {
  test("Q: returns the payments of the wallet that signed, newest first, with no-store", async () => {
    const { status, headers, body } = await ask("", fresh());
    expect(status).toBe(200);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("authorization")).toBeNull();
    expect(body).toEqual({ payments, pending: [], hasMore: false, cursor: null });
    expect((await ask("", fresh(arweave))).body.payments).toHaveLength(1);
  });

  test("returns the payments of the wallet whose token is sent", async () => {
    const headers = { authorization: `Bearer ${access.issue(known(ethereum.address))}` };
    for (const _ of [1, 2]) expect((await ask("", headers)).body.payments).toEqual(payments);
    expect((await ask("?limit=1", { authorization: "Bearer x" })).status).toBe(403);
  });

  test("returns page after page", async () => {
    const first = (await ask("?limit=2", fresh())).body;
    expect(first).toMatchObject({ payments: payments.slice(0, 2), hasMore: true });
    const second = (await ask(`?limit=2&cursor=${first.cursor}`, fresh())).body;
    expect(second).toEqual({ payments: payments.slice(2), hasMore: false, cursor: null });
    const exact = (await ask("?limit=3", fresh())).body;
    expect(exact).toMatchObject({ payments, hasMore: false, cursor: null });
  });

  test("returns an empty page to a wallet that never had credits", async () => {
    const { status, body } = await ask("", fresh(solana));
    expect([status, body]).toEqual([200, { payments: [], pending: [], hasMore: false, cursor: null }]);
  });

  test("tells on the first page what is paid and not confirmed yet, the newest first", async () => {
    const address = known(solana.address);
    const waiting = { address, winc: 5n, state: "pending", token: "base-usdc", quantity: 2_500_000n };
    await payment.database.write(async (tx) => {
      await keepToken(tx, { ...waiting, id: "older", at: 1_000 });
      await keepToken(tx, { ...waiting, id: "newer", at: 2_000 });
      await keepToken(tx, { ...waiting, id: "failed", at: 3_000, state: "failed" });
      await keepToken(tx, { ...waiting, id: "another's", at: 3_000, address: known(ethereum.address) });
    });
    const { body } = await ask("?limit=1", fresh(solana));
    expect(body).toMatchObject({ payments: [], hasMore: false, cursor: null });
    expect(body.pending?.map((each) => each["transactionId"])).toEqual(["newer", "older"]);
    expect(body.pending?.[0]).toEqual({
      type: "crypto",
      tokenType: "base-usdc",
      tokenQuantity: "2500000",
      senderAddress: "sender",
      date: "1970-01-01T00:00:02.000Z",
      wincPending: "5",
      transactionId: "newer",
    });
    const last = (await ask("?limit=2", fresh())).body;
    expect((await ask(`?limit=2&cursor=${last.cursor}`, fresh())).body.pending).toBeUndefined();
  });

  test("rejects who has not signed, or has used the signature, whatever address is named", async () => {
    for (const query of ["", `?address=${ethereum.address}`]) {
      const { status, body } = await ask(query);
      expect([status, String(body)]).toEqual([403, forbidden]);
    }
    const headers = fresh();
    expect((await ask("", headers)).status).toBe(200);
    expect((await ask("", headers)).status).toBe(403);
    expect((await ask("?limit=1", headers)).status).toBe(403);
  });

  test.each(["limit=0", "limit=101", "limit=-1", "limit=1.5", "limit=1e1", "limit=", "limit=x", "limit=1000"])(
    "rejects %s and leaves the signature unused",
    async (query) => {
      const headers = fresh();
      const { status, body } = await ask(`?${query}`, headers);
      expect(status).toBe(400);
      expect(String(body)).toBe("Invalid limit: a whole number from 1 to 100");
      expect((await ask("?limit=100", headers)).status).toBe(200);
    },
  );

  test.each([
    "",
    "x",
    "====",
    encoded("1.1"),
    encoded("1.1."),
    encoded("1..x"),
    encoded("-1.1.x"),
    encoded("1.1.x\n"),
    encoded("1234567890123456.1.x"),
    `${encoded("1.1.x")}=`,
    "A".repeat(5_000),
  ])("rejects the cursor %p", async (cursor) => {
    const { status, body } = await ask(`?cursor=${encodeURIComponent(cursor)}`, fresh());
    expect([status, String(body)]).toEqual([400, "Invalid cursor"]);
  });

  test("accepts a cursor whose payment was removed, and one of an unknown kind", async () => {
    expect((await ask(`?cursor=${encoded("2500.1.gone")}`, fresh())).body.payments).toEqual(payments.slice(1));
    expect((await ask(`?cursor=${encoded("2000.9.gone")}`, fresh())).body.payments).toEqual(payments.slice(1));
    expect((await ask(`?cursor=${encoded("2000.0.gone")}`, fresh())).body.payments).toEqual(payments.slice(2));
  });
});

function encoded(text: string): string {
  return Buffer.from(text).toString("base64url");
}

function known(text: string): UserAddress {
  const read = readAddress(text);
  if (read === undefined) throw new Error(`${text} is not a valid address`);
  return read.address;
}
