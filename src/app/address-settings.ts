/**
 * Settings that list addresses: accounts of payments, and Internet addresses of proxies and of clients without a limit.
 * @module
 */
import ipaddr from "ipaddr.js";
import { invalidValue } from "../lib/printable.ts";
import { readAddress } from "../payment/addresses.ts";
import { badSettings } from "./complaints.ts";

/**
 * Reads the addresses of a setting.
 *
 * @param name - The setting's, for the complaint.
 * @throws Misuse that names every text which is no address.
 */
export function readAddressList(name: string, texts: readonly string[]): ReadonlySet<string> {
  const read = texts.map((text) => ({ text, address: readAddress(text)?.address }));
  const complaints = read
    .filter(({ address }) => address === undefined)
    .map(({ text }) => `${name}: "${text}" is no address`);
  if (complaints.length > 0) throw badSettings(complaints);
  return new Set(read.flatMap(({ address }) => (address === undefined ? [] : [address])));
}

/** A setting that lists addresses. */
type AddressSetting = "TRUSTED_PROXIES" | "RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST";

type Block = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/**
 * Makes the test for a list of addresses and CIDR blocks.
 *
 * @throws Misuse when one of them is neither.
 */
export function addressTest(trusted: readonly string[], setting: AddressSetting): (address: string) => boolean {
  const blocks = trusted.map((each) => readBlock(each, setting));
  if (blocks.length === 0) return () => false;
  return (address) => {
    if (!ipaddr.isValid(address)) return false;
    const read = ipaddr.process(address); // an IPv4 address in IPv6 clothes counts as what it is
    return blocks.some(([range, bits]) => range.kind() === read.kind() && read.match(range, bits));
  };
}

/** The test for proxies. @throws Misuse when one of them is neither address nor block. */
export function proxyTest(trusted: readonly string[]): (address: string) => boolean {
  return addressTest(trusted, "TRUSTED_PROXIES");
}

function readBlock(text: string, setting: AddressSetting): Block {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  if (!ipaddr.isValid(text)) throw badSettings([invalidValue(setting, text, "an address or a CIDR block")]);
  const address = ipaddr.process(text);
  return [address, address.kind() === "ipv4" ? 32 : 128];
}
