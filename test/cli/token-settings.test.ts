/**
 * Settings of token payments that would credit one transfer twice are refused.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { isMisuse } from "../../src/cli/complaints.ts";
import { openTokens } from "../../src/cli/open/tokens.ts";
import { readConfig } from "../../src/config.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { silentLog } from "../../src/lib/log.ts";
import { openTestPayment, type TestPayment } from "../support/payment.ts";

const address = "0x2222222222222222222222222222222222222222";
const other = "0x3333333333333333333333333333333333333333";
const rpc = "http://127.0.0.1:1";
const base = { PAYMENT_ADDRESS_BASE: address, BASE_RPC_URL: rpc };
const ethereum = { PAYMENT_ADDRESS_ETHEREUM: address, ETHEREUM_RPC_URL: rpc };

let payment: TestPayment;

beforeAll(async () => {
  payment = await openTestPayment();
});

afterAll(() => payment.close());

async function open(environment: Readonly<Record<string, string>>) {
  const { config, complaints } = readConfig(environment, "serve");
  expect(complaints).toEqual([]);
  const closers = createClosers(() => undefined);
  const nobody = () => Promise.reject(new Error("nothing is asked for"));
  try {
    const { addresses } = openTokens({
      ...{ config, ledger: payment.database, makeId: payment.makeId, log: silentLog, closers },
      base: { metrics: { gaugesOf: () => undefined } as never, reader: {} as never, sources: {} as never },
      prices: { token: nobody },
      rules: { tokens: new Map() },
    });
    return [...addresses.keys()];
  } finally {
    await closers.closeAll();
  }
}

test("an address is taken on two chains at once", async () => {
  expect(await open({ ...base, ...ethereum })).toEqual(["ethereum", "usdc", "base-eth", "base-usdc"]);
});

test("two addresses are taken on one chain", async () => {
  const taken = await open({ ...base, ...ethereum, PAYMENT_ADDRESS_BASE: other, BASE_CHAIN_ID: "1" });
  expect(taken).toEqual(["ethereum", "usdc", "base-eth", "base-usdc"]);
});

test("an address on one chain under two names is refused, however it is spelled", async () => {
  const spelled = `0x${"2".repeat(40)}`.toUpperCase().replace("0X", "0x");
  const error = await open({ ...base, ...ethereum, BASE_CHAIN_ID: "1", PAYMENT_ADDRESS_BASE: spelled }).then(
    () => new Error("it started"),
    (thrown: Error) => thrown,
  );
  expect(isMisuse(error)).toBe(true);
  expect(error.message).toContain(
    "BASE_CHAIN_ID and PAYMENT_ADDRESS_BASE must not both be those of ETHEREUM",
  );
});
