/**
 * Which addresses are proxies of ours, whose word about the client is believed.
 * @module
 */
import ipaddr from "ipaddr.js";
import { misuse } from "./complaints.ts";

type Block = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/**
 * Makes the test for a list of addresses and CIDR blocks.
 *
 * @throws Misuse when one of them is neither.
 */
export function proxyTest(trusted: readonly string[]): (address: string) => boolean {
  const blocks = trusted.map(readBlock);
  if (blocks.length === 0) return () => false;
  return (address) => {
    if (!ipaddr.isValid(address)) return false;
    const read = ipaddr.process(address); // an IPv4 address in IPv6 clothes counts as what it is
    return blocks.some(([range, bits]) => range.kind() === read.kind() && read.match(range, bits));
  };
}

function readBlock(text: string): Block {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  if (!ipaddr.isValid(text))
    throw misuse(`Bad settings:\n  TRUSTED_PROXIES must list addresses or CIDR blocks, got "${text}"`);
  const address = ipaddr.process(text);
  return [address, address.kind() === "ipv4" ? 32 : 128];
}
