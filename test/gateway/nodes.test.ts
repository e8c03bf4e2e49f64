/**
 * Requests to several nodes for a reader, over real sockets: their order, their validation, their faults.
 * @module
 */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { openNode } from "../../src/chain/node.ts";
import { createNodes } from "../../src/chain/nodes.ts";
import { Failure } from "../../src/failures.ts";
import { createBroadcast } from "../../src/gateway/broadcast.ts";
import { createNetwork } from "../../src/gateway/network.ts";
import { createRelay } from "../../src/gateway/relay.ts";
import { createSpread } from "../../src/gateway/spread.ts";
import type { HttpTimeouts } from "../../src/lib/http-client.ts";
import { silentLog } from "../../src/lib/log.ts";
import type { Tip } from "../../src/store/index/index-types.ts";
import { type FaultServer, openFaultServer, type Result } from "../chain/fault-server.ts";
import { chunkPosts, testBytes } from "../dev/devnet/support.ts";
import { eventually, until } from "../support/until.ts";

const patient = { firstByteMs: 60_000, stallMs: 60_000, totalMs: 60_000 };
const hasty = { firstByteMs: 300, stallMs: 300, totalMs: 1_000 };
const never = new AbortController().signal;
const servers: FaultServer[] = [];
const opened: ReturnType<typeof openNode>[] = [];

/** Responses by path, for each of three nodes. */
const responses: Record<string, Result>[] = [{}, {}, {}];
for (const index of [0, 1, 2])
  servers.push(
    await openFaultServer(({ method, path }) => {
      const table = responses[index] ?? {};
      return table[`${method} ${path}`] ?? table[path] ?? { status: 404, body: "Not Found." };
    }),
  );
const [one, two, three] = servers as [FaultServer, FaultServer, FaultServer];

afterEach(() => {
  for (const table of responses) for (const key of Object.keys(table)) delete table[key];
  for (const server of servers) {
    server.setFault(() => undefined);
    server.requests.length = 0;
  }
});
afterAll(async () => {
  for (const node of opened) node.close();
  for (const server of servers) await server.stop();
});

/** Nodes whose sourceStatus is fresh, so that they are asked in their order. */
function nodesOf(...urls: string[]) {
  return nodesWith(patient, urls);
}

function nodesWith(timeouts: HttpTimeouts, urls: readonly string[]) {
  const nodes = urls.map((url) => openNode(url, timeouts));
  opened.push(...nodes);
  return createNodes(nodes, { clock: Date.now, random: () => 0, log: silentLog });
}

function response(index: number, path: string, status: number, body: string): void {
  const table = responses[index];
  if (table !== undefined) table[path] = { status, body };
}

const textOf = (body: Uint8Array) => new TextDecoder().decode(body);
const codeOf = async (work: Promise<unknown>) =>
  await work.then(
    () => "no failure",
    (error: unknown) => (error instanceof Failure ? error.code : String(error)),
  );

describe("a relayed request", () => {
  test("gets the response of one node", async () => {
    for (const index of [0, 1, 2]) response(index, "/x", 200, "yes");
    const found = await createRelay(nodesOf(one.url, two.url, three.url)).get("/x", 0, never);
    expect([found.status, textOf(found.body)]).toEqual([200, "yes"]);
    expect(servers.flatMap(({ requests }) => requests)).toHaveLength(1);
  });

  test("goes to the next node after a fault, an absence or an overload", async () => {
    response(0, "/x", 503, "later");
    response(1, "/x", 429, "too many");
    response(2, "/x", 200, "yes");
    const relay = createRelay(nodesOf(one.url, two.url, three.url));
    expect(textOf((await relay.get("/x", 0, never)).body)).toBe("yes");
    response(0, "/y", 404, "Not Found.");
    response(1, "/y", 200, "here");
    expect(textOf((await relay.get("/y", 0, never)).body)).toBe("here");
  });

  test("does not wait for a silent node, and asks it last the next time", async () => {
    one.setFault(() => ({ kind: "hang", at: "headers" }));
    for (const path of ["/x", "/y"]) response(1, path, 200, "yes");
    const relay = createRelay(nodesOf(one.url, two.url));
    for (const path of ["/x", "/y"]) expect(textOf((await relay.get(path, 0, never)).body)).toBe("yes");
    expect([one.requests, two.requests]).toEqual([["GET /x"], ["GET /x", "GET /y"]]);
  });

  test("returns the node's response unchanged: pending, rejected, absent", async () => {
    const relay = createRelay(nodesOf(one.url));
    for (const [path, status, body] of [
      ["/pending", 202, "Pending"],
      ["/bad", 400, "Invalid hash."],
      ["/gone", 410, "tx_too_cheap"],
      ["/none", 404, "Not Found."],
    ] as const) {
      response(0, path, status, body);
      const found = await relay.get(path, 1_000, never);
      expect([found.status, textOf(found.body)]).toEqual([status, body]);
    }
  });

  test("is absent when all nodes report an absence, and a fault when one of them failed", async () => {
    const relay = createRelay(nodesOf(one.url, two.url));
    response(0, "/x", 404, "Not Found.");
    response(1, "/x", 404, "Not Found.");
    expect((await relay.get("/x", 0, never)).status).toBe(404);
    response(1, "/x", 500, "");
    expect(await codeOf(relay.get("/x", 0, never))).toBe("source_failed");
  });

  test("ends at its own timeout, whatever the timeout of each node", async () => {
    for (const server of servers) server.setFault(() => ({ kind: "hang", at: "headers" }));
    const relay = createRelay(nodesOf(one.url, two.url), 20);
    expect(await codeOf(relay.get("/x", 0, never))).toBe("source_timeout");
    const spread = createSpread(nodesOf(one.url, two.url), { waitMs: 20, graceMs: 20 });
    const [result] = await spread.post("/tx", new Uint8Array(1), never);
    expect(result).toMatchObject({ peer: one.url, fault: { reason: "timeout" } });
  });

  test("without a response reports the reason", async () => {
    const relay = createRelay(nodesOf(one.url, two.url));
    response(0, "/x", 500, "");
    two.setFault(() => ({ kind: "reset" }));
    expect(await codeOf(relay.get("/x", 0, never))).toBe("source_failed");
    for (const server of servers) server.setFault(() => ({ kind: "hang", at: "headers" }));
    const toHasty = createRelay(nodesWith(hasty, [one.url, two.url]));
    expect(await codeOf(toHasty.get("/y", 0, never))).toBe("source_timeout");
    expect(await codeOf(createRelay(nodesOf()).get("/z", 0, never))).toBe("source_failed");
  });

  test("is sent once for all concurrent clients, and its response is cached for its time to live", async () => {
    response(0, "/x", 200, "yes");
    one.setFault(() => ({ kind: "delay", ms: 50 }));
    const relay = createRelay(nodesOf(one.url));
    await Promise.all(Array.from({ length: 20 }, () => relay.get("/x", 0, never)));
    expect(one.requests).toEqual(["GET /x"]);
    await relay.get("/x", 60_000, never);
    await relay.get("/x", 60_000, never);
    expect(one.requests).toEqual(["GET /x", "GET /x"]);
  });

  test("is cached only with a response", async () => {
    response(0, "/x", 404, "Not Found.");
    const relay = createRelay(nodesOf(one.url));
    await relay.get("/x", 60_000, never);
    response(0, "/x", 200, "now");
    expect(textOf((await relay.get("/x", 60_000, never)).body)).toBe("now");
  });

  test("ends for an aborted caller only", async () => {
    response(0, "/x", 200, "yes");
    one.setFault(() => ({ kind: "delay", ms: 100 }));
    const relay = createRelay(nodesOf(one.url));
    const leaving = new AbortController();
    const left = relay.get("/x", 0, leaving.signal).then(
      () => "resolved",
      () => "left",
    );
    const stayed = relay.get("/x", 0, never);
    leaving.abort();
    expect(await left).toBe("left");
    expect(textOf((await stayed).body)).toBe("yes");
  });
});

describe("the network", () => {
  const info = (height: number) =>
    JSON.stringify({ network: "n", version: 5, height, current: `h${height}`, blocks: height + 1 });
  const noTip = { tip: () => undefined };
  const tipAt = (height: number) => ({ tip: () => ({ height, hash: "t", timestamp: 0 }) as Tip });

  test("is the unchanged status of the highest node", async () => {
    response(0, "/info", 200, info(7));
    response(1, "/info", 200, ` ${info(9)} `);
    response(2, "/info", 500, "");
    const network = createNetwork(nodesOf(one.url, two.url, three.url), tipAt(8), Date.now);
    expect(await network.infoText(never)).toBe(` ${info(9)} `);
    expect(await network.height(never)).toBe(9);
    expect(network.nodes().map(({ url, height, blocks }) => [url, height, blocks])).toEqual([
      [one.url, 7, 8],
      [two.url, 9, 10],
    ]);
  });

  test("is as high as the index when the index is higher", async () => {
    response(0, "/info", 200, info(7));
    expect(await createNetwork(nodesOf(one.url), tipAt(12), Date.now).height(never)).toBe(12);
  });

  test("is the status of the index without a valid response", async () => {
    response(0, "/info", 200, "[]");
    response(1, "/info", 200, '{"height":"7"}');
    const network = createNetwork(nodesOf(one.url, two.url), tipAt(3), Date.now);
    expect(JSON.parse(await network.infoText(never))).toMatchObject({ height: 3, current: "t", blocks: 4 });
    expect(await network.height(never)).toBe(3);
  });

  test("is unknown without an index and without a response", async () => {
    const network = createNetwork(nodesOf(one.url), noTip, Date.now);
    expect([await codeOf(network.infoText(never)), await codeOf(network.height(never))]).toEqual([
      "not_synced",
      "not_synced",
    ]);
  });

  test("is requested again after all its callers left", async () => {
    response(0, "/info", 200, info(7));
    const network = createNetwork(nodesOf(one.url), noTip, () => 0);
    const leaving = new AbortController();
    const left = codeOf(network.height(leaving.signal));
    leaving.abort();
    await left;
    await until(() => !(one.requests.length > 0 && one.openSockets() > 0));
    expect(await network.height(never)).toBe(7);
  });

  test("is requested once a second for any number of callers", async () => {
    response(0, "/info", 200, info(7));
    let now = 0;
    const network = createNetwork(nodesOf(one.url), noTip, () => now);
    await Promise.all(Array.from({ length: 10 }, () => network.height(never)));
    now = 999;
    await network.height(never);
    expect(one.requests).toHaveLength(1);
    now = 1_000;
    await network.height(never);
    expect(one.requests).toHaveLength(2);
  });
});

describe("a post to all nodes", () => {
  const post = (urls: readonly string[], times = { waitMs: 60_000, graceMs: 2_000 }) => {
    const seen: string[] = [];
    const nodes = nodesOf(...urls);
    const broadcast = createBroadcast(createSpread(nodes, times), {
      onTransaction: async ({ id }) => {
        seen.push(id);
      },
      onChunk: ({ dataSize }, start) => seen.push(`${dataSize}@${start}`),
    });
    return { broadcast, seen, nodes };
  };
  const bytes = (text: string) => new Uint8Array(Buffer.from(text));
  const [chunk = ""] = chunkPosts(testBytes(300_000));

  test("reaches every node, and is accepted when one accepts it", async () => {
    response(0, "POST /tx", 400, "Transaction verification failed.");
    response(1, "POST /tx", 200, "OK");
    response(2, "POST /tx", 503, "");
    const { broadcast } = post(servers.map(({ url }) => url));
    const { status, body } = await broadcast.transaction(bytes("{}"), never);
    expect([status, textOf(body as Uint8Array)]).toEqual([200, "OK"]);
    expect(servers.map(({ requests }) => requests)).toEqual([["POST /tx"], ["POST /tx"], ["POST /tx"]]);
  });

  test("that is rejected has the message of most nodes", async () => {
    response(0, "POST /tx", 410, "a");
    response(1, "POST /tx", 400, "Invalid anchor (last_tx).");
    response(2, "POST /tx", 400, "Invalid anchor (last_tx).");
    const { broadcast, seen } = post(servers.map(({ url }) => url));
    const { status, body } = await broadcast.transaction(bytes("{}"), never);
    expect([status, textOf(body as Uint8Array)]).toEqual([400, "Invalid anchor (last_tx)."]);
    expect(seen).toEqual([]);
  });

  test("that is rejected with reasons returns them in one bounded line of printable ASCII", async () => {
    const reason = `invalid_reward: 7 is not enough\u00e9 ${"x".repeat(3_000)}`;
    const rejection = () => ({ status: 400, headers: { "X-Reject-Reason": reason }, body: "Rejected." });
    const node = await openFaultServer(rejection);
    const bare = await openFaultServer(() => ({ status: 400, body: "Bare." }));
    const { broadcast } = post([bare.url, node.url]);
    for (const responded of [
      await broadcast.transaction(bytes("{}"), never),
      await broadcast.chunk(bytes(chunk), never),
    ]) {
      expect(responded.rejectReason).toStartWith("invalid_reward: 7 is not enough");
      expect(responded.rejectReason).toMatch(/^[\x20-\x7e]{900,1000}$/);
    }
    await Promise.all([node.stop(), bare.stop()]);
  });

  test("that is rejected with reasons in JSON returns only these, bounded", async () => {
    const reasons = Array.from({ length: 100 }, (_, at) => ({
      code: `c${at}`,
      detail: "d".repeat(900),
      more: 1,
    }));
    const accepts: (string | null)[] = [];
    const node = Bun.serve({
      port: 0,
      fetch: (request) => {
        accepts.push(request.headers.get("accept"));
        return Response.json({ error: "Rejected.", reasons: [7, ...reasons], evil: "<script>" }, { status: 400 });
      },
    });
    const { broadcast } = post([`http://127.0.0.1:${node.port}`]);
    const { status, form, body } = await broadcast.transaction(bytes("{}"), never, "application/json");
    const said = JSON.parse(String(body));
    expect([status, form, Object.keys(said), said.error]).toEqual([400, "json", ["error", "reasons"], "Rejected."]);
    expect(said.reasons.length).toBe(31);
    expect(said.reasons[0]).toEqual({ code: "c0", detail: "d".repeat(500) });
    expect(accepts).toEqual(["application/json"]);
    await node.stop(true);
  });

  test("that is already known is reported as known", async () => {
    response(0, "POST /tx", 208, "Transaction already processed.");
    const { status, body } = await post([one.url]).broadcast.transaction(bytes("{}"), never);
    expect([status, textOf(body as Uint8Array)]).toEqual([208, "Transaction already processed."]);
  });

  test("without a response is a fault of the gateway", async () => {
    for (const server of servers) server.setFault(() => ({ kind: "reset" }));
    const { broadcast } = post(servers.map(({ url }) => url));
    expect(await codeOf(broadcast.transaction(bytes("{}"), never))).toBe("source_failed");
    expect(await codeOf(broadcast.chunk(bytes(chunk), never))).toBe("source_failed");
  });

  test("of a chunk reports the status of each node", async () => {
    response(0, "POST /chunk", 200, "");
    response(1, "POST /chunk", 400, '{"error":"data_root_not_found"}');
    three.setFault(() => ({ kind: "hang", at: "headers" }));
    const { broadcast, seen } = post(servers.map(({ url }) => url));
    const { status, body } = await broadcast.chunk(bytes(chunk), never);
    expect(status).toBe(200);
    expect(JSON.parse(String(body))).toEqual({
      successCount: 1,
      preferredSuccessCount: 1,
      failureCount: 1,
      results: [
        { peer: one.url, success: true, statusCode: 200, canceled: false, timedOut: false },
        { peer: two.url, success: false, statusCode: 400, canceled: false, timedOut: false },
        {
          peer: three.url,
          success: false,
          statusCode: 0,
          canceled: false,
          timedOut: false,
          skipped: true,
          skipReason: "it has not responded yet",
        },
      ],
    });
    expect(seen).toEqual(["300000@0"]);
  });

  test("ends as soon as three nodes accepted it, also with a long grace period", async () => {
    const four = await openFaultServer(() => ({ status: 200, body: "" }));
    four.setFault(() => ({ kind: "hang", at: "headers" }));
    for (const index of [0, 1, 2]) response(index, "POST /chunk", 200, "");
    const spread = createSpread(nodesOf(four.url, ...servers.map(({ url }) => url)), {
      waitMs: 60_000,
      graceMs: 60_000,
    });
    const results = await spread.post("/chunk", bytes(chunk), never);
    expect(results.map(({ kind }) => kind)).toEqual(["skipped", "response", "response", "response"]);
    await four.stop();
  });

  test("continues without its sender, and its results decide which nodes are skipped next time", async () => {
    response(0, "POST /chunk", 200, "");
    response(1, "POST /chunk", 200, "");
    two.setFault(() => ({ kind: "hang", at: "headers" }));
    const { broadcast, nodes } = post([one.url, two.url], { waitMs: 3_000, graceMs: 50 });
    const leaves = new AbortController();
    await broadcast.chunk(bytes(chunk), leaves.signal);
    leaves.abort();
    await eventually(
      async () => nodes.all.map(nodes.rests),
      ([, rests]) => rests === true,
    );
    const { body } = await broadcast.chunk(bytes(chunk), never);
    expect(JSON.parse(String(body)).results[1]).toMatchObject({
      skipReason: "it failed a moment ago",
    });
    expect(two.requests).toHaveLength(1);
    one.setFault(() => ({ kind: "reset" }));
    expect(await codeOf(broadcast.chunk(bytes(chunk), never))).toBe("source_failed");
    two.setFault(() => undefined);
    expect((await broadcast.chunk(bytes(chunk), never)).status).toBe(200); // all rest: all are asked
  });

  test("is aborted with its sender while no node has accepted it", async () => {
    one.setFault(() => ({ kind: "hang", at: "headers" }));
    const { broadcast } = post([one.url]);
    const leaves = new AbortController();
    const left = broadcast.chunk(bytes(chunk), leaves.signal).catch(String);
    await until(() => one.requests.length !== 0);
    leaves.abort(new Error("left"));
    expect(await left).toContain("left");
    await until(() => one.openSockets() === 0);
  });

  test("of a chunk with an invalid proof reaches no node", async () => {
    const wrong = JSON.stringify({ ...JSON.parse(chunk), offset: "299999" });
    const { status, body } = await post([one.url]).broadcast.chunk(bytes(wrong), never);
    expect([status, JSON.parse(String(body))]).toEqual([400, { error: "invalid_proof" }]);
    expect(one.requests).toEqual([]);
  });

  test("of a chunk that a node stores temporarily is accepted", async () => {
    response(0, "POST /chunk", 303, "");
    expect((await post([one.url]).broadcast.chunk(bytes(chunk), never)).status).toBe(200);
  });
});
