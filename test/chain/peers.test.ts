/**
 * Peers that nodes and gateways list: learned within limits, rate limited, weighted, removed; and three local
 * gateways that serve chunks, of which one returns false data.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { openNode } from "../../src/chain/node.ts";
import { createNodes, weightOf } from "../../src/chain/nodes.ts";
import { drawn, infoEveryMs, learnEveryMs, openPeers, peersStoredMax } from "../../src/chain/peers.ts";
import { createReach, createUrlGuard, type ReachRules } from "../../src/chain/reach.ts";
import { silentLog } from "../../src/lib/log.ts";
import { isSame, joined, locatedOf, openHarness, seeded } from "../content/content-harness.ts";
import { until } from "../support/until.ts";
import { type DataNode, isChunkRequest, makeData, openDataNode } from "./data-node.ts";
import { type FaultServer, openFaultServer } from "./fault-server.ts";

const none = new AbortController().signal;
const timeouts = { firstByteMs: 5_000, stallMs: 5_000, totalMs: 10_000 };
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const portOf = ({ url }: Readonly<{ url: string }>) => Number(new URL(url).port);

type Lists = Readonly<{ nodes?: unknown; gateways?: unknown; info?: () => string | undefined }>;

/** A peer that lists other peers and reports its height. */
async function machine(lists: Lists = {}): Promise<FaultServer> {
  const server = await openFaultServer(({ path }) => {
    const body = {
      "/peers": lists.nodes === undefined ? undefined : JSON.stringify(lists.nodes),
      "/ar-io/peers": lists.gateways === undefined ? undefined : JSON.stringify(lists.gateways),
      "/info": lists.info === undefined ? '{"height":7,"blocks":8}' : lists.info(),
    }[path];
    return body === undefined ? { status: 404 } : { status: 200, body };
  });
  closers.push(server.stop);
  return server;
}

type Chosen = Readonly<{ nodes?: readonly FaultServer[]; gateways?: readonly FaultServer[] }>;

function peersOf(chosen: Chosen, rules: Partial<ReachRules> = {}, perHostMax = 1_000) {
  const time = { now: 1_000_000 };
  const clock = () => time.now;
  const parts = { clock, random: seeded(3), log: silentLog };
  const open = ({ url }: FaultServer) => openNode(url, timeouts);
  const nodes = (chosen.nodes ?? []).map(open);
  const gateways = (chosen.gateways ?? []).map(open);
  const chunkNodes = createNodes([...nodes, ...gateways], parts);
  const all: ReachRules = { ports: [1984], allowsPrivate: true, ...rules };
  const peers = openPeers({
    ...parts,
    nodes,
    gateways,
    chunkNodes,
    reach: createReach(all),
    isBlockedUrl: createUrlGuard(all),
    perHostMax,
    timeouts,
  });
  closers.push(chunkNodes.close, peers.close);
  return { peers, chunkNodes, time };
}

const infosOf = ({ requests }: FaultServer) => requests.filter((line) => line === "GET /info").length;

describe("peers are learned", () => {
  test("from the lists of nodes and gateways, and from the lists of those peers", async () => {
    const [far, near, other] = [await machine(), await machine(), await machine()];
    const named = await machine({ nodes: [`127.0.0.1:${portOf(far)}`] });
    const node = await machine({ nodes: [`127.0.0.1:${portOf(near)}`, `127.0.0.1:${portOf(named)}`] });
    const gateway = await machine({
      gateways: {
        gateways: { [`127.0.0.1:${portOf(other)}`]: { url: other.url, dataWeight: 1, chunkWeight: 1 } },
        arweaveNodes: { [`127.0.0.1:${portOf(near)}`]: { url: near.url } },
      },
    });
    const ports = [far, near, other, named, node, gateway].map(portOf);
    const { peers, time } = peersOf({ nodes: [node], gateways: [gateway] }, { ports });
    await peers.round(none);
    const kinds = () => new Map(peers.list().map(({ url, kind }) => [url, kind]));
    expect(kinds()).toEqual(
      new Map([
        [near.url, "node"],
        [named.url, "node"],
        [other.url, "gateway"],
      ]),
    );
    expect(peers.list()[0]).toEqual({ url: near.url, kind: "node", height: 7, blocks: 8, seenAt: time.now });
    time.now += learnEveryMs;
    await peers.round(none);
    expect(kinds().get(far.url)).toBe("node");
    for (const each of [node, gateway]) expect(infosOf(each)).toBe(0); // an operator's are not peers
  });

  test("except at blocked addresses, ports and names, and at names that resolve to blocked addresses", async () => {
    const inside = await machine();
    const port = portOf(inside);
    const names = [
      `127.0.0.1:${port}`,
      `localhost:${port}`,
      `[::1]:${port}`,
      `[::ffff:127.0.0.1]:${port}`,
      `0x7f.1:${port}`,
      `2130706433:${port}`,
      `inside.example:${port}`,
      "10.0.0.1:1984",
      "192.168.1.1:1984",
      "169.254.169.254:80",
      "8.8.8.8:22",
    ];
    const node = await machine({ nodes: names });
    const resolve = async () => ["127.0.0.1"];
    const { peers } = peersOf({ nodes: [node] }, { allowsPrivate: false, ports: [80, 1984, port], resolve });
    await peers.round(none);
    expect(peers.list()).toEqual([]);
    expect(inside.requests).toEqual([]);
  });

  test("from lists with invalid entries too", async () => {
    const good = await machine();
    const junk = [
      1,
      null,
      {},
      [],
      "",
      ":",
      "a b",
      "http://",
      "ftp://8.8.8.8",
      "javascript:alert(1)",
      "http://user:secret@8.8.8.8:1984",
      "http://8.8.8.8:1984/path",
      "http://8.8.8.8:1984/?query",
      "x".repeat(10_000),
      `127.0.0.1:${portOf(good)}`,
      `http://127.0.0.1:${portOf(good)}/`,
    ];
    const lists: unknown[] = [junk, { gateways: null }, { gateways: [], arweaveNodes: 7 }, "text", 7, null];
    const nodes = await Promise.all(lists.map((list) => machine({ nodes: list })));
    const gateways = await Promise.all(lists.map((list) => machine({ gateways: list })));
    const broken = await machine({ nodes: [] });
    broken.setFault(() => ({ kind: "response", response: { status: 200, body: "[[[[" } }));
    const { peers } = peersOf({ nodes: [...nodes, broken], gateways }, { ports: [80, 443, 1984, portOf(good)] });
    await peers.round(none);
    expect(peers.list().map(({ url }) => url)).toEqual([good.url]);
  });

  test("half a minute after a start at which no list could be had, not ten minutes after it", async () => {
    const peer = await machine();
    const node = await machine({ nodes: [`127.0.0.1:${portOf(peer)}`] });
    node.setFault(() => ({ kind: "response", response: { status: 503 } }));
    const { peers, time } = peersOf({ nodes: [node] }, { ports: [portOf(peer)] });
    await peers.round(none);
    node.setFault(() => undefined);
    time.now += infoEveryMs - 1;
    await peers.round(none);
    expect(peers.list()).toEqual([]);
    time.now += 1;
    await peers.round(none);
    expect(peers.list().map(({ url }) => url)).toEqual([peer.url]);
    const lists = () => node.requests.filter((line) => line === "GET /peers").length;
    expect(lists()).toBe(2);
    time.now += learnEveryMs - 1;
    await peers.round(none);
    expect(lists()).toBe(2);
    time.now += 1;
    await peers.round(none);
    expect(lists()).toBe(3);
  });

  test("at most 200, at most 50 of one list, and a limited number on one host", async () => {
    const asked = new Set<string>();
    const resolve = async (name: string) => {
      asked.add(name);
      throw new Error(`ENOTFOUND ${name}`);
    };
    const listOf = (start: number) => Array.from({ length: 1_000 }, (_, index) => `peer-${start + index}.example:1984`);
    const nodes = await Promise.all([0, 1, 2, 3, 4, 5].map((at) => machine({ nodes: listOf(at * 1_000) })));
    const { peers } = peersOf({ nodes }, { resolve });
    await peers.round(none);
    expect(asked.size).toBe(peersStoredMax);
    const perList = new Map<string, number>();
    for (const name of asked) {
      const list = name.replace(/peer-(\d*?)\d{1,3}\..*/, "$1");
      perList.set(list, (perList.get(list) ?? 0) + 1);
    }
    for (const count of perList.values()) expect(count).toBeLessThanOrEqual(50);

    const ports = Array.from({ length: 100 }, (_, index) => 2_000 + index);
    const crowd = await machine({ nodes: ports.map((each) => `crowd.example:${each}`) });
    asked.clear();
    const few = peersOf({ nodes: [crowd] }, { resolve, ports }, 2);
    let resolved = 0;
    await few.peers.round(none);
    for (const name of asked) if (name === "crowd.example") resolved += 1;
    expect(resolved).toBe(1); // a set of names; two ports of it were asked
    expect(few.peers.list()).toEqual([]);
  });

  test("a random selection is uniform and contains each peer at most once", () => {
    const random = seeded(11);
    const counts = new Map<number, number>();
    for (let round = 0; round < 3_000; round += 1) {
      const taken = drawn([1, 2, 3, 4, 5, 6], 2, random);
      expect(new Set(taken).size).toBe(2);
      for (const value of taken) counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    for (const count of counts.values()) expect(count).toBeWithin(850, 1_150);
    expect(drawn([1, 2, 3], 10, random).toSorted()).toEqual([1, 2, 3]);
    expect(drawn([], 10, random)).toEqual([]);
  });
});

describe("a peer", () => {
  test("receives an info request once in 30 s", async () => {
    const peer = await machine();
    const node = await machine({ nodes: [`127.0.0.1:${portOf(peer)}`] });
    const { peers, time } = peersOf({ nodes: [node] }, { ports: [portOf(peer)] });
    const counts: number[] = [];
    for (const pass of [0, 0, infoEveryMs - 1, 1, 0, infoEveryMs]) {
      time.now += pass;
      await peers.round(none);
      counts.push(infosOf(peer));
    }
    expect(counts).toEqual([1, 1, 1, 2, 2, 3]);
    expect(node.requests.filter((line) => line === "GET /peers")).toHaveLength(1);
  });

  test("that does not respond is removed, and not added again for an hour", async () => {
    const state = { info: '{"height":7}' as string | undefined };
    const peer = await machine({ info: () => state.info });
    const node = await machine({ nodes: [`127.0.0.1:${portOf(peer)}`] });
    const { peers, chunkNodes, time } = peersOf({ nodes: [node] }, { ports: [portOf(peer)] });
    const helps = () => chunkNodes.sourceStatus().some(({ url }) => url === peer.url);
    await peers.round(none);
    expect([peers.list().length, helps()]).toEqual([1, true]);
    const weight = () => {
      const sourceStatus = chunkNodes.sourceStatus().find(({ url }) => url === peer.url);
      return sourceStatus === undefined ? 0 : weightOf(sourceStatus);
    };
    const before = weight();
    state.info = undefined;
    for (const silent of [1, 2, 3]) {
      time.now += infoEveryMs;
      await peers.round(none);
      expect([silent, peers.list().length]).toEqual([silent, 1]);
      expect(weight()).toBeLessThan(before);
    }
    time.now += infoEveryMs;
    await peers.round(none);
    expect([peers.list().length, helps()]).toEqual([0, false]);
    state.info = '{"height":9}';
    time.now += learnEveryMs;
    await peers.round(none);
    expect(peers.list()).toEqual([]);
    time.now += 3_600_000;
    await peers.round(none);
    expect(peers.list().map(({ height }) => height)).toEqual([9]);
  });

  test("stays while no peer at all responds, as without a network, however long that takes", async () => {
    const state = { infos: ['{"height":7}', '{"height":8}'] as (string | undefined)[] };
    const first = await machine({ info: () => state.infos[0] });
    const second = await machine({ info: () => state.infos[1] });
    const ports = [first, second].map(portOf);
    const node = await machine({ nodes: ports.map((port) => `127.0.0.1:${port}`) });
    const { peers, time } = peersOf({ nodes: [node] }, { ports });
    const heightsAfter = async (rounds: number) => {
      for (let round = 0; round < rounds; round += 1) {
        time.now += infoEveryMs;
        await peers.round(none);
      }
      return peers.list().map(({ height }) => height);
    };
    await peers.round(none);
    state.infos = [undefined, undefined];
    expect(await heightsAfter(20)).toEqual([7, 8]);
    state.infos = [undefined, '{"height":9}'];
    expect(await heightsAfter(3)).toEqual([7, 9]);
    expect(await heightsAfter(1)).toEqual([9]);
  });

  const infos: readonly (readonly [string, string])[] = [
    ["no JSON", "<html>"],
    ["a list", "[]"],
    ["without a height", '{"blocks":3}'],
    ["with a height that is a text", '{"height":"7"}'],
    ["with a height below 0", '{"height":-1}'],
    ["with a height beyond all", '{"height":1e300}'],
  ];
  test.each(infos)("whose info is %s is ignored", async (_name, info) => {
    const peer = await machine({ info: () => info });
    const node = await machine({ nodes: [`127.0.0.1:${portOf(peer)}`] });
    const { peers } = peersOf({ nodes: [node] }, { ports: [portOf(peer)] });
    await peers.round(none);
    expect(peers.list()).toEqual([]);
  });

  test("has a weight of 1 to 100 by success and latency", () => {
    const sourceStatus = { successShare: 1, latencyMs: 200, faults: 0, wrongs: 0, restsUntil: 0 };
    const weights: readonly (readonly [number, number, number])[] = [
      [1, 0, 100],
      [1, 200, 50],
      [1, 600, 25],
      [0.5, 200, 13],
      [0, 200, 1],
      [1, 1e9, 1],
    ];
    for (const [successShare, latencyMs, weight] of weights)
      expect(weightOf({ ...sourceStatus, successShare, latencyMs })).toBe(weight);
  });
});

describe("three local gateways of which one returns false data", () => {
  const chunk = 256 * 1_024;

  async function fixture() {
    const data = makeData(1, 24 * chunk);
    const peers = await Promise.all(
      [0, 1, 2].map(async () => {
        const peer = await openDataNode(data);
        peer.responses.set("GET /info", { status: 200, body: '{"height":5}' });
        closers.push(peer.stop);
        return peer;
      }),
    );
    const [liar, ...honest] = peers as [DataNode, DataNode, DataNode];
    liar.setFault(({ path }) => (isChunkRequest(path) ? { kind: "flip", at: 1_000 } : undefined));
    // The node that an operator chose has lost the chunks; all it can do is to name others.
    const node = await openDataNode(data);
    closers.push(node.stop);
    node.setFault(({ path }) => (isChunkRequest(path) ? { kind: "response", response: { status: 404 } } : undefined));
    const record = Object.fromEntries(peers.map(({ url }) => [url.slice(7), { url }]));
    const list = JSON.stringify({ gateways: record, arweaveNodes: {} });
    node.responses.set("GET /ar-io/peers", { status: 200, body: list });
    node.responses.set("GET /peers", { status: 200, body: "[]" });
    const harness = openHarness({ nodeUrls: [node.url], timeouts });
    closers.push(harness.close);
    harness.index.set(data.root.id, locatedOf(data.root.id, data.root));
    const rules = { ports: peers.map(portOf), allowsPrivate: true };
    const learned = openPeers({
      nodes: [],
      gateways: [openNode(node.url, timeouts)],
      chunkNodes: harness.nodes,
      reach: createReach(rules),
      isBlockedUrl: createUrlGuard(rules),
      perHostMax: 3,
      clock: Date.now,
      random: seeded(5),
      log: silentLog,
      timeouts,
    });
    closers.push(learned.close);
    return { data, liar, honest, node, harness, learned };
  }

  test("serve chunks that the operator's node lacks; false chunks are not stored and their gateway is rarely asked", async () => {
    const { data, liar, honest, node, harness, learned } = await fixture();
    const opened = await harness.content.open(data.root.id, none);
    const before = await opened.bytes({ start: 0, end: 10 }, none).catch((error: Error) => error.message);
    expect(before).toBe("No source could provide valid data");
    await learned.round(none);
    expect(learned.list()).toHaveLength(3);
    expect(isSame(await joined(opened.read({ start: 0, end: 24 * chunk }, none)), data.bytes)).toBe(true);
    expect(liar.chunkRequests()).toBeLessThanOrEqual(8); // those that were under way when it was found out
    expect(honest.reduce((sum, peer) => sum + peer.chunkRequests(), 0)).toBeGreaterThanOrEqual(24);
    const sourceStatus = (url: string) => harness.nodes.sourceStatus().find((each) => each.url === url);
    expect(sourceStatus(liar.url)?.wrongs).toBeGreaterThan(0);
    const [liarWeight, ...weights] = [liar, ...honest].map(({ url }) => {
      const each = sourceStatus(url);
      return each === undefined ? 0 : weightOf(each);
    });
    for (const weight of weights) expect(liarWeight).toBeLessThan(weight);
    expect(sourceStatus(node.url)?.wrongs).toBe(0);
    // Data without a proof is requested from the operator's node only.
    for (const { requests } of [liar, ...honest])
      expect(requests.filter((line) => !/^GET \/(chunk2?\/|info|ar-io\/peers)/.test(line))).toEqual([]);
  });

  test("are asked after the operator's nodes, and only a few of them for one chunk", async () => {
    const { data, node, liar, honest, harness, learned } = await fixture();
    await learned.round(none);
    node.setFault(() => undefined);
    const opened = await harness.content.open(data.root.id, none);
    expect(isSame(await joined(opened.read({ start: 0, end: 24 * chunk }, none)), data.bytes)).toBe(true);
    const asked = [liar, ...honest].reduce((sum, peer) => sum + peer.chunkRequests(), 0);
    expect(asked).toBeLessThanOrEqual(2); // a chunk that was slow on a busy machine
  });

  test("are removed when the list closes, and calls to them are aborted", async () => {
    const { liar, honest, harness, learned } = await fixture();
    await learned.round(none);
    for (const peer of [liar, ...honest]) peer.setFault(() => ({ kind: "hang", at: "headers" }));
    const root = [...harness.index.keys()][0];
    const opened = root === undefined ? undefined : await harness.content.open(root, none);
    const reading = opened?.bytes({ start: 0, end: 10 }, none).catch(() => "broken off");
    await until(() => liar.openSockets() + (honest[0]?.openSockets() ?? 0) + (honest[1]?.openSockets() ?? 0) !== 0);
    await learned.close();
    expect(await reading).toBe("broken off");
    expect(learned.list()).toEqual([]);
    for (const peer of [liar, ...honest]) await until(() => peer.openSockets() === 0);
  });
});
