/**
 * How long caches may keep a proof: not for hours while it lacks the place of its transaction.
 * @module
 */
import { expect, test } from "bun:test";
import { assert } from "../../src/lib/assert.ts";
import { type FaultServer, openFaultProxy } from "../chain/fault-server.ts";
import { post, rsa, testBytes } from "../dev/devnet/support.ts";
import { openStack } from "../support/stack.ts";

test("a proof is cached for minutes while other data of its block cannot be read, and for hours when complete", async () => {
  const opened: { node?: FaultServer } = {};
  const stack = await openStack({}, {}, async (nodeUrl) => {
    opened.node = await openFaultProxy(nodeUrl);
    return opened.node.url;
  });
  const { node } = opened;
  assert(node !== undefined, "the node was opened before the gateway");
  try {
    const beside = await post(stack.devnet, rsa, { data: testBytes(40_000, 1) });
    // Data of format 1 must not end with a digit. Its root, which the path of the other needs, is made of it.
    const old = await post(stack.devnet, rsa, { format: 1, data: Uint8Array.from([...testBytes(9_000, 2), 0xff]) });
    await stack.devnet.mine(1);
    const alone = await post(stack.devnet, rsa, { data: testBytes(40_000, 3) });
    await stack.devnet.mine(60);
    await stack.settled();
    const { url, sources } = stack.gateway;
    const ask = async (id: string) => {
      const response = await fetch(`${url}/svc/proof/${id}`);
      const { transaction } = (await response.json()) as { transaction: { place: unknown } };
      return [response.status, response.headers.get("cache-control"), transaction.place === null];
    };
    await sources.extents.remove({ id: old.id, dataRoot: "", size: 9_001 });
    node.setFault(({ path }) => (path.includes(old.id) ? { kind: "reset" } : undefined));
    expect(await ask(beside.id)).toEqual([200, "public, max-age=300", true]);
    expect(await ask(alone.id)).toEqual([200, "public, max-age=7200", false]);
  } finally {
    await stack.close();
    await node.stop();
  }
}, 120_000);
