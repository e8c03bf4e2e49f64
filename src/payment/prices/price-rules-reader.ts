/**
 * Parses and validates an operator's price rules from JSON; the first fault is reported with its path.
 *
 * `currencies` and `tokens` are merged into the default rules, key by key (null removes a currency, or a listed ERC-20
 * token). The lists `fees`, `discounts`, `uploads` and `promoCodes` replace the default lists.
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
  chainOf,
  evmChains,
  isEvmChain,
  isKnownToken,
  readAddress,
  readToken,
  type Token,
  type UserAddress,
} from "../addresses.ts";
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
import { type CurrencyLimits, unitFault } from "./price-types.ts";
import { compare, one, rational, readDecimal, writeDecimal } from "./rational.ts";

const parts = ["currencies", "tokens", "fees", "discounts", "uploads", "promoCodes"];

/**
 * Parses rules.
 *
 * @param text - JSON. @param base - The default rules.
 * @throws Failure `malformed_input` with the reason, which contains the path of the fault.
 */
export function readRules(text: string, base: PriceRules): PriceRules {
  const value = readWrittenJson(text);
  if (value === undefined) throw new Failure("malformed_input", { reason: "invalid JSON" });
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
    if (!/^[a-z]{3}$/.test(code)) throw fault({ ...row, value: code }, "a key of three characters a–z");
    if (row.value !== null) currencies.set(code, readLimits(code, row));
    else if (code === "usd") throw fault(row, "limits, because the dollar's limits are the base of all others");
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
  if (limits.minimum < 1n) throw fault(own.get("minimumPaymentAmount"), "1 or more");
  if (limits.maximum < limits.minimum) throw fault(own.get("maximumPaymentAmount"), "minimumPaymentAmount or more");
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

/** More decimal places than any token has. */
const decimalsMax = 36n;

/** Parses a new ERC-20 token, or the changed fields of a listed one. */
function readErc20(token: Token, row: Field, base: PriceRules["tokens"]): TokenRule {
  const before = base.get(token);
  const own = readFields(row, ["feedId", "confirmations", "contract", "decimals"]);
  const get = (name: string) => (before === undefined ? own.get(name) : own.find(name));
  const [feedId, contract, decimals] = [get("feedId"), get("contract"), get("decimals")];
  const confirmations = own.find("confirmations");
  const chain = chainOf(token);
  const coin = isEvmChain(chain) ? evmChains[chain].coin : undefined; // its confirmations are the default
  const rule = {
    feedId: feedId === undefined ? before?.feedId : readText(feedId),
    contract: contract === undefined ? before?.erc20?.contract : readContract(contract),
    decimals: decimals === undefined ? before?.erc20?.decimals : readDecimals(decimals),
    confirmations:
      confirmations === undefined ? (before ?? (coin && base.get(coin)))?.confirmations : readWhole(confirmations),
  };
  assert(rule.feedId !== undefined && rule.contract !== undefined, "a new token has a feed id and a contract");
  assert(
    rule.decimals !== undefined && rule.confirmations !== undefined,
    "a new token has decimals, and its own or its coin's confirmations",
  );
  return {
    feedId: rule.feedId,
    confirmations: rule.confirmations,
    erc20: { contract: rule.contract, decimals: rule.decimals },
  };
}

function readContract(field: Field): UserAddress {
  const address = readAddress(readText(field), "ethereum")?.address;
  if (address === undefined) throw fault(field, "an address of 20 bytes, with a valid checksum if it has one");
  return address;
}

function readDecimals(field: Field): bigint {
  const decimals = readWhole(field);
  if (decimals > decimalsMax) throw fault(field, `at most ${decimalsMax}`);
  return decimals;
}

/** Rejects two tokens with one contract: one transfer must not be a payment in two tokens. */
function oneNameEach(tokens: PriceRules["tokens"], field: Field | undefined): PriceRules["tokens"] {
  const names = new Map<string, Token>();
  for (const [token, { erc20 }] of tokens) {
    if (erc20 === undefined) continue;
    const key = `${chainOf(token)} ${erc20.contract}`;
    const other = names.get(key);
    if (other !== undefined)
      throw fault(
        { path: field?.path ?? "tokens", value: erc20.contract },
        `one token per contract, but ${other} and ${token} share it`,
      );
    names.set(key, token);
  }
  return tokens;
}

function readTokenWord(word: string, field: Field): Token {
  const token = readToken(word);
  if (token === undefined) throw fault({ ...field, value: word }, "a known token");
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
    throw fault(endsAt, "a time after startsAt");
  if (rule.operator === "multiply" && rule.magnitude.value.over < 0n)
    throw fault(own.get("operatorMagnitude"), "0 or more, because it is a factor");
  return rule;
}

function readFee(field: Field, tokens: PriceRules["tokens"]): FeeRule {
  const own = readFields(field, [...ruleKeys, "payments"]);
  const rule = readRule(own);
  // Prices are also computed backwards, which is impossible from a factor of 0.
  if (rule.operator === "multiply" && rule.magnitude.value.over === 0n)
    throw fault(own.get("operatorMagnitude"), "a factor above 0");
  const payments = readList(own.get("payments")).map((payment) => {
    const word = readText(payment);
    if (word === "fiat") return word;
    const token = readTokenWord(word, payment);
    if (!tokens.has(token)) throw fault(payment, "a known token");
    return token;
  });
  return { ...rule, payments: new Set(payments) };
}

function readDiscount(field: Field): Rule {
  return lowering(readFields(field, ruleKeys));
}

/** A rule that only lowers the charged amount. */
function lowering(own: Fields): Rule {
  const rule = readRule(own);
  const most = rule.operator === "multiply" ? one : rational(0n);
  if (compare(rule.magnitude.value, most) > 0)
    throw fault(own.get("operatorMagnitude"), "a value that lowers the charge");
  return rule;
}

function readUpload(field: Field): UploadRule {
  const own = readFields(field, [...ruleKeys, "byteCountThreshold"]);
  const rule = readRule(own);
  const sizeMax = own.find("byteCountThreshold");
  if (rule.operator === "add" && rule.magnitude.value.under !== 1n)
    throw fault(own.get("operatorMagnitude"), "an integer, in winc");
  return { ...rule, sizeMax: sizeMax === undefined ? 0n : readWhole(sizeMax) };
}

const promoKeys = [...ruleKeys, "code", "targetUserGroup", "maxUses", "minimumPaymentAmount", "maximumDiscountAmount"];

function readPromos(field: Field | undefined, base: readonly PromoRule[]): readonly PromoRule[] {
  if (field === undefined) return base;
  const seen = new Set<string>();
  return readList(field).map((row) => {
    const promo = readPromo(row);
    const code = canonicalCode(promo.code) ?? "";
    if (seen.has(code))
      throw fault({ path: pathOf(row, "code"), value: promo.code }, "a unique code, regardless of case");
    seen.add(code);
    return promo;
  });
}

/**
 * Parses a row of `promoCodes`.
 *
 * @param text - JSON. @throws Failure `malformed_input` with the reason, which contains the path of the fault.
 */
export function readPromoRule(text: string): PromoRule {
  const value = readWrittenJson(text);
  if (value === undefined) throw malformed("invalid JSON");
  return readPromo({ value, path: "" });
}

function readPromo(field: Field): PromoRule {
  const own = readFields(field, promoKeys);
  const code = readText(own.get("code"));
  if (canonicalCode(code) === undefined)
    throw fault(own.get("code"), "1 to 64 printable ASCII characters without space or comma");
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

/** Sorts by priority; equal priorities keep the order of the list. */
function byPriority<Kind extends Rule>(rules: readonly Kind[]): readonly Kind[] {
  return rules.toSorted((left, right) => {
    if (left.priority === right.priority) return 0;
    return left.priority < right.priority ? -1 : 1;
  });
}

// Fields of an operator's rules: a value with its path, and parsers that report the expected value.

/** A value and its path: `fees[0].operatorMagnitude`; "" is the complete text. */
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

/** Characters of a value that a fault echoes. */
const echoedMax = 64;

/** A fault, as text for the operator. */
function fault({ path, value }: Field, expected: string): Failure {
  return malformed(`invalid value ${shownOf(value)} for ${path === "" ? "the rules" : path}: expected ${expected}`);
}

function malformed(reason: string): Failure {
  return new Failure("malformed_input", { reason });
}

function shownOf(value: WrittenJson): string {
  if (isWrittenList(value)) return "[…]";
  if (isWrittenObject(value)) return "{…}";
  return typeof value === "string" ? `'${value.slice(0, echoedMax)}'` : (numberText(value) ?? String(value));
}

/**
 * Parses an object. @param known - Its valid keys.
 * @throws Failure `malformed_input`, as all of these.
 */
function readFields(field: Field, known: readonly string[]): Fields {
  const stranger = keysOf(field).find((key) => !known.includes(key));
  if (stranger !== undefined)
    throw malformed(`unknown field ${pathOf(field, stranger)}: expected one of ${known.join(", ")}`);
  const find = (name: string): Field | undefined => {
    const value = memberOf(field.value, name);
    return value === undefined ? undefined : { value, path: pathOf(field, name) };
  };
  return {
    find,
    get: (name) => {
      const found = find(name);
      if (found === undefined) throw malformed(`missing field ${pathOf(field, name)}`);
      return found;
    },
  };
}

/** Parses an object whose keys the caller checks. */
function readEntries(field: Field): (readonly [string, Field])[] {
  return keysOf(field).map((key) => {
    const value = memberOf(field.value, key) ?? null;
    return [key, { value, path: pathOf(field, key) }] as const;
  });
}

function readList(field: Field): Field[] {
  if (!isWrittenList(field.value)) throw fault(field, "a list");
  if (field.value.length > itemsMax) throw fault(field, `a list of at most ${itemsMax} items`);
  return field.value.map((value, index) => ({ value, path: `${field.path}[${index}]` }));
}

function readText(field: Field): string {
  const { value } = field;
  if (typeof value !== "string" || value === "" || value.length > textLengthMax)
    throw fault(field, `a text of 1 to ${textLengthMax} characters`);
  return value;
}

function readFlag(field: Field): boolean {
  if (typeof field.value !== "boolean") throw fault(field, "true or false");
  return field.value;
}

function readOneOf<const Word extends string>(field: Field, words: readonly Word[]): Word {
  const word = words.find((each) => each === field.value);
  if (word === undefined) throw fault(field, `one of ${words.join(", ")}`);
  return word;
}

/** An integer, 0 or more, as a number or as text. */
function readWhole(field: Field): bigint {
  const text = digitsOf(field);
  if (text === undefined || !/^\d{1,18}$/.test(text)) throw fault(field, "an integer, 0 or more");
  return BigInt(text);
}

/** A decimal, as a number or as text; it is written without an exponent. */
function readMagnitude(field: Field): Magnitude {
  const value = readDecimal(digitsOf(field) ?? "");
  if (value === undefined) throw fault(field, 'a decimal such as 0.766 or "0.766"');
  const { over, under } = value;
  const sign = over < 0n ? "-" : "";
  const text = `${sign}${writeDecimal(rational(over < 0n ? -over : over, under), placesMax)}`;
  return { text, value };
}

const momentPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z$/;

/** A time: `2026-01-31T00:00:00Z`. @returns Unix milliseconds. */
function readMoment(field: Field): bigint {
  const { value } = field;
  const at = typeof value === "string" && momentPattern.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(at)) throw fault(field, "a time such as 2026-01-31T00:00:00Z");
  return BigInt(at);
}

function digitsOf({ value }: Field): string | undefined {
  return typeof value === "string" ? value : numberText(value);
}

function keysOf(field: Field): string[] {
  if (!isWrittenObject(field.value)) throw fault(field, "an object");
  return Object.keys(field.value);
}

function pathOf({ path }: Field, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}
