/**
 * Reports of token payments over HTTP: responses, order of validation, and the three records.
 * @module
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createReportGuard } from "../../../src/http/payment/client-guards.ts";
import { createTokenRoutes } from "../../../src/http/payment/token-payment-routes.ts";
import { operationsOf } from "../../../src/http/reference/document.ts";
import { createScriptedChain, type ScriptedChain, testHash, transferOf } from "../../payment/tokens/scripted-chain.ts";
import {
  ethereumAddressOf,
  lookAgainMs,
  never,
  openTokenFixture,
  type TokenFixture,
} from "../../payment/tokens/token-fixture.ts";
import { testAddress, testStart } from "../../support/payment.ts";
import { openPaymentServer, type PaymentServer } from "../../support/payment-server.ts";

const alice = ethereumAddressOf(0xa11ce);
const nativeSender = testAddress("sender");
let fixture: TokenFixture;
let server: PaymentServer;
let ethereum: ScriptedChain;
let native: ScriptedChain;
let polygon: ScriptedChain;
let number = 0;
let now = 1_800_000_000_000;
let hash = "";

beforeAll(async () => {
  ethereum = createScriptedChain();
  native = createScriptedChain({ token: "native", address: "ours" });
  polygon = createScriptedChain({ token: "matic", address: "ours" });
  const excluded = [ethereumAddressOf(0xbad)];
  fixture = await openTokenFixture([ethereum, { ...native, addressType: "native" }, polygon], { excluded });
  server = openPaymentServer(() => [createTokenRoutes({ ...fixture, reportGuard: createReportGuard(() => now, 1) })]);
});

beforeEach(() => {
  number += 1;
  now += 60 * 60_000;
  hash = testHash(number);
  ethereum.fail(undefined);
  fixture.price.isKnown = true;
});

afterAll(async () => {
  await server.close();
  await fixture.close();
});

/** Posts as the published client does: without a type. */
async function post(path: string, body: string | undefined, headers: Record<string, string> = {}) {
  const bytes = body === undefined ? null : new TextEncoder().encode(body);
  const response = await fetch(`${server.url}${path}`, { method: "POST", body: bytes, headers });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === "" ? undefined : JSON.parse(text),
  };
}

const report = (token: string, id: string, prefix = "/v1") =>
  post(`${prefix}/account/balance/${token}`, JSON.stringify({ tx_id: id }));

const iso = (ms = testStart) => new Date(ms).toISOString();

/** What all three records have. */
const record = () => ({
  transactionId: hash,
  transactionQuantity: 100,
  transactionSenderAddress: alice,
  createdAt: iso(),
  createdDate: iso(),
  tokenType: "ethereum",
  destinationAddress: alice,
  destinationAddressType: "ethereum",
  winstonCreditAmount: "200",
  adjustments: [{ name: "fee", description: "", operator: "multiply", operatorMagnitude: "1", adjustmentAmount: "-3" }],
});

describe("POST /account/balance/{token}", () => {
  test("P: responds 202 with the pending record, then 200 with the credited one, in both places", async () => {
    ethereum.send(hash, { transfers: [transferOf(alice, 100n)] });
    const first = await report("ethereum", hash);
    expect([first.status, first.body]).toEqual([202, { message: "Transaction pending", pendingTransaction: record() }]);
    expect(first.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(first.headers.get("cache-control")).toBe("no-store");
    const second = await report("ethereum", hash, "");
    expect([second.status, second.body.message]).toEqual([202, "Transaction already pending"]);
    ethereum.mine(3);
    const height = ethereum.height() - 2;
    const credited = { ...record(), blockHeight: height, creditedAt: iso(), creditedDate: iso() };
    const third = await report("ethereum", hash);
    expect([third.status, third.body]).toEqual([
      200,
      { message: "Transaction credited", creditedTransaction: credited },
    ]);
    const fourth = await report("ethereum", hash, "");
    expect([fourth.status, fourth.body]).toEqual([
      200,
      { message: "Transaction already credited", creditedTransaction: credited },
    ]);
    expect(typeof fourth.body.creditedTransaction.blockHeight).toBe("number");
  });

  test("limits reports of payments that do not exist; existing payments can be reported without limit", async () => {
    ethereum.send(hash, { transfers: [transferOf(alice, 100n)] });
    for (let round = 0; round < 150; round += 1) expect((await report("ethereum", hash)).status).toBe(202);
    const statuses: number[] = [];
    for (let round = 0; round < 103; round += 1)
      statuses.push((await report("ethereum", testHash(1_000_000 + round))).status);
    expect(statuses).toEqual([...Array(100).fill(404), 429, 429, 429]);
    const looks = ethereum.looks();
    expect((await report("ethereum", hash)).status).toBe(429);
    expect(ethereum.looks()).toBe(looks);
    now += 1_000;
    expect((await report("ethereum", hash)).status).toBe(202);
  });

  test("limits reports of what pays someone else, and of many at the same time", async () => {
    ethereum.send(hash, { transfers: [] });
    const ids = Array.from({ length: 103 }, (_, round) => (round % 2 === 0 ? hash : testHash(2_000_000 + round)));
    const statuses = await Promise.all(ids.map(async (id) => (await report("ethereum", id)).status));
    expect(new Set(statuses)).toEqual(new Set([400, 404, 429]));
    expect(statuses.filter((status) => status === 429)).toHaveLength(3);
    expect((await report("ethereum", hash)).status).toBe(429);
  });

  test("L: responds 400 with the failed record for what the chain did not carry out", async () => {
    ethereum.send(hash, { transfers: [transferOf(alice, 100n)], succeeded: false });
    ethereum.mine(3);
    const failureReason = "The chain did not carry the transaction out";
    const failed = { failedAt: iso(), failedDate: iso(), failureReason, failedReason: failureReason };
    for (const _ of [1, 2]) {
      const { status, body } = await report("ethereum", hash);
      expect([status, body]).toEqual([
        400,
        { message: "Transaction has already failed!", failedTransaction: { ...record(), ...failed } },
      ]);
    }
  });

  test("responds 400 with the failed record for what the chain took back", async () => {
    ethereum.send(hash, { transfers: [transferOf(alice, 100n)] });
    ethereum.mine(3);
    expect((await report("ethereum", hash)).status).toBe(200);
    ethereum.takeBack(3, "gone");
    ethereum.mine(3);
    fixture.payment.clock.advance(lookAgainMs);
    await fixture.payments.follow(ethereum, 100, never);
    const { status, body } = await report("ethereum", hash);
    expect(status).toBe(400);
    expect(body.failedTransaction).toMatchObject({
      transactionId: hash,
      failureReason: "The chain took the transaction back",
      failedAt: iso(testStart + lookAgainMs),
    });
    fixture.payment.clock.set(testStart);
  });

  test("M: writes quantities from 2^53 up as text", async () => {
    for (const [amount, written] of [
      [2n ** 53n - 1n, 2 ** 53 - 1],
      [2n ** 53n + 1n, "9007199254740993"],
    ] as const) {
      number += 1;
      hash = testHash(number);
      ethereum.send(hash, { transfers: [transferOf(alice, amount)] });
      const { body } = await report("ethereum", hash);
      expect(body.pendingTransaction.transactionQuantity).toBe(written);
      expect(body.pendingTransaction.winstonCreditAmount).toBe(String(amount * 2n));
    }
  });

  test.each([
    ["native", "native"],
    ["arweave", "arweave"],
  ])("echoes the word %p of the request", async (word, type) => {
    const id = testAddress(`tx${word}`);
    native.send(id, { transfers: [transferOf(nativeSender, 5n)] });
    const { body } = await report(word, id);
    expect(body.pendingTransaction).toMatchObject({ tokenType: word, destinationAddressType: type });
  });

  test.each(["matic", "pol"])("takes %p for the same token", async (word) => {
    polygon.send(testHash(77), { transfers: [transferOf(alice, 5n)] });
    const { body } = await report(word, testHash(77));
    expect(body.pendingTransaction).toMatchObject({ tokenType: word, destinationAddressType: "ethereum" });
  });

  test("A: credits one payment that a hundred report at once, in capitals too, once", async () => {
    const sender = ethereumAddressOf(0x100);
    ethereum.send(hash, { transfers: [transferOf(sender, 100n)] });
    ethereum.mine(3);
    const spellings = [hash, `0x${hash.slice(2).toUpperCase()}`];
    const responses = await Promise.all(
      Array.from({ length: 100 }, (_, index) => report("ethereum", spellings[index % 2]!, index % 3 ? "/v1" : "")),
    );
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(responses.map(({ body }) => body.creditedTransaction.transactionId))).toEqual(new Set([hash]));
    expect(await fixture.balance(sender)).toBe(200n);
  });

  const unknown = testHash(0xdead);
  test.each<[name: string, path: string, body: string | undefined, status: number, response: string]>([
    ["no body", "ethereum", undefined, 400, "Malformed JSON body"],
    ["an empty body", "ethereum", "", 400, "Malformed JSON body"],
    ["no JSON", "ethereum", "{", 400, "Malformed JSON body"],
    ["no JSON, for no token", "dogecoin", "tx_id", 400, "Malformed JSON body"],
    ["half a character", "ethereum", "\ud800", 400, "Malformed JSON body"],
    ["null", "ethereum", "null", 400, "Missing tx_id in request body"],
    ["a list", "ethereum", "[]", 400, "Missing tx_id in request body"],
    ["a text", "ethereum", '"tx_id"', 400, "Missing tx_id in request body"],
    ["no tx_id", "ethereum", "{}", 400, "Missing tx_id in request body"],
    ["no tx_id, for no token", "dogecoin", "{}", 400, "Missing tx_id in request body"],
    ["an empty tx_id", "ethereum", '{"tx_id":""}', 400, "Missing tx_id in request body"],
    ["a number as tx_id", "ethereum", '{"tx_id":12}', 400, "Missing tx_id in request body"],
    ["no token that we know", "dogecoin", '{"tx_id":"x"}', 400, "Token not supported"],
    ["a token that we do not take", "kyve", '{"tx_id":"x"}', 400, "Token not supported"],
    ["a token in capitals", "Ethereum", '{"tx_id":"x"}', 400, "Token not supported"],
    ["an invalid id", "ethereum", '{"tx_id":"x"}', 404, "Transaction ID not found!"],
    ["an id of another chain", "native", `{"tx_id":"${unknown}"}`, 404, "Transaction ID not found!"],
    ["an unknown id", "ethereum", `{"tx_id":"${unknown}"}`, 404, "Transaction ID not found!"],
  ])("responds with %s in the words of the contract", async (_name, token, body, status, response) => {
    for (const prefix of ["", "/v1"]) {
      const responded = await post(`${prefix}/account/balance/${token}`, body);
      expect([responded.status, responded.body]).toEqual([status, response]);
    }
  });

  test("rejects a body that is larger than the payment service's JSON may be", async () => {
    const { status } = await post("/v1/account/balance/ethereum", JSON.stringify({ tx_id: "x".repeat(65_536) }));
    expect(status).toBe(413);
  });

  test("reads JSON whatever type it says it has", async () => {
    for (const type of ["text/plain", "application/json", "application/x-www-form-urlencoded"]) {
      const headers = { "content-type": type };
      const { status } = await post("/v1/account/balance/ethereum", `{"tx_id":"${unknown}"}`, headers);
      expect(status).toBe(404);
    }
  });

  test("rejects a sender that is excluded with 403, and what pays nothing with 400", async () => {
    const sender = ethereumAddressOf(0xbad);
    ethereum.send(hash, { transfers: [transferOf(sender, 5n)] });
    const excluded = await report("ethereum", hash);
    expect([excluded.status, excluded.body]).toEqual([
      403,
      `Payment transaction '${hash}' has sender that is on the excluded address list: '${sender}'`,
    ]);
    number += 1;
    hash = testHash(number);
    ethereum.send(hash, { transfers: [transferOf(alice, 0n)] });
    const nothing = await report("ethereum", hash);
    expect([nothing.status, nothing.body]).toEqual([400, "Transaction quantity must be greater than 0"]);
  });

  test("responds with 503 and when to come back while the chain or the prices cannot be asked", async () => {
    ethereum.send(hash, { transfers: [transferOf(alice, 5n)] });
    ethereum.fail("timeout");
    const failing = await report("ethereum", hash);
    expect([failing.status, failing.body]).toEqual([503, "Error while processing transaction!"]);
    expect(failing.headers.get("retry-after")).toBe("5");
    ethereum.fail(undefined);
    fixture.price.isKnown = false;
    const priceless = await report("ethereum", hash);
    expect([priceless.status, priceless.body]).toEqual([503, "Error while processing transaction!"]);
  });

  test("is described with every status that it responds with", () => {
    const unasked = () => {
      throw new Error("only the description of the route is read");
    };
    const routes = createTokenRoutes({ payments: { submit: unasked }, reportGuard: { guarded: unasked } });
    const [description] = operationsOf(routes.routes);
    expect(Object.keys(description?.responses ?? {}).map(Number)).toEqual([200, 202, 400, 403, 404, 413, 429, 503]);
  });
});

test("after all of this the ledger is in order", async () => {
  expect(await fixture.findings()).toEqual([]);
});
