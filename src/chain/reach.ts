/**
 * Reaching machines whose addresses others gave: a name is resolved here, every address that it has is
 * checked, and the connection goes to the address that was checked, so that a name cannot mean one thing when
 * it is looked at and another when it is used.
 * Source: docs/reference/threats.md (S1).
 * @module
 */
import ipaddr from "ipaddr.js";
import { type Fault, fault, type Reach } from "../lib/http-client.ts";
import { untilStopped } from "../lib/stop.ts";

/** All addresses of a name. Rejects when it has none. */
export type Resolve = (name: string) => Promise<readonly string[]>;

/** Ports and addresses to which connections are permitted. */
export type ReachRules = Readonly<{
  /** Ports; others carry mail, databases and shells, which a peer has no business to name. */
  ports: readonly number[];
  /** Whether also addresses that are not of the public Internet. */
  allowsPrivate: boolean;
  resolve?: Resolve;
}>;

/** Asks as the rest of this machine does, its hosts file included. */
const resolveHere: Resolve = async (name) => {
  const { lookup } = process.getBuiltinModule("node:dns/promises");
  return (await lookup(name, { all: true })).map(({ address }) => address);
};

/** Makes a reach that keeps to its rules. */
export function createReach({ ports, allowsPrivate, resolve = resolveHere }: ReachRules): Reach {
  const allowed = new Set(ports);

  async function addressOf(hostname: string, signal: AbortSignal): Promise<string | Fault> {
    const addresses = await addressesOf(hostname, resolve, signal);
    if ("kind" in addresses) return addresses;
    const [first] = addresses;
    if (first === undefined) return fault("connect", `${hostname} has no address`);
    // A name with one address of each kind is a trap, whichever would be taken.
    const privateAddress = allowsPrivate ? undefined : addresses.find((address) => !isPublicAddress(address));
    return privateAddress === undefined
      ? first
      : fault("connect", `${hostname} is at ${privateAddress}, which is not public`);
  }

  return async (url, signal) => {
    const parsed = URL.parse(url);
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) return fault("connect", "no http or https URL");
    if (!allowed.has(portOf(parsed))) return fault("connect", `port ${portOf(parsed)} is not one that peers have`);
    const { host, hostname } = parsed;
    const address = await addressOf(hostname, signal);
    if (typeof address !== "string") return address;
    parsed.hostname = address.includes(":") ? `[${address}]` : address;
    return { kind: "reached", url: parsed.href, host, serverName: hostname };
  };
}

/** Creates a test of URLs that may not be reached, without resolving their names. */
export function createUrlGuard({ ports, allowsPrivate }: ReachRules): (url: URL) => boolean {
  return (url) => {
    const literal = literalOf(url.hostname);
    const isLiteral = ipaddr.isValid(literal);
    return !ports.includes(portOf(url)) || (isLiteral && !allowsPrivate && !isPublicAddress(literal));
  };
}

async function addressesOf(
  hostname: string,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<readonly string[] | Fault> {
  const literal = literalOf(hostname);
  if (ipaddr.isValid(literal)) return [literal];
  try {
    return await untilStopped(resolve(hostname), signal);
  } catch (error) {
    if (signal.aborted) return fault("timeout", `${hostname} was not resolved in time`);
    return fault("connect", `${hostname} cannot be resolved: ${error}`);
  }
}

function literalOf(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

/** Whether an address is one of the public Internet; an embedded address counts, or the whole is not public. */
export function isPublicAddress(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === "unicast";
}

/** The port of a URL, also when it is its scheme's own. */
export function portOf({ port, protocol }: URL): number {
  if (port !== "") return Number(port);
  return protocol === "https:" ? 443 : 80;
}
