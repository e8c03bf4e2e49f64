/**
 * A socket before a node on which, with random faults from a seed: chunks and transactions that get a response as
 * taken and go nowhere, and data roots that are forgotten amid their chunks.
 * @module
 */
import { isJsonObject, readJson } from "../../src/lib/json.ts";
import type { Random } from "./random.ts";

/** The random faults. */
export type ProxyFaults = Readonly<{
  /** Share of chunks that go nowhere. */
  chunksDropped: number;
  /** So many transactions go nowhere, the first ones. */
  txsDropped: number;
  /** So many data roots are forgotten after their first chunk, until their transaction is posted again. */
  rootsForgotten: number;
}>;

/** The proxy. */
export type FaultyProxy = Readonly<{
  url: string;
  /** What was lost so far. */
  lost: { chunks: number; txs: number; roots: number };
  /** From now on nothing is lost, or something else. */
  setFaults: (faults: ProxyFaults) => void;
  /** Sends what comes to another node. */
  setTarget: (url: string) => void;
  close: () => Promise<void>;
}>;

/** Nothing is lost. */
export const noFaults: ProxyFaults = { chunksDropped: 0, txsDropped: 0, rootsForgotten: 0 };

/** Opens it. @param target - The node behind it. */
export function openFaultyProxy(target: string, random: Random, first: ProxyFaults): FaultyProxy {
  let node = target;
  let faults = first;
  const lost = { chunks: 0, txs: 0, roots: 0 };
  /** Roots that were forgotten, and whether their transaction has come again since. */
  const forgotten = new Map<string, boolean>();

  function decideTx(text: string): Response | undefined {
    const fields = readJson(text);
    const root = isJsonObject(fields) ? String(fields["data_root"]) : "";
    if (lost.txs < faults.txsDropped) {
      lost.txs += 1;
      return new Response("OK");
    }
    if (forgotten.has(root)) forgotten.set(root, true);
    return undefined;
  }

  function decideChunk(text: string): Response | undefined {
    const fields = readJson(text);
    const root = isJsonObject(fields) ? String(fields["data_root"]) : "";
    if (!forgotten.has(root) && lost.roots < faults.rootsForgotten) {
      lost.roots += 1;
      forgotten.set(root, false);
      // The first one is taken, and is gone with the root.
      return new Response("");
    }
    if (forgotten.get(root) === false) return Response.json({ error: "data_root_not_found" }, { status: 400 });
    if (!random.chance(faults.chunksDropped)) return undefined;
    lost.chunks += 1;
    return new Response("");
  }

  const server = Bun.serve({
    port: 0,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      const body = request.method === "POST" ? await request.text() : undefined;
      const isTx = pathname === "/tx" && body !== undefined;
      const isChunk = pathname === "/chunk" && body !== undefined;
      const decided = isTx ? decideTx(body) : isChunk ? decideChunk(body) : undefined;
      if (decided !== undefined) return decided;
      const { method, headers } = request;
      return await fetch(`${node}${pathname}${search}`, {
        method,
        headers,
        ...(body !== undefined && { body }),
      });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    lost,
    setFaults: (next) => {
      faults = next;
    },
    setTarget: (next) => {
      node = next;
    },
    close: () => server.stop(true),
  };
}
