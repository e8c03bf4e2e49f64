/**
 * The address of the client, also behind proxies that the operator trusts. Headers of other peers are ignored.
 * Source: docs/reference/gateway.md#client-addresses; docs/reference/threats.md (S2).
 * @module
 */
import ipaddr from "ipaddr.js";

/** Longest chain of proxies. */
const proxiesMax = 16;

/**
 * Reads the client's address.
 *
 * @param peer - Address of the peer; "" when it is not known.
 * @param forwarded - The value of X-Forwarded-For, or null.
 * @param isTrusted - Whether an address is a trusted proxy.
 * @returns The last address that is not a trusted proxy; the last trusted proxy if it names no valid address.
 */
export function clientAddressOf(
  peer: string,
  forwarded: string | null,
  isTrusted: (address: string) => boolean,
): string {
  const hops = (forwarded ?? "").split(",").slice(-proxiesMax);
  let client = peer;
  while (isTrusted(client)) {
    const next = hops.pop()?.trim();
    if (next === undefined || !ipaddr.isValid(next)) return client;
    client = next;
  }
  return client;
}

/**
 * The part of an address that identifies one customer: of IPv6 the first 64 bits, because customers choose the rest.
 *
 * @returns The text itself when it is not a valid address.
 */
export function addressBlock(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const read = ipaddr.process(address); // an IPv4-mapped IPv6 address counts as IPv4
  return read instanceof ipaddr.IPv6 ? `${prefixOf(read)}::/64` : read.toString();
}

function prefixOf({ parts }: ipaddr.IPv6): string {
  return parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":");
}
