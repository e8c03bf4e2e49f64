/**
 * A node with false data before an honest one: a transaction or a block is not relayed when it is provably
 * another one; when all nodes return false data the response is 502.
 * Source: docs/reference/relayed-routes.md.
 * @module
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { openNode } from "../../src/chain/node.ts";
import { createNodes } from "../../src/chain/nodes.ts";
import type { Devnet } from "../../src/dev/devnet/devnet.ts";
import { silentLog } from "../../src/lib/log.ts";
import { type FaultServer, openFaultServer } from "../chain/fault-server.ts";
import {
  chunkPosts,
  ecdsa,
  openTestDevnet,
  post,
  rsa,
  serve,
  type TestNode,
  testBytes,
} from "../dev/devnet/support.ts";
import { type GatewayServer, openGatewayServer } from "../support/gateway-server.ts";
import { createMemoryContent } from "../support/memory-content.ts";

let devnet: Devnet;
let honest: TestNode;
let liar: FaultServer;
let responses: Readonly<Record<string, string>> = {};
let ids: Readonly<Record<"one" | "two" | "old" | "waiting", string>>;
let hashes: readonly string[];

beforeAll(async () => {
  devnet = await openTestDevnet();
  honest = serve(devnet);
  const one = await post(devnet, rsa, { data: testBytes(3_000, 1), tags: [{ name: "Name", value: "one" }] });
  const two = await post(devnet, ecdsa, {
    data: testBytes(3_000, 2),
    tags: [{ name: "Name", value: "two" }],
  });
  const oldData = Uint8Array.from([...testBytes(500, 3), 0xff]);
  const old = await post(devnet, rsa, { data: oldData, format: 1 });
  await devnet.mine(2);
  const waiting = await post(devnet, rsa, { data: testBytes(900, 4) });
  ids = { one: one.id, two: two.id, old: old.id, waiting: waiting.id };
  hashes = [0, 1, 2].map((height) => devnet.blockAt(height)?.hash ?? "");
  liar = await openFaultServer(({ path }) => {
    const body = responses[path];
    const headers = { "content-type": "text/html", "set-cookie": "a=b", "content-security-policy": "none" };
    return body === undefined ? { status: 404, body: "Not Found.", headers } : { status: 200, body, headers };
  });
}, 60_000);
beforeEach(() => {
  responses = {};
});
afterAll(async () => {
  await liar.stop();
  await honest.close();
  devnet.close();
});

/** A gateway that has followed nothing, and asks the nodes in this order. */
async function withGateway(urls: readonly string[], work: (gateway: GatewayServer) => Promise<void>) {
  const nodes = createNodes(
    urls.map((url) => openNode(url)),
    { clock: Date.now, random: () => 0, log: silentLog },
  );
  const gateway = openGatewayServer({ content: createMemoryContent(), nodes });
  try {
    await work(gateway);
  } finally {
    await gateway.close();
    nodes.close();
  }
}

const fromHonest = async (path: string) => await (await fetch(`http://127.0.0.1:${honest.port}${path}`)).text();
const changed = (text: string, name: string, value: unknown) => JSON.stringify({ ...JSON.parse(text), [name]: value });
const flip = (text: string) => (text.startsWith("A") ? "B" : "A") + text.slice(1);

/** A requested path, the path at the false node, and its false response. */
type FalseResponse = readonly [name: string, path: () => string, at: () => string, body: () => Promise<string>];

const falseResponses: readonly FalseResponse[] = [
  ["another transaction", () => `/tx/${ids.one}`, () => `/tx/${ids.one}`, () => fromHonest(`/tx/${ids.two}`)],
  [
    "another transaction under the id",
    () => `/tx/${ids.one}`,
    () => `/tx/${ids.one}`,
    async () => changed(await fromHonest(`/tx/${ids.two}`), "id", ids.one),
  ],
  [
    "a changed tag",
    () => `/tx/${ids.one}`,
    () => `/tx/${ids.one}`,
    async () => changed(await fromHonest(`/tx/${ids.one}`), "tags", []),
  ],
  [
    "a transaction of an ECDSA key under another signature",
    () => `/tx/${ids.two}`,
    () => `/tx/${ids.two}`,
    async () => changed(await fromHonest(`/tx/${ids.one}`), "id", ids.two),
  ],
  [
    "data of format 1 that is not signed",
    () => `/tx/${ids.old}`,
    () => `/tx/${ids.old}`,
    async () => changed(await fromHonest(`/tx/${ids.old}`), "data", "AAAA"),
  ],
  [
    "data of format 2 beside its root",
    () => `/unconfirmed_tx/${ids.waiting}`,
    () => `/unconfirmed_tx/${ids.waiting}`,
    async () => changed(await fromHonest(`/unconfirmed_tx/${ids.waiting}`), "data", "AAAA"),
  ],
  [
    "a field of another transaction",
    () => `/tx/${ids.one}/owner`,
    () => `/tx/${ids.one}`,
    () => fromHonest(`/tx/${ids.two}`),
  ],
  [
    "data that is not that of the root",
    () => `/tx/${ids.one}/data`,
    () => `/tx/${ids.one}/data`,
    async () => flip(await fromHonest(`/tx/${ids.one}/data`)),
  ],
  [
    "a page instead of data",
    () => `/tx/${ids.one}/data`,
    () => `/tx/${ids.one}/data`,
    async () => "<script>alert(1)</script>",
  ],
  [
    "a record for the data of another",
    () => `/tx/${ids.one}/data`,
    () => `/tx/${ids.one}`,
    () => fromHonest(`/tx/${ids.two}`),
  ],
  ...["height/1", `hash/:1`].flatMap((way): FalseResponse[] => {
    const path = () => `/block/${way.replace(":1", hashes[1] ?? "")}`;
    return [
      [`another block by ${way}`, path, path, () => fromHonest("/block/height/2")],
      [
        `a changed field of a block by ${way}`,
        path,
        path,
        async () => changed(await fromHonest("/block/height/1"), "tx_root", ""),
      ],
      [
        `a changed hash of a block by ${way}`,
        path,
        path,
        async () => changed(await fromHonest("/block/height/1"), "indep_hash", hashes[2]),
      ],
    ];
  }),
  [
    "a block whose fields are changed as the current one",
    () => "/block/current",
    () => "/block/current",
    async () => changed(await fromHonest("/block/current"), "timestamp", 1),
  ],
  ...(["/tx/:one/status", "/tx/:one/offset", "/tx/pending", "/peers", "/tx_anchor", "/price/1000"] as const).map(
    (pattern): FalseResponse => {
      const path = () => pattern.replace(":one", ids.one);
      return [`a page for ${pattern}`, path, path, async () => "<html><script>alert(1)</script></html>"];
    },
  ),
  ...["balance", "last_tx"].map((what): FalseResponse => {
    const path = () => `/wallet/${rsa.address}/${what}`;
    return [`a page for a wallet's ${what}`, path, path, async () => "<html>"];
  }),
];

describe("C7: a node with false data", () => {
  test.each(falseResponses)("is not believed, and the next one is asked: %s", async (_, path, at, body) => {
    responses = { [at()]: await body() };
    const wanted = await fromHonest(path());
    await withGateway([liar.url, `http://127.0.0.1:${honest.port}`], async ({ url }) => {
      const response = await fetch(`${url}${path()}`);
      const text = await response.text();
      expect(response.status).toBe(200);
      if (path() !== "/tx_anchor") expect(text).toBe(wanted);
      expect(text).not.toContain("<");
      expectOurHeaders(response);
    });
  });

  test.each(falseResponses)("and is the only one is 502: %s", async (_, path, at, body) => {
    // The records that the false response builds on are true.
    const record = path().endsWith("/data") ? { [`/tx/${ids.one}`]: await fromHonest(`/tx/${ids.one}`) } : {};
    responses = { ...record, [at()]: await body() };
    await withGateway([liar.url], async ({ url }) => {
      const response = await fetch(`${url}${path()}`);
      expect([response.status, await response.json()]).toEqual([502, "No source could provide valid data"]);
    });
  });
});

test("true records of every kind are relayed", async () => {
  const chunked = testBytes(300_000, 9);
  const large = await post(devnet, rsa, { data: chunked });
  for (const chunk of chunkPosts(chunked))
    await fetch(`http://127.0.0.1:${honest.port}/chunk`, { method: "POST", body: chunk });
  await devnet.mine(1);
  await withGateway([`http://127.0.0.1:${honest.port}`], async ({ url }) => {
    for (const path of [
      ...[ids.one, ids.two, ids.old, large.id].flatMap((id) => [`/tx/${id}`, `/tx/${id}/data`, `/tx/${id}/tags`]),
      `/unconfirmed_tx/${ids.one}`,
      "/block/height/0",
      "/block/height/1",
      "/tx/pending",
      `/block/hash/${hashes[2]}`,
      `/tx/${ids.one}/status`,
      `/tx/${ids.one}/offset`,
    ]) {
      const response = await fetch(`${url}${path}`);
      expect([path, response.status, await response.text()]).toEqual([path, 200, await fromHonest(path)]);
      expectOurHeaders(response);
    }
  });
});

/** None of the node's headers, and a type that a browser neither runs nor guesses. */
function expectOurHeaders(response: Response): void {
  expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  expect(response.headers.get("content-type")).toMatch(/^(application\/json|text\/plain); charset=utf-8$/);
  expect(response.headers.get("set-cookie")).toBeNull();
}

test("R1, N1: many concurrent requests for one large record wait for memory before it is copied for them", async () => {
  const large = await post(devnet, rsa, { data: testBytes(1_500_000, 5), format: 1 });
  await devnet.mine(1);
  const nodes = createNodes([openNode(`http://127.0.0.1:${honest.port}`)], {
    clock: Date.now,
    random: () => 0,
    log: silentLog,
  });
  // Two fit into the share of one address, and bodies that are complete may wait for as much.
  const memory = { responseBytesMax: 32 * 2 ** 20, requestBytesMax: 2 ** 20, waitMsMax: 20_000 };
  const gateway = openGatewayServer({ content: createMemoryContent(), nodes, memory });
  try {
    for (const path of [`/tx/${large.id}`, `/tx/${large.id}/data`]) {
      const asked = Array.from({ length: 12 }, async () => {
        const response = await fetch(`${gateway.url}${path}`);
        return [response.status, (await response.text()).length >= 2_000_000];
      });
      expect(await Promise.all(asked)).toEqual(Array(12).fill([200, true]));
    }
  } finally {
    await gateway.close();
    nodes.close();
  }
}, 60_000);
