/**
 * Specification part 4B walked: every endpoint with good, bad and missing input at each address that it has, every
 * record of part 2 to the field, and every message of part 7 that is the payment service's, with its status.
 *
 * What the responses hold is in the tests of each part; this one shows that none was left out.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { funded } from "../payment/x402/x402-fixture.ts";
import { testAddress } from "../support/payment.ts";
import { faultsOf } from "../support/schema.ts";
import { signedHeaders } from "../support/signed-headers.ts";
import { beyond, endpoints, messages, prefixes, records, requirement, responses } from "./part-4b.ts";
import { friend, hashes, openPlaces, type Place, type Places, wallet } from "./payment-places.ts";

let places: Places;

beforeAll(async () => {
  places = await openPlaces();
}, 120_000);
afterAll(() => places.close());

/** One request and its response. */
type Step = Readonly<{
  kind: "good" | "bad" | "missing";
  place: Place;
  path: string;
  body?: string;
  /** Made anew for each request: a nonce is good for one. */
  headers?: () => Readonly<Record<string, string>>;
  status: number;
  /** The message, which a cause may follow where part 7 is a prefix; success is held to part 2 instead. */
  says?: string;
}>;

type More = Partial<Pick<Step, "place" | "body" | "headers" | "status">>;
const good = (path: string, more: More = {}): Step => ({
  kind: "good",
  place: "program",
  path,
  status: 200,
  ...more,
});
const bad = (path: string, status: number, says: string, more: More = {}): Step => ({
  kind: "bad",
  place: "program",
  path,
  status,
  says,
  ...more,
});
const missing = (path: string, status: number, says: string, more: More = {}): Step => ({
  ...bad(path, status, says, more),
  kind: "missing",
});

const native = testAddress("walker");
const notFound = "Not Found";
const unsigned = "Invalid signature or missing required headers";
const wrongAddress = "Invalid paying address!";
const tooSmall = "Payment Amount is Invalid";
const noOracle = "Fiat Oracle Unavailable";
const intent = `/top-up/payment-intent/${native}`;
const checkout = `/top-up/checkout-session/${native}`;
const given = `payingAddress=${wallet.address}&approvedAddress=${friend}`;
const report = "/account/balance/ethereum";
const reported = (hash: string, place: Place = "tokens") => ({
  place,
  body: JSON.stringify({ tx_id: hash }),
});

let nonces = 0;
const signed = () => {
  nonces += 1;
  return signedHeaders(wallet, `nonce of the walk ${nonces}`);
};
const paid = () => {
  nonces += 1;
  const { x402 } = places;
  const payer = funded(x402, nonces);
  return { "x-payment": x402.header(x402.authorize(payer, 2_000n), payer) };
};
const unfunded = () => {
  const { x402 } = places;
  const payer = { ...funded(x402, 7_777, 0n) };
  return { "x-payment": x402.header(x402.authorize(payer, 2_000n), payer) };
};
const other = (): More => ({ place: "x402" });

/** Every endpoint of part 4B. */
const walk: Readonly<Record<string, readonly Step[]>> = {
  "GET /top-up/{method}/{address}/{currency}/{amount}": [
    good(`${intent}/usd/1000`),
    good(`${checkout}/usd/1000`),
    good(`${checkout}/eur/1e3?uiMode=embedded`),
    good(`${checkout}/jpy/3500?successUrl=https://a.example/&cancelUrl=https://a.example/no`),
    good(`${intent}/usd/1000`, { headers: signed }),
    ...["1.5", "-5", "ten", "1", "0", "100000000"].map((amount) =>
      bad(`${intent}/usd/${amount}`, 400, "Payment Amount is Invalid!"),
    ),
    bad("/top-up/payment-intent/unnamed/usd/1000", 403, "Destination address is not a valid native address!"),
    bad(`/top-up/cash/${native}/usd/1000`, 400, "Payment method must include one of: payment-intent,checkout-session!"),
    bad(`${checkout}/usd/1000?uiMode=x`, 400, 'Invalid ui mode! Allowed modes: "hosted,embedded"'),
    bad(`${intent}/xyz/1000`, 400, "The currency type 'xyz' is currently not supported by this API!"),
    bad(`${intent}/usd/1000?promoCode=NOPE`, 400, "No promo code found with code 'NOPE'"),
    bad(`${intent}/usd/1000`, 503, noOracle, { place: "broken top-ups" }),
    missing(`${intent}/usd`, 404, notFound),
  ],
  "POST /account/balance/{token}": [
    good(report, reported(hashes.credited)),
    good(report, { ...reported(hashes.pending), status: 202 }),
    bad(report, 400, "Transaction has already failed!", reported(hashes.failed)),
    bad(report, 404, "Transaction ID not found!", reported(`0x${"ee".repeat(32)}`)),
    bad(report, 503, "Error while processing transaction!", reported(hashes.pending, "broken tokens")),
    bad("/account/balance/native", 404, "Transaction ID not found!", { body: `{"tx_id":"${native}"}` }),
    bad("/account/balance/arweave", 404, "Transaction ID not found!", { body: '{"tx_id":"short"}' }),
    bad("/account/balance/native", 400, "Missing tx_id in request body", { body: '{"tx_id":5}' }),
    bad("/account/balance/native", 400, "Malformed JSON body", { body: "{" }),
    bad("/account/balance/native", 413, "Payload too large", { body: " ".repeat(65_537) }),
    bad("/account/balance/gold", 400, "Token not supported", { body: `{"tx_id":"${native}"}` }),
    missing("/account/balance/native", 400, "Missing tx_id in request body", { body: "{}" }),
    missing("/account/balance/native", 400, "Malformed JSON body", { body: "" }),
    missing("/account/balance/", 404, notFound, { body: "{}" }),
  ],
  "GET /x402/top-up": [
    good("/x402/top-up?type=bytes&qty=1000000", { ...other(), headers: paid }),
    good("/x402/top-up?type=bytes&qty=1000000", { ...other(), status: 402 }),
    good("/x402/top-up?type=credits&qty=1e12", { ...other(), status: 402 }),
    ...["type=bytes&qty=0", "type=bytes&qty=0.9", "type=bytes&qty=-1", "type=bytes&qty=x", "type=gold&qty=1"].map(
      (query) => bad(`/x402/top-up?${query}`, 400, "Invalid quantity parameter", other()),
    ),
    bad("/x402/top-up?type=bytes&qty=1", 403, unsigned, {
      ...other(),
      headers: () => ({ "x-payment": "junk" }),
    }),
    bad("/x402/top-up?type=bytes&qty=1000000", 402, "Payment settlement failed", {
      ...other(),
      headers: unfunded,
    }),
    missing("/x402/top-up?type=bytes", 400, "Invalid quantity parameter", other()),
    missing("/x402/top-up?qty=1", 400, "Invalid quantity parameter", other()),
    missing("/x402/top-up", 400, "Invalid quantity parameter", other()),
  ],
  "GET /account/approvals": [
    good(`/account/approvals?payingAddress=${native}&approvedAddress=${friend}`),
    good(`/account/approvals?${given}`, { place: "accounts" }),
    bad(`/account/approvals?payingAddress=x&approvedAddress=${friend}`, 400, wrongAddress),
    bad(`/account/approvals?payingAddress=${native}&approvedAddress=x`, 400, wrongAddress),
    bad(`/account/approvals?${given}`, 503, "Internal server error", { place: "broken accounts" }),
    missing(`/account/approvals?payingAddress=${native}`, 400, wrongAddress),
    missing("/account/approvals", 400, wrongAddress),
  ],
  "GET /account/approvals/get": [
    good(`/account/approvals/get?userAddress=${native}`),
    good(`/account/approvals/get?userAddress=${wallet.address}`, { place: "accounts" }),
    bad("/account/approvals/get?userAddress=x", 400, wrongAddress),
    bad(`/account/approvals/get?userAddress=${friend}`, 503, "Internal server error", {
      place: "broken accounts",
    }),
    missing("/account/approvals/get", 400, wrongAddress),
  ],
  "GET /currencies": [good("/currencies")],
  "GET /countries": [good("/countries")],
  "GET /rates": [good("/rates")],
  "GET /rates/{currency}": [
    ...["usd", "jpy"].map((currency) => good(`/rates/${currency}`)),
    bad("/rates/xyz", 404, "Invalid currency"),
    bad("/rates/usd", 503, noOracle, { place: "broken prices" }),
    missing("/rates/", 404, notFound),
  ],
  "GET /price/bytes/{byteCount}": [
    ...["0", "1000", "9007199254740991"].map((count) => good(`/price/bytes/${count}`)),
    ...["-1", "1.5", "1e3", "x", "9007199254740992"].map((count) =>
      bad(`/price/bytes/${count}`, 400, "Invalid byte count"),
    ),
    bad("/price/bytes/1", 503, "Pricing Oracle Unavailable", { place: "broken prices" }),
    missing("/price/bytes/", 404, notFound),
  ],
  "GET /price/{type}/{amount}": [
    ...["fiat/1000", "usd/1000", "jpy/1000", "native/1000000000000", "arweave/1000"].map((what) =>
      good(`/price/${what}`),
    ),
    good("/price/usd/1000", { headers: signed }),
    good("/price/usd/1000?destinationAddress=placeholder&"),
    ...["usd/1.5", "usd/-1", "usd/x", "native/0", "native/1.5"].map((what) => bad(`/price/${what}`, 400, tooSmall)),
    bad("/price/xyz/1000", 400, "The currency type 'xyz' is currently not supported by this API!"),
    bad("/price/usd/1000?promoCode=A", 403, unsigned, {
      headers: () => ({ ...signed(), "x-nonce": "another" }),
    }),
    bad("/price/usd/1000", 503, noOracle, { place: "broken prices" }),
    missing(
      "/price/usd/1000?promoCode=A",
      400,
      "Promo codes must be applied to a specific `destinationAddress` or to the request signer",
    ),
    missing("/price/usd/", 404, notFound),
  ],
  "GET /balance": [
    good("/balance", { place: "accounts", headers: signed }),
    good(`/balance?address=${wallet.address}`, { place: "accounts" }),
    bad(`/balance?address=${native}`, 404, "User Not Found"),
    bad("/balance?address=x", 404, "User Not Found"),
    bad(`/balance?address=${native}`, 403, unsigned, {
      headers: () => ({ ...signed(), "x-signature": "AAAA" }),
    }),
    bad("/balance", 403, unsigned, { headers: () => ({ authorization: "Bearer junk" }) }),
    bad(`/balance?address=${native}`, 503, "Cloud Database Unavailable", { place: "broken accounts" }),
    missing("/balance", 403, unsigned),
  ],
};

/** Every message that came, with its statuses, by endpoint. */
const said = new Map<string, Map<string, Set<number>>>();

/** The message of a response: a text, or a field of an object. */
function messageOf(endpoint: string, body: unknown): string | undefined {
  if (typeof body === "string") {
    const known = Object.keys(messages[endpoint] ?? {}).find((each) => prefixes.has(each) && body.startsWith(each));
    return known ?? body;
  }
  if (typeof body !== "object" || body === null) return undefined;
  if ("message" in body) return String(body.message);
  return "error" in body ? String(body.error) : undefined;
}

async function take(endpoint: string, step: Step, origin: string) {
  const [method = ""] = endpoint.split(" ");
  const response = await fetch(`${origin}${step.path}`, {
    method,
    redirect: "manual",
    headers: step.headers?.() ?? {},
    ...(step.body === undefined ? {} : { body: step.body }),
  });
  expect([step.path, response.status]).toEqual([step.path, step.status]);
  expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(response.headers.get("access-control-allow-origin")).toBe("*");
  if (step.status === 404 || step.status >= 500) expect(response.headers.get("cache-control")).toBe("no-store");
  const body: unknown = await response.json();
  const message = messageOf(endpoint, body);
  if (message !== undefined && step.kind !== "good") {
    const known = said.get(endpoint) ?? new Map<string, Set<number>>();
    said.set(endpoint, known.set(message, (known.get(message) ?? new Set()).add(step.status)));
  }
  return { body, message };
}

describe("part 4B", () => {
  test("is walked whole, with good, bad and missing input wherever there is any", () => {
    const named = endpoints.map(([method, path]) => `${method} ${path}`);
    expect(Object.keys(walk).toSorted()).toEqual(named.toSorted());
    expect(Object.keys(responses).toSorted()).toEqual(named.toSorted());
    const without = new Set(["GET /currencies", "GET /countries", "GET /rates"]);
    for (const [endpoint, steps] of Object.entries(walk)) {
      const kinds = new Set<string>(steps.map(({ kind }) => kind));
      const wanted = without.has(endpoint) ? ["good"] : ["good", "bad", "missing"];
      expect([endpoint, wanted.filter((kind) => !kinds.has(kind))]).toEqual([endpoint, []]);
    }
  });

  const steps = Object.entries(walk).flatMap(([endpoint, each]) =>
    each.map((step, index) => [endpoint, step.kind, index, step] as const),
  );
  test.each(steps)("%s: %s (%d)", async (endpoint, _kind, _index, step) => {
    for (const origin of places.origins[step.place]) {
      const { body, message } = await take(endpoint, step, origin);
      if (step.says !== undefined) expect(message).toBe(step.says);
      const schema = step.status === 402 ? requirement : (responses[endpoint] ?? {});
      const isRecord = step.kind === "good" || typeof body === "object";
      if (isRecord) expect(faultsOf(body, schema, records), step.path).toEqual([]);
    }
  });

  test("has the same responses at each path: to HEAD, to preflights, and 405 to other methods", async () => {
    for (const origin of places.origins.program) {
      for (const [endpoint, [step]] of Object.entries(walk)) {
        const [method = ""] = endpoint.split(" ");
        const url = `${origin}${step?.path}`;
        const asked = { origin: "https://a.example", "access-control-request-method": method };
        const preflight = await fetch(url, { method: "OPTIONS", headers: asked });
        expect([url, preflight.status]).toEqual([url, 204]);
        expect(preflight.headers.get("access-control-allow-methods")).toContain(method);
        expect(preflight.headers.get("access-control-max-age")).toBe("86400");
        const wrong = await fetch(url, { method: "DELETE" });
        expect([url, wrong.status, await wrong.json()]).toEqual([url, 405, "Method Not Allowed"]);
        expect(wrong.headers.get("allow")).toContain(method);
        if (method !== "GET" || step?.place !== "program") continue;
        const head = await fetch(url, { method: "HEAD" });
        expect([url, head.status, await head.text()]).toEqual([url, 200, ""]);
        expect(head.headers.get("content-type")).toBe("application/json; charset=utf-8");
      }
    }
  }, 120_000);
});

describe("part 7", () => {
  test("has every one of its messages said by the endpoint that it belongs to, with the contract's status", async () => {
    const { x402 } = places;
    x402.facilitator.behave("is silent, and settles nothing");
    await take("GET /x402/top-up", unknownOutcome, x402.server.url);
    for (const [endpoint, wanted] of Object.entries(messages)) {
      const found = said.get(endpoint) ?? new Map<string, Set<number>>();
      for (const [message, statuses] of Object.entries(wanted))
        expect([endpoint, message, [...(found.get(message) ?? [])].toSorted()]).toEqual([
          endpoint,
          message,
          [...statuses],
        ]);
      const expected = [...Object.keys(wanted), ...(beyond[endpoint] ?? [])];
      expect([endpoint, [...found.keys()].toSorted()]).toEqual([endpoint, expected.toSorted()]);
    }
  });

  const unknownOutcome: Step = {
    ...bad("/x402/top-up?type=bytes&qty=1000000", 503, "Payment settlement failed", other()),
    headers: paid,
  };
});
