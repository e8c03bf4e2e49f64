/**
 * What the API reference says of accounts, held against the routes and their responses.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type AnyElysia, Elysia } from "elysia";
import { createHealth } from "../../../src/gateway/health.ts";
import {
  createApprovalRoutes,
  createBalanceRoutes,
  createHistoryRoutes,
} from "../../../src/http/payment/account-routes.ts";
import { paymentReference } from "../../../src/http/payment/payment-reference.ts";
import { type Operation, operationsOf } from "../../../src/http/reference/document.ts";
import { createPaymentInformationRoutes } from "../../../src/http/service-information.ts";
import { createMetrics } from "../../../src/lib/metrics.ts";
import { createWalletAccess, createWalletTokens } from "../../../src/payment/access/wallet-access.ts";
import { readAddress } from "../../../src/payment/addresses.ts";
import { freeAllowance } from "../../../src/payment/prices/price-types.ts";
import { pendingPaymentsOf } from "../../../src/payment/tokens/token-payment-store.ts";
import { readPayments } from "../../../src/payment/top-ups/payment-history.ts";
import { keepCard, keepGift, keepToken } from "../../payment/top-ups/payments-made.ts";
import { openTestPayment, type TestPayment, testAddress } from "../../support/payment.ts";
import { openPaymentServer, type PaymentServer } from "../../support/payment-server.ts";
import { closed, faultsOf } from "../../support/schema.ts";
import { ethereumWallet, signedHeaders } from "../../support/signed-headers.ts";
import { testKey } from "../../support/signers.ts";

const wallet = ethereumWallet(testKey(0x11));
const address = readAddress(wallet.address)?.address ?? testAddress("none");
const approved = testAddress("approved");

let payment: TestPayment;
let server: PaymentServer;
let create: () => readonly AnyElysia[];
let descriptions: readonly Operation[];
const { records } = paymentReference;

beforeAll(async () => {
  payment = await openTestPayment();
  const { credits, clock, database } = payment;
  const tokens = createWalletTokens(testKey(99), clock.now);
  const access = createWalletAccess({ database, tokens, clock: clock.now });
  create = () => [
    createBalanceRoutes({ credits, access, free: () => freeAllowance(10) }),
    createApprovalRoutes({ credits }),
    createHistoryRoutes({
      access,
      payments: (account, page) => database.read((tx) => readPayments(tx, account, page)),
      pending: (account, limit) => database.read((tx) => pendingPaymentsOf(tx, account, limit)),
    }),
    createPaymentInformationRoutes({
      release: "1.2.3",
      gatewayUrl: () => "http://localhost",
      addresses: new Map([["native", approved]]),
      freeBytesMax: 10,
      health: createHealth({ clock: clock.now, checks: [], notes: [], readiness: [] }),
      metrics: createMetrics(),
    }),
  ];
  server = openPaymentServer(create);
  descriptions = operationsOf(create().flatMap(({ routes }) => routes));
  await payment.credit(address, 1_000n);
  await credits.approve({ approvalId: "one", payer: address, approved, winc: 5n });
  const expiresAt = clock.now() + 60_000;
  await credits.approve({ approvalId: "two", payer: address, approved, winc: 5n, expiresAt });
  await database.write(async (tx) => {
    await keepCard(tx, { id: "card", address, at: 3, winc: 1n });
    await keepGift(tx, { id: "gift", address, at: 2, winc: 1n, message: "a joy" });
    await keepToken(tx, { id: "token", address, at: 1, winc: 1n });
    await keepToken(tx, { id: "waiting", address, at: 4, winc: 1n, state: "pending" });
  });
});

afterAll(async () => {
  await server.close();
  await payment.close();
});

test("it has every route and nothing else", () => {
  const app = create().reduce((all, routes) => all.use(routes), new Elysia() as AnyElysia);
  // The root of `/v1` has no slash at its end: one route more, of the same meaning.
  const routes = app.routes.filter(({ path }) => path !== "").map(({ method, path }) => `${method} ${path}`);
  expect(descriptions.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(routes.sort());
});

test("every response is as it says", async () => {
  for (const { path, parameters = [], responses } of descriptions) {
    const asked = new Map(parameters.map((each) => [each.name, each]));
    const named: Record<string, string> = {
      address,
      userAddress: address,
      payingAddress: address,
      approvedAddress: approved,
      limit: "2",
    };
    const query = Object.entries(named).filter(([name]) => asked.get(name)?.in === "query");
    const isSigned = asked.has("x-signature");
    const headers = isSigned ? signedHeaders(wallet, path) : {};
    const url = `${server.url}${path.replace(":token", "native")}?${new URLSearchParams(query)}`;
    const response = await fetch(url, { headers });
    expect(response.status, path).toBe(200);
    const [type, content] = Object.entries(responses[200]?.content ?? {})[0] ?? [];
    expect(response.headers.get("content-type") ?? "", path).toStartWith(type ?? "nothing");
    if (type === "application/json")
      expect(faultsOf(await response.json(), closed(content?.schema ?? {}), closed(records)), path).toEqual([]);
    else await response.text();
    const rejected = isSigned ? await fetch(url, { headers }) : undefined;
    if (rejected !== undefined) expect(Object.keys(responses), path).toContain(String(rejected.status));
  }
});

test("every required parameter has an example, and every record that is named is there", () => {
  for (const { parameters = [] } of descriptions)
    for (const each of parameters.filter(({ required }) => required)) expect(each.example).toBeString();
  const text = JSON.stringify([descriptions, records]);
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g))
    expect(Object.keys(records)).toContain(name ?? "");
});
