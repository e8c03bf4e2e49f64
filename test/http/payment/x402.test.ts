/**
 * `GET /x402/top-up`: the price, accepted payments, responses, and the API reference.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { paymentReference } from "../../../src/http/payment/payment-reference.ts";
import { createX402Routes } from "../../../src/http/payment/x402-top-up-routes.ts";
import { operationsOf } from "../../../src/http/reference/document.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { amountMax } from "../../../src/store/ledger/ledger-database.ts";
import { authorizationRecord, headerOf, payer, payTo, readHeader, sign } from "../../payment/x402/payers.ts";
import { bytesAsked, bytesCost, funded, openX402Fixture, type X402Fixture } from "../../payment/x402/x402-fixture.ts";
import { openPaymentServer } from "../../support/payment-server.ts";
import { closed, faultsOf } from "../../support/schema.ts";

let fixture: X402Fixture;
let payers = 100;

beforeAll(async () => {
  fixture = await openX402Fixture();
});

afterAll(async () => {
  await fixture.close();
});

const newPayer = () => {
  payers += 1;
  return funded(fixture, payers);
};
const asset = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
const described = new Elysia().use(createX402Routes({ x402: undefined, publicUrl: () => "" }));
const descriptions = operationsOf(described.routes);
const schemaOf = (status: number) => descriptions[0]?.responses[status]?.content?.["application/json"]?.schema ?? {};
const faults = (status: number, body: unknown) =>
  faultsOf(body, closed(schemaOf(status)), closed(paymentReference.records));

describe("without a payment it responds with the price", () => {
  const requirement = {
    scheme: "exact",
    description: "Credits to upload 1000000 bytes",
    network: "base",
    maxAmountRequired: "2000",
    payTo,
    asset,
    mimeType: "application/json",
    maxTimeoutSeconds: 300,
    resource: "http://localhost:3001/v1/x402/top-up?type=bytes&qty=1000000",
    extra: { name: "USD Coin", version: "2" },
  };

  test("as the specification has it, and version 1, in the body", async () => {
    const { status, headers, body } = await fixture.ask("type=bytes&qty=1000000");
    expect(status).toBe(402);
    expect(body).toEqual({
      ...requirement,
      x402Version: 1,
      error: "X-PAYMENT header is required",
      accepts: [requirement],
    });
    expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(faults(402, body)).toEqual([]);
  });

  test("and version 2 in a header, which pages of other origins may read", async () => {
    const { headers } = await fixture.ask("type=credits&qty=2000000000");
    expect(readHeader(headers.get("payment-required"))).toEqual({
      x402Version: 2,
      error: "X-PAYMENT header is required",
      resource: {
        url: "http://localhost:3001/v1/x402/top-up?type=credits&qty=2000000000",
        description: "Credits for uploads: 2000000000 winc",
        mimeType: "application/json",
      },
      accepts: [
        {
          scheme: "exact",
          network: "eip155:8453",
          amount: "2000",
          asset,
          payTo,
          maxTimeoutSeconds: 300,
          extra: { name: "USD Coin", version: "2" },
        },
      ],
    });
    expect(headers.get("access-control-allow-origin")).toBe("*");
    expect(headers.get("access-control-expose-headers")).toContain("*");
  });

  test("alike without the prefix, and to HEAD", async () => {
    const path = "/x402/top-up?type=bytes&qty=1000000";
    const plain = await fetch(`${fixture.server.url}${path}`);
    const head = await fetch(`${fixture.server.url}/v1${path}`, { method: "HEAD" });
    expect([plain.status, head.status]).toEqual([402, 402]);
    expect(head.headers.get("payment-required")).toBe(plain.headers.get("payment-required"));
  });
});

const quantities: readonly (readonly [query: string, amount: string | undefined])[] = [
  ["type=bytes&qty=1", "1000"],
  ["type=bytes&qty=1000000", "2000"],
  ["type=bytes&qty=1000000.0", "2000"],
  ["type=bytes&qty=1000000.000001", "2001"],
  ["type=bytes&qty=1e6", "2000"],
  ["type=bytes&qty=1E6", "2000"],
  ["type=bytes&qty=1e+6", "2000"],
  ["type=bytes&qty=1e%2B6", "2000"],
  ["type=bytes&qty=1.0000005e6", "2001"],
  ["type=bytes&qty=0001000000", "2000"],
  ["type=bytes&qty=2000000000000000", "4000000000000"],
  ["type=bytes&qty=9007199254740991", undefined], // more than an account can hold, at this price
  ["type=credits&qty=1", "1000"],
  ["type=credits&qty=1.5", "1000"],
  ["type=credits&qty=2000000001", "2001"],
  [`type=credits&qty=${amountMax - 1_000_000n}`, "4611686018427"],
  ["type=bytes&qty=0.999999", undefined], // below 1, before it is rounded up
  ["type=bytes&qty=0", undefined],
  ["type=bytes&qty=0e9", undefined],
  ["type=bytes&qty=-1", undefined],
  ["type=bytes&qty=1e-1", undefined],
  ["type=bytes&qty=1e-6", undefined],
  ["type=bytes&qty=.5", undefined],
  ["type=bytes&qty=5.", undefined],
  ["type=bytes&qty=1,000", undefined],
  ["type=bytes&qty=0x10", undefined],
  ["type=bytes&qty=NaN", undefined],
  ["type=bytes&qty=Infinity", undefined],
  ["type=bytes&qty=1e999", undefined],
  ["type=bytes&qty=1e9999", undefined],
  ["type=bytes&qty=9007199254740992", undefined],
  [`type=credits&qty=${amountMax + 1n}`, undefined],
  ["type=bytes&qty=", undefined],
  ["type=bytes&qty=%20", undefined],
  ["type=bytes&qty=1%201", undefined],
  ["type=bytes", undefined],
  ["qty=1", undefined],
  ["type=&qty=1", undefined],
  ["type=winc&qty=1", undefined],
  ["type=Bytes&qty=1", undefined],
  ["", undefined],
];

test.each(quantities)("%p costs %p", async (query, amount) => {
  const { status, body } = await fixture.ask(query);
  if (amount === undefined) expect([status, body]).toEqual([400, "Invalid quantity parameter"]);
  else expect([status, (body as { maxAmountRequired: string }).maxAmountRequired]).toEqual([402, amount]);
});

describe("with a payment", () => {
  test.each([
    [1, "base", "x-payment-response", "payment-response"],
    [2, "eip155:8453", "payment-response", "x-payment-response"],
  ] as const)(
    "of version %p it credits the payer, and says so in that version's words",
    async (version, network, own, other) => {
      const client = newPayer();
      const authorization = fixture.authorize(client, bytesCost);
      const { status, headers, body } = await fixture.pay(authorization, client, version);
      expect(status).toBe(200);
      const row = await fixture.row(authorization);
      const transaction = row?.transaction_hash ?? "";
      expect(body).toEqual({
        walletAddress: client.address,
        balance: "2000000000",
        creditedWinc: "2000000000",
        x402SettlementResponse: { transaction, network, payTo },
      });
      expect(faults(200, body)).toEqual([]);
      expect(readHeader(headers.get(own))).toEqual({
        success: true,
        transaction,
        payer: client.address,
        network,
      });
      expect(headers.get(other)).toBeNull();
      expect(headers.get("cache-control")).toBe("no-store");
      expect(await fixture.balance(client)).toBe(2_000_000_000n);
    },
  );

  test("of version 1 it accepts more than the price, and credits all of it", async () => {
    const client = newPayer();
    const { status, body } = await fixture.pay(fixture.authorize(client, 12_345n), client);
    expect([status, (body as { creditedWinc: string }).creditedWinc]).toEqual([200, "12345000000"]);
  });

  test("it asks the facilitator with the words of the payment's version", async () => {
    const client = newPayer();
    const authorization = fixture.authorize(client, bytesCost);
    for (const version of [1, 2] as const) {
      const each = { ...authorization, nonce: authorization.nonce.replace(/.$/, String(version)) };
      expect((await fixture.pay(each, client, version)).status).toBe(200);
      const order = fixture.facilitator.orders.at(-1);
      const signature = `0x${sign(fixture.node.domain, each, client.key).toHex()}`;
      const payload = { signature, authorization: authorizationRecord(each) };
      const extra = { name: "USD Coin", version: "2" };
      const resource = "http://localhost:3001/v1/x402/top-up?type=bytes&qty=1000000";
      const required = { scheme: "exact", asset, payTo, maxTimeoutSeconds: 300, extra };
      const first = { ...required, network: "base", maxAmountRequired: "2000", resource };
      const second = { ...required, network: "eip155:8453", amount: "2000" };
      const described = { description: "", mimeType: "application/json" };
      expect(order).toEqual(
        version === 1
          ? {
              x402Version: 1,
              paymentPayload: { x402Version: 1, scheme: "exact", network: "base", payload },
              paymentRequirements: { ...first, ...described },
            }
          : {
              x402Version: 2,
              paymentPayload: {
                x402Version: 2,
                accepted: second,
                payload,
                resource: { url: resource, ...described },
              },
              paymentRequirements: second,
            },
      );
    }
  });

  test("it is version 2 that counts where both headers are there", async () => {
    const client = newPayer();
    const response = await fixture.ask(`type=bytes&qty=${bytesAsked}`, {
      "x-payment": fixture.header(fixture.authorize(client, bytesCost), client, 1),
      "payment-signature": fixture.header(fixture.authorize(client, bytesCost), client, 2),
    });
    expect([response.status, response.headers.get("x-payment-response")]).toEqual([200, null]);
    expect(await fixture.balance(client)).toBe(2_000_000_000n);
  });

  test("for another quantity than it was meant for it is taken if it is enough", async () => {
    const client = newPayer();
    const header = fixture.header(fixture.authorize(client, 3_000n), client);
    expect((await fixture.ask("type=bytes&qty=1500001", { "x-payment": header })).status).toBe(402);
    expect((await fixture.ask("type=bytes&qty=1500000", { "x-payment": header })).status).toBe(200);
  });
});

describe("a payment is rejected", () => {
  const rejectedHeaders: readonly (readonly [what: string, header: string])[] = [
    ["that is empty", ""],
    ["that is no base64", "%%%"],
    ["that is base64 of junk", btoa("junk")],
    ["that is base64 of nothing", btoa("{}")],
    ["whose signature is empty", ""],
  ];

  test.each(rejectedHeaders)("%s", async (_what, header) => {
    for (const name of ["x-payment", "payment-signature"]) {
      const { status, body } = await fixture.ask("type=bytes&qty=1", { [name]: header });
      expect([status, body]).toEqual([403, "Invalid signature or missing required headers"]);
    }
  });

  test("that is too long for a header", async () => {
    const { status } = await fetch(`${fixture.server.url}/v1/x402/top-up?type=bytes&qty=1`, {
      headers: { "x-payment": "A".repeat(2 ** 20) },
    });
    expect(status).toBe(431);
    const { status: longest } = await fixture.ask("type=bytes&qty=1", { "x-payment": "A".repeat(12_000) });
    expect(longest).toBe(403);
  });

  test("that another key signed, and stores nothing", async () => {
    const client = newPayer();
    const authorization = fixture.authorize(client, bytesCost);
    for (const version of [1, 2] as const) {
      const { status, body } = await fixture.pay(authorization, newPayer(), version);
      expect([status, body]).toEqual([403, "Invalid signature or missing required headers"]);
    }
    expect(await fixture.row(authorization)).toBeUndefined();
  });

  test("that was signed for another chain or coin", async () => {
    const client = newPayer();
    const authorization = fixture.authorize(client, bytesCost);
    for (const change of [{ chainId: 84_532n }, { contract: payTo }, { name: "USDC" }, { version: "1" }]) {
      const signature = `0x${sign({ ...fixture.node.domain, ...change }, authorization, client.key).toHex()}`;
      const payload = { signature, authorization: authorizationRecord(authorization) };
      const header = headerOf({ x402Version: 1, scheme: "exact", network: "base", payload });
      expect((await fixture.ask(`type=bytes&qty=${bytesAsked}`, { "x-payment": header })).status).toBe(403);
    }
  });

  const now = () => BigInt(Math.floor(fixture.payment.clock.now() / 1_000));
  const rejections: readonly (readonly [
    what: string,
    pay: () => ReturnType<X402Fixture["pay"]>,
    reason: string | RegExp,
  ])[] = [
    ["below the price", () => pay(bytesCost - 1n), "invalid_exact_evm_authorization_value"],
    ["above the price, in version 2", () => pay(bytesCost + 1n, {}, 2), "invalid_exact_evm_authorization_value"],
    ["to another account", () => pay(bytesCost, { to: payer(1).address }), "invalid_exact_evm_recipient_mismatch"],
    ["that is over", () => pay(bytesCost, { validBefore: now() }), "invalid_exact_evm_authorization_valid_before"],
    [
      "that is to come",
      () => pay(bytesCost, { validAfter: now() + 200n }),
      "invalid_exact_evm_authorization_valid_after",
    ],
    ["without the dollars", () => pay(2_000_000_000n), /transfer amount exceeds balance/],
  ];

  function pay(value: bigint, changes: Parameters<X402Fixture["authorize"]>[2] = {}, version: 1 | 2 = 1) {
    const client = newPayer();
    return fixture.pay(fixture.authorize(client, value, changes), client, version);
  }

  test.each(rejections)("%s, with what to pay instead", async (_what, paid, reason) => {
    const asked = fixture.facilitator.orders.length;
    const { status, headers, body } = await paid();
    expect(status).toBe(402);
    expect(body).toMatchObject({
      error: "Payment settlement failed",
      maxAmountRequired: "2000",
      x402Version: 1,
    });
    expect(faults(402, body)).toEqual([]);
    expect(readHeader(headers.get("payment-required"))).toMatchObject({ error: "Payment settlement failed" });
    const reported = readHeader(headers.get("x-payment-response") ?? headers.get("payment-response"));
    expect(reported).toMatchObject({ success: false, transaction: "" });
    expect(reported["errorReason"]).toEqual(reason instanceof RegExp ? expect.stringMatching(reason) : reason);
    expect(fixture.facilitator.orders.length).toBe(asked);
    const rows = await fixture.payment.database.read((tx) =>
      tx.all("SELECT id FROM x402_payments WHERE payer = ?", String(reported["payer"])),
    );
    expect(rows).toEqual([]);
  });

  test("whose payer is excluded", async () => {
    const client = newPayer();
    const strict = fixture.openAnother(fixture.payment.database, { excluded: new Set([client.address]) });
    const server = openPaymentServer(() => [createX402Routes({ x402: strict, publicUrl: () => "" })]);
    const header = fixture.header(fixture.authorize(client, bytesCost), client);
    const { status } = await fetch(`${server.url}/v1/x402/top-up?type=bytes&qty=${bytesAsked}`, {
      headers: { "x-payment": header },
    });
    expect(status).toBe(402);
    await server.close();
    await strict.close();
  });
});

test("switched off, it says so, whatever it is asked", async () => {
  const off = openPaymentServer(() => [createX402Routes({ x402: undefined, publicUrl: () => "" })]);
  for (const query of ["", "?type=bytes&qty=1"]) {
    const response = await fetch(`${off.url}/v1/x402/top-up${query}`);
    expect([response.status, await response.json()]).toEqual([503, "This payment method is switched off"]);
  }
  await off.close();
});

test("the reference has the route and nothing else", () => {
  const found = described.routes.map(({ method, path }) => `${method} ${path}`);
  expect(descriptions.map(({ method, path }) => `${method} ${path}`)).toEqual(found);
});

test("after all of this the ledger is in order", async () => {
  expect(await checkLedger(fixture.payment.database)).toEqual([]);
});
