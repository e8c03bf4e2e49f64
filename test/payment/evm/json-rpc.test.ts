/**
 * JSON-RPC over a socket: what counts as a response, an error and fault; limits; numbers that keep every digit.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openJsonRpc, type RpcResponse } from "../../../src/payment/evm/json-rpc.ts";

type Ask = Readonly<{ id: number; method: string; params: unknown[] }>;

const never = new AbortController().signal;
const timeouts = { firstByteMs: 20_000, stallMs: 20_000, totalMs: 20_000 };
const hasty = { firstByteMs: 200, stallMs: 200, totalMs: 400 };
let respond: (ask: Ask, text: string) => Response | Promise<Response> = () => new Response();
let server: ReturnType<typeof Bun.serve>;
let url = "";

beforeAll(() => {
  server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const text = await request.text();
      return await respond(JSON.parse(text), text);
    },
  });
  url = `http://127.0.0.1:${server.port}/v3/secret-key?token=secret`;
});

afterAll(() => server.stop(true));

async function call(
  response: (ask: Ask) => Response | Promise<Response>,
  options: Partial<Parameters<typeof openJsonRpc>[1]> = {},
): Promise<RpcResponse> {
  respond = response;
  const rpc = openJsonRpc(url, { timeouts, ...options });
  const responded = await rpc.call("method", ["a", 1, null], never);
  rpc.close();
  return responded;
}

const json = (value: unknown, status = 200) => new Response(JSON.stringify(value), { status });

test.each<[name: string, response: (ask: Ask) => Response, meaning: unknown]>([
  ["a result", ({ id }) => json({ jsonrpc: "2.0", id, result: "0x1" }), { kind: "ok", value: "0x1" }],
  ["null as result", ({ id }) => json({ jsonrpc: "2.0", id, result: null }), { kind: "ok", value: null }],
  [
    "an integer beyond 2^53",
    ({ id }) => new Response(`{"jsonrpc":"2.0","id":${id},"result":{"lamports":18446744073709551615}}`),
    { kind: "ok", value: { lamports: 2n ** 64n - 1n } },
  ],
  [
    "an error",
    ({ id }) => json({ jsonrpc: "2.0", id, error: { code: -32_000, message: "no", data: [1] } }),
    { kind: "error", code: -32_000, message: "no", data: [1] },
  ],
  [
    "an error with a status of its own",
    ({ id }) => json({ jsonrpc: "2.0", id, error: { code: -32_005, message: "slow down" } }, 429),
    { kind: "error", code: -32_005, message: "slow down" },
  ],
  [
    "an error to a question that could not be read",
    () => json({ jsonrpc: "2.0", id: null, error: { code: -32_700 } }),
    { kind: "error", code: -32_700, message: "no message" },
  ],
  ["a result to another question", () => json({ jsonrpc: "2.0", id: 99, result: 1 }), { reason: "malformed" }],
  ["neither result nor error", ({ id }) => json({ jsonrpc: "2.0", id }), { reason: "malformed" }],
  ["a list", ({ id }) => json([{ jsonrpc: "2.0", id, result: 1 }]), { reason: "status" }],
  [
    "a page of a proxy",
    () => new Response("<html>Bad Gateway</html>", { status: 502 }),
    { reason: "status", status: 502 },
  ],
  ["nothing", () => new Response(""), { reason: "status", status: 200 }],
  ["a body that is cut off", () => new Response('{"jsonrpc":"2.0","id":1,"res'), { reason: "status" }],
  [
    "another place to ask, which is not followed",
    () => new Response(null, { status: 302, headers: { location: "http://127.0.0.1:1/" } }),
    { reason: "status", status: 302 },
  ],
])("%s is what it is", async (_name, response, meaning) => {
  expect(await call(response)).toMatchObject(meaning as object);
});

test("a response above the size limit is a fault", async () => {
  const large = ({ id }: Ask) => json({ jsonrpc: "2.0", id, result: "x".repeat(2_000) });
  expect(await call(large, { responseBytesMax: 1_000 })).toMatchObject({
    kind: "fault",
    reason: "too_large",
  });
});

test("a late or absent server is a fault", async () => {
  const late = () => new Promise<Response>(() => undefined);
  expect(await call(late, { timeouts: hasty })).toMatchObject({ kind: "fault", reason: "timeout" });
  const unreachable = openJsonRpc("http://127.0.0.1:1/", { timeouts });
  expect(await unreachable.call("method", [], never)).toMatchObject({ kind: "fault", reason: "connect" });
});

test("an aborted call ends", async () => {
  respond = () => new Promise(() => undefined);
  const rpc = openJsonRpc(url, { timeouts });
  const leaving = new AbortController();
  const asked = rpc.call("method", [], leaving.signal);
  leaving.abort(new Error("gone"));
  await expect(asked).rejects.toThrow("gone");
  rpc.close();
});

test("each call has its method, its parameters and its own id", async () => {
  const asked: string[] = [];
  respond = ({ id }, text) => {
    asked.push(text);
    return json({ jsonrpc: "2.0", id, result: true });
  };
  const rpc = openJsonRpc(url, { timeouts });
  await rpc.call("eth_getLogs", [{ fromBlock: "0x1" }, 2n ** 64n], never);
  await rpc.call("eth_chainId", [], never);
  expect(asked).toEqual([
    '{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1"},18446744073709551616]}',
    '{"jsonrpc":"2.0","id":2,"method":"eth_chainId","params":[]}',
  ]);
  rpc.close();
});

test("an invalid response and an error are faults, and neither contains the key of the URL", async () => {
  const rpc = openJsonRpc(url, { timeouts });
  const read = (value: unknown) => (typeof value === "string" ? value : undefined);
  const ask = () => rpc.ask({ method: "eth_call", params: [], read }, never);
  respond = ({ id }) => json({ jsonrpc: "2.0", id, result: 5 });
  const unread = await ask();
  respond = ({ id }) => json({ jsonrpc: "2.0", id, error: { code: 3, message: "x".repeat(5_000) } });
  const rejected = await ask();
  expect([unread, rejected]).toMatchObject([{ reason: "malformed" }, { reason: "status" }]);
  expect(JSON.stringify([unread, rejected, rpc.host])).not.toContain("secret");
  expect(JSON.stringify(rejected).length).toBeLessThan(1_000);
  rpc.close();
});
