/**
 * Settings of token payments that would credit one transfer twice are rejected.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isMisuse } from "../../src/app/complaints.ts";
import { openTokens } from "../../src/app/open-tokens.ts";
import { settingsFaults } from "../../src/cli/check-settings.ts";
import { readConfig } from "../../src/config/config.ts";
import { encodeBech32 } from "../../src/lib/base-encodings.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
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
  const never = () => Promise.reject(new Error("no price is requested"));
  try {
    const { addresses } = openTokens(
      { config, log: silentLog, closers },
      {
        ledger: payment.database,
        makeId: payment.makeId,
        metrics: { gaugesOf: () => undefined } as never,
        reader: {} as never,
        nodes: {} as never,
        prices: { token: never },
        rules: { tokens: new Map() },
      },
    );
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

test("an address on one chain under two names is rejected, however it is spelled", async () => {
  const spelled = `0x${"2".repeat(40)}`.toUpperCase().replace("0X", "0x");
  const error = await open({ ...base, ...ethereum, BASE_CHAIN_ID: "1", PAYMENT_ADDRESS_BASE: spelled }).then(
    () => new Error("it started"),
    (thrown: Error) => thrown,
  );
  expect(isMisuse(error)).toBe(true);
  expect(error.message).toContain("BASE_CHAIN_ID and PAYMENT_ADDRESS_BASE must not both be those of ETHEREUM");
});

test("KYVE is taken at an address of its chain, with a node", async () => {
  const kyve = { PAYMENT_ADDRESS_KYVE: encodeBech32("kyve", new Uint8Array(20)), KYVE_REST_URL: rpc };
  expect(await open(kyve)).toEqual(["kyve"]);
  for (const [environment, complaint] of [
    [{ ...kyve, PAYMENT_ADDRESS_KYVE: address }, "for PAYMENT_ADDRESS_KYVE: expected an address of kyve"],
    [{ PAYMENT_ADDRESS_KYVE: kyve.PAYMENT_ADDRESS_KYVE }, "PAYMENT_ADDRESS_KYVE needs KYVE_REST_URL"],
  ] as const) {
    const { complaints, config } = readConfig(environment, "serve");
    expect([complaints, settingsFaults(config).filter((fault) => fault.includes("KYVE"))]).toEqual([
      [],
      [expect.stringContaining(complaint)],
    ]);
  }
});

describe("a token of the price rules", () => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-token-settings-"));
  const contract = `0x${"ab".repeat(20)}`;
  const rules = join(folder, "rules.json");
  const x402 = {
    X402_PAY_TO: address,
    X402_ASSET_ADDRESS: contract,
    X402_FACILITATOR_URL: rpc,
    X402_ASSET_NAME: "Gold",
    X402_ASSET_VERSION: "1",
  };

  beforeAll(() => {
    const tokens = { "base-gold": { contract, decimals: 8, feedId: "gold" } };
    writeFileSync(rules, JSON.stringify({ tokens }));
  });
  afterAll(() => removeFolder(folder));

  const faultsOf = (environment: Readonly<Record<string, string>>) => {
    const { complaints, config } = readConfig({ ...environment, PAYMENT_RULES_FILE: rules }, "serve");
    expect(complaints).toEqual([]);
    return settingsFaults(config);
  };

  test("is taken beside USDC, and beside x402 payments to another address", () => {
    expect(faultsOf(base)).toEqual([]);
    expect(faultsOf({ ...base, ...x402, X402_PAY_TO: other })).toEqual([]);
  });

  test("is rejected where it is USDC, or what x402 payments to the same address are made in", () => {
    expect(faultsOf({ ...base, BASE_USDC_ADDRESS: contract })).toEqual([
      "BASE_USDC_ADDRESS must not be the contract of base-gold in the price rules: one transfer would be base-usdc and base-gold",
    ]);
    expect(faultsOf({ ...base, ...x402 })).toEqual([
      "X402_PAY_TO must not be PAYMENT_ADDRESS_BASE: base-gold would be credited twice",
    ]);
  });
});
