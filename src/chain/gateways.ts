/**
 * Other gateways as sources of bytes: trusted gateways for content that cannot be proven, and complete bodies that the
 * caller checks. A gateway's claim alone never makes bytes verified.
 * Source: docs/reference/gateway.md#content-responses.
 * @module
 */
import type { GatewayAddress } from "../config/setting-readers.ts";
import { Failure } from "../failures.ts";
import { type Fault, failureOf, fault, type HttpStream, type HttpTimeouts, openHttp } from "../lib/http-client.ts";
import type { ByteSpan } from "../lib/range.ts";
import { type Hint, readHintHeaders } from "./hint.ts";
import type { NodeResponse } from "./node.ts";
import type { SourceStatus } from "./nodes.ts";
import { createSources, type SourceParts } from "./sources.ts";

/** Description of an id's content in the response of a gateway. */
export type GatewayContent = Readonly<{
  gateway: string; // its URL
  /** Whether an operator trusts it. */
  trusted: boolean;
  size: number; // bytes
  contentType: string | undefined;
  contentEncoding: string | undefined;
  /** The place of the item as the gateway states it; undefined for a transaction, or when it is not stated. */
  hint: Hint | undefined;
}>;

/** Several gateways. */
export type Gateways = Readonly<{
  urls: readonly string[];
  /**
   * Asks what an id's content is; absent only when all gateways say so.
   * @param check - Validates and converts the response; after fault `wrong`, the next gateway is asked.
   */
  find: <Value>(
    id: string,
    check: (said: GatewayContent, signal: AbortSignal) => Promise<NodeResponse<Value>>,
    signal: AbortSignal,
  ) => Promise<NodeResponse<Value>>;
  /**
   * Reads a span of an id's content from the gateway that said what it is, so that no two of them are mixed.
   * @throws Failure `source_failed`, `source_timeout` when it gives something else than the whole span.
   */
  read: (id: string, of: GatewayContent, span: ByteSpan, signal: AbortSignal) => AsyncIterable<Uint8Array>;
  /** Asks for a whole body of exactly `size` bytes; the next gateway when its `check` fails. */
  body: (
    id: string,
    size: number,
    check: (body: Uint8Array) => Promise<string | undefined>,
    signal: AbortSignal,
  ) => Promise<NodeResponse<Uint8Array>>;
  /** How each has done. */
  sourceStatus: () => readonly (SourceStatus & Readonly<{ url: string }>)[];
  close: () => void;
}>;

/** Time-outs for a gateway, which may have to fetch first. */
export const gatewayTimeoutsDefault: HttpTimeouts = {
  firstByteMs: 15_000,
  stallMs: 15_000,
  totalMs: 120_000,
};

/** Says that we ask for someone else, so that gateways that trust each other do not ask in circles. */
export const hopHeaders = { "x-ar-io-hops": "1" } as const;
const keepsCoding = true;

/** Opens gateways. @param random - in [0, 1). */
export function openGateways(
  addresses: readonly GatewayAddress[],
  parts: SourceParts & Readonly<{ timeouts?: HttpTimeouts }>,
): Gateways {
  const timeouts = parts.timeouts ?? gatewayTimeoutsDefault;
  const clients = addresses.map((each) => ({
    ...each,
    url: each.url.replace(/\/+$/, ""),
    http: openHttp(timeouts),
    // A stream is as slow as its reader: some of them must not delay the look-ups of others.
    streams: openHttp(timeouts),
  }));
  const sources = createSources(clients, parts);

  async function* read(
    id: string,
    of: GatewayContent,
    span: ByteSpan,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const client = clients.find(({ url }) => url === of.gateway);
    if (client === undefined) throw new Failure("source_failed", { id, reason: "no such gateway" });
    const isWhole = span.start === 0 && span.end === of.size;
    const range = isWhole ? {} : { range: `bytes=${span.start}-${span.end - 1}` };
    const url = `${client.url}/raw/${encodeURIComponent(id)}`;
    const asked = { method: "GET", url, headers: { ...hopHeaders, ...range }, keepsCoding } as const;
    const response = await client.streams.stream(asked, signal);
    if (response.kind === "fault") {
      if (response.reason !== "busy") sources.noteFault(client);
      throw failureOf(response, { id, gateway: client.url });
    }
    yield* exactly(response, span, of.size, isWhole, { id, gateway: client.url });
  }

  return {
    urls: clients.map(({ url }) => url),
    find: (id, check, signal) => sources.ask((client, own) => head(client, id, own), check, signal),
    read,
    body: (id, size, check, signal) =>
      sources.ask(
        (client, own) => whole(client, id, size, own),
        async (body) => {
          const untruth = await check(body);
          return untruth === undefined ? { kind: "ok", value: body } : fault("wrong", untruth);
        },
        signal,
      ),
    sourceStatus: () => clients.map((client) => ({ url: client.url, ...sources.sourceStatus(client) })),
    close: () => {
      for (const { http, streams } of clients) {
        http.close();
        streams.close();
      }
    },
  };
}

type HttpClient = GatewayAddress & Readonly<{ http: ReturnType<typeof openHttp> }>;

async function head(client: HttpClient, id: string, signal: AbortSignal): Promise<NodeResponse<GatewayContent>> {
  const url = `${client.url}/raw/${encodeURIComponent(id)}`;
  const response = await client.http.whole({ method: "HEAD", url, headers: hopHeaders, keepsCoding }, 0, signal);
  if (response.kind === "fault") return response;
  if (response.status !== 200) return otherStatus(response.status);
  const size = Number(response.headers.get("content-length") ?? "none");
  if (!Number.isSafeInteger(size) || size < 0) return fault("malformed", "no Content-Length", response.status);
  const value = {
    gateway: client.url,
    trusted: client.trusted,
    size,
    contentType: response.headers.get("content-type") ?? undefined,
    contentEncoding: response.headers.get("content-encoding") ?? undefined,
    hint: readHintHeaders(response.headers),
  };
  return { kind: "ok", value };
}

async function whole(
  client: HttpClient,
  id: string,
  size: number,
  signal: AbortSignal,
): Promise<NodeResponse<Uint8Array>> {
  const url = `${client.url}/raw/${encodeURIComponent(id)}`;
  const asked = { method: "GET", url, headers: hopHeaders, keepsCoding } as const;
  const response = await client.http.whole(asked, size, signal);
  if (response.kind === "fault") return response;
  if (response.status !== 200) return otherStatus(response.status);
  if (response.body.length !== size) return fault("wrong", `${response.body.length} of ${size} bytes`, response.status);
  return { kind: "ok", value: response.body };
}

/** Only 404 and 410 report an absence; 451 and 403 are the policy of one gateway. */
function otherStatus(status: number): NodeResponse<never> {
  if (status === 202) return { kind: "pending" };
  return status === 404 || status === 410 ? { kind: "absent" } : fault("status", `status ${status}`, status);
}

/** Gives the span's bytes, all of them and no other. */
async function* exactly(
  response: HttpStream,
  span: ByteSpan,
  size: number,
  isWhole: boolean,
  context: Readonly<Record<string, unknown>>,
): AsyncGenerator<Uint8Array> {
  const problem = headProblem(response, span, size, isWhole);
  if (problem !== undefined) {
    response.cancel();
    throw failureOf(problem, context);
  }
  let left = span.end - span.start;
  for await (const piece of response.body) {
    left -= piece.length;
    if (left < 0) throw failureOf(fault("wrong", "more bytes than the span has"), context);
    yield piece;
  }
  if (left > 0) throw failureOf(fault("cut", `${left} bytes are missing`), context);
}

function headProblem(response: HttpStream, span: ByteSpan, size: number, isWhole: boolean): Fault | undefined {
  const { status, headers } = response;
  if (isWhole) return status === 200 ? undefined : fault("status", `status ${status}`, status);
  if (status !== 206) return fault("status", `status ${status} to a range`, status);
  const wanted = `bytes ${span.start}-${span.end - 1}/${size}`;
  const got = headers.get("content-range") ?? "none";
  return got === wanted ? undefined : fault("wrong", `Content-Range ${got}`, status);
}
