/**
 * The requests of the mixed load: each is counted, and each wrong response by its fault, with the first one's text.
 * @module
 */

/** The counts of a load so far. */
export type LoadCounts = Readonly<{
  requests: Readonly<Record<string, number>>;
  /** Number of requests that were sent again, because a connection was closed. */
  resent: number;
  /** Number and first text of each fault. */
  errors: ReadonlyMap<string, Readonly<{ count: number; first: string }>>;
}>;

type Reply = Readonly<{ response: Response; body: Uint8Array<ArrayBuffer> }>;

export type LoadClient = Readonly<{
  /** Sends a request and reads its response; returns `undefined` for a status that is not one of `statuses`. */
  ask: (what: string, url: string, init?: RequestInit, statuses?: readonly number[]) => Promise<Reply | undefined>;
  /** Counts a fault. */
  wrong: (what: string, detail: string) => void;
  counts: () => LoadCounts;
}>;

/** Timeout of a request. Milliseconds. */
const requestTimeoutMs = 60_000;

const detailCharactersMax = 300;

/** @param stopping - Ends the requests under way. */
export function createLoadClient(stopping: AbortSignal): LoadClient {
  const requests: Record<string, number> = {};
  const errors = new Map<string, { count: number; first: string }>();
  let resent = 0;
  const count = (what: string) => {
    requests[what] = (requests[what] ?? 0) + 1;
  };
  const wrong = (what: string, detail: string) => {
    const error = errors.get(what) ?? { count: 0, first: detail.slice(0, detailCharactersMax) };
    error.count += 1;
    errors.set(what, error);
  };
  return {
    ask: async (what, url, init = {}, statuses = [200]) => {
      count(what);
      const signal = AbortSignal.any([stopping, AbortSignal.timeout(requestTimeoutMs)]);
      const send = async () => {
        const response = await fetch(url, { redirect: "manual", ...init, signal });
        return { response, body: await response.bytes() };
      };
      const reply = await send().catch((error) => {
        // A server may close an idle connection at the moment at which a client uses it again. Each request here may
        // be sent twice: an item and a part are stored once, and a paid session takes no second payment.
        if (errorCode(error) !== "ECONNRESET") throw error;
        resent += 1;
        return send();
      });
      if (statuses.includes(reply.response.status)) return reply;
      wrong(`${what}: ${reply.response.status}`, `${url} ${Buffer.from(reply.body).toString()}`);
      return undefined;
    },
    wrong,
    counts: () => ({ requests, resent, errors }),
  };
}

/** Parses a body as JSON. */
export function jsonOf({ body }: Reply) {
  return JSON.parse(Buffer.from(body).toString());
}

function errorCode(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
