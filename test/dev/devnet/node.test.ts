/**
 * The node's responses: status and text of every request, as clients of the chain expect them.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { crc32 } from "node:zlib";
import { devnetFee } from "../../../src/dev/devnet/chain-rules.ts";
import { createDevnetRoutes } from "../../../src/dev/devnet-routes/node-routes.ts";
import { decodeBase64url, encodeBase64url } from "../../../src/lib/base64url.ts";
import { createLog } from "../../../src/lib/log.ts";
import {
  chunkPosts,
  ecdsa,
  openTestDevnet,
  post,
  rsa,
  serve,
  sign,
  stranger,
  type TestNode,
  testBytes,
} from "./support.ts";

const devnet = await openTestDevnet();
const data = testBytes(300_000);
const unknownId = encodeBase64url(new Uint8Array(32).fill(1));
let node: TestNode;
let mined = "";
let waiting = "";
let rejected = "";
let withoutChunks = "";

beforeAll(async () => {
  node = serve(devnet);
  const tags = [{ name: "Content-Type", value: "text/css" }];
  mined = (await post(devnet, rsa, { data, tailRule: "plain", tags })).id;
  const absent = { dataSize: 5, dataRoot: new Uint8Array(32).fill(3) };
  withoutChunks = (await post(devnet, rsa, { stated: absent })).id;
  await devnet.mine(1);
  waiting = (await post(devnet, ecdsa)).id;
  const cheap = sign(devnet, rsa, { reward: 1n });
  rejected = cheap.id;
  await devnet.postTransaction(cheap.text);
});

afterAll(async () => {
  await node.close();
  devnet.close();
});

/** Replaces names in a path by what they represents. */
function fill(path: string): string {
  const names: Readonly<Record<string, string>> = {
    MINED: mined,
    WAITING: waiting,
    REJECTED: rejected,
    UNKNOWN: unknownId,
    BARE: withoutChunks,
    RSA: rsa.address,
    STRANGER: stranger.address,
    TIP: devnet.tipHash(),
  };
  return path.replace(/[A-Z]{3,}/g, (name) => names[name] ?? name);
}

type Row = readonly [path: string, status: number, body: string | RegExp];

const rows: readonly Row[] = [
  ["/height", 200, "1"],
  ["//height//", 200, "1"],
  ["/time", 200, "1700000000"],
  ["/peers", 200, "[]"],
  ["/tx_anchor", 200, /^[A-Za-z0-9_-]{64}$/],
  ["/block/height/0", 200, /"height":0,/],
  ["/block/height/1", 200, /"height":1,/],
  ["/block/height/2", 404, "Block not found."],
  ["/block/height/-1", 400, "Invalid height."],
  ["/block/height/x", 400, "Invalid height."],
  ["/block/hash/TIP", 200, /"height":1,/],
  ["/block/hash/UNKNOWN", 404, "Block not found."],
  ["/block/hash/@", 404, "Block not found."],
  ["/block/current", 200, /"height":1,/],
  ["/current_block", 200, /"height":1,/],
  ["/block/height/1/timestamp", 421, "Subfield block querying is disabled on this node."],
  ["/block/height/0/wallet/RSA/balance", 200, "1000000000000000000"],
  ["/block_index/0/1", 200, /^\["[^"]{64}","[^"]{64}"\]$/],
  ["/hash_list/1/1", 200, /^\["[^"]{64}"\]$/],
  ["/block_index/-1/1", 400, '{"error":"negative_start"}'],
  ["/block_index/1/0", 400, '{"error":"start_bigger_than_end"}'],
  ["/block_index/0/10000", 400, '{"error":"range_too_big","max_range_size":10000}'],
  ["/block_index/5/6", 400, '{"error":"start_too_big"}'],
  ["/block_index/a/b", 400, '{"error":"invalid_range"}'],
  ["/block_index", 400, '{"error":"not_supported_since_fork_2_6"}'],
  ["/tx/pending", 200, /^\["[^"]{43}"\]$/],
  ["/tx/MINED", 200, /"data":"",/],
  ["/tx/WAITING", 202, "Pending"],
  ["/tx/REJECTED", 410, "tx_too_cheap"],
  ["/tx/UNKNOWN", 404, "Not Found."],
  ["/tx/@@@", 400, "Invalid hash."],
  ["/unconfirmed_tx/WAITING", 200, /"format":2,/],
  ["/unconfirmed_tx/MINED", 200, /"format":2,/],
  ["/unconfirmed_tx/UNKNOWN", 404, "Not Found."],
  ["/tx/MINED/status", 200, /^\{"block_height":1,"block_indep_hash":"[^"]{64}","number_of_confirmations":1\}$/],
  ["/tx/WAITING/status", 202, "Pending"],
  ["/tx/REJECTED/status", 404, "Not Found."],
  ["/tx/UNKNOWN/status", 404, "Not Found."],
  ["/tx/@@@/status", 400, "Invalid address."],
  ["/tx/MINED/offset", 200, /^\{"offset":"\d+","size":"300000"\}$/],
  ["/tx/WAITING/offset", 404, ""],
  ["/tx/@@@/offset", 400, '{"error":"invalid_address"}'],
  ["/tx/MINED/data_size", 200, "300000"],
  ["/tx/MINED/owner", 200, encodeBase64url(rsa.owner)],
  ["/tx/MINED/tags", 200, `[{"name":"${btoa("Content-Type")}","value":"${btoa("text/css").replace("=", "")}"}]`],
  ["/tx/MINED/data", 200, encodeBase64url(data)],
  ["/tx/BARE/data", 404, /<!doctype html>/],
  ["/tx/WAITING/data", 202, "Pending"],
  ["/tx/WAITING/owner", 202, "Pending"],
  ["/tx/MINED/colour", 400, '{"error":"invalid_field"}'],
  ["/tx/UNKNOWN/owner", 404, "Not Found."],
  ["/tx/UNKNOWN/data.html", 404, /<!doctype html>/],
  ["/UNKNOWN", 404, /<!doctype html>/],
  ["/chunk/0", 404, ""],
  ["/chunk/1", 200, /"packing":"unpacked","absolute_end_offset":"64","chunk_size":"64"/],
  ["/chunk/65", 404, ""],
  ["/chunk/99999999999", 404, ""],
  ["/chunk/-1", 400, '{"error":"offset_out_of_bounds"}'],
  ["/chunk/x", 400, '{"error":"invalid_offset"}'],
  ["/chunk_proof/1", 200, /^\{"data_path":"[^"]+","tx_path":"[^"]+","absolute_end_offset":"64"\}$/],
  ["/unconfirmed_chunk/MINED/1", 200, /"is_stored_long_term":true/],
  ["/unconfirmed_chunk/MINED/300001", 404, ""],
  ["/wallet/RSA/balance", 200, /^9{5}\d{13}$/],
  ["/wallet/STRANGER/balance", 200, "0"],
  ["/wallet/STRANGER/last_tx", 200, ""],
  ["/wallet/RSA/last_tx", 200, /^[A-Za-z0-9_-]{43}$/],
  ["/wallet/RSA/reserved_rewards_total", 200, "0"],
  ["/wallet/x/balance", 400, "Invalid address."],
  ["/price/0", 200, `${devnetFee(0n, "none")}`],
  ["/price/1", 200, `${devnetFee(262_144n, "none")}`],
  ["/price/1/RSA", 200, `${devnetFee(1n, "known")}`],
  ["/price/1/STRANGER", 200, `${devnetFee(1n, "new")}`],
  ["/price/x", 400, '{"error":"size_must_be_an_integer"}'],
  ["/price/-1", 400, '{"error":"size_must_be_an_integer"}'],
  ["/price/1/x", 400, "Invalid address."],
  ["/price2/1", 200, `{"fee":"${devnetFee(1n, "none")}","denomination":1}`],
  ["/optimistic_price/1/RSA", 200, `{"fee":"${devnetFee(1n, "none")}","denomination":1}`],
  ["/nothing", 400, "Request type not found."],
  ["/tx/MINED/a/b/c", 400, "Request type not found."],
];

describe("the node", () => {
  test.each(rows)("responds to GET %s with %d", async (path, status, body) => {
    const response = await node.get(fill(path));
    const text = await response.text();
    expect([response.status, response.headers.get("access-control-allow-origin")]).toEqual([status, "*"]);
    if (typeof body === "string") expect(text).toBe(body);
    else expect(text).toMatch(body);
  });

  test("has the fields that clients need in /info", async () => {
    const info = await (await node.get("/info")).json();
    expect(info).toEqual({
      network: "cairn.devnet.1",
      version: 5,
      release: 92,
      git_hash: "",
      height: 1,
      current: devnet.tipHash(),
      blocks: 2,
      cached_blocks: 2,
      peers: 0,
      queue_length: 0,
      node_state_latency: 0,
    });
    expect(await (await node.get("/")).json()).toEqual(info);
  });

  test("serves raw data with its type and any extension, and prevents scripts", async () => {
    for (const path of [`/${mined}`, `/${mined}.css`, `/tx/${mined}/data.css`]) {
      const response = await node.get(path);
      expect(response.headers.get("content-type")).toBe("text/css; charset=utf-8");
      expect(response.headers.get("content-security-policy")).toBe("sandbox");
      expect(encodeBase64url(await response.bytes())).toBe(encodeBase64url(data));
    }
  });

  test("returns the same chunk for each of its bytes, in JSON and in binary", async () => {
    const { offset } = await (await node.get(`/tx/${mined}/offset`)).json();
    const end = Number(offset);
    const [first, again, next] = await Promise.all(
      [end - 299_999, end - 300_000 + 262_144, end - 300_000 + 262_145].map(async (at) =>
        (await node.get(`/chunk/${at}`)).json(),
      ),
    );
    expect(again).toEqual(first);
    expect([first.chunk_size, next.chunk_size, next.absolute_end_offset]).toEqual(["262144", "37856", `${end}`]);
    const binary = new DataView(await (await node.get(`/chunk2/${end}`)).arrayBuffer());
    expect([binary.getUint8(0), binary.getUint16(1)]).toEqual([0, 37_856]);
    expect((await node.get(`/chunk/${end}`)).headers.get("arweave-absolute-end-offset")).toBe(`${end}`);
  });

  test("returns prices as JSON to clients that accept it, with the denomination in a header for all", async () => {
    const response = await node.get("/price/1", { accept: "application/json" });
    expect(await response.json()).toEqual({ fee: `${devnetFee(1n, "none")}`, denomination: 1 });
    expect((await node.get("/price/1")).headers.get("arweave-denomination")).toBe("1");
  });

  test("returns the complete block index for format 3", async () => {
    const [entry] = await (await node.get("/block_index/1/1", { "x-block-format": "3" })).json();
    expect(Object.keys(entry).toSorted()).toEqual(["hash", "tx_root", "weave_size"]);
  });

  test("returns the block index newest first, with the same blocks in both formats, for any number", async () => {
    const chain = await openTestDevnet();
    const own = serve(chain);
    await chain.mine(250);
    for (const [from, to] of [
      [0, 250],
      [49, 150],
      [200, 9_999],
    ]) {
      const hashes = await (await own.get(`/block_index/${from}/${to}`)).json();
      const entries = await (await own.get(`/block_index/${from}/${to}`, { "x-block-format": "3" })).json();
      expect(entries.map(({ hash }: { hash: string }) => hash)).toEqual(hashes);
      expect(hashes.at(-1)).toBe(chain.blockAt(from ?? 0)?.hash);
      expect(hashes[0]).toBe(chain.blockAt(Math.min(to ?? 0, 250))?.hash);
      expect(hashes).toHaveLength(Math.min(to ?? 0, 250) - (from ?? 0) + 1);
    }
    await own.close();
    chain.close();
  });

  test("accepts addresses with a checksum, and rejects a wrong checksum", async () => {
    const sum = Buffer.alloc(4);
    sum.writeUInt32BE(crc32(decodeBase64url(rsa.address) ?? new Uint8Array(0)));
    const right = await node.get(`/wallet/${rsa.address}:${encodeBase64url(sum)}/balance`);
    expect([right.status, await right.text()]).toEqual([200, `${devnet.account(rsa.address)?.balance}`]);
    expect((await node.get(`/wallet/${rsa.address}:AAAAAA/balance`)).status).toBe(400);
  });
});

describe("a defect", () => {
  test("is logged with its stack, and the client gets no detail", async () => {
    const lines: string[] = [];
    const log = createLog({
      level: "error",
      format: "json",
      clock: () => 0,
      write: (line) => void lines.push(line),
    });
    const broken = {
      ...devnet,
      height: () => {
        throw new Error("secret");
      },
    };
    const response = await createDevnetRoutes(broken, log).handle(new Request("http://localhost/height"));
    expect([response.status, await response.text()]).toEqual([500, "Internal Server Error"]);
    expect(lines.join()).toContain("secret");
  });
});

describe("a post", () => {
  const invalid = "Transaction verification failed.";

  test("of a transaction gets the response of a node, with the reason in a header", async () => {
    const known = sign(devnet, rsa, { reward: 10n ** 12n });
    const parsed = JSON.parse(known.text);
    const stale = sign(devnet, rsa, { lastTx: encodeBase64url(new Uint8Array(48)) });
    const afterWaiting = sign(devnet, rsa, { lastTx: waiting });
    const split = sign(devnet, rsa, { data: testBytes(262_145), tailRule: "halved" });
    const table: readonly (readonly [body: string, status: number, text: string, reason: RegExp | null])[] = [
      ["{", 400, "Invalid JSON.", /^invalid_json: /],
      ["[]", 400, "Invalid JSON.", /^invalid_json: /],
      [JSON.stringify({ ...parsed, owner: 5 }), 400, "Invalid JSON.", /^invalid_json: owner/],
      [JSON.stringify({ ...parsed, quantity: "1e3" }), 400, "Invalid JSON.", /^invalid_json: quantity/],
      [JSON.stringify({ ...parsed, id: `${parsed.id}A` }), 400, "Invalid hash.", /^invalid_hash: /],
      [JSON.stringify({ ...parsed, owner: "" }), 400, "Invalid signature type.", /^invalid_signature_type: /],
      [JSON.stringify({ ...parsed, quantity: "-1" }), 400, invalid, /^quantity_negative: /],
      [
        JSON.stringify({ ...parsed, reward: "1" }),
        400,
        invalid,
        /^tx_too_cheap: reward 1 winston, expected at least \d+; tx_signature_not_valid: /,
      ],
      [stale.text, 400, "Invalid anchor (last_tx).", /^tx_bad_anchor: /],
      [afterWaiting.text, 400, "Invalid anchor (last_tx from mempool).", /^last_tx_in_mempool: /],
      [split.text, 400, "The attached data is split in an unknown way.", /^invalid_data_root_size: /],
      [known.text, 200, "OK", null],
      [known.text, 208, "Transaction already processed.", null],
    ];
    for (const [body, status, text, reason] of table) {
      const response = await node.post("/tx", body);
      expect([response.status, await response.text()]).toEqual([status, text]);
      if (reason === null) expect(response.headers.get("x-reject-reason")).toBeNull();
      else expect(response.headers.get("x-reject-reason")).toMatch(reason);
    }
  });

  test("with the header of a known id gets its response before its body is read", async () => {
    const response = await node.post("/tx", "not read", { "arweave-tx-id": waiting });
    expect([response.status, await response.text()]).toEqual([208, "Transaction already processed."]);
    expect((await node.post("/tx", "", { "arweave-tx-id": "@" })).status).toBe(400);
  });

  test("that arrives twice concurrently is accepted once", async () => {
    const { text } = sign(devnet, ecdsa, { data: testBytes(800_000, 6), tailRule: "plain" });
    const responses = await Promise.all([1, 2, 3, 4].map(() => node.post("/tx", text)));
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 208, 208, 208]);
  });

  test("gets the reasons as JSON when it accepts nothing else", async () => {
    const cheap = sign(devnet, rsa, { reward: 1n });
    const response = await node.post("/tx", cheap.text, { accept: "application/json" });
    expect(await response.json()).toEqual({
      error: invalid,
      reasons: [{ code: "tx_too_cheap", detail: expect.stringMatching(/^reward 1 winston, expected at least \d+$/) }],
    });
    const chunk = await node.post("/chunk", "{}", { accept: "application/json" });
    expect(await chunk.json()).toMatchObject({ error: "invalid_json", reasons: [{ code: "invalid_json" }] });
  });

  test("of a chunk gets the response of a node", async () => {
    const [body = ""] = chunkPosts(data, "plain");
    const stored = await node.post("/chunk", body);
    expect([stored.status, await stored.text()]).toEqual([200, ""]);
    const unknown = await node.post("/chunk", JSON.stringify({ ...JSON.parse(body), data_root: unknownId }));
    expect([unknown.status, await unknown.text()]).toEqual([400, '{"error":"data_root_not_found"}']);
    expect(unknown.headers.get("x-reject-reason")).toMatch(/^data_root_not_found: no transaction/);
  });

  test("that is too large is rejected: 15 MiB for a transaction, 750,000 bytes for a chunk", async () => {
    const bodies: readonly (readonly [path: string, size: number, status: number])[] = [
      ["/tx", 15 * 2 ** 20 + 1, 413],
      ["/tx", 15 * 2 ** 20, 400],
      ["/chunk", 750_001, 413],
      ["/chunk", 750_000, 400],
    ];
    for (const [path, size, status] of bodies) {
      const response = await node.post(path, "x".repeat(size));
      expect([path, size, response.status]).toEqual([path, size, status]);
      if (status === 413) expect(await response.text()).toBe("Payload too large");
    }
  });

  test("for another network is rejected", async () => {
    const response = await node.post("/tx", "{}", { "x-network": "arweave.N.1" });
    expect([response.status, await response.text()]).toEqual([412, '{"error":"wrong_network"}']);
    expect((await node.post("/tx", "{}", { "x-network": "cairn.devnet.1" })).status).toBe(400);
  });

  test("to the node's internals is rejected", async () => {
    for (const path of ["/wallet", "/unsigned_tx"]) {
      const response = await node.post(path, "{}");
      expect([response.status, await response.text()]).toEqual([
        421,
        "Internal API disabled or invalid internal API secret in request.",
      ]);
    }
  });

  test("may come from a page: the preflight allows it", async () => {
    for (const path of ["/tx", "/chunk"]) {
      const response = await fetch(`http://127.0.0.1:${node.port}${path}`, { method: "OPTIONS" });
      expect([response.status, await response.text()]).toEqual([200, "OK"]);
      expect(response.headers.get("access-control-allow-methods")).toBe("GET, POST");
      expect(response.headers.get("access-control-allow-headers")).toContain("Content-Type");
    }
  });
});
