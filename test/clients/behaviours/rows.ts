/**
 * Behaviours as rows: a request, the response of Cairn, and the line of docs/compatibility.md that decides it.
 * @module
 */
import type { Fixture } from "./fixture.ts";

/** Suites of other projects whose behaviours the rows cover, in words and requests of our own. */
export const suites = [
  "arlocal",
  "arweave-js",
  "ardrive-core-js",
  "ar-io-node end-to-end",
  "wayfinder-core",
  "turbo-sdk",
  "payment service",
  "upload service",
  "graphql-http",
] as const;

/** A suite. */
export type Suite = (typeof suites)[number];

/** A response, as far as a row says what it is. */
export type Expected = Readonly<{
  status: number;
  /** Whole values, patterns, or null for a header that must be absent. */
  headers?: Readonly<Record<string, string | RegExp | null>>;
  /** The whole body. */
  text?: string | RegExp;
  /** The whole body as JSON; matchers of bun:test may are in it. */
  json?: unknown;
  /** A part of the body as JSON. */
  has?: object;
}>;

/** A request: a path means GET at the row's service. */
export type Asked = Readonly<{ path: string } & Pick<RequestInit, "method" | "body" | "headers">>;

/** Where a request goes. */
export type Service = "gateway" | "node" | "payment" | "upload";

/** One behaviour. `same: false` where the server that the suite was written for is known to respond otherwise. */
export type Behaviour = Readonly<{
  /** The request, as the end of a sentence. */
  name: string;
  on: Service;
  ask: (fixture: Fixture) => Asked | string;
  expect: Expected | ((fixture: Fixture) => Expected);
  /** The line of docs/compatibility.md. */
  line: string;
  same: boolean;
}>;

/** A suite's rows. */
export type Table = Readonly<{ suite: Suite; rows: readonly Behaviour[] }>;

type Short = readonly [name: string, line: string, ask: Behaviour["ask"] | Asked | string, expect: Behaviour["expect"]];

function row(on: Service, [name, line, ask, expect]: Short, same: boolean): Behaviour {
  return { name, on, line, expect, same, ask: typeof ask === "function" ? ask : () => ask };
}

/** Rows of whose response nothing else is known. */
export function alike(on: Service, ...rows: readonly Short[]): Behaviour[] {
  return rows.map((short) => row(on, short, true));
}

/** Rows to which the server that the suite was written for responds otherwise. */
export function unlike(on: Service, ...rows: readonly Short[]): Behaviour[] {
  return rows.map((short) => row(on, short, false));
}

/** A request with a JSON body. */
export function posted(path: string, body: unknown, headers: Record<string, string> = {}): Asked {
  return {
    path,
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  };
}

/** A request with bytes. */
export function sent(path: string, bytes: Uint8Array, headers: Record<string, string> = {}): Asked {
  return { path, method: "POST", headers, body: Uint8Array.from(bytes) };
}

/** A message of the services: a JSON string. */
export function message(status: number, text: string): Expected {
  return { status, json: text, headers: { "content-type": "application/json; charset=utf-8" } };
}

/** Bare text, as of a node. */
export function bare(status: number, text: string | RegExp): Expected {
  return { status, text, headers: { "content-type": "text/plain; charset=utf-8" } };
}
