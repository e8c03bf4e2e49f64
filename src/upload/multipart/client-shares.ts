/**
 * Shares of something limited: how many each client holds, so that none holds all.
 *
 * Kept in memory only: addresses of clients are not written down, and a restart begins anew.
 * @module
 */
import { Failure } from "../../failures.ts";

/** What clients hold. */
export type ClientShares = Readonly<{
  /** Notes that a client holds a thing. @throws Failure `too_many_requests` when it holds as many as one may. */
  take: (client: string, thing: string) => void;
  /** Notes that nobody holds a thing any more. */
  release: (thing: string) => void;
}>;

/** Creates shares. @param perClientMax - Things that one client may hold. */
export function createClientShares(perClientMax: number): ClientShares {
  const counts = new Map<string, number>();
  const holders = new Map<string, string>();
  return {
    take: (client, thing) => {
      const count = counts.get(client) ?? 0;
      if (count >= perClientMax) throw new Failure("too_many_requests", { client, count });
      counts.set(client, count + 1);
      holders.set(thing, client);
    },
    release: (thing) => {
      const client = holders.get(thing);
      if (client === undefined) return;
      holders.delete(thing);
      const left = (counts.get(client) ?? 1) - 1;
      if (left === 0) counts.delete(client);
      else counts.set(client, left);
    },
  };
}
