/**
 * An operator's own rules: what they replace, and how faults are named.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { Failure } from "../../../src/failures.ts";
import { readAddress, type UserAddress } from "../../../src/payment/addresses.ts";
import { unitFault } from "../../../src/payment/prices/currency-units.ts";
import { defaultRules, inForce } from "../../../src/payment/prices/price-rules.ts";
import { readRules } from "../../../src/payment/prices/price-rules-reader.ts";
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
  test("say nothing of what they leave out", () => expect(read({})).toEqual(defaultRules));

  test("replace lists whole", () => {
    const rules = read({ fees: [fee], promoCodes: [promo] });
    expect(rules.fees.map(({ name }) => name)).toEqual(["Own fee"]);
    expect([...(rules.fees[0]?.payments ?? [])]).toEqual(["fiat", "native", "matic"]);
    expect(rules.fees[0]?.magnitude.text).toBe("0.9");
    expect(rules.promos).toHaveLength(1);
    expect(rules.currencies).toEqual(defaultRules.currencies);
    expect(read({ fees: [] }).fees).toEqual([]);
  });

  test("lay currencies and tokens over those that are there", () => {
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

  test("know the smallest unit of every currency that is taken by default", () => {
    for (const [code, { isZeroDecimal }] of defaultRules.currencies)
      expect([code, unitFault(code, isZeroDecimal)]).toEqual([code, undefined]);
  });

  test("keep decimals exact, also those that are no floating-point number", () => {
    const text =
      '{"fees":[{"name":"a","description":"b","operator":"multiply","payments":["fiat"],"operatorMagnitude":';
    const rules = readRules(`${text}0.76600000000000000001}]}`, defaultRules);
    const value = rules.fees[0]?.magnitude.value ?? rational(0n);
    expect(compare(value, rational(76_600_000_000_000_000_001n, 10n ** 20n))).toBe(0);
    expect(readRules(`${text}7.66e-1}]}`, defaultRules).fees[0]?.magnitude.text).toBe("0.766");
    const taken = { ...fee, operator: "add", operatorMagnitude: "-30.50" };
    expect(read({ fees: [taken] }).fees[0]?.magnitude.text).toBe("-30.5");
  });

  test("apply by priority, and in the order of the list where it is the same", () => {
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

  test("list ERC-20 tokens, whose confirmations are their chain's unless told", () => {
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
    [[], "it must be an object"],
    [{ fee: [] }, "fee is not known here; known are currencies, tokens, fees, discounts, uploads, promoCodes"],
    [{ fees: {} }, "fees must be a list"],
    [{ fees: [1] }, "fees[0] must be an object"],
    [{ fees: [fee, { ...fee, name: "" }] }, "fees[1].name must be a text of 1 to 500 characters"],
    [{ fees: [{ ...fee, name: undefined }] }, "fees[0].name is missing"],
    [{ fees: [{ ...fee, operator: "divide" }] }, "fees[0].operator must be one of multiply, add"],
    [
      { fees: [{ ...fee, operatorMagnitude: "x" }] },
      'fees[0].operatorMagnitude must be a decimal, as 0.766 or "0.766"',
    ],
    [{ fees: [{ ...fee, operatorMagnitude: 0 }] }, "fees[0].operatorMagnitude must be above 0"],
    [{ fees: [{ ...fee, operatorMagnitude: -1 }] }, "fees[0].operatorMagnitude must not be below 0: it is a factor"],
    [{ tokens: { "base-gold": { ...listed, decimals: undefined } } }, "tokens.base-gold.decimals is missing"],
    [{ tokens: { "base-gold": { ...listed, contract: undefined } } }, "tokens.base-gold.contract is missing"],
    [{ tokens: { "base-gold": { ...listed, decimals: 37 } } }, "tokens.base-gold.decimals must be at most 36"],
    [
      { tokens: { "base-gold": { ...listed, contract: "0x12" } } },
      "tokens.base-gold.contract must be an address of 20 bytes, with a right checksum if it has one",
    ],
    [{ tokens: { "tron-gold": listed } }, "tokens.tron-gold names no token"],
    [{ tokens: { usdc: listed } }, "tokens.usdc.contract is not known here; known are feedId, confirmations"],
    [
      { tokens: { "base-gold": listed, "base-silver": listed } },
      "tokens names one contract twice, as base-gold and as base-silver",
    ],
    [{ fees: [{ ...fee, payments: ["base-gold"] }] }, "fees[0].payments[0] names no token"],
    [{ fees: [{ ...fee, payments: ["euro"] }] }, "fees[0].payments[0] names no token"],
    [{ fees: [{ ...fee, payments: undefined }] }, "fees[0].payments is missing"],
    [{ fees: [{ ...fee, startsAt: "yesterday" }] }, "fees[0].startsAt must be a moment, as 2026-01-31T00:00:00Z"],
    [
      { fees: [{ ...fee, startsAt: "2026-13-01T00:00:00Z" }] },
      "fees[0].startsAt must be a moment, as 2026-01-31T00:00:00Z",
    ],
    [
      { fees: [{ ...fee, startsAt: "2026-01-01T00:00:00Z", endsAt: "2026-01-01T00:00:00Z" }] },
      "fees[0].endsAt must be later than startsAt",
    ],
    [{ fees: [{ ...fee, priority: -1 }] }, "fees[0].priority must be a whole number, 0 or more"],
    [{ fees: [{ ...fee, priority: 1.5 }] }, "fees[0].priority must be a whole number, 0 or more"],
    [
      { discounts: [{ ...fee, payments: undefined, operatorMagnitude: 1.1 }] },
      "discounts[0].operatorMagnitude must lower what is charged",
    ],
    [
      { discounts: [{ ...fee, payments: undefined, operator: "add", operatorMagnitude: 1 }] },
      "discounts[0].operatorMagnitude must lower what is charged",
    ],
    [
      { uploads: [{ ...fee, payments: undefined, operator: "add", operatorMagnitude: -1.5 }] },
      "uploads[0].operatorMagnitude must be a whole number: it is winc",
    ],
    [
      { uploads: [{ ...fee, payments: undefined, byteCountThreshold: "1 MiB" }] },
      "uploads[0].byteCountThreshold must be a whole number, 0 or more",
    ],
    [
      { promoCodes: [{ ...promo, code: "A,B" }] },
      "promoCodes[0].code must be 1 to 64 letters, digits and signs of ASCII, without a comma",
    ],
    [
      { promoCodes: [{ ...promo, code: "ſpring" }] },
      "promoCodes[0].code must be 1 to 64 letters, digits and signs of ASCII, without a comma",
    ],
    [
      { promoCodes: [promo, { ...promo, code: "SPRING" }] },
      "promoCodes[1] has the code of another one; their case does not count",
    ],
    [
      { promoCodes: [{ ...promo, targetUserGroup: "friends" }] },
      "promoCodes[0].targetUserGroup must be one of all, new",
    ],
    [{ promoCodes: [{ ...promo, maxUses: "many" }] }, "promoCodes[0].maxUses must be a whole number, 0 or more"],
    [
      { promoCodes: [{ ...promo, operatorMagnitude: 2 }] },
      "promoCodes[0].operatorMagnitude must lower what is charged",
    ],
    [{ currencies: { USD: limits } }, "currencies.USD must be named by three lower-case letters"],
    [{ currencies: { usd: null } }, "currencies.usd cannot be taken away: limits are worked out from the dollar's"],
    [
      { currencies: { usd: { ...limits, minimumPaymentAmount: 0 } } },
      "currencies.usd.minimumPaymentAmount must be 1 or more",
    ],
    [
      { currencies: { usd: { ...limits, maximumPaymentAmount: 99 } } },
      "currencies.usd.maximumPaymentAmount must not be below the minimum",
    ],
    [
      { currencies: { krw: limits } },
      "currencies.krw must have zeroDecimalCurrency true: its smallest unit is the whole one",
    ],
    [
      { currencies: { usd: { ...limits, zeroDecimalCurrency: true } } },
      "currencies.usd must not have zeroDecimalCurrency: its smallest unit is a hundredth",
    ],
    [{ currencies: { kwd: limits } }, "currencies.kwd is divided by a thousand: payments in it cannot be counted"],
    [
      { currencies: { usd: { ...limits, zeroDecimalCurrency: "no" } } },
      "currencies.usd.zeroDecimalCurrency must be true or false",
    ],
    [{ tokens: { bitcoin: {} } }, "tokens.bitcoin names no token"],
    [{ tokens: { native: { confirmations: -1 } } }, "tokens.native.confirmations must be a whole number, 0 or more"],
  ];
  test.each(faults)("of %j are rejected by name", (value, reason) => {
    expect(reasonOf(() => read(value))).toBe(reason);
  });

  test("that are no JSON are rejected", () => {
    expect(reasonOf(() => readRules("{", defaultRules))).toBe("it is not JSON");
    expect(reasonOf(() => readRules('{"__proto__":{}}', defaultRules))).toStartWith("__proto__ is not known");
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
