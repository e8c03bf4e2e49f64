/**
 * `GET /svc/events` over sockets: what a client sees of the chain, resumption over a restart, filters, bounds.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import net from "node:net";
import { openEventHub } from "../../src/gateway/events/event-hub.ts";
import { bundleOf, bundleTags, makeItem } from "../content/bundles.ts";
import { post, rsa, testBytes } from "../dev/devnet/support.ts";
import { indexFile } from "../store/index/index-file.ts";
import { ownerOf, pendingOf, tagOf } from "../store/index/rows-of.ts";
import { type EventClient, followEvents, type ReadEvent } from "../support/event-reader.ts";
import { openGatewayServer } from "../support/gateway-server.ts";
import { createMemoryContent } from "../support/memory-content.ts";
import { createRandom } from "../support/random.ts";
import { createRecordingLog } from "../support/recording-log.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { until } from "../support/until.ts";

let stack: Stack;
beforeAll(async () => {
  stack = await openStack({
    EVENT_SUBSCRIBERS_MAX: "40",
    ENABLE_MEMPOOL_WATCHER: "true",
    ANS104_UNBUNDLE_FILTER: '{"always":true}',
    ANS104_INDEX_FILTER: '{"always":true}',
  });
  await stack.devnet.mine(2);
  await stack.settled();
}, 60_000);
afterAll(() => stack.close());

const url = (query = "") => `${stack.gateway.url}/svc/events${query}`;
const app = (name: string) => [{ name: "App-Name", value: name }];

function tip() {
  const found = stack.gateway.reader.tip();
  if (found === undefined) throw new Error("the gateway follows the chain");
  return found;
}

async function metricOf(name: string): Promise<string | undefined> {
  const text = await (await fetch(`${stack.gateway.url}/metrics`)).text();
  return new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1];
}

function eventOf(client: EventClient, event: string, id: string): ReadEvent | undefined {
  return client.events.find((each) => each.event === event && each.data["id"] === id);
}

describe("N8: live events", () => {
  test("have headers that no cache and no proxy holds back", async () => {
    const client = await followEvents(url());
    const { headers, status } = client.response;
    expect([
      status,
      headers.get("content-type"),
      headers.get("cache-control"),
      headers.get("x-accel-buffering"),
    ]).toEqual([200, "text/event-stream; charset=utf-8", "no-store", "no"]);
    expect(headers.get("access-control-allow-origin")).toBe("*");
    await client.leave();
    const head = await fetch(url(), { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });

  test("show a transaction pending, then mined, and the blocks", async () => {
    const client = await followEvents(url());
    const other = await followEvents(url("?tag=App-Name:other&topic=transactions"));
    const sent = await post(stack.devnet, rsa, { data: testBytes(100), tags: app("live") });
    await until(() => eventOf(client, "pending", sent.id) !== undefined);
    await stack.devnet.mine(1);
    await until(() => eventOf(client, "mined", sent.id) !== undefined);
    const mined = eventOf(client, "mined", sent.id);
    const { height, hash } = tip();
    expect(mined?.data).toEqual({
      id: sent.id,
      type: "transaction",
      owner: rsa.address,
      recipient: "",
      tags: app("live"),
      size: 100,
      height,
      block: hash,
      bundledIn: null,
      pending: false,
    });
    expect(eventOf(client, "block", hash)?.data["height"]).toBe(height);
    expect(other.events).toEqual([]);
    await client.leave();
    await other.leave();
  }, 60_000);

  test("show the items of a bundle, by the bundle and by heights", async () => {
    const [first, second] = [makeItem(10), makeItem(20)];
    const bundle = bundleOf([first, second]);
    const client = await followEvents(url());
    const sent = await post(stack.devnet, rsa, { data: bundle, tags: bundleTags });
    const height = stack.devnet.height() + 1;
    const items = await followEvents(url(`?bundledIn=${sent.id}&topic=transactions`));
    const later = await followEvents(url(`?minHeight=${height + 1}`));
    const now = await followEvents(url(`?minHeight=${height}&maxHeight=${height}&kind=item`));
    await stack.devnet.mine(2);
    await until(() => items.events.length === 2 && later.events.length === 1 && now.events.length === 3);
    const { hash } = stack.devnet.blockAt(height) ?? {};
    const shown = items.events.map(({ event, data }) => [event, data["id"], data["block"], data["bundledIn"]]);
    expect(shown).toEqual([first, second].map(({ id }) => ["mined", id, hash, sent.id]));
    expect(later.events.map(({ event, data }) => [event, data["height"]])).toEqual([["block", height + 1]]);
    expect(now.events.map(({ data }) => data["id"])).toEqual([hash, first.id, second.id]);
    expect(eventOf(client, "mined", sent.id)?.data["bundledIn"]).toBeNull();
    for (const each of [client, items, later, now]) await each.leave();
  }, 60_000);

  test("that a client leaves are no disconnects of downloads, and no errors", async () => {
    const client = await followEvents(url());
    await until(async () => (await metricOf("event_subscribers")) === "1");
    await client.leave();
    await until(async () => (await metricOf("event_subscribers")) === "0");
    const counted = await (await fetch(`${stack.gateway.url}/metrics`)).text();
    expect(counted).toContain('path="/svc/events"');
    expect(counted).not.toMatch(/client_disconnects_total\{[^}]*events/);
    expect(stack.lines.filter(({ level }) => level === "error")).toEqual([]);
  }, 60_000);

  test("go on after a restart with the events that were missed, each once", async () => {
    const before = await followEvents(url("?topic=blocks"));
    await until(() => before.lastId() !== "");
    await stack.devnet.mine(1);
    await stack.settled();
    await until(() => before.events.length === 1);
    await stack.restart();
    await before.ended;
    expect(before.events.at(-1)).toMatchObject({ event: "closed", data: { reason: "The gateway is stopping." } });
    await stack.devnet.mine(2);
    await stack.settled();
    const after = await followEvents(url("?topic=blocks"), before.lastId());
    await stack.devnet.mine(1);
    await until(() => after.events.length === 3);
    const { height } = tip();
    const heights = [...before.events, ...after.events].flatMap(({ data }) => data["height"] ?? []);
    expect(heights).toEqual([height - 3, height - 2, height - 1, height]);
    const again = await followEvents(url(`?topic=blocks&after=${before.lastId()}`));
    await until(() => again.events.length === 3);
    expect(again.events).toEqual(after.events);
    await after.leave();
    await again.leave();
  }, 60_000);

  test("say that everything must be read again when the cursor is of another index", async () => {
    const client = await followEvents(url("?topic=blocks"), "000000000000-5");
    await until(() => client.events.length === 1);
    expect(client.events[0]?.event).toBe("reset");
    await client.leave();
  });

  test.each([
    ["an unknown parameter", "?owners=x"],
    ["an invalid id", "?id=short"],
    ["an invalid owner", "?owner=short"],
    ["an invalid recipient", "?recipient=short"],
    ["a tag without a value", "?tag=App-Name"],
    ["tags that are not JSON", "?tags=x"],
    ["tags that are not GraphQL's", '?tags=[{"name":"x"}]'],
    ["an unknown kind", "?kind=block"],
    ["an unknown topic", "?topic=mempool"],
    ["an invalid bundle", "?bundledIn=short"],
    ["a negative height", "?minHeight=-1"],
    ["two heights", "?maxHeight=1&maxHeight=2"],
    ["a bad cursor", "?after=5"],
    ["too many owners", `?${Array.from({ length: 101 }, () => `owner=${"A".repeat(43)}`).join("&")}`],
  ])("reject %s with 400 and the reason", async (_name, query) => {
    const response = await fetch(url(query));
    expect([response.status, await response.json()]).toEqual([400, expect.stringMatching(/^Invalid subscription: "/)]);
  });

  test("reject a bad Last-Event-ID", async () => {
    const response = await fetch(url(), { headers: { "Last-Event-ID": "x" } });
    expect([response.status, await response.json()]).toEqual([
      400,
      'Invalid subscription: "Last-Event-ID" is not a valid cursor',
    ]);
  });

  test("are for a bounded number of clients; one that leaves makes its place free", async () => {
    const clients = await Promise.all(Array.from({ length: 4 }, () => followEvents(url())));
    expect(clients.map(({ response }) => response.status)).toEqual([200, 200, 200, 200]);
    const more = await fetch(url());
    expect([more.status, more.headers.has("retry-after")]).toEqual([503, true]);
    await more.body?.cancel();
    await clients[0]?.leave();
    await until(async () => {
      const next = await followEvents(url());
      await next.leave();
      return next.response.status === 200;
    });
    for (const client of clients) await client.leave();
  });

  test("a client that does not read is cut with a reason, and its connection is closed", async () => {
    using index = indexFile();
    const random = createRandom(5);
    const owner = ownerOf(random);
    const { log, lines } = createRecordingLog(Date.now);
    const hub = openEventHub({ journal: index.reader.journal, subscribersMax: 100, log, bounds: { gatherMs: 0 } });
    const content = createMemoryContent();
    const { server, close } = openGatewayServer({ content, events: hub });
    const socket = net.connect(server.port, "127.0.0.1");
    let isClosed = false;
    socket.on("close", () => {
      isClosed = true;
    });
    socket.on("error", () => undefined);
    socket.pause();
    socket.write("GET /svc/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    await until(() => hub.count() === 1);
    const tags = [tagOf("n", "x".repeat(3_000))];
    await until(() => {
      index.writer.addPending(Array.from({ length: 100 }, () => pendingOf(random, owner, { tags })));
      hub.wake();
      return hub.cuts() === 1;
    });
    expect(hub.count()).toBe(0);
    expect(JSON.stringify(lines)).toContain("it reads too slowly");
    // One that reads again gets the reason.
    let last = "";
    socket.on("data", (bytes) => {
      last = (last + bytes.toString("latin1")).slice(-1_000);
    });
    socket.resume();
    await until(() => isClosed);
    expect(last).toContain('event: closed\ndata: {"reason":"The client reads too slowly."}');
    await hub.close();
    await close();
    await content.close();
  }, 60_000);
});
