/**
 * Mining, minting and resets, for this machine only.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { createDevnetRoutes } from "../../../src/dev/devnet-routes/node-routes.ts";
import { createRecordingLog } from "../../support/recording-log.ts";
import { until } from "../../support/until.ts";
import { ecdsa, openTestDevnet, post, serve, stranger } from "./support.ts";

const devnet = await openTestDevnet();
const node = serve(devnet);
const controls = ["/mine", "/mine/1", `/mint/${stranger.address}/1`, "/reset"];

afterAll(async () => {
  await node.close();
  devnet.close();
});

describe("a control", () => {
  test("mines one block or many, by GET and POST, and responds as /info", async () => {
    devnet.reset();
    await post(devnet, ecdsa);
    const one = await (await node.get("/mine")).json();
    expect([one.height, one.current, one.network]).toEqual([1, devnet.tipHash(), "cairn.devnet.1"]);
    expect((await (await node.post("/mine/3")).json()).height).toBe(4);
    const info = await (await node.get("/info")).json();
    expect([info.height, info.blocks]).toEqual([4, 5]);
    const counts = [1, 2, 3, 4].map((height) => JSON.parse(devnet.blockAt(height)?.text ?? "").txs.length);
    expect(counts).toEqual([1, 0, 0, 0]);
  });

  test("mints winston, also beyond 2^53, and responds with the balance", async () => {
    devnet.reset();
    const much = 2n ** 70n;
    expect(await (await node.get(`/mint/${stranger.address}/${much}`)).text()).toBe(`${much}`);
    expect(await (await node.post(`/mint/${stranger.address}/1`)).text()).toBe(`${much + 1n}`);
    expect(await (await node.get(`/wallet/${stranger.address}/balance`)).text()).toBe(`${much + 1n}`);
  });

  test("resets the chain to the first block", async () => {
    const first = devnet.blockAt(0)?.hash;
    await devnet.mine(2);
    expect(await (await node.post("/reset")).text()).toBe("reset done");
    expect([devnet.height(), devnet.tipHash()]).toEqual([0, first ?? ""]);
    expect(devnet.account(ecdsa.address)).toEqual({ balance: 10n ** 18n, lastTx: "" });
  });

  test("reports the expected form of invalid input", async () => {
    const rows = [
      "/mine/0",
      "/mine/x",
      "/mine/10001",
      "/mint/x/1",
      `/mint/${stranger.address}/0`,
      `/mint/${stranger.address}/1.5`,
    ];
    for (const path of rows) {
      const response = await node.post(path);
      expect([path, response.status]).toEqual([path, 400]);
      expect(await response.text()).toMatch(
        /^invalid (number of blocks: expected 1 to 10000|mint: expected an address)/,
      );
    }
  });

  type Row = readonly [headers: Record<string, string>, allowed: boolean];
  const callers: readonly Row[] = [
    [{}, true],
    [{ host: "localhost:1984" }, true],
    [{ host: "127.0.0.1" }, true],
    [{ host: "127.8.9.1:80" }, true],
    [{ host: "[::1]:1984" }, true],
    [{ host: "LOCALHOST" }, true],
    [{ host: "example.com" }, false],
    [{ host: "localhost.example.com" }, false],
    [{ host: "127.0.0.1.example.com" }, false],
    [{ host: "192.168.0.5:1984" }, false],
    [{ host: "0.0.0.0:1984" }, false],
    [{ origin: "http://localhost:3000" }, true],
    [{ origin: "http://127.0.0.1:5173" }, true],
    [{ origin: "http://abc.localhost:3000" }, true],
    [{ origin: "http://[::1]:3000" }, true],
    [{ origin: "https://example.com" }, false],
    [{ origin: "http://localhost.example.com" }, false],
    [{ origin: "http://evil-localhost" }, false],
    [{ origin: "null" }, false],
    [{ origin: "" }, false],
    [{ origin: "http://localhost:3000", host: "example.com" }, false],
    [{ "sec-fetch-site": "cross-site" }, false],
    [{ "sec-fetch-site": "cross-site", origin: "http://127.0.0.1:5173" }, true],
    [{ "sec-fetch-site": "same-site" }, true],
    [{ "sec-fetch-site": "same-origin" }, true],
    [{ "sec-fetch-site": "none" }, true],
  ];

  test.each(callers)("with %j is allowed: %p", async (headers, allowed) => {
    for (const path of controls) {
      for (const ask of [node.get(path, headers), node.post(path, "", headers)]) {
        const { status } = await ask;
        expect([path, status]).toEqual([path, allowed ? 200 : 403]);
      }
    }
  });

  test("that is rejected changes nothing", async () => {
    await devnet.mine(1);
    const before = [devnet.tipHash(), devnet.supply()];
    for (const path of controls) await node.post(path, "", { origin: "https://example.com" });
    expect([devnet.tipHash(), devnet.supply()]).toEqual(before);
  });

  test("is guarded, but any page may read the chain and post to it", async () => {
    const headers = { origin: "https://example.com", host: "example.com", "sec-fetch-site": "cross-site" };
    expect((await node.get("/info", headers)).status).toBe(200);
    expect((await node.post("/tx", "{}", headers)).status).toBe(400);
  });
});

test("blocks that are being mined when the chain is closed end as 503, without an error in the log", async () => {
  const { log, lines } = createRecordingLog();
  const closed = await openTestDevnet();
  const routes = createDevnetRoutes(closed, log);
  const mining = routes.fetch(
    new Request("http://localhost/mine/10000", { method: "POST", headers: { host: "localhost" } }),
  );
  await until(() => closed.height() > 1);
  closed.close();
  const response = await mining;
  expect([response.status, await response.text()]).toEqual([503, "the chain was closed"]);
  expect(lines).toEqual([]);
});
