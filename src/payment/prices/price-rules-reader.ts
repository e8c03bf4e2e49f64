/**
 * An operator's own rules, read from JSON: checked whole, the first fault named by its path.
 *
 * `currencies` and `tokens` are laid over what holds otherwise, key by key (null takes a currency away, or a listed
 * ERC-20 token); the lists
 * `fees`, `discounts`, `uploads` and `promoCodes` stand in the place of those that hold otherwise.
 * Source: docs/price-rules.md.
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import {
  isWrittenList,
  isWrittenObject,
  memberOf,
  numberText,
  readWrittenJson,
  type WrittenJson,
} from "../../lib/json.ts";
import {
  type Chain,
  chainOf,
  isKnownToken,
  readAddress,
  readToken,
  type Token,
  type UserAddress,
} from "../addresses.ts";
import { unitFault } from "./currency-units.ts";
import {
  canonicalCode,
  type FeeRule,
  type Magnitude,
  type PriceRules,
  type PromoRule,
  priorityDefault,
  type Rule,
  type TokenRule,
  type UploadRule,
} from "./price-rules.ts";
import type { CurrencyLimits } from "./price-types.ts";
import { compare, one, rational, readDecimal, writeDecimal } from "./rational.ts";

const parts = ["currencies", "tokens", "fees", "discounts", "uploads", "promoCodes"];

/**
 * Reads rules.
 *
 * @param text - JSON. @param base - What holds where the text says nothing.
 * @throws Failure `malformed_input` with the reason, which begins with the path of the fault.
 */
export function readRules(text: string, base: PriceRules): PriceRules {
  const value = readWrittenJson(text);
  if (value === undefined) throw new Failure("malformed_input", { reason: "it is not JSON" });
  const own = readFields({ value, path: "" }, parts);
  const rules = <Kind extends Rule>(name: string, read: (field: Field) => Kind, otherwise: readonly Kind[]) => {
    const field = own.find(name);
    return field === undefined ? otherwise : byPriority(readList(field).map(read));
  };
  const tokens = readTokens(own.find("tokens"), base.tokens);
  return {
    currencies: readCurrencies(own.find("currencies"), base.currencies),
    tokens,
    fees: rules("fees", (field) => readFee(field, tokens), base.fees),
    discounts: rules("discounts", readDiscount, base.discounts),
    uploads: rules("uploads", readUpload, base.uploads),
    promos: readPromos(own.find("promoCodes"), base.promos),
  };
}

const limitKeys = [
  "minimumPaymentAmount",
  "maximumPaymentAmount",
  "suggestedPaymentAmounts",
  "stripeMinimumPaymentAmount",
  "zeroDecimalCurrency",
];

function readCurrencies(field: Field | undefined, base: PriceRules["currencies"]): PriceRules["currencies"] {
  const currencies = new Map(base);
  for (const [code, row] of field === undefined ? [] : readEntries(field)) {
    if (!/^[a-z]{3}$/.test(code)) throw fault(row, "must be named by three lower-case letters");
    if (row.value !== null) currencies.set(code, readLimits(code, row));
    else if (code === "usd") throw fault(row, "cannot be taken away: limits are worked out from the dollar's");
    else currencies.delete(code);
  }
  return currencies;
}

function readLimits(code: string, row: Field): CurrencyLimits {
  const own = readFields(row, limitKeys);
  const zeroDecimal = own.find("zeroDecimalCurrency");
  const limits: CurrencyLimits = {
    minimum: readWhole(own.get("minimumPaymentAmount")),
    maximum: readWhole(own.get("maximumPaymentAmount")),
    suggested: readList(own.get("suggestedPaymentAmounts")).map(readWhole),
    stripeMinimum: readWhole(own.get("stripeMinimumPaymentAmount")),
    isZeroDecimal: zeroDecimal !== undefined && readFlag(zeroDecimal),
  };
  const wrongUnit = unitFault(code, limits.isZeroDecimal);
  if (wrongUnit !== undefined) throw fault(row, wrongUnit);
  if (limits.minimum < 1n) throw fault(own.get("minimumPaymentAmount"), "must be 1 or more");
  if (limits.maximum < limits.minimum) throw fault(own.get("maximumPaymentAmount"), "must not be below the minimum");
  return limits;
}

function readTokens(field: Field | undefined, base: PriceRules["tokens"]): PriceRules["tokens"] {
  const tokens = new Map(base);
  for (const [word, row] of field === undefined ? [] : readEntries(field)) {
    const token = readTokenWord(word, row);
    if (isKnownToken(token)) tokens.set(token, readKnownToken(row, base.get(token)));
    else if (row.value === null) tokens.delete(token);
    else tokens.set(token, readErc20(token, row, base));
  }
  return oneNameEach(tokens, field);
}

function readKnownToken(row: Field, before: TokenRule | undefined): TokenRule {
  const own = readFields(row, ["feedId", "confirmations"]);
  const [feedId, confirmations] = [own.find("feedId"), own.find("confirmations")];
  assert(before !== undefined, "every known token has a rule");
  return {
    feedId: feedId === undefined ? before.feedId : readText(feedId),
    confirmations: confirmations === undefined ? before.confirmations : readWhole(confirmations),
  };
}

/** The coin of each chain, whose confirmations hold for a token that names none. */
const coinOfChain: Readonly<Partial<Record<Chain, Token>>> = {
  ethereum: "ethereum",
  polygon: "matic",
  base: "base-eth",
};

/** More places than any token has; the smallest unit of more would be worth nothing. */
const decimalsMax = 36n;

/** Reads an ERC-20 token: all of it, or what is to change of one that the rules list already. */
function readErc20(token: Token, row: Field, base: PriceRules["tokens"]): TokenRule {
  const before = base.get(token);
  const own = readFields(row, ["feedId", "confirmations", "contract", "decimals"]);
  const get = (name: string) => (before === undefined ? own.get(name) : own.find(name));
  const [feedId, contract, decimals] = [get("feedId"), get("contract"), get("decimals")];
  const confirmations = own.find("confirmations");
  const coin = coinOfChain[chainOf(token)];
  const rule = {
    feedId: feedId === undefined ? before?.feedId : readText(feedId),
    contract: contract === undefined ? before?.erc20?.contract : readContract(contract),
    decimals: decimals === undefined ? before?.erc20?.decimals : readDecimals(decimals),
    confirmations:
      confirmations === undefined ? (before ?? (coin && base.get(coin)))?.confirmations : readWhole(confirmations),
  };
  assert(rule.feedId !== undefined && rule.contract !== undefined, "a new token has both");
  assert(rule.decimals !== undefined && rule.confirmations !== undefined, "a new token has both, or its coin's");
  return {
    feedId: rule.feedId,
    confirmations: rule.confirmations,
    erc20: { contract: rule.contract, decimals: rule.decimals },
  };
}

function readContract(field: Field): UserAddress {
  const address = readAddress(readText(field), "ethereum")?.address;
  if (address === undefined) throw fault(field, "must be an address of 20 bytes, with a right checksum if it has one");
  return address;
}

function readDecimals(field: Field): bigint {
  const decimals = readWhole(field);
  if (decimals > decimalsMax) throw fault(field, `must be at most ${decimalsMax}`);
  return decimals;
}

/** One transfer must not be found as payments in two tokens. */
function oneNameEach(tokens: PriceRules["tokens"], field: Field | undefined): PriceRules["tokens"] {
  const names = new Map<string, Token>();
  for (const [token, { erc20 }] of tokens) {
    if (erc20 === undefined) continue;
    const key = `${chainOf(token)} ${erc20.contract}`;
    const other = names.get(key);
    if (other !== undefined)
      throw fault({ path: field?.path ?? "tokens" }, `names one contract twice, as ${other} and as ${token}`);
    names.set(key, token);
  }
  return tokens;
}

function readTokenWord(word: string, field: Field): Token {
  const token = readToken(word);
  if (token === undefined) throw fault(field, "names no token");
  return token;
}

const ruleKeys = ["name", "description", "operator", "operatorMagnitude", "startsAt", "endsAt", "priority"];

function readRule(own: Fields): Rule {
  const [startsAt, endsAt, priority] = [own.find("startsAt"), own.find("endsAt"), own.find("priority")];
  const rule: Rule = {
    name: readText(own.get("name")),
    description: readText(own.get("description")),
    operator: readOneOf(own.get("operator"), ["multiply", "add"]),
    magnitude: readMagnitude(own.get("operatorMagnitude")),
    startsAt: startsAt === undefined ? 0n : readMoment(startsAt),
    endsAt: endsAt === undefined ? undefined : readMoment(endsAt),
    priority: priority === undefined ? priorityDefault : readWhole(priority),
  };
  if (endsAt !== undefined && rule.endsAt !== undefined && rule.endsAt <= rule.startsAt)
    throw fault(endsAt, "must be later than startsAt");
  if (rule.operator === "multiply" && rule.magnitude.value.over < 0n)
    throw fault(own.get("operatorMagnitude"), "must not be below 0: it is a factor");
  return rule;
}

function readFee(field: Field, tokens: PriceRules["tokens"]): FeeRule {
  const own = readFields(field, [...ruleKeys, "payments"]);
  const rule = readRule(own);
  // Prices are worked out backwards from what is left, which cannot be done from nothing.
  if (rule.operator === "multiply" && rule.magnitude.value.over === 0n)
    throw fault(own.get("operatorMagnitude"), "must be above 0");
  const payments = readList(own.get("payments")).map((payment) => {
    const word = readText(payment);
    if (word === "fiat") return word;
    const token = readTokenWord(word, payment);
    if (!tokens.has(token)) throw fault(payment, "names no token");
    return token;
  });
  return { ...rule, payments: new Set(payments) };
}

function readDiscount(field: Field): Rule {
  return lowering(readFields(field, ruleKeys));
}

/** A rule that may only lower what is charged. */
function lowering(own: Fields): Rule {
  const rule = readRule(own);
  const most = rule.operator === "multiply" ? one : rational(0n);
  if (compare(rule.magnitude.value, most) > 0) throw fault(own.get("operatorMagnitude"), "must lower what is charged");
  return rule;
}

function readUpload(field: Field): UploadRule {
  const own = readFields(field, [...ruleKeys, "byteCountThreshold"]);
  const rule = readRule(own);
  const sizeMax = own.find("byteCountThreshold");
  if (rule.operator === "add" && rule.magnitude.value.under !== 1n)
    throw fault(own.get("operatorMagnitude"), "must be a whole number: it is winc");
  return { ...rule, sizeMax: sizeMax === undefined ? 0n : readWhole(sizeMax) };
}

const promoKeys = [...ruleKeys, "code", "targetUserGroup", "maxUses", "minimumPaymentAmount", "maximumDiscountAmount"];

function readPromos(field: Field | undefined, base: readonly PromoRule[]): readonly PromoRule[] {
  if (field === undefined) return base;
  const seen = new Set<string>();
  return readList(field).map((row) => {
    const promo = readPromo(row);
    const code = canonicalCode(promo.code) ?? "";
    if (seen.has(code)) throw fault(row, "has the code of another one; their case does not count");
    seen.add(code);
    return promo;
  });
}

function readPromo(field: Field): PromoRule {
  const own = readFields(field, promoKeys);
  const code = readText(own.get("code"));
  if (canonicalCode(code) === undefined)
    throw fault(own.get("code"), "must be 1 to 64 letters, digits and signs of ASCII, without a comma");
  const whole = (name: string) => {
    const found = own.find(name);
    return found === undefined ? undefined : readWhole(found);
  };
  const group = own.find("targetUserGroup");
  return {
    ...lowering(own),
    code,
    group: group === undefined ? "all" : readOneOf(group, ["all", "new"]),
    usesMax: whole("maxUses"),
    usdCentsMin: whole("minimumPaymentAmount") ?? 0n,
    discountUsdCentsMax: whole("maximumDiscountAmount"),
  };
}

/** In the order of their priorities; of equal ones in that of the list. */
function byPriority<Kind extends Rule>(rules: readonly Kind[]): readonly Kind[] {
  return rules.toSorted((left, right) => {
    if (left.priority === right.priority) return 0;
    return left.priority < right.priority ? -1 : 1;
  });
}

// Fields of an operator's rules: a value with its path, and readers that say of a wrong one what would be right.

/** A value and its path: `fees[0].operatorMagnitude`; "" is the whole text. */
type Field = Readonly<{ value: WrittenJson; path: string }>;

/** The fields of an object. */
type Fields = Readonly<{
  find: (name: string) => Field | undefined;
  /** @throws Failure where it is absent. */
  get: (name: string) => Field;
}>;

/** Characters of a name or a description. */
const textLengthMax = 500;

/** Places of a decimal that can be read. */
const placesMax = 120n;

/** Items of a list. */
const itemsMax = 10_000;

/** A fault, as text for the operator. */
export function fault({ path }: Pick<Field, "path">, wanted: string): Failure {
  return new Failure("malformed_input", { reason: path === "" ? `it ${wanted}` : `${path} ${wanted}` });
}

/**
 * Reads an object. @param known - Its keys; others are mistyped.
 * @throws Failure `malformed_input`, as all of these.
 */
function readFields(field: Field, known: readonly string[]): Fields {
  const stranger = keysOf(field).find((key) => !known.includes(key));
  if (stranger !== undefined) throw fault(within(field, stranger), `is not known here; known are ${known.join(", ")}`);
  const find = (name: string): Field | undefined => {
    const value = memberOf(field.value, name);
    return value === undefined ? undefined : { value, path: within(field, name).path };
  };
  return {
    find,
    get: (name) => {
      const found = find(name);
      if (found === undefined) throw fault(within(field, name), "is missing");
      return found;
    },
  };
}

/** Reads an object whose keys are names that the reader checks. */
function readEntries(field: Field): (readonly [string, Field])[] {
  return keysOf(field).map((key) => {
    const value = memberOf(field.value, key) ?? null;
    return [key, { value, path: within(field, key).path }] as const;
  });
}

function readList(field: Field): Field[] {
  if (!isWrittenList(field.value)) throw fault(field, "must be a list");
  if (field.value.length > itemsMax) throw fault(field, `must have at most ${itemsMax} items`);
  return field.value.map((value, index) => ({ value, path: `${field.path}[${index}]` }));
}

function readText(field: Field): string {
  const { value } = field;
  if (typeof value !== "string" || value === "" || value.length > textLengthMax)
    throw fault(field, `must be a text of 1 to ${textLengthMax} characters`);
  return value;
}

function readFlag(field: Field): boolean {
  if (typeof field.value !== "boolean") throw fault(field, "must be true or false");
  return field.value;
}

function readOneOf<const Word extends string>(field: Field, words: readonly Word[]): Word {
  const word = words.find((each) => each === field.value);
  if (word === undefined) throw fault(field, `must be one of ${words.join(", ")}`);
  return word;
}

/** A whole number, 0 or more, as a number or as text. */
function readWhole(field: Field): bigint {
  const text = digitsOf(field);
  if (text === undefined || !/^\d{1,18}$/.test(text)) throw fault(field, "must be a whole number, 0 or more");
  return BigInt(text);
}

/** A decimal, as a number or as text; it is written without an exponent. */
function readMagnitude(field: Field): Magnitude {
  const value = readDecimal(digitsOf(field) ?? "");
  if (value === undefined) throw fault(field, 'must be a decimal, as 0.766 or "0.766"');
  const { over, under } = value;
  const sign = over < 0n ? "-" : "";
  const text = `${sign}${writeDecimal(rational(over < 0n ? -over : over, under), placesMax)}`;
  return { text, value };
}

const momentPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z$/;

/** A moment: `2026-01-31T00:00:00Z`. @returns Unix milliseconds. */
function readMoment(field: Field): bigint {
  const { value } = field;
  const at = typeof value === "string" && momentPattern.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(at)) throw fault(field, "must be a moment, as 2026-01-31T00:00:00Z");
  return BigInt(at);
}

function digitsOf({ value }: Field): string | undefined {
  return typeof value === "string" ? value : numberText(value);
}

function keysOf(field: Field): string[] {
  if (!isWrittenObject(field.value)) throw fault(field, "must be an object");
  return Object.keys(field.value);
}

function within({ path }: Field, key: string): Pick<Field, "path"> {
  return { path: path === "" ? key : `${path}.${key}` };
}
