/**
 * Data of transactions that no block has yet: posted data is served at once, data without a source is not found, and an
 * unavailable source is an error.
 * @module
 */
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import type { Id } from "../../src/arweave/id.ts";
import { assert } from "../../src/lib/assert.ts";
import { type FaultServer, openFaultServer, type Result } from "../chain/fault-server.ts";
import { chunkPosts, rsa, sign, statedOf, testBytes } from "../dev/devnet/support.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { eventually } from "../support/until.ts";

let stack: Stack;
let node: FaultServer;

beforeAll(async () => {
  const opened: { node?: FaultServer } = {};
  stack = await openStack({}, {}, async (nodeUrl) => {
    opened.node = await openFaultServer(async ({ method, path, headers, body }): Promise<Result> => {
      const accept = headers.get("accept") ?? "*/*";
      const sent = method === "POST" ? { body: Buffer.from(body) } : {};
      const response = await fetch(`${nodeUrl}${path}`, { method, headers: { accept }, ...sent });
      const reason = response.headers.get("x-reject-reason");
      return {
        status: response.status,
        headers: reason === null ? {} : { "X-Reject-Reason": reason },
        body: new Uint8Array(await response.arrayBuffer()),
      };
    });
    return opened.node.url;
  });
  assert(opened.node !== undefined, "the node was opened before the gateway");
  node = opened.node;
}, 120_000);
afterEach(() => node.setFault(() => undefined));
afterAll(async () => {
  await stack.close();
  await node.stop();
});

const postTo = (path: string, body: string, headers = {}) =>
  fetch(`${stack.gateway.url}${path}`, { method: "POST", body, headers });

const untilPending = (id: Id) =>
  eventually(
    async () => stack.gateway.reader.locate(id)?.pending,
    (pending) => pending === true,
  );

const read = async (id: Id, range?: string) => {
  const headers = range === undefined ? {} : { range };
  const response = await fetch(`${stack.gateway.url}/raw/${id}`, { headers });
  return { status: response.status, body: Buffer.from(await response.arrayBuffer()) };
};

test.each([
  ["format 1", 1, 3_000],
  ["format 2, one chunk", 2, 3_000],
  ["format 2, several chunks", 2, 600_000],
] as const)(
  "data that was posted with its transaction is read before a block has it: %s",
  async (_name, format, size) => {
    const data = testBytes(size, size + format);
    const transaction = sign(stack.devnet, rsa, { format, data, tailRule: "plain" });
    expect((await postTo("/tx", transaction.text)).status).toBe(200);
    await untilPending(transaction.id);
    // No source is requested.
    node.setFault(() => ({ kind: "reset" }));
    const whole = await read(transaction.id);
    expect([whole.status, whole.body.equals(Buffer.from(data))]).toEqual([200, true]);
    const part = await read(transaction.id, "bytes=100-199");
    expect([part.status, part.body.equals(Buffer.from(data.subarray(100, 200)))]).toEqual([206, true]);
  },
);

test("data that was posted in chunks is read before a block has it", async () => {
  const data = testBytes(600_000, 77);
  const transaction = sign(stack.devnet, rsa, { stated: statedOf(data) });
  expect((await postTo("/tx", transaction.text)).status).toBe(200);
  for (const body of chunkPosts(data)) expect((await postTo("/chunk", body)).status).toBe(200);
  await untilPending(transaction.id);
  const whole = await eventually(
    () => read(transaction.id),
    ({ status }) => status === 200,
  );
  expect(whole.body.equals(Buffer.from(data))).toBe(true);
});

test("data that no node has is not found; a node that cannot be asked is 502, and the data is there when it comes", async () => {
  const data = testBytes(5_000, 78);
  const transaction = sign(stack.devnet, rsa, { stated: statedOf(data) });
  expect((await postTo("/tx", transaction.text)).status).toBe(200);
  await untilPending(transaction.id);
  for (const range of [undefined, "bytes=0-9"])
    expect(await read(transaction.id, range)).toEqual({ status: 404, body: Buffer.from('"Not Found"') });
  node.setFault(({ path }) => (path.endsWith("/offset") ? { kind: "reset" } : undefined));
  expect((await read(transaction.id)).status).toBe(502);
  node.setFault(() => undefined);
  for (const body of chunkPosts(data)) await postTo("/chunk", body);
  const whole = await eventually(
    () => read(transaction.id),
    ({ status }) => status === 200,
  );
  expect(whole.body.equals(Buffer.from(data))).toBe(true);
});

test("data that is not what its transaction commits to is not stored", async () => {
  const data = testBytes(4_000, 79);
  const transaction = sign(stack.devnet, rsa, { stated: statedOf(data) });
  const wrong = Buffer.from(testBytes(4_000, 80)).toString("base64url");
  // A node that takes what it should reject.
  node.setFault(({ method }) =>
    method === "POST" ? { kind: "response", response: { status: 200, body: "OK" } } : undefined,
  );
  const body = transaction.text.replace('"data":""', `"data":"${wrong}"`);
  expect((await postTo("/tx", body)).status).toBe(200);
  node.setFault(() => undefined);
  expect((await postTo("/tx", transaction.text)).status).toBe(200);
  await untilPending(transaction.id);
  expect((await read(transaction.id)).status).toBe(404);
});

test("a rejected post says why in X-Reject-Reason, and clients that take only JSON get the reasons", async () => {
  const transaction = sign(stack.devnet, rsa, { data: testBytes(10), reward: 1n });
  const plain = await postTo("/tx", transaction.text);
  expect([plain.status, await plain.text()]).toEqual([400, "Transaction verification failed."]);
  expect(plain.headers.get("x-reject-reason")).toMatch(/^[a-z_]+: .*reward/);
  expect(plain.headers.get("access-control-expose-headers")).toContain("*");
  const strict = await postTo("/tx", transaction.text, { accept: "application/json" });
  expect([strict.status, strict.headers.get("x-reject-reason")]).toEqual([400, plain.headers.get("x-reject-reason")]);
  expect(await strict.json()).toEqual({
    error: "Transaction verification failed.",
    reasons: [{ code: expect.stringMatching(/^[a-z_]+$/), detail: expect.stringContaining("reward") }],
  });
});
