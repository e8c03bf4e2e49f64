/**
 * Responses in memory: a dropped response stays dropped, also if it was about to be stored.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import type { Id } from "../../src/arweave/id.ts";
import { createResponseCache, type Hit } from "../../src/http/gateway/response-cache.ts";
import { type GatewayServer, openGatewayServer, wire } from "../support/gateway-server.ts";
import { memoryOfEach } from "../support/heap.ts";
import { createMemoryContent, idOf, type MemoryContent } from "../support/memory-content.ts";

const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function hitOf(...dependsOn: Id[]): Hit {
  return {
    body: new Blob(["body"]),
    headers: new Headers(),
    dependsOn,
    goodUntil: Number.POSITIVE_INFINITY,
  };
}

describe("responses in memory", () => {
  const [one, two] = [idOf("one"), idOf("two")];
  const table: readonly (readonly [
    string,
    (responseCache: ReturnType<typeof createResponseCache>) => void,
    boolean,
  ])[] = [
    ["nothing was forgotten", () => undefined, true],
    ["its id was forgotten", (responseCache) => responseCache.forget(one), false],
    ["what it was found through was forgotten", (responseCache) => responseCache.forget(two), false],
    ["another id was forgotten", (responseCache) => responseCache.forget(idOf("three")), true],
    ["everything was forgotten", (responseCache) => responseCache.clear(), false],
    [
      "more ids were forgotten than are remembered",
      (responseCache) => {
        for (let count = 0; count <= 50_000; count += 1) responseCache.forget(`${count}` as Id);
      },
      false,
    ],
  ];
  test.each(table)("a response that was begun before is stored if %s: %p", (_name, meanwhile, isStored) => {
    const responseCache = createResponseCache(2 ** 20, () => 0);
    const since = responseCache.moment();
    meanwhile(responseCache);
    responseCache.put("/one", hitOf(one, two), since);
    expect(responseCache.get("/one") !== undefined).toBe(isStored);
    responseCache.put("/one", hitOf(one, two), responseCache.moment());
    expect(responseCache.get("/one")).toBeDefined();
    responseCache.forget(two);
    expect(responseCache.get("/one")).toBeUndefined();
  });
});

test("all addresses of an id are dropped with it, whatever became of others before", () => {
  const [one, two] = [idOf("one"), idOf("two")];
  const put = (address: string, ...ids: Id[]) => responseCache.put(address, hitOf(...ids), responseCache.moment());
  const stored = () => ["/a", "/b", "/c"].filter((address) => responseCache.get(address) !== undefined);
  const responseCache = createResponseCache(2 ** 20, () => 0);
  for (const address of ["/a", "/b", "/c"]) put(address, one);
  put("/a", one); // again
  put("/b", two); // of another id from now on
  responseCache.forget(one);
  expect(stored()).toEqual(["/b"]);
  put("/a", one, one);
  put("/c", one);
  responseCache.forget(two);
  expect(stored()).toEqual(["/a", "/c"]);
  responseCache.forget(one);
  expect(stored()).toEqual([]);
});

test("an entry that was evicted leaves the other addresses of its id", () => {
  const id = idOf("one");
  const responseCache = createResponseCache(9_000, () => 0); // two entries
  for (const address of ["/a", "/b", "/c"]) responseCache.put(address, hitOf(id), responseCache.moment());
  expect([responseCache.get("/a"), responseCache.count()]).toEqual([undefined, 2]);
  responseCache.forget(id);
  expect(responseCache.count()).toBe(0);
});

test("an entry is counted with the memory that its headers take", () => {
  const responseCache = createResponseCache(2 ** 30, () => 0);
  const taken = memoryOfEach(5_000, (number) => {
    const id = idOf(`${number}`);
    const fields = Array.from({ length: 23 }, (_, field) => [`X-AR-IO-Field-${field}`, `${id}${field}`]);
    // Headers that are set one by one are not in the heap's size.
    const headers = new Headers(Object.fromEntries(fields));
    responseCache.put(`/raw/${id}`, { ...hitOf(id), headers }, responseCache.moment());
  });
  expect(responseCache.bytes() / responseCache.count()).toBeGreaterThan(taken);
});

test("a body whose id is forgotten while it is read is not in memory afterwards", async () => {
  const memory = createMemoryContent();
  closers.push(memory.close);
  const id = memory.put("read slowly", { body: new Uint8Array(1_000), stable: true });
  let state: { server?: GatewayServer } = {};
  const content: Pick<MemoryContent, "open" | "openIndexed"> = {
    ...memory,
    open: async (asked, signal) => {
      const opened = await memory.open(asked, signal);
      const bytes: typeof opened.bytes = async (...span) => {
        const read = await opened.bytes(...span);
        state.server?.gateway.forget(id); // an announcement, a block, a rejection: the same call
        state = {};
        return read;
      };
      return { ...opened, bytes };
    },
  };
  const server = openGatewayServer({ content });
  closers.push(server.close);
  state = { server };
  for (const opened of [1, 2, 2]) {
    expect((await fetch(`${server.url}/raw/${id}`)).status).toBe(200);
    expect(memory.opened()).toBe(opened);
  }
});

test("a URL without a path gets no response from memory, and has no effect on the requests after it", async () => {
  const memory = createMemoryContent();
  closers.push(memory.close);
  const id = memory.put("requested", { body: new Uint8Array(1_000), stable: true });
  const server = openGatewayServer({ content: memory });
  closers.push(server.close);
  expect((await fetch(`${server.url}/raw/${id}`)).status).toBe(200);
  /** The runtime adds a slash to such a URL (Bun 1.4.5). */
  const requestOf = (url: string) => Object.defineProperty(new Request(url), "url", { value: url });
  const hit = (url: string) => server.gateway.hit(requestOf(url));
  expect(hit("http://a.example")).toBeUndefined();
  expect(hit(`http://a.example/raw/${id}`)?.status).toBe(200);
  expect(hit("http://a.example")).toBeUndefined();
  expect(hit(`http://b.example/raw/${id}`)?.status).toBe(200);
});

test("an invalid Host gets no response from memory, whatever the path before the address", async () => {
  const memory = createMemoryContent();
  closers.push(memory.close);
  const id = memory.put("requested", { body: new Uint8Array(1_000), stable: true });
  const server = openGatewayServer({ content: memory });
  closers.push(server.close);
  const statusOf = async (path: string, host: string) =>
    (await wire(server.server.port, `GET ${path} HTTP/1.1\r\nHost: ${host}`)).status;
  for (const path of [`/${id}`, `/${id}`, `/raw/${id}`]) expect(await statusOf(path, "a.example")).toBe(200);
  for (const path of [`/${id}`, `/raw/${id}`, `/nothing/${id}`]) expect(await statusOf(path, "a b")).toBe(400);
  expect(await statusOf(`/nothing/${id}`, "b.example")).toBe(404);
  // The meaning of the last host is not that of a host that begins with it.
  for (const host of ["a.example", "a.example:80", "a.example.b", "b.example"])
    expect(await statusOf(`/${id}`, host)).toBe(200);
});
