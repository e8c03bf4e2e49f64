/**
 * Specification part 4A walked: every endpoint with good, bad and missing input, and every message of part 7 that is
 * the gateway's, through the real server, on the real stores, behind a real node.
 *
 * What the responses hold is in the other tests of this part; this one shows that none was left out.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import type { Transaction } from "../../src/arweave/transaction.ts";
import { Failure } from "../../src/failures.ts";
import { createAdminGuard } from "../../src/http/admin-guard.ts";
import { createAdminRoutes } from "../../src/http/gateway/admin-routes.ts";
import { sleep } from "../../src/lib/stop.ts";
import { post, rsa, stranger, testBytes } from "../dev/devnet/support.ts";
import { openGatewayServer } from "../support/gateway-server.ts";
import { createMemoryContent, idOf } from "../support/memory-content.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { eventually } from "../support/until.ts";
import { endpoints, messages } from "./part-4a.ts";

const key = "key-of-the-walk";
const absent = idOf("an absent id");
let stack: Stack;
let bundle: Transaction;
let plain: Transaction;
/** Offset of the last byte of the plain transaction. */
let offset: string;

beforeAll(async () => {
  stack = await openStack({ ADMIN_API_KEY: key });
  const signer = createEd25519Signer(new Uint8Array(32).fill(5));
  const item = createDataItem({ data: "in a bundle", tags: [] }, signer);
  const tags = [
    { name: "Bundle-Format", value: "binary" },
    { name: "Bundle-Version", value: "2.0.0" },
  ];
  bundle = await post(stack.devnet, rsa, { data: writeBundle([item]), tags });
  plain = await post(stack.devnet, rsa, { data: testBytes(2_000) });
  await stack.devnet.mine(1);
  await stack.settled();
  await eventually(
    async () => (await fetch(`${stack.gateway.url}/ready`)).status,
    (status) => status === 200,
  );
  offset = String(stack.gateway.reader.weaveSpan(plain.id)?.end);
}, 120_000);
afterAll(() => stack.close());

/** One request: values of the parameters of its path, or another path; its status, and its body or a part of it. */
type Step = Readonly<{
  kind: "good" | "bad" | "missing";
  path?: () => string;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  status: number;
  /** The whole body where it is a message; else what must are in it. */
  says?: string | RegExp;
}>;

const good = (path?: () => string, more: Partial<Step> = {}): Step => ({
  kind: "good",
  status: 200,
  ...(path === undefined ? {} : { path }),
  ...more,
});
const bad = (path: string, status: number, says: string | RegExp, more: Partial<Step> = {}): Step => ({
  kind: "bad",
  path: () => path,
  status,
  says,
  ...more,
});
const missing = (path: string, status: number, says: string | RegExp, more: Partial<Step> = {}): Step => ({
  ...bad(path, status, says, more),
  kind: "missing",
});
const sent = (kind: Step["kind"], body: unknown, status: number, says?: string | RegExp): Step => ({
  kind,
  body,
  status,
  ...(says === undefined ? {} : { says }),
});

const noId = "Must provide 'id'";
const noName = "Must provide 'name'";
const noData = "Must provide 'id' or 'hash'";
const noThreshold = "Invalid indexedAtThreshold - must be a positive integer";
const exported = { outputDir: "walk", startHeight: 0, endHeight: 0, maxFileRows: 0 };
const invalidId = '"Invalid ID"';
const notFound = '"Not Found"';
const wallet = (question: string): Step[] => [
  good(() => `/wallet/${rsa.address}/${question}`),
  good(() => `/wallet/${stranger.address}/${question}`),
  bad(`/wallet/a.b/${question}`, 400, "Invalid address."),
  missing(`/wallet//${question}`, 404, notFound),
];
const frame: readonly Step[] = [
  good(() => `/local/social/frame/${plain.id}`, { says: /"format":2/ }),
  bad("/local/social/frame/short", 400, invalidId),
  bad(`/local/social/frame/${absent}`, 404, notFound),
  missing("/local/social/frame/", 404, notFound),
];
const content = (prefix: string): Step[] => [
  good(() => `${prefix}/${plain.id}`),
  good(() => `${prefix}/${plain.id}`, { headers: { range: "bytes=0-9" }, status: 206 }),
  good(() => `${prefix}/${plain.id}`, { headers: { range: "bytes=0-1,5-6" }, status: 206 }),
  bad(`${prefix}/${absent}`, 404, notFound),
  ...(prefix === "" ? [] : [bad(`${prefix}/short`, 400, invalidId), missing(`${prefix}/`, 400, invalidId)]),
];

/** Every endpoint of part 4A. */
const walk: Readonly<Record<string, readonly Step[]>> = {
  "GET /svc/admin/debug": [good(undefined, { says: /"warnings":\[\]/ })],
  "POST /svc/admin/queue-tx": [
    { kind: "good", body: { id: absent }, status: 200, says: '{"message":"TX queued"}' },
    sent("bad", { id: "short" }, 400, noId),
    sent("bad", [], 400, noId),
    sent("missing", {}, 400, noId),
    sent("missing", undefined, 400, noId),
  ],
  "POST /svc/admin/queue-bundle": [
    { kind: "good", body: { id: absent }, status: 200, says: '{"message":"Bundle queued"}' },
    sent("bad", { id: 5 }, 400, noId),
    sent("missing", {}, 400, noId),
  ],
  "POST /svc/admin/queue-data-item": [
    { kind: "good", body: [announced()], status: 200, says: '{"message":"Data item(s) queued"}' },
    sent("bad", [{ ...announced(), id: absent }], 400, "Must provide array of data item headers"),
    sent("bad", {}, 400, "Must provide array of data item headers"),
    sent("missing", [], 400, "Must provide array of data item headers"),
    sent("missing", undefined, 400, "Must provide array of data item headers"),
  ],
  "GET /svc/admin/bundle-status/{id}": [
    good(() => `/svc/admin/bundle-status/${bundle.id}`, { says: /"dataItemCount":1/ }),
    bad("/svc/admin/bundle-status/short", 400, '"Must provide a valid bundle id"'),
    bad(`/svc/admin/bundle-status/${idOf("no bundle")}`, 404, '"Bundle not found"'),
    missing("/svc/admin/bundle-status/", 400, '"Must provide a valid bundle id"'),
  ],
  "PUT /svc/admin/block-data": [
    { kind: "good", body: { id: idOf("blocked"), notes: "n", source: "s" }, status: 200, says: "" },
    sent("bad", { id: "short" }, 400, noData),
    sent("missing", {}, 400, noData),
  ],
  "PUT /svc/admin/block-name": [
    { kind: "good", body: { name: "blocked", notes: "n", source: "s" }, status: 200, says: "" },
    sent("bad", { name: 5 }, 400, noName),
    sent("missing", {}, 400, noName),
  ],
  "PUT /svc/admin/unblock-name": [
    { kind: "good", body: { name: "blocked" }, status: 200, says: "" },
    sent("bad", { name: "" }, 400, noName),
    sent("missing", undefined, 400, noName),
  ],
  "POST /svc/admin/export-parquet": [
    { kind: "good", body: exported, status: 200, says: '{"message":"Parquet export started"}' },
    sent("bad", { ...exported, startHeight: -1 }, 400, ""),
    sent("bad", { ...exported, outputDir: "../../etc" }, 400, ""),
    sent("missing", { outputDir: "walk" }, 400, ""),
    sent("missing", undefined, 400, ""),
  ],
  "GET /svc/admin/export-parquet/status": [good(undefined, { says: /"status":"(running|errored)"/ })],
  "POST /svc/admin/prune-stable-data-items": [
    {
      kind: "good",
      body: { indexedAtThreshold: 0 },
      status: 200,
      says: '{"message":"Stable data items pruned successfully"}',
    },
    sent("bad", { indexedAtThreshold: -1 }, 400, noThreshold),
    sent("bad", { indexedAtThreshold: "0" }, 400, noThreshold),
    sent("missing", {}, 400, noThreshold),
  ],
  "GET /": [good(undefined, { says: /"supportedManifestVersions"/ })],
  "GET /svc/healthcheck": [good(undefined, { says: /"status":"ok"/ })],
  "GET /svc/info": [good(undefined, { says: /"supportedManifestVersions"/ })],
  "GET /svc/peers": [good(undefined, { says: /"arweaveNodes"/ })],
  "GET /svc/__gateway_metrics": [good(undefined, { says: /# TYPE http_request_duration_seconds histogram/ })],
  "GET /info": [good(undefined, { says: /"height":1/ })],
  "GET /peers": [good(undefined, { says: "[]" })],
  "GET /height": [good(undefined, { says: "1" })],
  "GET /tx_anchor": [good(undefined, { says: /^[A-Za-z0-9_-]{43,64}$/ })],
  "GET /current_block": [good(undefined, { says: /"height":1/ })],
  "GET /block/current": [good(undefined, { says: /"height":1/ })],
  "GET /block/height/{height}": [
    good(() => "/block/height/1", { says: /"height":1/ }),
    bad("/block/height/x", 400, "Invalid height."),
    bad("/block/height/99", 404, "Block not found."),
    missing("/block/height/", 404, notFound),
  ],
  "GET /block/hash/{hash}": [
    good(() => `/block/hash/${stack.devnet.blockAt(1)?.hash}`, { says: /"height":1/ }),
    bad("/block/hash/short", 404, "Block not found."),
    bad(`/block/hash/${"A".repeat(64)}`, 404, "Block not found."),
    missing("/block/hash/", 404, notFound),
  ],
  "GET /{txId}": content(""),
  "HEAD /{txId}": content("").map(({ says: _none, ...step }) => step),
  "GET /raw/{txId}": content("/raw"),
  "HEAD /raw/{txId}": content("/raw").map(({ says: _none, ...step }) => step),
  "GET /tx/pending": [good(undefined, { says: "[]" })],
  "GET /tx/{id}": [
    good(() => `/tx/${plain.id}`, { says: /"data_size":"2000"/ }),
    bad("/tx/short", 400, "Invalid hash."),
    bad(`/tx/${absent}`, 404, "Not Found."),
    missing("/tx/", 404, notFound),
  ],
  "GET /tx/{id}/offset": [
    good(() => `/tx/${plain.id}/offset`, { says: /"size":"2000"/ }),
    bad("/tx/short/offset", 400, '{"error":"invalid_address"}'),
    bad(`/tx/${absent}/offset`, 404, ""),
    missing("/tx//offset", 404, notFound),
  ],
  "GET /tx/{id}/status": [
    good(() => `/tx/${plain.id}/status`, { says: /"number_of_confirmations":1/ }),
    bad("/tx/short/status", 400, "Invalid address."),
    bad(`/tx/${absent}/status`, 404, "Not Found."),
    missing("/tx//status", 404, notFound),
  ],
  "GET /chunk/{offset}": [
    good(() => `/chunk/${offset}`, { says: /"packing":"unpacked"/ }),
    bad("/chunk/x", 400, '"Invalid offset"'),
    bad("/chunk/999999999", 404, notFound),
    missing("/chunk/", 404, notFound),
  ],
  "HEAD /chunk/{offset}": [
    good(() => `/chunk/${offset}`),
    { kind: "bad", path: () => "/chunk/x", status: 400 },
    { kind: "missing", path: () => "/chunk/", status: 404 },
  ],
  "GET /wallet/{address}/balance": wallet("balance"),
  "GET /wallet/{address}/last_tx": wallet("last_tx"),
  "GET /price/{size}": [
    good(() => "/price/1000", { says: /^\d+$/ }),
    bad("/price/x", 400, '{"error":"size_must_be_an_integer"}'),
    missing("/price/", 404, notFound),
  ],
  "GET /price/{size}/{target}": [
    good(() => `/price/1000/${rsa.address}`, { says: /^\d+$/ }),
    good(() => "/price/1000/target", { says: /^\d+$/ }),
    bad("/price/x/target", 400, '{"error":"size_must_be_an_integer"}'),
    bad("/price/1000/a.b", 400, "Invalid address."),
    missing("/price//target", 404, notFound),
  ],
  "POST /graphql": [
    sent("good", { query: "{ blocks(first: 1) { edges { node { height } } } }" }, 200, /"height":1/),
    sent("good", { query: "query($n: Int) { transactions(first: $n) { count } }", variables: { n: 1 } }, 200, /"data"/),
    sent("bad", { query: "{ nothing }" }, 200, /"errors":\[\{"message":".+","locations":\[\{"line":1,"column":3\}\]/),
    sent("bad", { query: '{ transactions(after: "x") { count } }' }, 200, /"path":\["transactions"\]/),
    sent("bad", { query: 5 }, 400, /"errors":\[\{"message"/),
    sent("missing", {}, 400, /"errors":\[\{"message"/),
  ],
  "GET /local/social/frame/{id}": frame,
  "POST /local/social/frame/{id}": frame,
};

function announced() {
  const [signature, owner] = [testBytes(64, 51), testBytes(32, 52)];
  const named = (bytes: Uint8Array) => new Bun.CryptoHasher("sha256").update(bytes).digest("base64url");
  return {
    id: named(signature),
    owner: Buffer.from(owner).toString("base64url"),
    owner_address: named(owner),
    signature: Buffer.from(signature).toString("base64url"),
    data_size: 99,
  };
}

/** Every message that came, by endpoint. */
const said = new Map<string, Set<string>>();

async function ask(origin: string, endpoint: string, step: Step, bearer: string) {
  const [method = "", path = ""] = endpoint.split(" ");
  const response = await fetch(`${origin}${step.path?.() ?? path}`, {
    method,
    redirect: "manual",
    headers: {
      ...(step.body === undefined ? {} : { "content-type": "application/json" }),
      ...(path.startsWith("/svc/admin/") ? { authorization: `Bearer ${bearer}` } : {}),
      ...step.headers,
    },
    ...(step.body === undefined ? {} : { body: JSON.stringify(step.body) }),
  });
  const body = await response.text();
  const message = body.startsWith('"') || body === "" ? body.replace(/^"|"$/g, "") : undefined;
  if (message !== undefined && response.status !== 200)
    said.set(endpoint, (said.get(endpoint) ?? new Set()).add(message));
  return { status: response.status, body };
}

describe("part 4A", () => {
  test("is walked whole, with good, bad and missing input wherever there is any", () => {
    const named = endpoints.map(([method, path]) => `${method} ${path}`);
    expect(Object.keys(walk).toSorted()).toEqual(named.toSorted());
    for (const [endpoint, steps] of Object.entries(walk)) {
      const kinds = new Set(steps.map(({ kind }) => kind));
      const takesInput = endpoint.includes("{") || /^(POST|PUT)/.test(endpoint);
      const isPath = endpoint.endsWith("/{txId}") && !endpoint.includes("raw"); // what is missing is another endpoint
      const wanted = takesInput ? ["good", "bad", ...(isPath ? [] : ["missing"])] : ["good"];
      expect([endpoint, wanted.filter((kind) => !kinds.has(kind as Step["kind"]))]).toEqual([endpoint, []]);
    }
  });

  const steps = Object.entries(walk).flatMap(([endpoint, each]) =>
    each.map((step, index) => [endpoint, step.kind, index, step] as const),
  );
  test.each(steps)("%s: %s (%d)", async (endpoint, _kind, _index, step) => {
    const { status, body } = await ask(stack.gateway.url, endpoint, step, key);
    expect([body.slice(0, 300), status]).toEqual([expect.any(String), step.status]);
    if (step.says instanceof RegExp) expect(body).toMatch(step.says);
    else if (step.says !== undefined && endpoint.startsWith("HEAD")) expect(body).toBe("");
    else if (step.says !== undefined) expect([step.says, JSON.stringify(step.says)]).toContain(body);
  });
});

describe("part 7", () => {
  const failing = () => {
    throw new Error("a defect");
  };
  const content = createMemoryContent();
  const broken = openGatewayServer({
    content,
    administration: createAdminRoutes({
      guard: createAdminGuard({ key, clock: Date.now, sleep }),
      debug: failing,
      queue: { transaction: failing, bundle: failing, bundleRange: failing, dataItems: failing },
      bundleStatus: failing,
      blockList: {
        blockData: failing,
        unblockData: failing,
        blockName: failing,
        unblockName: failing,
        list: failing,
      },
      exports: { start: failing, status: failing },
      prune: failing,
      monitored: { status: failing, history: failing, retryBundle: failing },
    }),
  });
  afterAll(async () => {
    await broken.close();
    await content.close();
  });

  test("has every one of its messages said by the endpoint that it belongs to", async () => {
    for (const [endpoint, wanted] of messages) {
      const [first] = walk[endpoint] ?? [];
      if (first === undefined) throw new Failure("not_found", { endpoint });
      const rejected = await ask(stack.gateway.url, endpoint, first, "another key");
      expect([endpoint, rejected.status, rejected.body]).toEqual([endpoint, 401, '"Unauthorized"']);
      const defect = await ask(broken.url, endpoint, first, key);
      expect([endpoint, defect.status, defect.body]).toEqual([endpoint, 500, '"Internal Server Error"']);
      expect([endpoint, wanted.filter((message) => said.get(endpoint)?.has(message) !== true)]).toEqual([endpoint, []]);
      expect([endpoint, [...(said.get(endpoint) ?? [])].filter((message) => !wanted.includes(message))]).toEqual([
        endpoint,
        [],
      ]);
    }
  });
});
