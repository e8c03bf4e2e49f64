/**
 * A payment against what was requested, by its own words.
 * @module
 */
import { expect, test } from "bun:test";
import { readX402Network } from "../../../src/payment/x402/x402-networks.ts";
import type { X402Accepted, X402Payment } from "../../../src/payment/x402/x402-payment-reader.ts";
import { faultOf } from "../../../src/payment/x402/x402-validation.ts";
import { nonce, payer, payTo } from "./payers.ts";

const unset = { address: undefined, name: undefined, version: undefined };

function networkOf(text: string) {
  const network = readX402Network(text, unset);
  if ("fault" in network) throw new Error(network.fault);
  return network;
}

const network = networkOf("base");
const terms = { network, payTo, timeoutSeconds: 300 };
const now = 1_800_000_000n;
const authorization = {
  from: payer(1).address,
  to: payTo,
  value: 2_000n,
  validAfter: now - 600n,
  validBefore: now + 300n,
  nonce: nonce(1),
};
const first: X402Payment = {
  version: 1,
  scheme: "exact",
  network: "base",
  authorization,
  accepted: undefined,
  signature: new Uint8Array(65),
};
const accepted: X402Accepted = { amount: 2_000n, asset: network.asset.address, payTo };
const second: X402Payment = { ...first, version: 2, network: "eip155:8453", accepted };
const words = (change: Partial<typeof authorization>): X402Payment => ({
  ...first,
  authorization: { ...authorization, ...change },
});

const rows: readonly (readonly [what: string, payment: X402Payment, fault: string | undefined])[] = [
  ["what a client of version 1 signs", first, undefined],
  ["what a client of version 2 signs", second, undefined],
  ["another scheme", { ...first, scheme: "upto" }, "unsupported_scheme"],
  ["another network", { ...first, network: "base-sepolia" }, "invalid_network"],
  ["version 2's name of the network in version 1", { ...first, network: "eip155:8453" }, "invalid_network"],
  ["version 1's name of the network in version 2", { ...second, network: "base" }, "invalid_network"],
  ["another asset", { ...second, accepted: { ...accepted, asset: payTo } }, "invalid_asset"],
  [
    "another receiver in what it repeats",
    { ...second, accepted: { ...accepted, payTo: payer(2).address } },
    "invalid_pay_to",
  ],
  [
    "another amount in what it repeats",
    { ...second, accepted: { ...accepted, amount: 1_999n } },
    "invalid_exact_evm_authorization_value",
  ],
  ["another receiver", words({ to: payer(2).address }), "invalid_exact_evm_recipient_mismatch"],
  ["our own payment to ourselves", words({ from: payTo }), "invalid_exact_evm_recipient_mismatch"],
  ["one that begins now", words({ validAfter: now }), undefined],
  ["one that begins a minute from now", words({ validAfter: now + 59n }), undefined],
  ["one that begins later", words({ validAfter: now + 60n }), "invalid_exact_evm_authorization_valid_after"],
  ["one that has begun with time", words({ validAfter: 0n }), undefined],
  ["one that is over", words({ validBefore: now }), "invalid_exact_evm_authorization_valid_before"],
  [
    "one that is over in nine seconds",
    words({ validBefore: now + 9n }),
    "invalid_exact_evm_authorization_valid_before",
  ],
  ["one that is over in ten seconds", words({ validBefore: now + 10n }), undefined],
  ["one that is over in a day", words({ validBefore: now + 86_400n }), undefined],
  ["one that is over later", words({ validBefore: now + 86_401n }), "invalid_exact_evm_authorization_valid_before"],
  ["one that is never over", words({ validBefore: 2n ** 256n - 1n }), "invalid_exact_evm_authorization_valid_before"],
];

test.each(rows)("%s", (_what, payment, fault) => {
  expect(faultOf(terms, payment, now)).toBe(fault);
});

test("a network without a name in version 1 has the same name in both versions", () => {
  const mainnet = { ...terms, network: networkOf("eip155:1") };
  for (const version of [1, 2] as const)
    expect(faultOf(mainnet, { ...first, version, network: "eip155:1" }, now)).toBeUndefined();
});

const networks: readonly (readonly [text: string, chainId: bigint | undefined])[] = [
  ["base", 8_453n],
  ["eip155:8453", 8_453n],
  ["base-sepolia", 84_532n],
  ["eip155:84532", 84_532n],
  ["polygon", 137n],
  ["eip155:1", 1n],
  ["eip155:31337", undefined], // no coin is known there
  ["eip155:01", undefined],
  ["eip155:0", undefined],
  ["eip155:", undefined],
  ["solana", undefined],
  ["", undefined],
];

test.each(networks)("the network %p", (text, chainId) => {
  const read = readX402Network(text, unset);
  expect("fault" in read ? undefined : read.chainId).toBe(chainId);
});

test("an unknown network has the configured coin, and a known network the configured parts", () => {
  const set = { address: payTo.toLowerCase(), name: "Coin", version: "1" };
  expect(readX402Network("eip155:31337", set)).toMatchObject({
    name: "eip155:31337",
    nameV1: "eip155:31337",
    asset: { address: payTo, name: "Coin", version: "1", token: "base-usdc" },
  });
  expect(readX402Network("base", { ...unset, version: "3" })).toMatchObject({
    asset: { name: "USD Coin", version: "3" },
  });
  expect(readX402Network("base", { ...unset, address: "0x12" })).toEqual({
    fault: "invalid value '0x12' for X402_ASSET_ADDRESS: expected an Ethereum address",
  });
});
