/**
 * Names as other gateways resolve them: a HEAD to the address that a name has there, answered in headers.
 *
 * A gateway's word is all there is to a name, so only gateways that an operator trusts are asked, and only what has
 * the shape of an answer is believed.
 * Source: docs/reference/gateway.md#names-of-the-registry.
 * @module
 */
import { type Id, readId } from "../arweave/id.ts";
import { type Fault, fault, type HttpResponse, type HttpTimeouts, openHttp } from "../lib/http-client.ts";
import { askInOrder } from "./nodes.ts";

/** What a name stands for, as a registry or an operator says it. */
export type NameRecord = Readonly<{
  id: Id;
  /** How long others may keep it. Seconds, 1 to {@link ttlSecondsMax}. */
  ttlSeconds: number;
  /** The process that the name belongs to. */
  processId?: string;
  /** Where the record stands among those of its base name: 0 is the base name itself. */
  index?: number;
  /** How many undernames the base name may have. */
  limit?: number;
}>;

/** What is said of a name. */
export type NameResponse =
  | Readonly<{ kind: "resolved"; record: NameRecord }>
  | Readonly<{ kind: "absent" }>
  | Readonly<{ kind: "refused" }> // by that gateway's policy
  | Readonly<{ kind: "over limit" }> // one undername too many, and not told what it stands for
  | Fault;

/** Gateways that resolve names. */
export type NameGateways = Readonly<{
  /**
   * Asks one gateway after the other; absent only when all say so.
   *
   * @param name - Letters, digits, "-" and "_" in lower case, at most 63.
   * @param hops - How many gateways stand between the reader and us.
   */
  ask: (name: string, hops: number, signal: AbortSignal) => Promise<NameResponse>;
  close: () => void;
}>;

/** Stands for the name in a gateway's address. */
export const namePlaceholder = "__NAME__";

/** Seconds that a name is kept whose gateway does not say how long. */
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
 * @param templates - Their addresses, with {@link namePlaceholder} where the name stands: in the host, or in the path
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
    return response.kind === "trouble" ? response : readNameResponse(name, response);
  }

  return {
    ask: async (name, hops, signal) => {
      const { final, others } = await askInOrder(
        {
          sources: clients,
          ask: (client, own) => askOne(client, name, hops, own),
          isFinal: ({ kind }) => kind !== "absent" && kind !== "trouble",
          hedgeAfterMs: () => timeoutMs * hedgeAfterPart,
        },
        signal,
      );
      return final ?? others.find(({ kind }) => kind === "trouble") ?? { kind: "absent" };
    },
    close: () => {
      for (const { http } of clients) http.close();
    },
  };
}

/**
 * Reads what a gateway says of a name. A page for names that nobody has may carry headers of its own name, so other
 * answers than success count only where they say whose they are.
 */
function readNameResponse(name: string, { status, headers }: HttpResponse): NameResponse {
  if (status === 451) return { kind: "refused" };
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
  if (id === undefined) return fault("wrong", "X-ArNS-Resolved-Id is no id");
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
