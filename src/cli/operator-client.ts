/**
 * Requests of the commands of operators to the admin API, and what these commands have in common.
 * @module
 */
import { misuse } from "../app/complaints.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../lib/json.ts";
import { invalidValue, jsonText } from "../lib/printable.ts";
import { grouped } from "../lib/quantity-text.ts";
import { print } from "./print.ts";
import { objectIn, openServiceClient, printRetry } from "./service-client.ts";
import { rowsText } from "./terminal.ts";

/** The options of every command of operators. */
export type OperatorOptions = Readonly<{
  /** The admin API, without a trailing slash. */
  url: string;
  adminKey: string | undefined;
  reason: string | undefined;
  operator: string | undefined;
  /** Idempotency key; a new one unless given. */
  key: string | undefined;
  json: boolean;
}>;

/** The admin API, open for one command. */
export type OperatorClient = Readonly<{
  /** @param path - Below `/svc/admin`. @throws Failure with the reason of any response but 200. */
  get: (path: string) => Promise<JsonObject>;
  post: (path: string, body: JsonObject) => Promise<JsonObject>;
}>;

/** Each request, with its repetitions. Milliseconds. */
const timeoutMs = 120_000;

/** Runs work with the admin API. @throws Misuse without a key. */
export async function withOperatorClient<Result>(
  { url, adminKey }: Pick<OperatorOptions, "url" | "adminKey">,
  work: (client: OperatorClient) => Promise<Result>,
): Promise<Result> {
  if (adminKey === undefined)
    throw misuse(
      "the admin key is missing: give --admin-key; without --gateway, ADMIN_API_KEY or the program's DATA_DIR do too",
    );
  const client = openServiceClient({ url, onRetry: printRetry });
  const headers = { authorization: `Bearer ${adminKey}` };
  try {
    return await work({
      get: async (path) =>
        objectIn(await client.get(`/svc/admin${path}`, AbortSignal.timeout(timeoutMs), headers), url),
      // Repetitions are safe: each body has its idempotency key.
      post: async (path, body) => {
        const bytes = new TextEncoder().encode(JSON.stringify(body));
        const signal = AbortSignal.timeout(timeoutMs);
        return objectIn(await client.post(`/svc/admin${path}`, bytes, headers, signal), url);
      },
    });
  } finally {
    client.close();
  }
}

/** Operator, reason and key of an action. @throws Misuse without a reason, or without a name. */
export function orderOf({ operator, reason, key }: OperatorOptions): JsonObject {
  if (reason === undefined || reason.trim() === "") throw misuse("--reason is missing: it is recorded with the action");
  if (operator === undefined || operator === "") throw misuse("--operator is missing, and this machine names no user");
  if (key !== undefined && !/^[0-9A-Za-z_.-]{1,100}$/.test(key))
    throw misuse(invalidValue("--key", key, "1 to 100 of A-Z, a-z, 0-9, '_', '.' and '-'"));
  return { operator, reason, idempotencyKey: key ?? crypto.randomUUID() };
}

/** Prints the key of an action before its request: after a lost response, it shows what happened. */
export function printKey({ idempotencyKey }: JsonObject): void {
  process.stderr.write(`idempotency key ${String(idempotencyKey)}\n`);
}

/** The query of a page. @throws Misuse. */
export function pageQuery(
  limit: string | undefined,
  after: string | undefined,
  more: Readonly<Record<string, string | undefined>> = {},
): string {
  if (limit !== undefined && !/^[1-9]\d{0,3}$/.test(limit))
    throw misuse(invalidValue("--limit", limit, "a whole number from 1"));
  const query = new URLSearchParams();
  if (limit !== undefined) query.set("limit", limit);
  if (after !== undefined) query.set("after", after);
  for (const [name, value] of Object.entries(more)) if (value !== undefined) query.set(name, value);
  return query.size === 0 ? "" : `?${query}`;
}

/** Prints a response as one line of JSON, or as text. */
export function printResponse(json: boolean, response: JsonObject, text: () => string): void {
  print(json ? `${jsonText(response)}\n` : text());
}

/** The records of a list. */
export function recordsOf(value: JsonValue | undefined): readonly JsonObject[] {
  return isJsonArray(value) ? value.filter(isJsonObject) : [];
}

/** The line after a page that is not the last. */
export function nextText({ next }: JsonObject): string {
  return typeof next === "string" ? rowsText([["more", `--after ${next}`]], 4) : "";
}

/** A signed amount of winc with thousands separators; a sum of balances has up to 77 digits. */
export function signedWincText(value: unknown): string {
  const [, sign, digits] = /^(-?)(\d{1,77})$/.exec(String(value)) ?? [];
  return digits === undefined ? "an unknown amount" : `${sign}${grouped(digits)} winc`;
}

/** A moment of a record. @param value - Unix milliseconds. */
export function momentText(value: unknown): string {
  const date = new Date(typeof value === "number" ? value : Number.NaN);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
