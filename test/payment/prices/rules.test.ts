/**
 * An operator's own rules: what they replace, and how faults are named.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { Failure } from "../../../src/failures.ts";
import { readAddress, type UserAddress } from "../../../src/payment/addresses.ts";
import { defaultRules, inForce } from "../../../src/payment/prices/price-rules.ts";
import { readRules } from "../../../src/payment/prices/price-rules-reader.ts";
import { unitFault } from "../../../src/payment/prices/price-types.ts";
import { compare, rational } from "../../../src/payment/prices/rational.ts";

const fee = {
  name: "Own fee",
  description: "What we keep.",
  operator: "multiply",
  operatorMagnitude: 0.9,
  payments: ["fiat", "arweave", "pol"],
};
const promo = { ...fee, payments: undefined, code: "Spring", operatorMagnitude: "0.8" };
const limits = {
  minimumPaymentAmount: 100,
  maximumPaymentAmount: 5_000,
  suggestedPaymentAmounts: [100, 200, 300],
  stripeMinimumPaymentAmount: 50,
};

const read = (value: unknown) => readRules(JSON.stringify(value), defaultRules);

describe("rules of an operator", () => {
  test("keep the defaults of absent keys", () => expect(read({})).toEqual(defaultRules));

  test("replace complete lists", () => {
    const rules = read({ fees: [fee], promoCodes: [promo] });
    expect(rules.fees.map(({ name }) => name)).toEqual(["Own fee"]);
    expect([...(rules.fees[0]?.payments ?? [])]).toEqual(["fiat", "native", "matic"]);
    expect(rules.fees[0]?.magnitude.text).toBe("0.9");
    expect(rules.promos).toHaveLength(1);
    expect(rules.currencies).toEqual(defaultRules.currencies);
    expect(read({ fees: [] }).fees).toEqual([]);
  });

  test("merge currencies and tokens into the defaults", () => {
    const rules = read({
      currencies: { chf: { ...limits, zeroDecimalCurrency: false }, jpy: null },
      tokens: { arweave: { confirmations: 3 }, "base-eth": { feedId: "weth" } },
    });
    expect([...rules.currencies.keys()]).toEqual([
      ...[...defaultRules.currencies.keys()].filter((currency) => currency !== "jpy"),
      "chf",
    ]);
    expect(rules.currencies.get("chf")).toEqual({
      minimum: 100n,
      maximum: 5_000n,
      suggested: [100n, 200n, 300n],
      stripeMinimum: 50n,
      isZeroDecimal: false,
    });
    expect(rules.tokens.get("native")).toEqual({ feedId: "arweave", confirmations: 3n });
    expect(rules.tokens.get("base-eth")).toEqual({ feedId: "weth", confirmations: 5n });
  });

  test("have the smallest unit of every default currency", () => {
    for (const [code, { isZeroDecimal }] of defaultRules.currencies)
      expect([code, unitFault(code, isZeroDecimal)]).toEqual([code, undefined]);
  });

  test("keep decimals exact, also those that floating point cannot hold", () => {
    const text =
      '{"fees":[{"name":"a","description":"b","operator":"multiply","payments":["fiat"],"operatorMagnitude":';
    const rules = readRules(`${text}0.76600000000000000001}]}`, defaultRules);
    const value = rules.fees[0]?.magnitude.value ?? rational(0n);
    expect(compare(value, rational(76_600_000_000_000_000_001n, 10n ** 20n))).toBe(0);
    expect(readRules(`${text}7.66e-1}]}`, defaultRules).fees[0]?.magnitude.text).toBe("0.766");
    const taken = { ...fee, operator: "add", operatorMagnitude: "-30.50" };
    expect(read({ fees: [taken] }).fees[0]?.magnitude.text).toBe("-30.5");
  });

  test("apply by priority, and in the order of the list for equal priorities", () => {
    const named = (name: string, priority?: number) => ({ ...fee, name, priority });
    const rules = read({ fees: [named("c"), named("a", 1), named("d"), named("b", 499), named("e", 501)] });
    expect(rules.fees.map(({ name }) => name)).toEqual(["a", "b", "c", "d", "e"]);
  });

  test("are in force from their start, and no longer at their end", () => {
    const { fees } = read({
      fees: [{ ...fee, startsAt: "2026-01-01T00:00:00Z", endsAt: "2026-02-01T00:00Z" }],
    });
    const at = (text: string) => inForce(fees, BigInt(Date.parse(text))).length;
    expect(at("2025-12-31T23:59:59.999Z")).toBe(0);
    expect(at("2026-01-01T00:00:00Z")).toBe(1);
    expect(at("2026-01-31T23:59:59.999Z")).toBe(1);
    expect(at("2026-02-01T00:00:00Z")).toBe(0);
  });

  test("list ERC-20 tokens, whose confirmations are their chain's by default", () => {
    const contract = "0x138746adfA52909E5920def027f5a8dc1C7EfFb6";
    const gold = { feedId: "gold", contract: `0x${"ab".repeat(20)}`, decimals: 8 };
    const rules = read({
      tokens: { "polygon-gold": gold, "base-ario": { confirmations: 9 } },
      fees: [{ ...fee, payments: ["polygon-gold"] }],
    });
    const address = readAddress(gold.contract, "ethereum")?.address ?? "";
    expect(rules.tokens.get("polygon-gold")).toEqual({
      feedId: "gold",
      confirmations: 12n,
      erc20: { contract: address as UserAddress, decimals: 8n },
    });
    expect(rules.tokens.get("base-ario")).toEqual({
      feedId: "ar-io-network",
      confirmations: 9n,
      erc20: { contract: contract as UserAddress, decimals: 6n },
    });
    expect([...(rules.fees[0]?.payments ?? [])]).toEqual(["polygon-gold"]);
    expect(read({ tokens: { "base-ario": null } }).tokens.has("base-ario")).toBe(false);
  });

  const listed = { feedId: "gold", contract: `0x${"ab".repeat(20)}`, decimals: 8 };
  const faults: readonly (readonly [unknown, string])[] = [
    [[], "invalid value […] for the rules: expected an object"],
    [{ fee: [] }, "unknown field fee: expected one of currencies, tokens, fees, discounts, uploads, promoCodes"],
    [{ fees: {} }, "invalid value {…} for fees: expected a list"],
    [{ fees: [1] }, "invalid value 1 for fees[0]: expected an object"],
    [
      { fees: [fee, { ...fee, name: "" }] },
      "invalid value '' for fees[1].name: expected a text of 1 to 500 characters",
    ],
    [{ fees: [{ ...fee, name: undefined }] }, "missing field fees[0].name"],
    [
      { fees: [{ ...fee, operator: "divide" }] },
      "invalid value 'divide' for fees[0].operator: expected one of multiply, add",
    ],
    [
      { fees: [{ ...fee, operatorMagnitude: "x" }] },
      `invalid value 'x' for fees[0].operatorMagnitude: expected a decimal such as 0.766 or "0.766"`,
    ],
    [
      { fees: [{ ...fee, operatorMagnitude: 0 }] },
      "invalid value 0 for fees[0].operatorMagnitude: expected a factor above 0",
    ],
    [
      { fees: [{ ...fee, operatorMagnitude: -1 }] },
      "invalid value -1 for fees[0].operatorMagnitude: expected 0 or more, because it is a factor",
    ],
    [{ tokens: { "base-gold": { ...listed, decimals: undefined } } }, "missing field tokens.base-gold.decimals"],
    [{ tokens: { "base-gold": { ...listed, contract: undefined } } }, "missing field tokens.base-gold.contract"],
    [
      { tokens: { "base-gold": { ...listed, decimals: 37 } } },
      "invalid value 37 for tokens.base-gold.decimals: expected at most 36",
    ],
    [
      { tokens: { "base-gold": { ...listed, contract: "0x12" } } },
      "invalid value '0x12' for tokens.base-gold.contract: expected an address of 20 bytes, with a valid checksum if it has one",
    ],
    [{ tokens: { "tron-gold": listed } }, "invalid value 'tron-gold' for tokens.tron-gold: expected a known token"],
    [{ tokens: { usdc: listed } }, "unknown field tokens.usdc.contract: expected one of feedId, confirmations"],
    [
      { tokens: { "base-gold": listed, "base-silver": listed } },
      "invalid value '0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB' for tokens: expected one token per contract, but base-gold and base-silver share it",
    ],
    [
      { fees: [{ ...fee, payments: ["base-gold"] }] },
      "invalid value 'base-gold' for fees[0].payments[0]: expected a known token",
    ],
    [
      { fees: [{ ...fee, payments: ["euro"] }] },
      "invalid value 'euro' for fees[0].payments[0]: expected a known token",
    ],
    [{ fees: [{ ...fee, payments: undefined }] }, "missing field fees[0].payments"],
    [
      { fees: [{ ...fee, startsAt: "yesterday" }] },
      "invalid value 'yesterday' for fees[0].startsAt: expected a time such as 2026-01-31T00:00:00Z",
    ],
    [
      { fees: [{ ...fee, startsAt: "2026-13-01T00:00:00Z" }] },
      "invalid value '2026-13-01T00:00:00Z' for fees[0].startsAt: expected a time such as 2026-01-31T00:00:00Z",
    ],
    [
      { fees: [{ ...fee, startsAt: "2026-01-01T00:00:00Z", endsAt: "2026-01-01T00:00:00Z" }] },
      "invalid value '2026-01-01T00:00:00Z' for fees[0].endsAt: expected a time after startsAt",
    ],
    [{ fees: [{ ...fee, priority: -1 }] }, "invalid value -1 for fees[0].priority: expected an integer, 0 or more"],
    [{ fees: [{ ...fee, priority: 1.5 }] }, "invalid value 1.5 for fees[0].priority: expected an integer, 0 or more"],
    [
      { discounts: [{ ...fee, payments: undefined, operatorMagnitude: 1.1 }] },
      "invalid value 1.1 for discounts[0].operatorMagnitude: expected a value that lowers the charge",
    ],
    [
      { discounts: [{ ...fee, payments: undefined, operator: "add", operatorMagnitude: 1 }] },
      "invalid value 1 for discounts[0].operatorMagnitude: expected a value that lowers the charge",
    ],
    [
      { uploads: [{ ...fee, payments: undefined, operator: "add", operatorMagnitude: -1.5 }] },
      "invalid value -1.5 for uploads[0].operatorMagnitude: expected an integer, in winc",
    ],
    [
      { uploads: [{ ...fee, payments: undefined, byteCountThreshold: "1 MiB" }] },
      "invalid value '1 MiB' for uploads[0].byteCountThreshold: expected an integer, 0 or more",
    ],
    [
      { promoCodes: [{ ...promo, code: "A,B" }] },
      "invalid value 'A,B' for promoCodes[0].code: expected 1 to 64 printable ASCII characters without space or comma",
    ],
    [
      { promoCodes: [{ ...promo, code: "ſpring" }] },
      "invalid value 'ſpring' for promoCodes[0].code: expected 1 to 64 printable ASCII characters without space or comma",
    ],
    [
      { promoCodes: [promo, { ...promo, code: "SPRING" }] },
      "invalid value 'SPRING' for promoCodes[1].code: expected a unique code, regardless of case",
    ],
    [
      { promoCodes: [{ ...promo, targetUserGroup: "friends" }] },
      "invalid value 'friends' for promoCodes[0].targetUserGroup: expected one of all, new",
    ],
    [
      { promoCodes: [{ ...promo, maxUses: "many" }] },
      "invalid value 'many' for promoCodes[0].maxUses: expected an integer, 0 or more",
    ],
    [
      { promoCodes: [{ ...promo, operatorMagnitude: 2 }] },
      "invalid value 2 for promoCodes[0].operatorMagnitude: expected a value that lowers the charge",
    ],
    [{ currencies: { USD: limits } }, "invalid value 'USD' for currencies.USD: expected a key of three characters a–z"],
    [
      { currencies: { usd: null } },
      "invalid value null for currencies.usd: expected limits, because the dollar's limits are the base of all others",
    ],
    [
      { currencies: { usd: { ...limits, minimumPaymentAmount: 0 } } },
      "invalid value 0 for currencies.usd.minimumPaymentAmount: expected 1 or more",
    ],
    [
      { currencies: { usd: { ...limits, maximumPaymentAmount: 99 } } },
      "invalid value 99 for currencies.usd.maximumPaymentAmount: expected minimumPaymentAmount or more",
    ],
    [
      { currencies: { krw: limits } },
      "invalid value {…} for currencies.krw: expected zeroDecimalCurrency true, because the smallest unit is the whole one",
    ],
    [
      { currencies: { usd: { ...limits, zeroDecimalCurrency: true } } },
      "invalid value {…} for currencies.usd: expected no zeroDecimalCurrency, because the smallest unit is a hundredth",
    ],
    [{ currencies: { kwd: limits } }, "invalid value {…} for currencies.kwd: expected a currency without thousandths"],
    [
      { currencies: { usd: { ...limits, zeroDecimalCurrency: "no" } } },
      "invalid value 'no' for currencies.usd.zeroDecimalCurrency: expected true or false",
    ],
    [{ tokens: { bitcoin: {} } }, "invalid value 'bitcoin' for tokens.bitcoin: expected a known token"],
    [
      { tokens: { native: { confirmations: -1 } } },
      "invalid value -1 for tokens.native.confirmations: expected an integer, 0 or more",
    ],
  ];
  test.each(faults)("of %j are rejected with the path", (value, reason) => {
    expect(reasonOf(() => read(value))).toBe(reason);
  });

  test("that are not JSON are rejected", () => {
    expect(reasonOf(() => readRules("{", defaultRules))).toBe("invalid JSON");
    expect(reasonOf(() => readRules('{"__proto__":{}}', defaultRules))).toStartWith("unknown field __proto__");
  });
});

function reasonOf(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    if (error instanceof Failure) return error.context["reason"];
    throw error;
  }
  return "nothing was wrong";
}
