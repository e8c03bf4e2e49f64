/**
 * Specification part 4C walked, and what published clients need beyond it: every endpoint with good, bad and missing
 * input at each address that it has, every record to the field, and every message of part 7 and of the contract that is
 * the upload service's, with its status.
 *
 * What the responses hold is in the tests of each part; this one shows that none was left out.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { faultsOf } from "../support/schema.ts";
import type { TestItem } from "../support/upload.ts";
import { requirement } from "./part-4b.ts";
import { added, type Endpoint, fixedPartOf, messages, records, responses, specified } from "./part-4c.ts";
import {
  blockedSigner,
  freeBytes,
  newItem,
  openUploadPlaces,
  type Place,
  strictBytesMax,
  type UploadPlaces,
} from "./upload-places.ts";

let places: UploadPlaces;

// Within a group: what it opened is closed before the databases are (test/support/ledger-databases.ts).
describe("the upload service", () => {
  beforeAll(async () => {
    places = await openUploadPlaces();
  }, 120_000);
  afterAll(() => places.close());

  /** One request. What it needs to be there is made at the address where it goes. */
  type Request = Readonly<{
    path: string;
    body?: BodyInit;
    headers?: Readonly<Record<string, string>>;
  }>;

  type Step = Readonly<{
    kind: "good" | "bad" | "missing";
    place: Place;
    request: (origin: string) => Promise<Request> | Request;
    status: number;
    says?: string;
  }>;

  type Asking = string | Step["request"];
  const asking = (request: Asking): Step["request"] =>
    typeof request === "string" ? () => ({ path: request }) : request;
  const good = (request: Asking, place: Place = "program", status = 200): Step => ({
    kind: "good",
    place,
    request: asking(request),
    status,
  });
  const bad = (request: Asking, status: number, says: string, place: Place = "program"): Step => ({
    kind: "bad",
    place,
    request: asking(request),
    status,
    says,
  });
  const missing = (request: Asking, status: number, says: string, place: Place = "program"): Step => ({
    ...bad(request, status, says, place),
    kind: "missing",
  });

  const absent = "A".repeat(43);
  const noToken = "Token not supported";
  const notFound = "Not Found";
  const noItem = "Invalid Data Item!";
  const isOff = "Uploads are switched off: no wallet is set";
  const noUpload = "Multi-part upload with ID";
  const tooLarge = "Data item is too large, this service only accepts data items up to";
  const noPayer = "x-paid-by contains an invalid address";
  const noBill = "Invalid payment for an upload:";
  const noPrice = "Pricing Oracle Unavailable";
  const noLength = "Missing Content Length. Content Length is required for raw data post.";
  const x402Off = "This payment method is switched off";

  /** A body of unknown size. */
  const streamOf = (bytes: Uint8Array): ReadableStream<Uint8Array> =>
    new ReadableStream({
      start: (controller) => {
        controller.enqueue(bytes);
        controller.close();
      },
    });
  const junk = new Uint8Array(100).fill(0x61);

  const sending =
    (path: string, makeItem: () => TestItem = newItem, headers = {}): Step["request"] =>
    () => ({ path, body: makeItem().bytes, headers });
  const approval = () => newItem(100, { tags: [{ name: "x-approve-payment", value: absent }] });
  const blockedItem = () => newItem(100, blockedSigner === undefined ? {} : { signer: blockedSigner });
  const paidItem = () => newItem(freeBytes);

  /** Uploads an item at an address, then asks something of it. */
  const taken =
    (what: string): Step["request"] =>
    async (origin) => {
      const { id, bytes } = newItem();
      const response = await fetch(`${origin}/tx`, { method: "POST", body: bytes });
      expect(response.status).toBe(200);
      return { path: `/tx/${id}/${what}` };
    };

  const begin = async (origin: string) => String((await (await fetch(`${origin}/chunks/arweave/-1/-1`)).json()).id);
  const put = async (origin: string, id: string, bytes: Uint8Array<ArrayBuffer>) => {
    const response = await fetch(`${origin}/chunks/arweave/${id}/0`, { method: "POST", body: bytes });
    expect(response.status).toBe(200);
  };
  /** Begins an upload in parts, which has the bytes of an item, then asks something of it. */
  const begun =
    (what: string, bytes?: () => Uint8Array<ArrayBuffer>, more: Omit<Request, "path"> = {}): Step["request"] =>
    async (origin) => {
      const id = await begin(origin);
      if (bytes !== undefined) await put(origin, id, bytes());
      return { path: `/chunks/arweave/${id}/${what}`, ...more };
    };
  const wholeItem = () => newItem().bytes;

  /** The paid price of a request, which is requested first, as clients do. */
  const paidFor =
    (method: string, make: () => Request): Step["request"] =>
    async (origin) => {
      const { path, body, headers } = make();
      const response = await fetch(`${origin}${path}`, {
        method,
        headers: headers ?? {},
        ...(body === undefined ? {} : { body }),
      });
      expect(response.status).toBe(402);
      const { maxAmountRequired } = await response.json();
      return {
        path,
        headers: { ...headers, "x-payment": places.payment(BigInt(maxAmountRequired)) },
        ...(body === undefined ? {} : { body }),
      };
    };
  /** A payment that is too small. */
  const badlyPaid =
    (path: string, body?: () => BodyInit): Step["request"] =>
    () => ({
      path,
      headers: { "x-payment": places.payment(1n) },
      ...(body === undefined ? {} : { body: body() }),
    });

  const finalizing = (how: "-1" | "finalize"): Step[] => [
    good(begun(how, wholeItem), "program", how === "-1" ? 200 : 202),
    bad(`/chunks/arweave/absent/${how}`, 404, noUpload),
    bad(`/chunks/arweave/absent%00/${how}`, 400, "Malformed path"),
    bad(`/chunks/gold/absent/${how}`, 400, noToken),
    bad(begun(how, wholeItem, { headers: { "x-paid-by": "x" } }), 400, noPayer),
    bad(`/chunks/arweave/x/${how}`, 503, isOff, "off"),
    missing(begun(how), 400, noItem),
  ];

  const payment = (path: string, body: () => Uint8Array<ArrayBuffer>): Step[] => [
    good(
      paidFor("POST", () => ({ path, body: new Blob([body()]) })),
      "paid",
    ),
    good(() => ({ path, body: body() }), "paid", 402),
    bad(() => ({ path, body: body(), headers: { "x-payment": "junk" } }), 403, noSignature, "paid"),
    bad(badlyPaid(path, body), 402, "Payment settlement failed", "paid"),
    bad(
      () => ({ path, body: new Uint8Array(1_000_001), headers: { "x-payment": places.payment(1n) } }),
      413,
      tooLarge,
      "paid",
    ),
    bad(() => ({ path, body: new Uint8Array(1_000_001) }), 413, tooLarge, "paid"),
    bad(() => ({ path, body: body() }), 503, x402Off, "off"),
    missing(() => ({ path, body: streamOf(junk) }), 411, noLength, "paid"),
  ];
  const noSignature = "Invalid signature or missing required headers";
  const signed = (path: string): Step[] => [
    ...payment(path, wholeItem),
    bad(
      paidFor("POST", () => ({ path, body: new Blob([junk]) })),
      400,
      noItem,
      "paid",
    ),
    bad(
      paidFor("POST", () => ({ path, body: new Blob([blockedItem().bytes]) })),
      403,
      "Forbidden",
      "paid",
    ),
  ];
  const unsigned = (path: string): Step[] => [
    ...payment(path, () => newItem().bytes),
    bad(() => ({ path, body: junk, headers: { "x-data-item-tags": "{" } }), 400, "Invalid tags:", "paid"),
  ];
  const elsewhere = (path: string) => bad(() => ({ path, body: junk }), 400, "Network", "paid");

  const chunked = (size: number) => `/chunks/base-usdc/-1/-1?totalBytes=${size}&address=${absent}&signatureType=1`;

  /** Every endpoint. */
  const walk: Readonly<Record<Endpoint, readonly Step[]>> = {
    "GET /price/{token}/{byteCount}": [
      ...["native", "arweave", "ethereum", "solana", "matic"].map((token) => good(`/price/${token}/1000`)),
      ...["0", "9007199254740991"].map((count) => good(`/price/native/${count}`)),
      ...["-1", "1.5", "1e3", "x", "0x10", "9007199254740992"].map((count) =>
        bad(`/price/native/${count}`, 400, "Invalid byte count"),
      ),
      bad("/price/gold/1000", 400, noToken),
      bad("/price/native/1000", 503, noPrice, "no price"),
      missing("/price/native/", 404, notFound),
    ],
    "GET /price/{token}": [
      ...["native", "ethereum", "solana", "1048576", "0"].map((what) => good(`/price/${what}`)),
      ...["-1", "1.5", "1e3", "9007199254740992"].map((count) => bad(`/price/${count}`, 400, "Invalid byte count")),
      bad("/price/gold", 400, noToken),
      bad("/price/native", 503, noPrice, "no price"),
      missing("/price/", 404, notFound),
    ],
    "GET /": [good(""), good("/")],
    "GET /info": [good("/info"), bad("/info/x", 404, notFound)],
    "GET /health": [good("/health")],
    "POST /tx": [
      good(sending("/tx")),
      good(sending("/tx", newItem, { "content-type": "application/octet-stream" })),
      good(() => ({ path: "/tx", body: streamOf(newItem().bytes) })),
      bad(() => ({ path: "/tx", body: junk }), 400, noItem),
      bad(sending("/tx", newItem, { "content-type": "text/plain" }), 400, "Invalid Content Type"),
      bad(sending("/tx", newItem, { "x-paid-by": "x" }), 400, noPayer),
      bad(sending("/tx", approval), 400, "Approval x-amount tag missing a winc value!"),
      bad(sending("/tx", paidItem), 402, "Insufficient balance"),
      bad(sending("/tx", blockedItem), 403, "Forbidden", "strict"),
      bad(
        sending("/tx", () => newItem(strictBytesMax)),
        413,
        tooLarge,
        "strict",
      ),
      bad(sending("/tx"), 503, noPrice, "no price"),
      bad(sending("/tx"), 503, "Chain state not available yet", "not synced"),
      bad(sending("/tx"), 503, "No space for uploads", "no space"),
      bad(sending("/tx"), 503, isOff, "off"),
      missing("/tx", 400, noItem),
    ],
    "POST /tx/{token}": [
      ...["native", "arweave", "ethereum", "solana", "matic", "base-usdc", "kyve"].map((token) =>
        good(sending(`/tx/${token}`)),
      ),
      bad(sending("/tx/gold"), 400, noToken),
      bad(() => ({ path: "/tx/native", body: junk }), 400, noItem),
      bad(sending("/tx/solana", paidItem), 402, "Insufficient balance"),
      bad(sending("/tx/native"), 503, isOff, "off"),
      missing(sending("/tx/"), 404, notFound),
      missing("/tx/native", 400, noItem),
    ],
    "GET /tx/{id}/status": [
      good(taken("status")),
      bad(`/tx/${absent}/status`, 404, "TX doesn't exist"),
      bad("/tx/short/status", 404, "TX doesn't exist"),
      bad("/tx/%zz/status", 400, "Malformed path"),
      missing("/tx//status", 404, notFound),
    ],
    "GET /tx/{id}/offsets": [
      good(taken("offsets")),
      bad(`/tx/${absent}/offsets`, 404, "TX doesn't exist"),
      bad("/tx/short/offsets", 404, "TX doesn't exist"),
      bad("/tx/%zz/offsets", 400, "Malformed path"),
      missing("/tx//offsets", 404, notFound),
    ],
    "GET /tx/{id}/receipt": [
      good(taken("receipt")),
      bad(`/tx/${absent}/receipt`, 404, "TX doesn't exist"),
      bad("/tx/short/receipt", 404, "TX doesn't exist"),
      bad("/tx/%zz/receipt", 400, "Malformed path"),
      bad(`/tx/${absent}/receipt`, 503, isOff, "off"),
      missing("/tx//receipt", 404, notFound),
    ],
    "GET /chunks/{token}/-1/-1": [
      good("/chunks/arweave/-1/-1"),
      good("/chunks/solana/-1/-1?chunkSize=5242880"),
      good(
        paidFor("GET", () => ({ path: chunked(30_000) })),
        "paid",
      ),
      good(chunked(30_000), "paid", 402),
      ...["5242879", "524288001", "x", ""].map((size) =>
        bad(`/chunks/arweave/-1/-1?chunkSize=${size}`, 400, "Invalid chunk size"),
      ),
      bad("/chunks/gold/-1/-1", 400, noToken),
      bad(chunked(0), 400, noBill),
      bad(badlyPaid(chunked(30_000)), 402, "Payment settlement failed", "paid"),
      bad(chunked(1_000_001), 413, tooLarge, "paid"),
      bad("/chunks/base-usdc/-1/-1?totalBytes=1000001&address=x&signatureType=1", 400, noBill, "paid"),
      bad("/chunks/arweave/-1/-1", 503, isOff, "off"),
      missing("/chunks/arweave/-1", 404, notFound),
      missing("/chunks/base-usdc/-1/-1?totalBytes=5", 400, noBill),
    ],
    "POST /chunks/{token}/{uploadId}/{offset}": [
      good(begun("0", undefined, { body: junk })),
      good(begun("5000000000", undefined, { body: junk })),
      ...["-2", "1.5", "x"].map((offset) => bad(begun(offset, undefined, { body: junk }), 400, "Invalid chunk.")),
      bad(begun("999999999999", undefined, { body: junk }), 413, tooLarge),
      bad(() => ({ path: "/chunks/arweave/absent/0", body: junk }), 404, noUpload),
      bad(() => ({ path: "/chunks/arweave/%00/0", body: junk }), 400, "Malformed path"),
      bad(() => ({ path: "/chunks/gold/absent/0", body: junk }), 400, noToken),
      bad(() => ({ path: "/chunks/arweave/x/0", body: junk }), 503, isOff, "off"),
      missing(begun("0"), 400, "Content-Length header is required a must be a positive integer."),
    ],
    "GET /chunks/{token}/{uploadId}/-1": [
      good(begun("-1")),
      good(begun("-1", () => junk)),
      bad("/chunks/arweave/absent/-1", 404, noUpload),
      bad("/chunks/arweave/a%00b/-1", 400, "Malformed path"),
      bad("/chunks/gold/absent/-1", 400, noToken),
      bad("/chunks/arweave/x/-1", 503, isOff, "off"),
      missing("/chunks/arweave//-1", 404, notFound),
    ],
    "GET /chunks/{token}/{uploadId}/status": [
      good(begun("status")),
      good(async (origin) => {
        const { path } = await begun("status", wholeItem)(origin);
        await fetch(`${origin}${path.replace("status", "-1")}`, { method: "POST" });
        return { path };
      }),
      bad("/chunks/arweave/absent/status", 404, noUpload),
      bad("/chunks/arweave/a%00b/status", 400, "Malformed path"),
      bad("/chunks/gold/absent/status", 400, noToken),
      bad(begun("stature"), 404, notFound),
      bad("/chunks/arweave/x/status", 503, isOff, "off"),
      missing("/chunks/arweave//status", 404, notFound),
    ],
    "POST /chunks/{token}/{uploadId}/-1": [
      ...finalizing("-1"),
      bad(
        begun("-1", () => junk),
        400,
        noItem,
      ),
      bad(
        begun("-1", () => paidItem().bytes),
        402,
        "Insufficient balance",
      ),
      bad(
        begun("-1", () => blockedItem().bytes),
        403,
        "Forbidden",
        "paid",
      ),
    ],
    "POST /chunks/{token}/{uploadId}/finalize": [
      ...finalizing("finalize"),
      good(async (origin) => {
        const { path } = await begun("finalize", wholeItem)(origin);
        await fetch(`${origin}${path.replace("finalize", "-1")}`, { method: "POST" });
        return { path };
      }),
    ],
    "POST /x402/upload/signed": signed("/x402/upload/signed"),
    "POST /x402/upload/unsigned": unsigned("/x402/upload/unsigned"),
    "POST /x402/data-item/signed": signed("/x402/data-item/signed"),
    "POST /x402/data-item/unsigned": unsigned("/x402/data-item/unsigned"),
    "POST /x402/data-item/signed/{network}": [
      ...signed("/x402/data-item/signed/base"),
      elsewhere("/x402/data-item/signed/solana"),
    ],
    "POST /x402/data-item/unsigned/{network}": [
      ...unsigned("/x402/data-item/unsigned/base"),
      elsewhere("/x402/data-item/unsigned/solana"),
    ],
  };

  /** Every message that came, with its statuses, by endpoint. */
  const said = new Map<string, Map<string, Set<number>>>();

  function note(endpoint: Endpoint, message: string, status: number): void {
    const known = said.get(endpoint) ?? new Map<string, Set<number>>();
    said.set(endpoint, known.set(message, (known.get(message) ?? new Set()).add(status)));
  }

  /** The message of a response: a text, or a field of an object. */
  function messageOf(body: unknown): string | undefined {
    if (typeof body === "string") return fixedPartOf(body);
    if (typeof body !== "object" || body === null || !("error" in body)) return undefined;
    return String(body.error);
  }

  async function take(endpoint: Endpoint, step: Step, origin: string): Promise<void> {
    const [method = ""] = endpoint.split(" ");
    const { path, body, headers = {} } = await step.request(origin);
    const response = await fetch(`${origin}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    const { status } = response;
    const text = await response.text();
    expect([path, status, status === step.status ? "" : text]).toEqual([path, step.status, ""]);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(response.headers.get("x-request-id")).toMatch(/^[A-Za-z0-9._:-]{1,128}$/);
    if (status === 404 || status >= 500) expect(response.headers.get("cache-control")).toBe("no-store");
    if (status === 503 && step.says !== isOff && step.says !== x402Off)
      expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    if (status === 202) return expect(text).toBe("");
    const wanted = responses[endpoint];
    if (step.kind === "good" && wanted instanceof RegExp) {
      expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
      return expect(text).toMatch(wanted);
    }
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    const value: unknown = JSON.parse(text);
    const message = messageOf(value);
    if (message !== undefined) note(endpoint, message, status);
    if (step.says !== undefined) return expect([path, message]).toEqual([path, step.says]);
    const schema = status === 402 ? requirement : wanted instanceof RegExp ? {} : wanted;
    expect(faultsOf(value, schema, records), path).toEqual([]);
  }

  const all = [...specified, ...added];

  test("is walked whole, with good, bad and missing input wherever there is any", () => {
    expect(Object.keys(walk).toSorted()).toEqual([...all].toSorted());
    const without: ReadonlySet<string> = new Set(["GET /", "GET /info", "GET /health"]);
    for (const endpoint of all) {
      const kinds = new Set<string>(walk[endpoint].map(({ kind }) => kind));
      const wanted = without.has(endpoint) ? ["good"] : ["good", "bad", "missing"];
      expect([endpoint, wanted.filter((kind) => !kinds.has(kind))]).toEqual([endpoint, []]);
    }
  });

  const steps = all.flatMap((endpoint) =>
    walk[endpoint].map((step, index) => [endpoint, step.kind, index, step] as const),
  );
  test.each(steps)("%s: %s (%d)", async (endpoint, _kind, _index, step) => {
    for (const origin of places.origins[step.place]) await take(endpoint, step, origin);
  });

  test("has the same responses at each path: to HEAD, to preflights, and 405 to other methods", async () => {
    const words: Readonly<Record<string, string>> = {
      token: "native",
      byteCount: "1000",
      id: absent,
      uploadId: "absent",
      offset: "0",
      network: "base",
    };
    for (const origin of places.origins.program)
      for (const endpoint of all) {
        const [method = "", template = ""] = endpoint.split(" ");
        const url = `${origin}${template.replace(/\{(\w+)\}/g, (_, name) => words[name] ?? "")}`;
        const asked = { origin: "https://a.example", "access-control-request-method": method };
        const preflight = await fetch(url, { method: "OPTIONS", headers: asked });
        expect([url, preflight.status]).toEqual([url, 204]);
        expect(preflight.headers.get("access-control-allow-methods")).toContain(method);
        expect(preflight.headers.get("access-control-allow-headers")?.toLowerCase()).toContain("x-payment");
        expect(preflight.headers.get("access-control-allow-credentials")).toBeNull();
        expect(preflight.headers.get("access-control-max-age")).toBe("86400");
        const wrong = await fetch(url, { method: "DELETE" });
        expect([url, wrong.status, await wrong.json()]).toEqual([url, 405, "Method Not Allowed"]);
        expect(wrong.headers.get("allow")).toContain(method);
        // HEAD is not a method of routes that create something.
        if (method !== "GET") continue;
        const head = await fetch(url, { method: "HEAD" });
        const isMade = template.endsWith("/-1/-1");
        const get = isMade ? undefined : await fetch(url);
        expect([url, head.status, await head.text()]).toEqual([url, get?.status ?? 405, ""]);
        if (get === undefined) continue;
        for (const name of ["content-type", "cache-control"])
          expect(head.headers.get(name)).toBe(get.headers.get(name));
      }
  }, 60_000);

  test("says every message of part 7 and of the contract that is its own, with the status that it has there, and no other", () => {
    for (const endpoint of all) {
      const found = Object.fromEntries(
        [...(said.get(endpoint) ?? [])].map(([message, statuses]) => [message, [...statuses].toSorted()]),
      );
      expect([endpoint, found]).toEqual([endpoint, messages[endpoint]] as never);
    }
  });
});
