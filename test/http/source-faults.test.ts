/**
 * Every route that serves bytes of a source, against a source that fails at the connection, at the headers and at bytes
 * of the body: the error is reported, is not cached anywhere, and ends with its cause.
 * Source: docs/reference/gateway.md#errors.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Transaction } from "../../src/arweave/transaction.ts";
import { assert } from "../../src/lib/assert.ts";
import { type Fault, type FaultServer, openFaultServer, type Result } from "../chain/fault-server.ts";
import { post, rsa, testBytes } from "../dev/devnet/support.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { type Fixture, makeFixture, type Piece } from "./blocked-fixture.ts";

/** A gateway, and the node behind which faults are made. */
type Gateway = Readonly<{ stack: Stack; node: FaultServer }>;

let followed: Gateway;
let unfollowed: Gateway;
let fixture: Fixture;

/** A proxy before a node that fails on request. */
async function faultyNode(nodeUrl: string): Promise<FaultServer> {
  return await openFaultServer(async ({ method, path, body }): Promise<Result> => {
    const response = await fetch(`${nodeUrl}${path}`, {
      method,
      ...(method === "POST" ? { body: Buffer.from(body) } : {}),
    });
    return { status: response.status, body: new Uint8Array(await response.arrayBuffer()) };
  });
}

async function openBehindFaults(environment: Readonly<Record<string, string>>): Promise<Gateway> {
  const opened: { node?: FaultServer } = {};
  const stack = await openStack({ HOT_BYTES_MAX: "0", ...environment }, {}, async (nodeUrl) => {
    opened.node = await faultyNode(nodeUrl);
    return opened.node.url;
  });
  assert(opened.node !== undefined, "the node was opened before the gateway");
  return { stack, node: opened.node };
}

beforeAll(async () => {
  followed = await openBehindFaults({});
  fixture = await makeFixture(followed.stack);
  unfollowed = await openBehindFaults({ START_HEIGHT: "30" });
  await makeStrange(unfollowed.stack);
}, 120_000);
afterAll(async () => {
  for (const { stack, node } of [followed, unfollowed]) {
    await stack.close();
    await node.stop();
  }
});

/** What was mined before the first block that the second gateway follows. */
let strange: Transaction;
/** Only one route requests its record: a response is cached for a moment. */
let other: Transaction;
let strangeEnd: bigint;
const payload = testBytes(400_000, 31);

async function makeStrange({ devnet, node, gateway, settled }: Stack): Promise<void> {
  strange = await post(devnet, rsa, { data: payload });
  other = await post(devnet, rsa, { data: testBytes(500, 77) });
  await devnet.mine(40);
  await settled();
  strangeEnd = BigInt((await (await node.get(`/tx/${strange.id}/offset`)).json()).offset);
  assert(gateway.reader.placeOf(strange.id) === undefined, "it was not followed");
}

let asked = 0;
/** Another number each time, because responses of nodes are cached for a moment. */
const anew = () => {
  asked += 1;
  return asked;
};

const piece = (name: string): Piece => {
  const found = fixture.pieces.get(name);
  assert(found !== undefined, "the fixture has the piece");
  return found;
};

/** A request: path, headers, and the expected body if it is the payload. */
type Ask = Readonly<{
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array | string;
}>;

const range = { range: "bytes=100-299" };

/** Routes of a gateway that has indexed the content but does not have its bytes. */
const ofFollowed: Readonly<Record<string, () => Ask>> = {
  "a transaction": () => ({ path: `/raw/${piece("twin").id}`, body: piece("twin").payload }),
  "a transaction by its id": () => ({ path: `/${piece("twin").id}`, body: piece("twin").payload }),
  "a range of it": () => ({
    path: `/raw/${piece("twin").id}`,
    headers: range,
    body: piece("twin").payload.subarray(100, 300),
  }),
  "a transaction of format 1": () => ({ path: `/raw/${piece("old").id}`, body: piece("old").payload }),
  "an item": () => ({ path: `/${piece("secret").id}`, body: piece("secret").payload }),
  "a range of an item": () => ({
    path: `/${piece("secret").id}`,
    headers: range,
    body: piece("secret").payload.subarray(100, 300),
  }),
  "an item of a bundle within a bundle": () => ({
    path: `/raw/${piece("inner").id}`,
    body: piece("inner").payload,
  }),
  "a bundle": () => ({ path: `/raw/${piece("bundle").id}`, body: piece("bundle").payload }),
  "a manifest": () => ({ path: `/raw/${fixture.manifest.id}`, body: fixture.manifest.payload }),
  "a path of a manifest": () => ({ path: `/${fixture.manifest.id}/secret`, body: piece("secret").payload }),
  "data as a node gives it": () => ({
    path: `/tx/${piece("twin").id}/data`,
    body: Buffer.from(piece("twin").payload).toString("base64url"),
  }),
  "a record that carries its data": () => ({ path: `/tx/${piece("old").id}` }),
  "a chunk": () => ({ path: `/chunk/${weaveEnd("twin")}` }),
  "a chunk's bytes": () => ({ path: `/chunk/${weaveEnd("twin")}/data` }),
  "a frame with content": () => ({
    path: `/local/social/frame/${piece("twin").id}`,
    headers: { accept: "image/png" },
    body: piece("twin").payload,
  }),
  "a proof": () => ({ path: `/svc/proof/${piece("secret").id}` }),
};

/** Routes of a gateway that has not indexed the content. */
const ofUnfollowed: Readonly<Record<string, () => Ask>> = {
  "a transaction": () => ({ path: `/raw/${strange.id}`, body: payload }),
  "a transaction by its id": () => ({ path: `/${strange.id}`, body: payload }),
  "a range of it": () => ({
    path: `/raw/${strange.id}`,
    headers: range,
    body: payload.subarray(100, 300),
  }),
  "its record": () => ({ path: `/tx/${strange.id}` }),
  "its status": () => ({ path: `/tx/${strange.id}/status` }),
  "its offset": () => ({ path: `/tx/${strange.id}/offset` }),
  "another one's root": () => ({ path: `/tx/${other.id}/data_root` }),
  "a chunk": () => ({ path: `/chunk/${strangeEnd - BigInt(anew())}` }),
  "a block": () => ({ path: "/block/height/2" }),
  "a price": () => ({ path: `/price/${anew()}` }),
};

function weaveEnd(name: string): bigint {
  const span = followed.stack.gateway.reader.weaveSpan(piece(name).id);
  assert(span !== undefined, "its place in the weave is known");
  return span.end;
}

const faults: readonly (readonly [string, Fault])[] = [
  ["at the connection", { kind: "reset" }],
  ["before the headers", { kind: "cut", at: "headers" }],
  ["after one byte", { kind: "cut", at: 1 }],
  ["one byte before the end", { kind: "cut", at: -1 }],
  ["with 500", { kind: "response", response: { status: 500, body: "Not Found." } }],
  ["with 429", { kind: "response", response: { status: 429, body: "Too Many Requests" } }],
];

/** Takes everything off the gateway's disk that it has fetched. */
async function forgetBytes({ stack }: Gateway): Promise<void> {
  const { reader, sources } = stack.gateway;
  for (const { rootId } of fixture.pieces.values()) {
    const located = reader.locate(rootId);
    if (located !== undefined)
      await sources.extents.remove({ id: rootId, dataRoot: located.dataRoot, size: located.rootSize });
  }
  await sources.extents.remove({ id: strange.id, dataRoot: strange.dataRoot, size: payload.length });
  sources.content.forgetAll();
}

async function expectFaultThenResponse(gateway: Gateway, ask: Ask, fault: Fault): Promise<void> {
  const { stack, node } = gateway;
  const get = () => fetch(`${stack.gateway.url}${ask.path}`, { headers: { ...ask.headers } });
  await forgetBytes(gateway);
  node.setFault(() => fault);
  const failed = await get();
  const said = `${ask.path} ${failed.status} ${(await failed.text()).slice(0, 100)}`;
  expect(said).toMatch(/ (502|503|504) ".+"$/);
  expect([failed.headers.get("cache-control"), failed.headers.get("retry-after")]).toEqual(["no-store", "5"]);
  node.setFault(() => undefined);
  const response = await get();
  expect([ask.path, response.status]).toEqual([ask.path, ask.headers === range ? 206 : 200]);
  expect(response.headers.get("x-cache")).not.toBe("HIT"); // nothing of what failed was stored
  const bytes = Buffer.from(await response.arrayBuffer());
  if (ask.body !== undefined) expect(Buffer.compare(bytes, Buffer.from(ask.body))).toBe(0);
}

describe.each(faults)("a source that fails %s", (_name, fault) => {
  test.each(Object.entries(ofFollowed))("what was followed: %s", async (_what, ask) => {
    await expectFaultThenResponse(followed, ask(), fault);
  });
  test.each(Object.entries(ofUnfollowed))("what was not followed: %s", async (_what, ask) => {
    await expectFaultThenResponse(unfollowed, ask(), fault);
  });
});
