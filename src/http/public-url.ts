/**
 * The public address of a service, as its clients reach it.
 * Source: docs/reference/gateway.md#public-addresses.
 * @module
 */
import { contextOf } from "./request-context.ts";

/** Returns an address without a trailing slash; "" when only a relative address is safe. */
export type PublicUrl = (request: Request) => string;

export type PublicUrlOptions = Readonly<{
  /** The operator's setting, which takes precedence. */
  setting: string | undefined;
  port: () => number;
  /** Hosts of the listeners besides the loopback names of this machine. */
  ownHosts: readonly string[];
}>;

const loopbackHosts = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * The client chooses the Host header. It is repeated only if it is one of `ownHosts`; otherwise an attacker could
 * direct a page of another user to the attacker's address.
 */
export function createPublicUrl({ setting, port, ownHosts }: PublicUrlOptions): PublicUrl {
  const own = new Set([...loopbackHosts, ...ownHosts.map((host) => host.toLowerCase())]);
  const fixed = setting?.replace(/\/+$/, "");
  return (request) => {
    if (fixed !== undefined) return fixed;
    const { scheme, target } = contextOf(request);
    const host = target.host.replace(/:\d+$/, "").toLowerCase();
    return own.has(host) ? `${scheme}://${host}:${port()}` : "";
  };
}
