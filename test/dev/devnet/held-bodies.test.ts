/**
 * N6: stalled bodies of posts to the chain's node take bounded memory together, and other posts get 503.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import net from "node:net";
import { eventually } from "../../support/until.ts";
import { openTestDevnet, serve, type TestNode } from "./support.ts";

const devnet = await openTestDevnet();
let node: TestNode;
beforeAll(() => {
  node = serve(devnet);
});
afterAll(async () => {
  await node.close();
  devnet.close();
});

/** As large as a transaction may be: four of them are what all bodies may take. */
const large = new Uint8Array(15 * 2 ** 20).fill(0x61);

/** Posts a body that never ends; again when it is not taken. */
function hold(held: Set<net.Socket>): void {
  const socket = net.connect(node.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(`POST /tx HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${large.length}\r\n\r\nabc`);
  held.add(socket);
  socket.once("data", () => {
    socket.destroy();
    if (held.delete(socket)) hold(held);
  });
}

async function postLarge() {
  const response = await fetch(`http://127.0.0.1:${node.port}/tx`, { method: "POST", body: large });
  return { status: response.status, text: await response.text() };
}

test("N6: beyond 64 MiB of bodies a node responds with 503 after a wait; smaller bodies are accepted, and all bodies when the others end", async () => {
  expect(await postLarge()).toMatchObject({ status: 400, text: "Invalid JSON." });
  const held = new Set<net.Socket>();
  for (let count = 0; count < 4; count += 1) hold(held);
  try {
    const busy = await eventually(postLarge, ({ status }) => status === 503);
    expect(busy.text).toBe("Too many bodies at once");
    const chunk = await fetch(`http://127.0.0.1:${node.port}/chunk`, { method: "POST", body: "{}" });
    expect(chunk.status).toBe(400);
  } finally {
    const sockets = [...held];
    held.clear();
    for (const socket of sockets) socket.destroy();
  }
  expect(await eventually(postLarge, ({ status }) => status !== 503)).toMatchObject({ status: 400 });
}, 120_000);

test("a body with a too large announced size is rejected before it is read", async () => {
  const body = new Uint8Array(large.length + 1);
  const response = await fetch(`http://127.0.0.1:${node.port}/tx`, { method: "POST", body });
  expect([response.status, await response.text()]).toEqual([413, "Payload too large"]);
});
