/**
 * HTTP client of the commands: retries with backoff, and readable messages for failures.
 * @module
 */
import { misuse } from "../app/complaints.ts";
import { systemRandom } from "../app/random.ts";
import { Failure } from "../failures.ts";
import { type Fault, openHttp } from "../lib/http-client.ts";
import { isJsonObject, type JsonObject, type JsonValue, readJson } from "../lib/json.ts";
import { invalidValue, printable } from "../lib/printable.ts";
import { durationText } from "../lib/quantity-text.ts";
import { type RetryPlan, retryWaitMs } from "../lib/retry.ts";
import { sleep } from "../lib/stop.ts";

/** A response of any status below 500. */
export type ServiceResponse = Readonly<{
  status: number;
  /** The body as JSON; `undefined` for a body that is not JSON. */
  value: JsonValue | undefined;
  text: string;
}>;

/** A service. Failed requests are retried; the last failure is a Failure with a reason. */
export type ServiceClient = Readonly<{
  /** Without a trailing slash. */
  url: string;
  get: (path: string, signal: AbortSignal, headers?: Readonly<Record<string, string>>) => Promise<ServiceResponse>;
  post: (
    path: string,
    body: Uint8Array<ArrayBuffer>,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ) => Promise<ServiceResponse>;
  close: () => void;
}>;

export type ServiceClientOptions = Readonly<{
  url: string;
  /** Called before each retry. */
  onRetry?: (why: string, waitMs: number) => void;
  plan?: RetryPlan;
}>;

/** About a minute of retries: enough for a restart of the service or a short loss of the network. */
const defaultPlan: RetryPlan = { attempts: 8, firstMs: 500, longestMs: 15_000 };

/** A part of some megabytes may take minutes on a slow line. Milliseconds. */
const timeouts = { firstByteMs: 600_000, stallMs: 60_000, totalMs: 900_000 } as const;

/** Lists of parts are the longest responses. Bytes. */
const responseBytesMax = 8 * 2 ** 20;

/** Upper bound for `Retry-After`. Milliseconds. */
const retryAfterMsMax = 60_000;

/** Maximum length of a response text in a message. Characters. */
const shownMax = 300;

/** Reads the URL of a service. @throws Misuse for a text that is not an http or https URL. */
export function readServiceUrl(text: string, option = "--to"): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol))
    throw misuse(invalidValue(option, text, "an http or https URL"));
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** Prints a retry to standard error. */
export function printRetry(why: string, waitMs: number): void {
  process.stderr.write(`retry in ${durationText(waitMs)}: ${printable(why)}\n`);
}

/** Opens a client; `close` aborts all requests. */
export function openServiceClient(options: ServiceClientOptions): ServiceClient {
  const { url, plan = defaultPlan, onRetry = () => undefined } = options;
  const http = openHttp(timeouts);
  let wasReached = false;

  async function attempt(request: ServiceRequest, signal: AbortSignal): Promise<Attempt> {
    const { method, path, ...rest } = request;
    const response = await http.whole({ method, url: url + path, ...rest }, responseBytesMax, signal);
    if (response.kind === "fault") {
      // A service that never responded is not retried: the URL may be mistyped.
      const isFinal = response.reason === "connect" && !wasReached;
      return { kind: "fault", why: wordsOf(response), waitMs: 0, isFinal };
    }
    wasReached = true;
    const { status, headers, body } = response;
    if (status < 500 && ![408, 425, 429].includes(status)) {
      const text = new TextDecoder().decode(body);
      return { kind: "response", response: { status, value: readJson(text), text } };
    }
    const said = messageOf(new TextDecoder().decode(body));
    const why = `it responded ${status} ${said}`.trim();
    return { kind: "fault", why, waitMs: retryAfterMs(headers), isFinal: false };
  }

  async function ask(request: ServiceRequest, signal: AbortSignal): Promise<ServiceResponse> {
    for (let made = 1; ; made += 1) {
      const tried = await attempt(request, signal);
      if (tried.kind === "response") return tried.response;
      if (tried.isFinal || made >= plan.attempts)
        throw new Failure("source_failed", { reason: `${url} is unavailable: ${tried.why}` });
      const waitMs = Math.max(retryWaitMs(plan, made, systemRandom), tried.waitMs);
      onRetry(tried.why, waitMs);
      await sleep(waitMs, signal);
    }
  }

  return {
    url,
    get: (path, signal, headers = {}) => ask({ method: "GET", path, headers }, signal),
    post: (path, body, headers, signal) => ask({ method: "POST", path, body, headers }, signal),
    close: http.close,
  };
}

/** The JSON object of a 200 response. @throws Failure with the message of any other response. */
export function objectIn(response: ServiceResponse, url: string): JsonObject {
  if (response.status === 200 && isJsonObject(response.value)) return response.value;
  throw failedResponse(response, url);
}

/** Advice for missing credits. */
export const creditsHint = "buy some (cairn topup), then run this again";

/** The failure for a response that is not a success. */
export function failedResponse({ status, value, text }: ServiceResponse, url: string): Failure {
  if (status === 402 && isJsonObject(value) && value["needed"] !== undefined) {
    const { needed, available } = value;
    const amounts = `${shown(needed)} winc are needed, ${shown(available)} are available`;
    return new Failure("insufficient_balance", {
      reason: `not enough credits: ${amounts}; ${creditsHint}`,
      needed,
      available,
    });
  }
  const said = messageOf(text);
  return new Failure("source_failed", {
    reason: `${url} responded ${status}${said === "" ? "" : `: ${said}`}`,
    status,
  });
}

type ServiceRequest = Readonly<{
  method: "GET" | "POST";
  path: string;
  body?: Uint8Array<ArrayBuffer>;
  headers?: Readonly<Record<string, string>>;
}>;

type Attempt =
  | Readonly<{ kind: "response"; response: ServiceResponse }>
  | Readonly<{ kind: "fault"; why: string; waitMs: number; isFinal: boolean }>;

/** A value of a service for a message: bounded, in one line, without control characters. */
export function shown(value: JsonValue | undefined): string {
  return printable((typeof value === "string" ? value : JSON.stringify(value)) ?? "").slice(0, shownMax);
}

/** A URL of a service that a browser may open: http or https only, in normal form. */
export function webUrl(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && ["http:", "https:"].includes(url.protocol) ? url.href : undefined;
}

function wordsOf({ reason, detail: said }: Fault): string {
  const detail = shown(said);
  if (reason !== "connect") return `${reason}: ${detail}`;
  if (detail.includes("ECONNREFUSED")) return "connection refused";
  // The runtime adds advice for programmers.
  return `connection failed (${detail.replace(/\. For more information, pass .*$/, "")})`;
}

/** The message of a response: a JSON string, the `message` or `error` of an object, or the text. */
function messageOf(text: string): string {
  const value = readJson(text);
  const said = isJsonObject(value) ? (value["message"] ?? value["error"]) : value;
  return shown(typeof said === "string" ? said : text.trim());
}

function retryAfterMs(headers: Headers): number {
  const text = headers.get("retry-after");
  return text !== null && /^\d{1,6}$/.test(text) ? Math.min(Number(text) * 1_000, retryAfterMsMax) : 0;
}
