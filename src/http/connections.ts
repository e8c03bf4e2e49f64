/**
 * What a listener knows of the connections of its requests, and how long they may be silent.
 * @module
 */
import { heldMemoryOf } from "./body-size.ts";
import { askerOf, type Connection } from "./receive.ts";
import type { ListenerRequests } from "./responses-under-way.ts";

type BunServer = ReturnType<typeof Bun.serve>;

/** The connections of one listener; it may be several servers one after another, as its certificate changes. */
export type Connections = Readonly<{
  of: (arrived: Request, server: BunServer) => Connection;
  requestsAt: (server: BunServer) => ListenerRequests;
  /** Ends the longer silence that a request allowed, unless its response still waits for a source. */
  endSilence: (arrived: Request, server: BunServer, response: Response) => void;
}>;

/** What connections are made of. */
export type ConnectionsOptions = Readonly<{
  isTrustedProxy: ((address: string) => boolean) | undefined;
  isEncrypted: boolean;
  /** Silence after which a connection is closed. Seconds. */
  silenceSeconds: number;
}>;

/** Creates the connections of one listener. */
export function createConnections(options: ConnectionsOptions): Connections {
  const { isTrustedProxy, isEncrypted, silenceSeconds } = options;
  const patient = new WeakSet<Request>();
  const listeners = new WeakMap<BunServer, ListenerRequests>();

  const connectionOf = (arrived: Request, server: BunServer): Connection => ({
    peerAddress: () => server.requestIP(arrived)?.address ?? "",
    isTrustedProxy: (address) => isTrustedProxy?.(address) ?? false,
    allowSilence: (seconds) => {
      patient.add(arrived);
      server.timeout(arrived, seconds);
    },
  });
  const openRequests = (server: BunServer): ListenerRequests => {
    const requests: ListenerRequests = {
      clientAddressOf: (request) => askerOf(request, connectionOf(request, server)).clientAddress(),
      isUnderWay: (request) => server.requestIP(request) !== null,
      peerOf: (request) => server.requestIP(request) ?? undefined,
      isEncrypted,
    };
    listeners.set(server, requests);
    return requests;
  };

  return {
    of: connectionOf,
    requestsAt: (server) => listeners.get(server) ?? openRequests(server),
    endSilence: (arrived, server, response) => {
      if (patient.delete(arrived) && heldMemoryOf(response)?.kind !== "stream") server.timeout(arrived, silenceSeconds);
    },
  };
}
