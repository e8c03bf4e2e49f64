/**
 * Approvals over HTTP: between two addresses, of one address, and of an unknown address.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createApprovalRoutes } from "../../../src/http/payment/account-routes.ts";
import { readAddress } from "../../../src/payment/addresses.ts";
import { openTestPayment, type TestPayment, testAddress } from "../../support/payment.ts";
import { openPaymentServer, type PaymentServer } from "../../support/payment-server.ts";

const giver = testAddress("giver");
const taker = readAddress("0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A")?.address ?? giver;
const other = testAddress("other");

let payment: TestPayment;
let server: PaymentServer;

beforeAll(async () => {
  payment = await openTestPayment();
  const { credits, clock } = payment;
  server = openPaymentServer(() => [createApprovalRoutes({ credits })]);
  await payment.credit(giver, 10_000_000_000_000_000n);
  const start = clock.now();
  const approve = (approvalId: string, winc: bigint, expiresAt?: number) =>
    credits.approve({ approvalId, payer: giver, approved: taker, winc, expiresAt });
  await approve("forever", 9_007_199_254_740_993n);
  await approve("late", 50n, start + 120_000);
  await approve("soon", 7n, start + 60_000);
  await credits.approve({ approvalId: "other", payer: giver, approved: other, winc: 3n });
});

afterAll(async () => {
  await server.close();
  await payment.close();
});

async function ask(path: string) {
  const response = await fetch(`${server.url}${path}`);
  return { status: response.status, headers: response.headers, body: await response.json() };
}

describe("GET /account/approvals", () => {
  test.each(["/v1/account/approvals", "/account/approvals", "/v1/account/approval", "/account/approval"])(
    "at %s returns what one address may spend of another's, soonest expiry first",
    async (path) => {
      const { status, headers, body } = await ask(
        `${path}?payingAddress=${giver}&approvedAddress=${taker.toLowerCase()}`,
      );
      expect(status).toBe(200);
      expect(headers.get("cache-control")).toBe("no-store");
      const at = (ms: number) => new Date(payment.clock.now() + ms).toISOString();
      const common = {
        approvedAddress: taker as string,
        payingAddress: giver as string,
        usedWincAmount: "0",
        creationDate: at(0),
      };
      const soon = {
        ...common,
        approvalDataItemId: "soon",
        approvedWincAmount: "7",
        expirationDate: at(60_000),
      };
      const late = {
        ...soon,
        approvalDataItemId: "late",
        approvedWincAmount: "50",
        expirationDate: at(120_000),
      };
      expect(body).toEqual({
        approvals: [soon, late, { ...common, approvalDataItemId: "forever", approvedWincAmount: "9007199254740993" }],
        amount: "9007199254741050",
        expiresBy: payment.clock.now() + 60_000,
      });
    },
  );

  test("has no expiry where none expires, and is empty where there is nothing", async () => {
    const unlimited = await ask(`/v1/account/approvals?payingAddress=${giver}&approvedAddress=${other}`);
    expect(unlimited.body).toMatchObject({ amount: "3" });
    expect("expiresBy" in unlimited.body).toBe(false);
    const none = await ask(`/v1/account/approvals?payingAddress=${other}&approvedAddress=${giver}`);
    expect([none.status, none.body]).toEqual([200, { approvals: [], amount: "0" }]);
  });

  test.each([
    "",
    "?payingAddress=GIVER",
    "?approvedAddress=TAKER",
    "?payingAddress=&approvedAddress=TAKER",
    "?payingAddress=GIVER&approvedAddress=",
    "?payingAddress=x&approvedAddress=TAKER",
    "?payingAddress=GIVER&approvedAddress=x",
    "?payingaddress=GIVER&approvedaddress=TAKER",
    "?payingAddress=GIVER%20&approvedAddress=TAKER",
  ])("with %p is rejected", async (query) => {
    const path = `/v1/account/approvals${query.replace("GIVER", giver).replace("TAKER", taker)}`;
    const { status, body } = await ask(path);
    expect([status, body]).toEqual([400, "Invalid paying address!"]);
  });
});

describe("GET /account/approvals/get", () => {
  test("returns the approvals that an address gave and received", async () => {
    const ids = (list: { approvalDataItemId: string }[]) => list.map((each) => each.approvalDataItemId);
    const ofGiver = await ask(`/v1/account/approvals/get?userAddress=${giver}`);
    expect(ofGiver.status).toBe(200);
    expect(ids(ofGiver.body.givenApprovals)).toEqual(["soon", "late", "forever", "other"]);
    expect(ids(ofGiver.body.receivedApprovals)).toEqual([]);
    const ofTaker = await ask(`/account/approvals/get?userAddress=${taker}`);
    expect(ids(ofTaker.body.receivedApprovals)).toEqual(["soon", "late", "forever"]);
    expect(ids(ofTaker.body.givenApprovals)).toEqual([]);
  });

  test("is empty for an unknown address, and rejects an invalid one", async () => {
    const stranger = await ask(`/v1/account/approvals/get?userAddress=${testAddress("stranger")}`);
    expect([stranger.status, stranger.body]).toEqual([200, { givenApprovals: [], receivedApprovals: [] }]);
    for (const query of ["", "?userAddress=", "?userAddress=x"]) {
      const { status, body } = await ask(`/v1/account/approvals/get${query}`);
      expect([status, body]).toEqual([400, "Invalid paying address!"]);
    }
  });
});

test("an approval is gone from every response at the moment at which it expires", async () => {
  payment.clock.advance(59_999);
  const path = `/v1/account/approvals?payingAddress=${giver}&approvedAddress=${taker}`;
  expect((await ask(path)).body.amount).toBe("9007199254741050");
  payment.clock.advance(1);
  expect((await ask(path)).body.amount).toBe("9007199254741043");
  const all = await ask(`/v1/account/approvals/get?userAddress=${taker}`);
  expect(all.body.receivedApprovals).toHaveLength(2);
});

test("other methods are rejected, and a ledger out of reach is said in the specification's words", async () => {
  const posted = await fetch(`${server.url}/v1/account/approvals`, { method: "POST" });
  expect(posted.status).toBe(405);
  expect(posted.headers.get("allow")).toBe("GET, HEAD, OPTIONS");
  const own = await openTestPayment();
  const closing = openPaymentServer(() => [createApprovalRoutes({ credits: own.credits })]);
  await own.close();
  for (const path of [
    `/v1/account/approvals?payingAddress=${giver}&approvedAddress=${taker}`,
    `/account/approvals/get?userAddress=${giver}`,
  ]) {
    const response = await fetch(`${closing.url}${path}`);
    expect([response.status, await response.json()]).toEqual([503, "Internal server error"]);
    expect(response.headers.get("cache-control")).toBe("no-store");
  }
  await closing.close();
});
