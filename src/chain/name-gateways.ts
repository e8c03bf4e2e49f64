/**
 * Names as other gateways resolve them: a HEAD request for the name's address; the headers hold the result.
 *
 * A gateway's word is all there is to a name, so only gateways that an operator trusts are asked, and only what has
 * a response of the right shape is trusted.
 * Source: docs/reference/gateway.md#names-of-the-registry.
 * @module
 */
import { type Id, readId } from "../arweave/id.ts";
import { type Fault, fault, type HttpResponse, type HttpTimeouts, openHttp } from "../lib/http-client.ts";
import { askInOrder } from "./nodes.ts";

/** The record of a name, from a registry or an operator. */
export type NameRecord = Readonly<{
  id: Id;
  /** How long others may keep it. Seconds, 1 to {@link ttlSecondsMax}. */
  ttlSeconds: number;
  /** The process that the name belongs to. */
  processId?: string;
  /** The position of the record among those of its base name: 0 is the base name itself. */
  index?: number;
  /** How many undernames the base name may have. */
  limit?: number;
}>;

/** A gateway's response for a name. */
export type NameResponse =
  | Readonly<{ kind: "resolved"; record: NameRecord }>
  | Readonly<{ kind: "absent" }>
  | Readonly<{ kind: "rejected" }> // by that gateway's policy
  | Readonly<{ kind: "over limit" }> // beyond the limit of undernames; the record is not given
  | Fault;

/** Gateways that resolve names. */
export type NameGateways = Readonly<{
  /**
   * Asks one gateway after the other; absent only when all say so.
   *
   * @param name - Characters a–z, digits, "-" and "_" in lower case, at most 63.
   * @param hops - Gateways between the reader and this one.
   */
  ask: (name: string, hops: number, signal: AbortSignal) => Promise<NameResponse>;
  close: () => void;
}>;

/** The placeholder of the name in a gateway's address. */
export const namePlaceholder = "__NAME__";

/** Time to live of a name when the gateway states none. Seconds. */
export const ttlSecondsDefault = 900;

/** A day: names change, whatever their registry says. */
export const ttlSecondsMax = 86_400;

/** The next gateway is asked as well when one takes this part of its time. */
const hedgeAfterPart = 1 / 4;

/** A process id of any chain that registers names. */
const processIdPattern = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Opens gateways.
 *
 * @param templates - Their addresses, with {@link namePlaceholder} for the name: in the host, or in the path
 * of a gateway's resolver.
 * @param timeoutMs - Longest that one of them may take. Milliseconds.
 */
export function openNameGateways(templates: readonly string[], timeoutMs: number): NameGateways {
  const timeouts: HttpTimeouts = { firstByteMs: timeoutMs, stallMs: timeoutMs, totalMs: timeoutMs };
  const clients = templates.map((template) => ({ template, http: openHttp(timeouts) }));
  type Client = (typeof clients)[number];

  async function askOne(client: Client, name: string, hops: number, signal: AbortSignal) {
    const url = client.template.replaceAll(namePlaceholder, name);
    const headers = { "x-ar-io-hops": String(hops + 1) };
    const response = await client.http.whole({ method: "HEAD", url, headers }, 0, signal);
    return response.kind === "fault" ? response : readNameResponse(name, response);
  }

  return {
    ask: async (name, hops, signal) => {
      const { final, others } = await askInOrder(
        {
          sources: clients,
          ask: (client, own) => askOne(client, name, hops, own),
          isFinal: ({ kind }) => kind !== "absent" && kind !== "fault",
          hedgeAfterMs: () => timeoutMs * hedgeAfterPart,
        },
        signal,
      );
      return final ?? others.find(({ kind }) => kind === "fault") ?? { kind: "absent" };
    },
    close: () => {
      for (const { http } of clients) http.close();
    },
  };
}

/**
 * Reads a gateway's response for a name. A page for unregistered names may carry headers of its own name, so a response
 * other than success counts only when it names the requested name.
 */
function readNameResponse(name: string, { status, headers }: HttpResponse): NameResponse {
  if (status === 451) return { kind: "rejected" };
  const id = headers.get("x-arns-resolved-id");
  const isOfName = headers.get("x-arns-name")?.toLowerCase() === name;
  const isSuccess = status >= 200 && status < 300;
  if (id !== null && (isSuccess || isOfName)) return recordOf(id, headers);
  if (status === 402) return { kind: "over limit" };
  if (status === 404 || status === 410) return { kind: "absent" };
  return fault(isSuccess ? "malformed" : "status", `status ${status} without an id`, status);
}

function recordOf(text: string, headers: Headers): NameResponse {
  const id = readId(text);
  if (id === undefined) return fault("wrong", "X-ArNS-Resolved-Id is not a valid id");
  const processId = headers.get("x-arns-process-id") ?? "";
  const index = countOf(headers.get("x-arns-record-index"));
  const limit = countOf(headers.get("x-arns-undername-limit"));
  const ttl = countOf(headers.get("x-arns-ttl-seconds")) ?? ttlSecondsDefault;
  const record = {
    id,
    ttlSeconds: Math.min(Math.max(ttl, 1), ttlSecondsMax),
    ...(processIdPattern.test(processId) ? { processId } : {}),
    ...(index === undefined ? {} : { index }),
    ...(limit === undefined ? {} : { limit }),
  };
  return { kind: "resolved", record };
}

function countOf(text: string | null): number | undefined {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}
