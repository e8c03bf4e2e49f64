/**
 * A socket that takes requests, in the clear or with a certificate that can be replaced while it runs.
 *
 * The runtime cannot give a running listener another certificate (`server.reload` keeps the first one), so a
 * second listener takes the same port and the first one takes no more connections. What is under way at the
 * first is finished there. In the instant of the change a connection whose handshake has not ended may be
 * reset; a caller that connects again gets through (measured: about one for each change at 700 new
 * connections a second).
 * Source: docs/decisions/040-tls.md.
 * @module
 */

import { allowCookies } from "./head.ts";

/** A certificate, with those that vouch for it, and its private key. PEM. */
export type Certificate = Readonly<{ cert: string; key: string }>;

type BunServer = ReturnType<typeof Bun.serve>;

export type ListenerOptions = Readonly<{
  hostname: string;
  /** 0 takes a free port. */
  port: number;
  /** With one, https by HTTP/1.1 and HTTP/2; without, http. */
  certificate: Certificate | undefined;
  /** Silence after which a connection is closed. Seconds. */
  silenceSecondsMax: number;
  /** Largest request body. Bytes. */
  bodyBytesMax: number;
  fetch: (request: Request, server: BunServer) => Response | Promise<Response>;
  error: (error: Error) => Response;
}>;

/** A socket that takes requests. */
export type Listener = Readonly<{
  port: number;
  /**
   * Uses another certificate for new connections.
   * @throws Error when they are no certificate and its key; then the old one stays.
   */
  renew: (certificate: Certificate) => void;
  /** Accepts no new connections, waits at most `graceMs` for responses, then cuts connections. */
  close: (graceMs: number) => Promise<void>;
}>;

/** Opens the socket. Throws when the port is taken, or when the certificate and the key do not belong together. */
export function openListener(options: ListenerOptions): Listener {
  checkPortFree(options.hostname, options.port);
  let current = serveAt(options, options.port, options.certificate);
  const port = current.port ?? options.port;
  const ending = new Set<BunServer>();
  const end = (server: BunServer) => {
    ending.add(server);
    return server.stop().then(() => ending.delete(server));
  };
  return {
    port,
    renew: (certificate) => {
      const before = current;
      current = serveAt(options, port, certificate);
      void end(before);
    },
    close: async (graceMs) => {
      const servers = [...ending, current];
      const cut = setTimeout(() => servers.forEach((server) => void server.stop(true)), graceMs);
      await Promise.all(servers.map((server) => server.stop()));
      clearTimeout(cut);
    },
  };
}

function serveAt(options: ListenerOptions, port: number, certificate: Certificate | undefined): BunServer {
  const { hostname, silenceSecondsMax, bodyBytesMax, fetch, error } = options;
  allowCookies();
  return Bun.serve({
    hostname,
    port,
    idleTimeout: silenceSecondsMax,
    maxRequestBodySize: bodyBytesMax,
    development: false,
    fetch,
    error,
    ...(certificate === undefined ? {} : { tls: certificate, http2: true, reusePort: true }),
  });
}

/**
 * Rejects a port that another program has. The runtime's server would share it with one of the same user without a
 * word, and either would get half of the connections (Bun 1.4.5, measured); its plain sockets do not.
 *
 * @param port - 0, which picks a free one, is never rejected.
 * @throws Error with the system's code when it is taken, or not allowed.
 */
export function checkPortFree(hostname: string, port: number): void {
  if (port !== 0) Bun.listen({ hostname, port, socket: { data: () => undefined } }).stop(true);
}

/** The host by which this machine reaches a listener on that address, as in a URL. */
export function reachableHost(hostname: string): string {
  if (hostname === "0.0.0.0" || hostname === "::") return "localhost";
  return hostname.includes(":") ? `[${hostname}]` : hostname;
}
