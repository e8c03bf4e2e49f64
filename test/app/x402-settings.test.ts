/**
 * x402 is off without X402_PAY_TO. With it, the start reports all missing and invalid settings.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { isMisuse } from "../../src/app/complaints.ts";
import { openX402 } from "../../src/app/open-x402.ts";
import { settingsFaults } from "../../src/cli/check-settings.ts";
import { readConfig } from "../../src/config/config.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { silentLog } from "../../src/lib/log.ts";
import { openTestPayment, type TestPayment } from "../support/payment.ts";

const payTo = "0x2222222222222222222222222222222222222222";
const key = "11".repeat(32);
const rpc = "http://127.0.0.1:1/secret-key";
const right = { X402_PAY_TO: payTo, X402_SETTLE_KEY: key, X402_RPC_URL: rpc };

let payment: TestPayment;

beforeAll(async () => {
  payment = await openTestPayment();
});

afterAll(() => payment.close());

async function open(environment: Readonly<Record<string, string>>, mode: "dev" | "serve" = "serve") {
  const { config, complaints } = readConfig(environment, mode);
  expect(complaints).toEqual([]);
  const closers = createClosers(() => undefined);
  const never = () => Promise.reject(new Error("no price is requested"));
  try {
    const { x402, check } = openX402(
      { config, log: silentLog, closers },
      {
        ledger: payment.database,
        makeId: payment.makeId,
        prices: { bytes: never, token: never, tokenFor: never },
        rules: { tokens: new Map() },
      },
    );
    return { terms: x402?.terms, notes: check() };
  } finally {
    await closers.closeAll();
  }
}

test.each(["dev", "serve"] as const)("without X402_PAY_TO it is off under %s, whatever else is set", async (mode) => {
  expect(await open({ X402_SETTLE_KEY: key, X402_RPC_URL: rpc }, mode)).toEqual({
    terms: undefined,
    notes: [],
  });
});

const taken: readonly (readonly [environment: Record<string, string>, network: string, asset: string])[] = [
  [right, "eip155:8453", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"],
  [{ ...right, X402_SETTLE_KEY: `0x${key}` }, "eip155:8453", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"],
  [
    { X402_PAY_TO: payTo, X402_SETTLE_KEY: key, BASE_RPC_URL: rpc },
    "eip155:8453",
    "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
  ],
  [{ ...right, X402_NETWORK: "base-sepolia" }, "eip155:84532", "0x036CbD53842c5426634e7929541eC2318f3dCF7e"],
  [
    { X402_PAY_TO: payTo, X402_RPC_URL: rpc, X402_FACILITATOR_URL: "http://127.0.0.1:2" },
    "eip155:8453",
    "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
  ],
  [
    {
      ...right,
      X402_NETWORK: "eip155:31337",
      X402_ASSET_ADDRESS: payTo,
      X402_ASSET_NAME: "Coin",
      X402_ASSET_VERSION: "1",
    },
    "eip155:31337",
    payTo,
  ],
  // The same address on another chain, or for another coin, is another account.
  [
    { ...right, PAYMENT_ADDRESS_ETHEREUM: payTo, ETHEREUM_RPC_URL: rpc },
    "eip155:8453",
    "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
  ],
  [{ ...right, PAYMENT_ADDRESS_BASE: payTo, X402_ASSET_ADDRESS: payTo }, "eip155:8453", payTo],
];

test.each(taken)("with %j payments are taken on %s in %s", async (environment, network, asset) => {
  const { terms } = await open(environment);
  expect([terms?.network.name, terms?.network.asset.address, terms?.payTo as string]).toEqual([network, asset, payTo]);
});

const rejected: readonly (readonly [environment: Record<string, string>, ...complaints: readonly string[]])[] = [
  [
    { ...right, X402_PAY_TO: "somewhere" },
    "invalid value 'somewhere' for X402_PAY_TO: expected an address of ethereum",
  ],
  [{ ...right, X402_PAY_TO: `${payTo}00` }, "for X402_PAY_TO: expected an address of ethereum"],
  [
    { ...right, X402_NETWORK: "solana" },
    "invalid value 'solana' for X402_NETWORK: expected base, base-sepolia or the form eip155:8453",
  ],
  [{ ...right, X402_NETWORK: "eip155:31337" }, "set X402_ASSET_ADDRESS, X402_ASSET_NAME and X402_ASSET_VERSION"],
  [
    { ...right, X402_FACILITATOR_URL: rpc, X402_FACILITATOR_KEY_ID: "key-1" },
    "X402_FACILITATOR_KEY_ID needs X402_FACILITATOR_KEY",
  ],
  [
    { ...right, X402_FACILITATOR_URL: rpc, X402_FACILITATOR_KEY: "two words" },
    "X402_FACILITATOR_KEY must be a bearer token",
  ],
  [
    { ...right, X402_FACILITATOR_URL: rpc, X402_FACILITATOR_KEY: "AAAA", X402_FACILITATOR_KEY_ID: "key-1" },
    "X402_FACILITATOR_KEY must be an Ed25519 secret in base64",
  ],
  [
    { ...right, X402_ASSET_ADDRESS: "0x12" },
    "invalid value '0x12' for X402_ASSET_ADDRESS: expected an Ethereum address",
  ],
  [{ X402_PAY_TO: payTo, X402_RPC_URL: rpc }, "X402_PAY_TO needs X402_FACILITATOR_URL or X402_SETTLE_KEY"],
  [{ ...right, X402_SETTLE_KEY: "deadbeef" }, "X402_SETTLE_KEY must be a private key of secp256k1"],
  [{ ...right, X402_SETTLE_KEY: "00".repeat(32) }, "X402_SETTLE_KEY must be a private key of secp256k1"],
  [{ ...right, X402_SETTLE_KEY: "ff".repeat(32) }, "X402_SETTLE_KEY must be a private key of secp256k1"],
  [{ X402_PAY_TO: payTo, X402_SETTLE_KEY: key }, "X402_PAY_TO needs X402_RPC_URL, a JSON-RPC of eip155:8453"],
  [
    { X402_PAY_TO: payTo, X402_SETTLE_KEY: key, X402_NETWORK: "base-sepolia", BASE_RPC_URL: rpc },
    "X402_PAY_TO needs X402_RPC_URL, a JSON-RPC of eip155:84532",
  ],
  [{ ...right, PAYMENT_ADDRESS_BASE: payTo }, "X402_PAY_TO must not be PAYMENT_ADDRESS_BASE"],
  [
    { X402_PAY_TO: "x", X402_NETWORK: "y" },
    "for X402_PAY_TO: expected an address",
    "invalid value 'y' for X402_NETWORK",
    "X402_PAY_TO needs X402_FACILITATOR_URL or X402_SETTLE_KEY",
  ],
];

const sold: readonly (readonly [environment: Record<string, string>, faults: readonly string[]])[] = [
  [{}, ["RATE_LIMITER_PAYMENT needs ENABLE_RATE_LIMITER", "RATE_LIMITER_PAYMENT needs X402_PAY_TO"]],
  [{ ...right, ENABLE_RATE_LIMITER: "true" }, []],
  [
    { ...right, ENABLE_RATE_LIMITER: "true", RATE_LIMITER_PAYMENT_PRICE: "999" },
    ["invalid value '999' for RATE_LIMITER_PAYMENT_PRICE: expected 1000 or more"],
  ],
];

test.each(sold)("paid reading with %j wants %p", (environment, wanted) => {
  const { config, complaints } = readConfig({ ...environment, RATE_LIMITER_PAYMENT: "true" }, "serve");
  expect(complaints).toEqual([]);
  const faults = settingsFaults(config).filter((fault) => fault.includes("RATE_LIMITER_PAYMENT"));
  expect(faults).toEqual([...wanted]);
});

test.each(rejected)("with %j it does not start", async (environment, ...complaints) => {
  const error = await open(environment).then(
    () => new Error("it started"),
    (thrown: Error) => thrown,
  );
  expect(isMisuse(error)).toBe(true);
  for (const complaint of complaints) expect(error.message).toContain(complaint);
  for (const secret of ["deadbeef", "secret-key", key]) expect(error.message).not.toContain(secret);
});
