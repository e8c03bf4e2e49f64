/**
 * A reorganization over sockets: two nodes have different chains, and a subscriber sees the rows of one chain leave and
 * those of the other come, without gap or repeat, also over a reconnection in between.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Devnet } from "../../src/dev/devnet/devnet.ts";
import { createDevnetRoutes } from "../../src/dev/devnet-routes/node-routes.ts";
import { openTestDevnet, post, rsa, testBytes } from "../dev/devnet/support.ts";
import { followEvents } from "../support/event-reader.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { until } from "../support/until.ts";

const tags = [{ name: "App-Name", value: "fork" }];
const isSent = { data: testBytes(100), tags };

let stack: Stack;
let heavier: Devnet;
/** The chain of the gateway's node. */
let shown: (request: Request) => Response | Promise<Response>;
let proxy: ReturnType<typeof Bun.serve>;

beforeAll(async () => {
  proxy = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => shown(request) });
  heavier = await openTestDevnet();
  await heavier.mine(2);
  shown = () => new Response("not yet", { status: 503 });
  stack = await openStack({ ENABLE_MEMPOOL_WATCHER: "false" }, {}, async () => `http://127.0.0.1:${proxy.port}`);
  await stack.devnet.mine(2);
  shown = createDevnetRoutes(stack.devnet).fetch;
  await stack.settled();
}, 60_000);
afterAll(async () => {
  await stack.close();
  heavier.close();
  await proxy.stop(true);
});

/** An event as a short text. */
const textOf = ({ event, data }: Readonly<{ event: string; data: Record<string, unknown> }>) =>
  event.startsWith("block") ? `${event} ${data["id"]}` : `${event} ${data["id"]} in ${data["block"]}`;

test("a subscriber sees the forked rows, then the new ones, each once", async () => {
  expect(heavier.blockAt(2)?.hash).toBe(stack.devnet.blockAt(2)?.hash ?? "");
  const url = `${stack.gateway.url}/svc/events`;
  const client = await followEvents(url);
  const ofOneKind = await followEvents(`${url}?tag=App-Name:fork&topic=transactions&minHeight=3&maxHeight=3`);

  const both = await post(stack.devnet, rsa, isSent);
  await stack.devnet.mine(1);
  const only = await post(stack.devnet, rsa, { ...isSent, data: testBytes(102) });
  await stack.devnet.mine(1);
  await stack.settled();
  const hashOf = (chain: Devnet, height: number) => chain.blockAt(height)?.hash;
  const [a3, a4] = [hashOf(stack.devnet, 3), hashOf(stack.devnet, 4)];
  await until(() => client.events.length === 4);
  // This client is away during the reorganization.
  const before = await followEvents(url, client.lastId());
  await before.leave();

  const other = await post(heavier, rsa, { ...isSent, data: testBytes(101) });
  await heavier.mine(1);
  if ((await heavier.postTransaction(both.text)).kind !== "accepted") throw new Error("the other chain takes it");
  await heavier.mine(2);
  shown = createDevnetRoutes(heavier).fetch;
  const [b3, b4, b5] = [3, 4, 5].map((height) => hashOf(heavier, height));
  // Blocks that are followed at once come before their rows.
  const blocks = [`block ${a3}`, `block ${a4}`, `block_forked ${a4}`, `block_forked ${a3}`].concat(
    [b3, b4, b5].map((hash) => `block ${hash}`),
  );
  const rows = [
    ...[`mined ${both.id} in ${a3}`, `mined ${only.id} in ${a4}`],
    ...[`forked ${both.id} in ${a3}`, `forked ${only.id} in ${a4}`],
    ...[`mined ${other.id} in ${b3}`, `mined ${both.id} in ${b4}`],
  ];
  const count = blocks.length + rows.length;
  await until(() => client.events.length >= count);
  const seen = client.events.map(textOf);
  expect(seen.filter((text) => text.startsWith("block"))).toEqual(blocks);
  expect(seen.filter((text) => !text.startsWith("block"))).toEqual(rows);
  expect(ofOneKind.events.map(textOf)).toEqual([
    ...[`mined ${both.id} in ${a3}`, `forked ${both.id} in ${a3}`, `mined ${other.id} in ${b3}`],
  ]);
  const after = await followEvents(url, before.lastId());
  await until(() => after.events.length >= count - 4);
  expect(after.events.map(textOf)).toEqual(seen.slice(4));
  await client.leave();
  await ofOneKind.leave();
  await after.leave();
}, 60_000);
