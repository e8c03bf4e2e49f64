/**
 * Parses settings that hold lists of addresses or filters.
 * @module
 */
import ipaddr from "ipaddr.js";
import { type Filter, readFilter } from "../arweave/filter.ts";
import type { Config } from "../config/settings.ts";
import { Failure } from "../failures.ts";
import { isJsonObject, type JsonValue, readJson } from "../lib/json.ts";
import { invalidValue } from "../lib/printable.ts";
import { readAddress } from "../payment/addresses.ts";
import { badSettings } from "./complaints.ts";

/** Parses a list of wallet addresses. @throws Misuse with every invalid address. */
export function readAddressList(name: string, texts: readonly string[]): ReadonlySet<string> {
  const read = texts.map((text) => ({ text, address: readAddress(text)?.address }));
  const complaints = read
    .filter(({ address }) => address === undefined)
    .map(({ text }) => `${name}: "${text}" is not a valid address`);
  if (complaints.length > 0) throw badSettings(complaints);
  return new Set(read.flatMap(({ address }) => (address === undefined ? [] : [address])));
}

/** A setting that lists Internet addresses and CIDR blocks. */
type AddressSetting = "TRUSTED_PROXIES" | "RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST";

type Block = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/** Creates the test whether an address is in a list of addresses and CIDR blocks. @throws Misuse for an invalid one. */
export function addressTest(trusted: readonly string[], setting: AddressSetting): (address: string) => boolean {
  const blocks = trusted.map((each) => readBlock(each, setting));
  if (blocks.length === 0) return () => false;
  return (address) => {
    if (!ipaddr.isValid(address)) return false;
    const read = ipaddr.process(address); // an IPv4-mapped IPv6 address counts as IPv4
    return blocks.some(([range, bits]) => range.kind() === read.kind() && read.match(range, bits));
  };
}

/** Creates the test for trusted proxies. @throws Misuse as {@link addressTest}. */
export function proxyTest(trusted: readonly string[]): (address: string) => boolean {
  return addressTest(trusted, "TRUSTED_PROXIES");
}

function readBlock(text: string, setting: AddressSetting): Block {
  // The library also reads "10" as 0.0.0.10 and "010.0.0.1" as 8.0.0.1.
  const [base = ""] = text.split("/");
  const isWhole = ipaddr.IPv4.isValidFourPartDecimal(base) || ipaddr.IPv6.isValid(base);
  if (isWhole && ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  if (!isWhole || !ipaddr.isValid(text)) throw badSettings([invalidValue(setting, text, "an address or a CIDR block")]);
  const address = ipaddr.process(text);
  return [address, address.kind() === "ipv4" ? 32 : 128];
}

/** A filter and its JSON. */
export type SetFilter = Readonly<{ filter: Filter; json: JsonValue }>;

export type SetFilters = Readonly<{
  unbundle: SetFilter;
  index: SetFilter;
  webhookIndex: SetFilter;
  webhookBlock: SetFilter;
}>;

type FilterName = "ANS104_UNBUNDLE_FILTER" | "ANS104_INDEX_FILTER" | "WEBHOOK_INDEX_FILTER" | "WEBHOOK_BLOCK_FILTER";

/** Parses all filters. @throws Misuse with the path of every fault. */
export function readFilters(config: Config): SetFilters {
  const complaints: string[] = [];
  const read = (name: FilterName): SetFilter => {
    try {
      const json = readJson(config[name]);
      if (!isJsonObject(json)) throw new Failure("malformed_input", { reason: "is not a JSON object" });
      return { filter: readFilter(config[name]), json };
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      complaints.push(`${name}: ${error.context["reason"]}`);
      return { filter: { kind: "never" }, json: null };
    }
  };
  const filters = {
    unbundle: read("ANS104_UNBUNDLE_FILTER"),
    index: read("ANS104_INDEX_FILTER"),
    webhookIndex: read("WEBHOOK_INDEX_FILTER"),
    webhookBlock: read("WEBHOOK_BLOCK_FILTER"),
  };
  if (complaints.length > 0) throw badSettings(complaints);
  return filters;
}
