/**
 * A gateway in between that changes proofs and content, as a dishonest one would.
 * @module
 */
import type { ProofRecord } from "../../console/verify/proof-check.ts";

type Mutable<Record> = { -readonly [Name in keyof Record]: Record[Name] };

/** A proof and the content to it, to be changed. */
export type Changeable = Readonly<{
  proof: Mutable<ProofRecord>;
  /** Flips a bit of the content. */
  flipByte: (at: number) => void;
  /** Shortens the content, and what the proof says of its size. */
  cut: (proof: Mutable<ProofRecord>, size: number) => void;
  /** Appends bytes to the content. */
  lengthen: (bytes: number) => void;
}>;

export type ProofChange = (response: Changeable) => unknown;

/** A gateway that changes what it passes on; with `change` undefined, nothing. */
export type ChangingGateway = { readonly url: string; change: ProofChange | undefined; close(): Promise<void> };

/** Opens one before a gateway. */
export function openChangingGateway(gateway: string): ChangingGateway {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const { pathname } = new URL(request.url);
      const [, route, id] = /^\/(raw|svc\/proof)\/([^/]+)$/.exec(pathname) ?? [];
      const headers = { "Access-Control-Allow-Origin": "*" };
      const { change } = opened;
      const [content, proof] = await Promise.all(
        [`/raw/${id}`, `/svc/proof/${id}`].map((path) => fetch(`${gateway}${path}`)),
      );
      if (route === undefined || !content?.ok || !proof?.ok) return new Response(null, { status: 404, headers });
      let bytes = await content.bytes();
      const record: Mutable<ProofRecord> = await proof.json();
      change?.({
        proof: record,
        flipByte: (at) => bytes.set([(bytes[at] ?? 0) ^ 1], at),
        cut: (cutProof, size) => {
          bytes = bytes.slice(0, size);
          Object.assign(cutProof, { size, range: { start: 0, end: size } });
        },
        lengthen: (more) => {
          bytes = new Uint8Array(Buffer.concat([bytes, new Uint8Array(more)]));
        },
      });
      return route === "raw" ? new Response(bytes, { headers }) : Response.json(record, { headers });
    },
  });
  const opened: ChangingGateway = {
    url: `http://127.0.0.1:${server.port}`,
    change: undefined,
    close: () => server.stop(true),
  };
  return opened;
}
