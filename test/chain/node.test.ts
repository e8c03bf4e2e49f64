/**
 * Responses of a node: present, absent, pending, rejected, and failed requests.
 * @module
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { type Node, type NodeResponse, openNode } from "../../src/chain/node.ts";
import { eventually, until } from "../support/until.ts";
import { type Fault, type FaultServer, openFaultServer, type Result } from "./fault-server.ts";

const none = new AbortController().signal;
let server: FaultServer;
let node: Node;
/** A node with a short timeout. */
let hasty: Node;
let usual: Result = { status: 200, body: "" };

beforeAll(async () => {
  server = await openFaultServer(() => usual);
  node = openNode(`${server.url}/`, { firstByteMs: 10_000, stallMs: 10_000, totalMs: 20_000 });
  hasty = openNode(`${server.url}/`, { firstByteMs: 150, stallMs: 150, totalMs: 400 });
});
afterAll(async () => {
  node.close();
  hasty.close();
  await server.stop();
});
afterEach(() => server.setFault(() => undefined));

type Call = (signal: AbortSignal) => Promise<NodeResponse<unknown>>;

const id = "g70NX7QXrMP0C9-quXsiWwhH0YEqkdeQl1JeiX8cu50";
const hash = "A".repeat(64);

/** Name, call, path, a good body, what it means, bodies that cannot be read. */
const calls: readonly (readonly [string, (node: Node) => Call, string, string, unknown, readonly string[]])[] = [
  ["height", (n) => n.height, "/height", "1700011\n", 1_700_011, ["", "-1", "1.5", "abc", "9".repeat(20)]],
  ["info", (n) => n.info, "/info", '{"height":1}', '{"height":1}', ["", "[]", '{"height":', "null"]],
  ["block by height", (n) => (s) => n.blockText(5, s), "/block/height/5", '{"a":1}', '{"a":1}', ["", '{"a":1']],
  ["block by hash", (n) => (s) => n.blockText(hash, s), `/block/hash/${hash}`, '{"a":1}', '{"a":1}', ["x"]],
  ["current block", (n) => n.currentBlockText, "/block/current", " {} ", " {} ", [""]],
  ["pending", (n) => n.pendingIds, "/tx/pending", `["${id}"]`, [id], ["{}", "[1]", "", "["]],
  [
    "status",
    (n) => (s) => n.txStatus(id, s),
    `/tx/${id}/status`,
    `{"block_height":5,"block_indep_hash":"${hash}","number_of_confirmations":7}`,
    { height: 5, blockHash: hash, confirmations: 7 },
    ["{}", "[]", '{"block_height":"x","block_indep_hash":"","number_of_confirmations":1}'],
  ],
  [
    "offset",
    (n) => (s) => n.txOffset(id, s),
    `/tx/${id}/offset`,
    '{"offset":"351531360100598","size":"256000"}',
    { end: 351_531_360_100_598n, size: 256_000 },
    ["{}", '{"offset":"5","size":"6"}', '{"offset":-1,"size":0}', '{"offset":"1e9","size":"1"}'],
  ],
  [
    "offset in numbers",
    (n) => (s) => n.txOffset(id, s),
    `/tx/${id}/offset`,
    '{"offset":36028797018963968,"size":10}',
    { end: 36_028_797_018_963_968n, size: 10 },
    [],
  ],
  ["field", (n) => (s) => n.txField(id, "owner", s), `/tx/${id}/owner`, "abc", "abc", []],
  [
    "data",
    (n) => (s) => n.txData(id, s),
    `/tx/${id}/data`,
    "AQID",
    Buffer.from([1, 2, 3]),
    ["AQI=", "Pending!", "<html>"],
  ],
  ["no data", (n) => (s) => n.txData(id, s), `/tx/${id}/data`, "", Buffer.alloc(0), []],
  [
    "chunk",
    (n) => (s) => n.chunk(2n ** 60n, s),
    "/chunk/1152921504606846976",
    '{"chunk":"AQ","data_path":"Ag","tx_path":"Aw","packing":"unpacked"}',
    { chunk: Buffer.from([1]), dataPath: Buffer.from([2]), txPath: Buffer.from([3]) },
    [
      "{}",
      '{"chunk":"AQ","data_path":"Ag","packing":"spora_2_5"}',
      '{"chunk":1,"data_path":"Ag"}',
      '{"chunk":"A","data_path":"Ag"}',
    ],
  ],
  ["anchor", (n) => n.anchor, "/tx_anchor", hash, hash, ["", "not an anchor"]],
  [
    "price",
    (n) => (s) => n.price(10, undefined, s),
    "/price/10",
    "66000000000000000000",
    66_000_000_000_000_000_000n,
    ["", "1.5", "-1"],
  ],
  ["price to", (n) => (s) => n.price(10, id, s), `/price/10/${id}`, "5", 5n, []],
  ["balance", (n) => (s) => n.balance(id, s), `/wallet/${id}/balance`, "0", 0n, ["Invalid"]],
  ["last transaction", (n) => (s) => n.lastTx(id, s), `/wallet/${id}/last_tx`, id, id, ["two words"]],
  ["no last transaction", (n) => (s) => n.lastTx(id, s), `/wallet/${id}/last_tx`, "", "", []],
  ["peers", (n) => n.peers, "/peers", '["1.2.3.4:1984"]', ["1.2.3.4:1984"], ["{}", "null"]],
];

describe("each call", () => {
  test.each(calls)("%s", async (_name, callOf, path, body, value, unreadable) => {
    const call = callOf(node);
    usual = { status: 200, body };
    expect(await call(none)).toEqual({ kind: "ok", value });
    expect(server.requests.at(-1)).toBe(`GET ${path}`);
    for (const wrong of unreadable) {
      usual = { status: 200, body: wrong };
      expect(await call(none)).toMatchObject({ kind: "fault", reason: "malformed" });
    }
    usual = { status: 202, body: "Pending" };
    expect(await call(none)).toEqual({ kind: "pending" });
    usual = { status: 404, body: "Not Found." };
    expect(await call(none)).toEqual({ kind: "absent" });
    usual = { status: 400, body: "Invalid hash." };
    expect(await call(none)).toEqual({ kind: "rejected", status: 400, text: "Invalid hash." });
    for (const status of [204, 301, 303, 408, 425, 429, 500, 502, 503, 504]) {
      usual = { status, body: "{}" };
      expect(await call(none)).toMatchObject({ kind: "fault", reason: "status", status });
    }
  });
});

describe("posting", () => {
  const json = new Uint8Array(Buffer.from('{"a":1}'));

  test.each([
    [200, "accepted"],
    [208, "known already"],
  ])("a transaction: %p means %p", async (status, value) => {
    usual = { status, body: "OK" };
    expect(await node.postTx(json, none)).toEqual({ kind: "ok", value } as never);
    expect(server.requests.at(-1)).toBe("POST /tx");
  });

  test.each([
    [200, "stored"],
    [303, "stored for a time"],
  ])("a chunk: %p means %p", async (status, value) => {
    usual = { status };
    expect(await node.postChunk(json, none)).toEqual({ kind: "ok", value } as never);
  });

  test("a rejection carries the node's message", async () => {
    usual = { status: 400, body: '{"error":"data_root_not_found"}' };
    expect(await node.postChunk(json, none)).toEqual({
      kind: "rejected",
      status: 400,
      text: '{"error":"data_root_not_found"}',
    });
  });
});

describe("relay", () => {
  test("status, headers and bytes are returned unchanged", async () => {
    const body = new Uint8Array([0, 255, 10, 13, 128]);
    usual = { status: 410, headers: { "x-own": "yes" }, body };
    const response = await node.relay({ method: "GET", path: "/any?x=1&y=%20" }, none);
    expect(server.requests.at(-1)).toBe("GET /any?x=1&y=%20");
    if (response.kind !== "ok") throw new Error("a relay gives what came");
    expect([response.value.status, response.value.headers.get("x-own")]).toEqual([410, "yes"]);
    expect(Buffer.compare(response.value.body, body)).toBe(0);
  });

  test("a body over the size limit is a fault, with and without Content-Length", async () => {
    usual = { status: 200, body: new Uint8Array(1_001) };
    const request = { method: "GET", path: "/", bodyBytesMax: 1_000 } as const;
    expect(await node.relay(request, none)).toMatchObject({ kind: "fault", reason: "too_large" });
    expect((await node.relay({ ...request, bodyBytesMax: 1_001 }, none)).kind).toBe("ok");
    usual = { status: 200, headers: { "content-length": "99999999999" }, body: "" };
    expect(await node.relay(request, none)).toMatchObject({ kind: "fault", reason: "too_large" });
  });
});

describe("fault", () => {
  const faults: readonly (readonly [string, Fault, string])[] = [
    ["a reset connection", { kind: "reset" }, "connect"],
    ["a silent one", { kind: "hang", at: "headers" }, "timeout"],
    ["silence in the body", { kind: "hang", at: 3 }, "timeout"],
    ["a cut body", { kind: "cut", at: 3 }, "cut"],
    ["a body longer than its Content-Length is malformed", { kind: "length", by: -1 }, "malformed"],
    ["a body that drips on and on", { kind: "drip", ms: 60 }, "timeout"],
  ];
  test.each(faults)("%s", async (_name, fault, reason) => {
    usual = { status: 200, body: '{"a":"0123456789"}' };
    server.setFault(() => fault);
    expect(await (reason === "timeout" ? hasty : node).info(none)).toMatchObject({ kind: "fault", reason });
    await until(() => server.openSockets() === 0);
  });

  test("a closed port and an unknown host name are faults", async () => {
    const gone = await openFaultServer(() => usual);
    await gone.stop();
    expect(await openNode(gone.url).height(none)).toMatchObject({ kind: "fault", reason: "connect" });
    const nameless = openNode("http://no-such-host.invalid:1984");
    expect(await nameless.height(none)).toMatchObject({ kind: "fault", reason: "connect" });
  });

  test("an aborted call rejects with the caller's reason, and its socket is closed", async () => {
    server.setFault(() => ({ kind: "hang", at: "headers" }));
    const leaving = new AbortController();
    const call = hasty.height(leaving.signal).catch(String);
    await until(() => server.openSockets() !== 0);
    leaving.abort("left");
    expect(await call).toBe("left");
    await until(() => server.openSockets() === 0);
  });

  test("1,000 failures leave no socket open and no permit taken", async () => {
    const kinds: readonly Fault[] = [
      { kind: "reset" },
      { kind: "cut", at: 2 },
      { kind: "hang", at: 1 },
      { kind: "hang", at: "headers" },
    ];
    let count = 0;
    usual = { status: 200, body: "12345" };
    server.setFault(() => kinds[count++ % kinds.length]);
    const patient = openNode(server.url, { firstByteMs: 100, stallMs: 100, totalMs: 60_000 });
    const all = await Promise.all(Array.from({ length: 1_000 }, () => patient.height(none)));
    expect(all.every(({ kind }) => kind === "fault")).toBe(true);
    await until(() => server.openSockets() === 0);
    server.setFault(() => undefined);
    await eventually(
      () => patient.height(none),
      (height) => height.kind === "ok" && height.value === 12_345,
    );
  });

  test("closing aborts pending calls", async () => {
    server.setFault(() => ({ kind: "hang", at: "headers" }));
    const closing = openNode(server.url);
    const call = closing.height(none);
    await until(() => server.openSockets() !== 0);
    closing.close();
    expect((await call).kind).toBe("fault");
  });
});
