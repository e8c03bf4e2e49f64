/**
 * The public address of a service, as its clients reach it.
 * Source: docs/reference/gateway.md#public-addresses.
 * @module
 */
import { contextOf } from "./request-context.ts";

/** Tells an address without a slash at its end; "" where only a relative one is safe. */
export type PublicUrl = (request: Request) => string;

export type PublicUrlOptions = Readonly<{
  /** The operator's setting, which takes precedence. */
  setting: string | undefined;
  /** The listener's. */
  port: () => number;
  /** Names under which the listeners are reached beside those of this machine itself. */
  ownHosts: readonly string[];
}>;

const loopbackHosts = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * Creates the teller.
 *
 * Host is what the caller writes: it is repeated only where it is a name of ours, or somebody's page could be sent to
 * an address of theirs.
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
