/**
 * Texts that no program expects in every parameter, query and body of every service: NUL, invalid UTF-8, lone
 * surrogates, escapes that are none, very long ones. None of them is a 5xx: what is wrong is the request.
 *
 * The table is made from the documents that the services publish, on each database of LEDGER_KINDS; the routes of the
 * development node and the sandbox, which publish none, are listed here.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { describeWith } from "../support/helpers.ts";
import { ledgerKinds, type TestLedger } from "../support/ledger-databases.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { testItem } from "../support/upload.ts";
import { isRecord } from "../support/wrong-values.ts";

type Parameter = Readonly<{ name: string; in: string; example?: unknown; schema: Record<string, unknown> }>;
type Operation = Readonly<{
  parameters?: readonly Parameter[];
  requestBody?: Readonly<{ content: Readonly<Record<string, Readonly<{ example?: unknown }>>> }>;
}>;
type Reference = Readonly<{ paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> }>;
type Sent = Readonly<{
  method: string;
  url: string;
  type?: string;
  body?: string;
  headers?: Readonly<Record<string, string>>;
}>;

/** An id with a NUL in place of its last character: as long as an id, and none. */
const nearlyId = `${"A".repeat(42)}%00`;

/** Parts of an address, as they are sent. */
const oddParts = [
  "%00",
  "a%00b",
  nearlyId,
  `-1%00`,
  "1%00",
  "%01",
  "%0A",
  "%0d%0ax:y",
  "%7F",
  "%C2%80",
  "%EF%BF%BF",
  "%FF",
  "%C0%80",
  "%E2%82",
  "%ED%A0%80",
  "%ED%A0%80%ED%B0%80",
  "%F4%90%80%80",
  "%",
  "%4",
  "%zz",
  "%u0000",
  "%F0%9F%92%A9",
  "e%CC%81",
  "%E2%80%AE",
  "%2F",
  "..%2F..%2Fetc",
  "%2e%2e",
  "%5C",
  "%22%27%60",
  "__proto__",
  "constructor",
  "-1",
  "0x10",
  "1e400",
  "NaN",
  "9".repeat(400),
  "A".repeat(8_000),
  "%F0%9F%92%A9".repeat(500),
];

/** Texts in bodies. */
const oddTexts = ["\u0000", "a\u0000b", "\ud800", "a\udc00b", "\uffff", "\u202e", "__proto__", "a".repeat(20_000)];

/** Routes of the development node and of the sandbox, by their parameters' places. */
const nodeRoutes = [
  "/{name}",
  "/block/{by}/{id}/{field}",
  "/block/hash/{hash}",
  "/block/height/{height}",
  "/block/height/{height}/wallet/{address}/balance",
  "/block_index/{from}/{to}",
  "/chunk/{offset}",
  "/chunk2/{offset}",
  "/chunk_proof/{offset}",
  "/hash_list/{from}/{to}",
  "/inflation/{height}",
  "/mint/{address}/{amount}",
  "/mine/{count}",
  "/optimistic_price/{size}/{target}",
  "/price/{size}/{target}",
  "/price2/{size}/{target}",
  "/v2price/{size}/{target}",
  "/tx/{id}",
  "/tx/{id}/{field}",
  "/tx/{id}/offset",
  "/tx/{id}/status",
  "/unconfirmed_chunk/{id}/{offset}",
  "/unconfirmed_tx/{id}",
  "/wallet/{address}/balance",
  "/wallet/{address}/last_tx",
  "/wallet/{address}/reserved_rewards_total",
];
const nodePosts = ["/tx", "/chunk", "/unsigned_tx", "/peers", "/mine/{count}", "/mint/{address}/{amount}"];
const sandboxRoutes = ["/c/pay/{id}", "/v1/checkout/sessions/{id}", "/v1/payment_intents/{id}", "/v1/refunds/{id}"];

/** A payment in the form of x402, by any signer. */
const samplePayment = {
  x402Version: 1,
  scheme: "exact",
  network: "base-sepolia",
  payload: {
    signature: `0x${"1".repeat(130)}`,
    authorization: {
      from: `0x${"2".repeat(40)}`,
      to: `0x${"1".repeat(40)}`,
      value: "1000000",
      validAfter: "0",
      validBefore: "99999999999",
      nonce: `0x${"3".repeat(64)}`,
    },
  },
};
const base64Of = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");

for (const { name, need, open } of ledgerKinds())
  describeWith(need, `odd texts, with the ledger on ${name}`, () => {
    let program: RunningProgram;
    let ledger: TestLedger | undefined;
    beforeAll(async () => {
      const place = name === "postgres" ? await open() : undefined;
      ledger = place;
      program = await startDev({
        environment: {
          HOST: "127.0.0.1",
          X402_PAY_TO: `0x${"1".repeat(40)}`,
          X402_NETWORK: "base-sepolia",
          // No server listens there, and no payment gets so far.
          X402_FACILITATOR_URL: "http://127.0.0.1:1",
          X402_RPC_URL: "http://127.0.0.1:1",
          ...(place === undefined ? {} : { LEDGER_URL: place.place }),
        },
      });
    }, 120_000);
    afterAll(async () => {
      await program.remove();
      await ledger?.remove();
    });

    test("H2: no odd text in a path or a query of a service gets a 5xx", async () => {
      const rows: Sent[] = [];
      for (const service of ["gateway", "payment", "upload"] as const) {
        const origin = program.line[service];
        for (const [path, method, operation] of await operationsOf(origin))
          for (const sent of oddAddresses(path, operation)) rows.push({ method, url: `${origin}${sent}` });
      }
      await responseAll(rows, program);
      expect(rows.length).toBeGreaterThan(3_000);
    }, 120_000);

    test("H2: no odd text in a path of the development node or the sandbox gets a 5xx", async () => {
      const { node, sandbox } = program.line;
      const rows = [
        ...nodeRoutes.map((path) => ["GET", node, path] as const),
        ...nodePosts.map((path) => ["POST", node, path] as const),
        ...sandboxRoutes.map((path) => ["GET", sandbox, path] as const),
      ].flatMap(([method, origin, path]) =>
        oddAddresses(path, undefined).map((sent) => ({ method, url: `${origin}${sent}` })),
      );
      await responseAll(rows, program);
      expect(rows.length).toBeGreaterThan(900);
    }, 120_000);

    test("H2: no odd text in a field of a JSON body gets a 5xx", async () => {
      const rows: Sent[] = [];
      for (const service of ["gateway", "payment", "upload"] as const) {
        const origin = program.line[service];
        for (const [path, method, { requestBody, parameters = [] }] of await operationsOf(origin)) {
          const example = requestBody?.content["application/json"]?.example;
          if (example === undefined) continue;
          const url = `${origin}${fill(path, parameters)}`;
          for (const body of oddBodies(example)) rows.push({ method, url, type: "application/json", body });
        }
      }
      await responseAll(rows, program);
      expect(rows.length).toBeGreaterThan(50);
    }, 120_000);

    test("no odd text of a gift's message, a promo code or a page to return to gets a 5xx", async () => {
      const gift = `${program.line.payment}/top-up/checkout-session/gift/usd/1000?destinationAddressType=gift`;
      const rows = ["giftMessage", "promoCode", "successUrl", "cancelUrl", "returnUrl", "uiMode"].flatMap((name) =>
        oddParts.map((odd) => ({ method: "GET", url: `${gift}&${name}=${odd}` })),
      );
      await responseAll(rows, program);
    }, 120_000);

    test("no odd text in a payment by x402 or in a header of a signed request gets a 5xx", async () => {
      const { payment, upload } = program.line;
      const urls = [
        `${payment}/v1/x402/top-up?type=bytes&qty=1048576`,
        `${upload}/v1/chunks/base-usdc/-1/-1?totalBytes=30000000`,
      ];
      const paid = oddTexts
        .flatMap((odd) => replaced(samplePayment, odd))
        .flatMap((body) => urls.map((url) => ({ method: "GET", url, headers: { "x-payment": base64Of(body) } })));
      const latin = ["\u0080", "\u00ff", "\u00e9".repeat(3_000), "%00", "\\u0000", "__proto__"];
      const signed = latin.flatMap((odd) =>
        ["x-nonce", "x-signature", "x-public-key", "x-signature-type", "x-paid-by", "authorization"].flatMap((name) =>
          [`${payment}/v1/balance`, `${payment}/v1/account/balance`].map((url) => ({
            method: "GET",
            url,
            headers: { "x-nonce": "1", "x-signature": "A", "x-public-key": "A", [name]: odd },
          })),
        ),
      );
      await responseAll([...paid, ...signed], program);
    }, 120_000);

    test("an item is accepted with any text in its tags, also empty text, and its status and content are served", async () => {
      const { upload, gateway } = program.line;
      const names = ["Content-Type", "Content-Encoding", "App-Name", "Bundle-Format", "x-approve-payment"];
      const taken: string[] = [];
      for (const odd of ["\u0000", "text/plain\u0000", "\u0001", "\uffff", "\u202e"])
        for (const name of names) {
          const { id, bytes } = testItem(`${name} ${odd}`, { tags: [{ name, value: odd }] });
          const response = await fetch(`${upload}/v1/tx`, { method: "POST", body: bytes });
          const wanted = name === "x-approve-payment" ? 400 : 200;
          expect([name, JSON.stringify(odd), response.status]).toEqual([name, JSON.stringify(odd), wanted]);
          if (wanted === 200) taken.push(id);
        }
      const empty = await fetch(`${upload}/v1/x402/upload/unsigned`, { method: "POST" });
      expect([empty.status, (await empty.json()).winc]).toEqual([200, "0"]);
      await responseAll(
        taken.flatMap((id) =>
          [`${upload}/v1/tx/${id}/status`, `${upload}/v1/tx/${id}/offsets`, `${gateway}/${id}`].map((url) => ({
            method: "GET",
            url,
          })),
        ),
        program,
      );
    }, 120_000);
  });

async function operationsOf(origin: string): Promise<(readonly [string, string, Operation])[]> {
  const reference: Reference = await (await fetch(`${origin}/openapi.json`)).json();
  return Object.entries(reference.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [path, method.toUpperCase(), operation] as const),
  );
}

/** A path with an odd text in the place of each of its parameters, one at a time, and of each of its query. */
function oddAddresses(path: string, operation: Operation | undefined): string[] {
  const parameters = operation?.parameters ?? [];
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const inQuery = parameters.filter((each) => each.in === "query").map(({ name }) => name);
  const whole = fill(path, parameters);
  return [
    ...inPath.flatMap((name) => oddParts.map((odd) => fill(path.replace(`{${name}}`, odd), parameters))),
    ...[...inQuery, "no%00such"].flatMap((name) =>
      oddParts.map((odd) => `${whole}?${queryBut(name, parameters)}${name}=${odd}`),
    ),
  ];
}

/** The query's parameters that must be there, but one. */
function queryBut(name: string, parameters: readonly Parameter[]): string {
  return parameters
    .filter((each) => each.in === "query" && each.name !== name && each.example !== undefined)
    .map((each) => `${each.name}=${encodeURIComponent(String(each.example))}&`)
    .join("");
}

/** A path with what its document gives as examples. */
function fill(path: string, parameters: readonly Parameter[]): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const example = parameters.find((each) => each.in === "path" && each.name === name)?.example;
    return example === undefined ? "1" : encodeURIComponent(String(example));
  });
}

/** A body with an odd text in the place of each of its texts, one at a time, and as the name of a field. */
function oddBodies(example: unknown): string[] {
  return oddTexts.flatMap((odd) => [
    ...replaced(example, odd).map((body) => JSON.stringify(body)),
    ...(isRecord(example) ? [JSON.stringify({ ...example, [odd]: odd })] : []),
    JSON.stringify(odd),
  ]);
}

function replaced(value: unknown, odd: string): unknown[] {
  if (Array.isArray(value))
    return value.flatMap((each, index) => replaced(each, odd).map((other) => value.with(index, other)));
  if (!isRecord(value)) return [odd];
  return Object.entries(value).flatMap(([name, each]) =>
    replaced(each, odd).map((other) => ({ ...value, [name]: other })),
  );
}

/** Sends all of them, a few at a time, and expects that none gets a 5xx. */
async function responseAll(rows: readonly Sent[], { line }: RunningProgram): Promise<void> {
  const faults: string[] = [];
  const left = rows.values();
  const send = async () => {
    for (const { method, url, type, body, headers } of left) {
      const response = await fetch(url, {
        method,
        redirect: "manual",
        headers: {
          authorization: `Bearer ${line.adminKey}`,
          ...(type === undefined ? {} : { "content-type": type }),
          ...headers,
        },
        ...(body === undefined ? {} : { body }),
      });
      // A stream of events has no end.
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
      if (isStream) await response.body?.cancel();
      const text = isStream ? "" : await response.text();
      if (response.status >= 500)
        faults.push(
          `${response.status} ${method} ${url.slice(0, 200)} ${(body ?? "").slice(0, 200)}: ${text.slice(0, 100)}`,
        );
    }
  };
  await Promise.all(Array.from({ length: 16 }, send));
  expect(faults).toEqual([]);
}
