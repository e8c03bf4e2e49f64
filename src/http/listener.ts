/**
 * A socket that accepts requests, in the clear or with a certificate that can be replaced while it runs; and the
 * connections of its requests.
 *
 * The runtime cannot give a running listener another certificate (`server.reload` keeps the first one). A second
 * listener therefore takes the same port, and the first one accepts no more connections but completes the requests that
 * it has. At the moment of the change, a connection whose handshake has not ended may be reset; a client that connects
 * again succeeds (measured: about one reset for each change at 700 new connections a second).
 * Source: docs/decisions/040-tls.md.
 * @module
 */
import { type Connection, requestSummaryOf } from "./incoming-request.ts";
import { allowCookies } from "./request-limits.ts";
import { heldMemoryOf } from "./responses.ts";
import type { ListenerRequests } from "./responses-under-way.ts";

/** A certificate with its chain, and its private key. PEM. */
export type Certificate = Readonly<{ cert: string; key: string }>;

type BunServer = ReturnType<typeof Bun.serve>;

type ListenerOptions = Readonly<{
  hostname: string;
  /** 0 takes a free port. */
  port: number;
  /** With one, https by HTTP/1.1 and HTTP/2; without, http. */
  certificate: Certificate | undefined;
  /** Idle timeout of a connection. Seconds. */
  idleSecondsMax: number;
  /** Largest request body. Bytes. */
  bodyBytesMax: number;
  fetch: (request: Request, server: BunServer) => Response | Promise<Response>;
  error: (error: Error) => Response;
}>;

type Listener = Readonly<{
  port: number;
  /**
   * Uses another certificate for new connections.
   * @throws Error when the certificate and the key are invalid; the previous certificate stays in use.
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
  const { hostname, idleSecondsMax, bodyBytesMax, fetch, error } = options;
  allowCookies();
  return Bun.serve({
    hostname,
    port,
    idleTimeout: idleSecondsMax,
    maxRequestBodySize: bodyBytesMax,
    development: false,
    fetch,
    error,
    ...(certificate === undefined ? {} : { tls: certificate, http2: true, reusePort: true }),
  });
}

/**
 * Rejects a port that another program uses. The runtime's server would share the port with a program of the same user,
 * and each would get half of the connections (Bun 1.4.5, measured). Plain sockets do not share it.
 *
 * @param port - 0 picks a free port and is never rejected.
 * @throws Error with the system's code when the port is in use or not allowed.
 */
export function checkPortFree(hostname: string, port: number): void {
  if (port !== 0) Bun.listen({ hostname, port, socket: { data: () => undefined } }).stop(true);
}

/** The host by which this machine reaches a listener on that address, as in a URL. */
export function reachableHost(hostname: string): string {
  if (hostname === "0.0.0.0" || hostname === "::") return "localhost";
  return hostname.includes(":") ? `[${hostname}]` : hostname;
}

/** The connections of one listener, which uses a new server after each change of its certificate. */
type Connections = Readonly<{
  of: (arrived: Request, server: BunServer) => Connection;
  requestsAt: (server: BunServer) => ListenerRequests;
  /** Restores the idle timeout that a request extended, unless its response still waits for a source. */
  resetIdleTimeout: (arrived: Request, server: BunServer, response: Response) => void;
}>;

type ConnectionsOptions = Readonly<{
  isTrustedProxy: ((address: string) => boolean) | undefined;
  isEncrypted: boolean;
  /** Idle timeout of a connection. Seconds. */
  idleSeconds: number;
}>;

export function createConnections(options: ConnectionsOptions): Connections {
  const { isTrustedProxy, isEncrypted, idleSeconds } = options;
  const extended = new WeakSet<Request>();
  const listeners = new WeakMap<BunServer, ListenerRequests>();

  const connectionOf = (arrived: Request, server: BunServer): Connection => ({
    peerAddress: () => server.requestIP(arrived)?.address ?? "",
    isTrustedProxy: (address) => isTrustedProxy?.(address) ?? false,
    extendIdleTimeout: (seconds) => {
      extended.add(arrived);
      server.timeout(arrived, seconds);
    },
  });
  const openRequests = (server: BunServer): ListenerRequests => {
    const requests: ListenerRequests = {
      clientAddressOf: (request) => requestSummaryOf(request, connectionOf(request, server)).clientAddress(),
      isInFlight: (request) => server.requestIP(request) !== null,
      peerOf: (request) => server.requestIP(request) ?? undefined,
      isEncrypted,
    };
    listeners.set(server, requests);
    return requests;
  };

  return {
    of: connectionOf,
    requestsAt: (server) => listeners.get(server) ?? openRequests(server),
    resetIdleTimeout: (arrived, server, response) => {
      if (extended.delete(arrived) && heldMemoryOf(response)?.kind !== "stream") server.timeout(arrived, idleSeconds);
    },
  };
}
