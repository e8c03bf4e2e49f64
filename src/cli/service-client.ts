/**
 * Asking a service over HTTP for a command: again with patience where that may help, and in words for people where
 * it does not.
 * @module
 */

import { misuse } from "../app/complaints.ts";
import { systemRandom } from "../app/random.ts";
import { Failure } from "../failures.ts";
import { type Fault, openHttp } from "../lib/http-client.ts";
import { isJsonObject, type JsonObject, type JsonValue, readJson } from "../lib/json.ts";
import { printable } from "../lib/printable.ts";
import { type RetryPlan, retryWaitMs } from "../lib/retry.ts";
import { sleep } from "../lib/stop.ts";
import { durationText } from "./quantities.ts";

/** An answer, whatever its status. */
export type ServiceResponse = Readonly<{
  status: number;
  /** Its JSON; `undefined` for an answer that is none. */
  value: JsonValue | undefined;
  text: string;
}>;

/** A service. It is asked again while it is in trouble; trouble that lasts is a Failure with a reason. */
export type ServiceClient = Readonly<{
  /** Without a slash at its end. */
  url: string;
  get: (path: string, signal: AbortSignal) => Promise<ServiceResponse>;
  post: (
    path: string,
    body: Uint8Array<ArrayBuffer>,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ) => Promise<ServiceResponse>;
  close: () => void;
}>;

/** How a service is asked. */
export type ServiceClientOptions = Readonly<{
  url: string;
  /** Tells of each attempt that is made again. */
  onRetry?: (why: string, waitMs: number) => void;
  plan?: RetryPlan;
}>;

/** About a minute of trouble is sat out: a service that is started anew, or a line that is lost for a moment. */
const usualPlan: RetryPlan = { attempts: 8, firstMs: 500, longestMs: 15_000 };

/** A part of some megabytes may take minutes on a slow line. Milliseconds. */
const timeouts = { firstByteMs: 600_000, stallMs: 60_000, totalMs: 900_000 } as const;

/** Lists of parts are the longest answers. Bytes. */
const responseBytesMax = 8 * 2 ** 20;

/** What a service asks callers to wait is believed up to this. Milliseconds. */
const askedWaitMsMax = 60_000;

/** Of an answer that cannot be read, what is shown. Characters. */
const saidMax = 300;

/**
 * Reads the address of a service as it was typed.
 *
 * @throws Misuse when it is no http or https URL.
 */
export function readServiceUrl(text: string, option = "--to"): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol))
    throw misuse(`${option} must be an http or https URL, got "${text}"`);
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** Tells whoever waits at a terminal why. */
export function sayRetry(why: string, waitMs: number): void {
  process.stderr.write(`again in ${durationText(waitMs)}: ${printable(why)}\n`);
}

/** Opens a client; its `close` ends every call. */
export function openServiceClient(options: ServiceClientOptions): ServiceClient {
  const { url, plan = usualPlan, onRetry = () => undefined } = options;
  const http = openHttp(timeouts);
  let wasReached = false;

  async function attempt(request: Asked, signal: AbortSignal): Promise<Tried> {
    const { method, path, ...rest } = request;
    const response = await http.whole({ method, url: url + path, ...rest }, responseBytesMax, signal);
    if (response.kind === "trouble") {
      // Where nobody has ever answered, nobody is expected: waiting would only hide a mistyped address.
      const isFinal = response.reason === "connect" && !wasReached;
      return { kind: "trouble", why: wordsOf(response), waitMs: 0, isFinal };
    }
    wasReached = true;
    const { status, headers, body } = response;
    if (status < 500 && ![408, 425, 429].includes(status)) {
      const text = new TextDecoder().decode(body);
      return { kind: "answer", response: { status, value: readJson(text), text } };
    }
    const said = saidBy(new TextDecoder().decode(body));
    const why = `it answered ${status} ${said}`.trim();
    return { kind: "trouble", why, waitMs: askedWaitMs(headers), isFinal: false };
  }

  async function ask(request: Asked, signal: AbortSignal): Promise<ServiceResponse> {
    for (let made = 1; ; made += 1) {
      const tried = await attempt(request, signal);
      if (tried.kind === "answer") return tried.response;
      if (tried.isFinal || made >= plan.attempts)
        throw new Failure("source_failed", { reason: `${url} cannot be used: ${tried.why}` });
      const waitMs = Math.max(retryWaitMs(plan, made, systemRandom), tried.waitMs);
      onRetry(tried.why, waitMs);
      await sleep(waitMs, signal);
    }
  }

  return {
    url,
    get: (path, signal) => ask({ method: "GET", path }, signal),
    post: (path, body, headers, signal) => ask({ method: "POST", path, body, headers }, signal),
    close: http.close,
  };
}

/** The object of a good answer. @throws Failure with what the service said instead. */
export function objectIn(response: ServiceResponse, url: string): JsonObject {
  if (response.status === 200 && isJsonObject(response.value)) return response.value;
  throw refusal(response, url);
}

/** What helps against want of credits. */
export const creditsHint = "buy some (cairn topup), then run this again";

/** Why a service did not do what it was asked. */
export function refusal({ status, value, text }: ServiceResponse, url: string): Failure {
  if (status === 402 && isJsonObject(value) && value["needed"] !== undefined) {
    const { needed, available } = value;
    const amounts = `${shown(needed)} winc are needed, ${shown(available)} are there`;
    return new Failure("insufficient_balance", {
      reason: `not enough credits: ${amounts}; ${creditsHint}`,
      needed,
      available,
    });
  }
  const said = saidBy(text);
  return new Failure("source_failed", {
    reason: `${url} answered ${status}${said === "" ? "" : `: ${said}`}`,
    status,
  });
}

type Asked = Readonly<{
  method: "GET" | "POST";
  path: string;
  body?: Uint8Array<ArrayBuffer>;
  headers?: Readonly<Record<string, string>>;
}>;

type Tried =
  | Readonly<{ kind: "answer"; response: ServiceResponse }>
  | Readonly<{ kind: "trouble"; why: string; waitMs: number; isFinal: boolean }>;

/** A value of another machine as it is shown: bounded, and in one line that a terminal does not obey. */
export function shown(value: JsonValue | undefined): string {
  return printable((typeof value === "string" ? value : JSON.stringify(value)) ?? "").slice(0, saidMax);
}

/** An address of another machine, to be opened in a browser: nothing but http and https, written as URLs are. */
export function webUrl(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && ["http:", "https:"].includes(url.protocol) ? url.href : undefined;
}

function wordsOf({ reason, detail: said }: Fault): string {
  const detail = shown(said);
  if (reason !== "connect") return `${reason}: ${detail}`;
  if (detail.includes("ECONNREFUSED")) return "nobody answers there";
  // The runtime adds advice for programmers.
  return `it cannot be reached (${detail.replace(/\. For more information, pass .*$/, "")})`;
}

/** The message of an answer: a JSON string, or the `message` or `error` of an object, or whatever it says. */
function saidBy(text: string): string {
  const value = readJson(text);
  const said = isJsonObject(value) ? (value["message"] ?? value["error"]) : value;
  return shown(typeof said === "string" ? said : text.trim());
}

function askedWaitMs(headers: Headers): number {
  const text = headers.get("retry-after");
  return text !== null && /^\d{1,6}$/.test(text) ? Math.min(Number(text) * 1_000, askedWaitMsMax) : 0;
}
