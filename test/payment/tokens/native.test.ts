/**
 * Native payments on a development chain that the gateway follows over a socket: reported and found, credited by
 * confirmations, taken back with their blocks.
 * @module
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { winstonPerAr } from "../../../src/arweave/winston.ts";
import { openNode } from "../../../src/chain/node.ts";
import { createNodes, type Nodes } from "../../../src/chain/nodes.ts";
import { type Devnet, openDevnet } from "../../../src/dev/devnet/devnet.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { silentLog } from "../../../src/lib/log.ts";
import { readAddress, type UserAddress } from "../../../src/payment/addresses.ts";
import { createNativeChain, type NativeChainOptions } from "../../../src/payment/tokens/chains/native-chain.ts";
import type { PagePlan } from "../../../src/store/index/index-types.ts";
import { ecdsa, post, respelled, rsa, rsaJwk, serve, sign, stranger, type TestNode } from "../../dev/devnet/support.ts";
import { openStack, type Stack } from "../../support/stack.ts";
import {
  ethereumAddressOf,
  lookAgainMs,
  never,
  openTokenFixture,
  rejectionOf,
  type TokenFixture,
} from "./token-fixture.ts";

const ours = stranger.address;
const sender = addressOf(rsa.address);
/** Enough to pay for a new account. */
const fee = { reward: winstonPerAr / 10n };
let stack: Stack;
let nodes: Nodes;
const fixtures: TokenFixture[] = [];

/** An index that has nothing. */
const blind = {
  tip: () => undefined,
  block: () => undefined,
  row: () => undefined,
  transactionStatus: () => undefined,
  page: () => ({ rows: [], hasNextPage: false }),
};

beforeAll(async () => {
  stack = await openStack();
  nodes = nodesOf(stack.node);
});

afterEach(async () => {
  for (const fixture of fixtures.splice(0)) {
    expect(await fixture.findings()).toEqual([]);
    await fixture.close();
  }
});

afterAll(() => stack.close());

async function open(options: Partial<NativeChainOptions> = {}) {
  const chain = createNativeChain({
    address: ours,
    confirmations: 2,
    finalConfirmations: 20,
    reader: stack.gateway.reader,
    nodes,
    clock: systemClock,
    ...options,
  });
  const fixture = await openTokenFixture([chain]);
  fixtures.push(fixture);
  const submit = (id: string) => fixture.payments.submit("native", id, never);
  const settle = async () => {
    await stack.settled();
    fixture.payment.clock.advance(lookAgainMs);
    expect(await fixture.payments.follow(chain, 100, never)).toBeUndefined();
  };
  let mark: string | undefined;
  /** A step of the watcher. */
  const look = async () => {
    await stack.settled();
    const found = await chain.scan(mark, never);
    if (found.kind === "fault") throw new Error(found.detail);
    expect(await fixture.payments.take(chain, found.ids, never)).toBeUndefined();
    mark = found.cursor;
    return found.ids;
  };
  return { ...fixture, chain, submit, settle, look };
}

describe("a native payment", () => {
  test("waits in the mempool, then for its confirmations, and is credited", async () => {
    const { submit, settle, balance } = await open();
    const { id } = await post(stack.devnet, rsa, { ...fee, target: ours, quantity: 3n * winstonPerAr });
    const first = await submit(id);
    expect(first.payment).toMatchObject({
      state: "pending",
      sender,
      destination: sender,
      destinationType: "native",
      quantity: 3n * winstonPerAr,
      block: undefined,
    });
    await stack.devnet.mine(1);
    await settle();
    expect((await submit(id)).payment.state).toBe("pending");
    await stack.devnet.mine(1);
    await settle();
    const { payment } = await submit(id);
    expect(payment).toMatchObject({ state: "credited", block: { height: stack.devnet.height() - 1 } });
    expect(await balance(sender)).toBe(6n * winstonPerAr);
  });

  test("goes to the account that its tag names", async () => {
    const { submit, balance } = await open();
    const account = ethereumAddressOf(0xc0ffee);
    const tags = [{ name: "Turbo-Credit-Destination-Address", value: account.toLowerCase() }];
    const { id } = await post(stack.devnet, ecdsa, { ...fee, target: ours, quantity: 5n, tags });
    await stack.devnet.mine(2);
    await stack.settled();
    expect((await submit(id)).payment).toMatchObject({ state: "credited", destination: account });
    expect(await balance(account)).toBe(10n);
  });

  test("without a report is found in the index, once; earlier payments are not", async () => {
    const { look, balance } = await open();
    await post(stack.devnet, rsa, { ...fee, target: ours, quantity: 1_000n });
    await stack.devnet.mine(2);
    expect(await look()).toEqual([]);
    const paid = await post(stack.devnet, rsa, { ...fee, target: ours, quantity: 7n });
    const item = {
      target: ours,
      data: new TextEncoder().encode("a data transaction to us that moves nothing"),
    };
    const moved = await post(stack.devnet, ecdsa, item);
    await stack.devnet.mine(1);
    expect(await look()).toEqual([]);
    await stack.devnet.mine(1);
    expect(new Set(await look())).toEqual(new Set([paid.id, moved.id]));
    expect(await balance(sender)).toBe(14n);
    await look();
    expect(await balance(sender)).toBe(14n);
  });

  test("is found and credited whatever the last character of its target is", async () => {
    const { submit, look, balance } = await open();
    await look();
    const { id, text } = sign(stack.devnet, rsa, { ...fee, target: ours, quantity: 9n });
    const other = respelled(ours);
    const outcome = await stack.devnet.postTransaction(text.replace(ours, other));
    expect(outcome).toMatchObject({ kind: "accepted" });
    await stack.devnet.mine(2);
    expect(await look()).toContain(id as never);
    expect((await submit(id)).payment).toMatchObject({ state: "credited", quantity: 9n });
    expect(await balance(sender)).toBe(18n);
    const recipients = async (address: string) =>
      (
        await (
          await fetch(`${stack.gateway.url}/graphql`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({
              query: `{ transactions(recipients: ["${address}"]) { edges { node { id recipient } } } }`,
            }),
          })
        ).json()
      ).data.transactions.edges.map(({ node }: { node: unknown }) => node);
    expect(await recipients(other)).toEqual([{ id, recipient: other }]);
    expect(await recipients(ours)).not.toContainEqual({ id, recipient: other });
  });

  test("to another address, of amount 0, or of data is rejected with the peer's text", async () => {
    const { submit } = await open();
    const elsewhere = await post(stack.devnet, rsa, { target: ecdsa.address, quantity: 5n });
    const nothing = await post(stack.devnet, ecdsa, { data: new Uint8Array([1]) });
    await stack.devnet.mine(2);
    await stack.settled();
    expect((await rejectionOf(submit(elsewhere.id)))[1]).toBe(
      `Payment transaction '${elsewhere.id}' has wrong target address '${ecdsa.address}'`,
    );
    expect((await rejectionOf(submit(nothing.id)))[1]).toBe("Transaction quantity must be greater than 0");
  });

  test("that is unknown to all nodes is not found", async () => {
    const { submit } = await open();
    const never = sign(stack.devnet, rsa, { ...fee, target: ours, quantity: 5n });
    expect((await rejectionOf(submit(never.id)))[0]).toBe("transaction_not_found");
    expect((await rejectionOf(submit("x".repeat(43))))[0]).toBe("transaction_not_found");
  });

  test("is reversed when the chain is another one from below it on, whose payments are found", async () => {
    const { submit, settle, look, balance, stored, chain } = await open();
    await look();
    const { id } = await post(stack.devnet, ecdsa, { ...fee, target: ours, quantity: 9n });
    await stack.devnet.mine(2);
    await settle();
    expect((await submit(id)).payment.state).toBe("credited");
    const height = stack.devnet.height();
    stack.devnet.reset();
    await stack.devnet.mine(height + 1);
    await settle();
    const [payment] = await stored(chain, id);
    expect(payment).toMatchObject({ state: "reversed", destination: addressOf(ecdsa.address) });
    expect(await balance(addressOf(ecdsa.address))).toBe(0n);
    const again = await post(stack.devnet, ecdsa, { ...fee, target: ours, quantity: 4n });
    await stack.devnet.mine(2);
    await look();
    expect(again.id).not.toBe(id);
    expect(await balance(addressOf(ecdsa.address))).toBe(8n);
  });

  test("is found also on a chain that has become shorter than the last scan", async () => {
    const { look, balance } = await open();
    await look();
    stack.devnet.reset();
    await stack.devnet.mine(1);
    await stack.settled();
    await look();
    await post(stack.devnet, rsa, { ...fee, target: ours, quantity: 11n });
    await stack.devnet.mine(2);
    await look();
    expect(await balance(sender)).toBe(22n);
  });
});

describe("the scan of the index", () => {
  const place = (height: number, txIndex: number) => ({ height, txIndex, offset: -1 });

  test("passes blocks full of payments, and finds each payment", async () => {
    const rows = [10, 11, 12].flatMap((height) =>
      Array.from({ length: 1_000 }, (_, index) => ({
        id: `${height}/${index}`,
        place: place(height, index),
      })),
    );
    const reader = {
      ...blind,
      tip: () => ({ height: 13, hash: "" as never, timestamp: 0 }),
      page: ({ block, limit, ingestedAt }: PagePlan) => {
        if (ingestedAt !== undefined) return { rows: [], hasNextPage: false };
        const { min = 0, max = 0 } = block ?? {};
        const found = rows.filter((row) => row.place.height >= min && row.place.height <= max);
        return { rows: found.slice(0, limit) as never, hasNextPage: found.length > limit };
      },
    };
    const { chain } = await open({ reader });
    let cursor: string | undefined = JSON.stringify({ from: 9, height: 9, at: 0 });
    const seen = new Set<string>();
    let steps = 0;
    for (let hasMore = true; hasMore; steps += 1) {
      const found = await chain.scan(cursor, never);
      if (found.kind === "fault") throw new Error(found.detail);
      for (const id of found.ids) seen.add(id);
      ({ cursor, hasMore } = found);
    }
    expect([seen.size, steps]).toEqual([3_000, 3]);
    expect(JSON.parse(cursor)).toMatchObject({ from: 9, height: 12 });
  });

  test("begins at the tip, and without a tip not at all", async () => {
    const { chain } = await open({ reader: blind });
    expect(await chain.scan(undefined, never)).toMatchObject({ ids: [], cursor: "{}", hasMore: false });
    const { chain: begun } = await open({
      reader: { ...blind, tip: () => ({ height: 40, hash: "" as never, timestamp: 0 }) },
    });
    const found = await begun.scan("{}", never);
    expect(found.kind === "found" && JSON.parse(found.cursor)).toMatchObject({ from: 41, height: 40 });
    expect(found.kind === "found" && begun.beginsAt(found.cursor)).toBe(41);
  });

  test("begins at the chain's tip when the index is far below it, and waits for the index to catch up", async () => {
    const height = stack.devnet.height();
    let tip = 1;
    const reader = { ...blind, tip: () => ({ height: tip, hash: "" as never, timestamp: 0 }) };
    const asked: unknown[] = [];
    const page = (plan: PagePlan) => {
      asked.push(plan.block);
      return { rows: [], hasNextPage: false };
    };
    const { chain } = await open({ reader: { ...reader, page } });
    const first = await chain.scan(undefined, never);
    if (first.kind === "fault") throw new Error(first.detail);
    expect(chain.beginsAt(first.cursor)).toBe(height + 1);
    tip = 2;
    const second = await chain.scan(first.cursor, never);
    if (second.kind === "fault") throw new Error(second.detail);
    expect(chain.beginsAt(second.cursor)).toBe(height + 1);
    // Nothing below is requested.
    expect(asked).toEqual([
      { min: height + 1, max: 1 },
      { min: height + 1, max: 1 },
    ]);
  });
});

describe("a payment that the index does not have", () => {
  let devnet: Devnet;
  let node: TestNode;

  beforeAll(async () => {
    devnet = await openDevnet({
      dir: undefined,
      seed: "other",
      clock: Date.now,
      mining: "manual",
      wallets: [{ name: "rsa", jwk: rsaJwk }],
    });
    node = serve(devnet);
  });

  afterAll(async () => {
    await node.close();
    devnet.close();
  });

  test("is requested from nodes, in the mempool and mined", async () => {
    const { chain } = await open({ reader: blind, nodes: nodesOf(node) });
    const { id } = await post(devnet, rsa, { ...fee, target: ours, quantity: 5n });
    expect(await chain.look(id, never)).toMatchObject({
      kind: "waiting",
      transfers: [{ sender, amount: 5n }],
    });
    await devnet.mine(3);
    expect(await chain.look(id, never)).toMatchObject({
      kind: "mined",
      confirmations: 3,
      succeeded: true,
      block: { height: 1 },
      transfers: [{ sender, amount: 5n }],
    });
    expect(await chain.look("A".repeat(43), never)).toEqual({ kind: "absent" });
  });

  test("is not accepted from a block that differs from the index", async () => {
    const { id } = await post(devnet, rsa, { ...fee, target: ours, quantity: 6n });
    await devnet.mine(1);
    const height = devnet.height();
    const block = { height, hash: "another" as never, timestamp: 0, previous: "" } as const;
    const knowing = {
      ...blind,
      tip: () => block,
      block: (at: unknown) => (at === height ? block : undefined),
    };
    const { chain } = await open({ reader: knowing, nodes: nodesOf(node) });
    expect((await chain.look(id, never)).kind).toBe("waiting");
    expect(await chain.status({ height, hash: "mine" }, never)).toEqual({
      kind: "replaced",
      confirmations: 1,
    });
    expect(await chain.status({ height: height + 1, hash: "mine" }, never)).toEqual({ kind: "unknown" });
  });

  test("is not accepted as mined from a discovered node", async () => {
    const { id } = await post(devnet, rsa, { ...fee, target: ours, quantity: 66n });
    const waiting = createNodes([openNode(`http://127.0.0.1:${node.port}`)], nodeParts);
    const liar = Bun.serve({
      port: 0,
      fetch: async (request) => {
        const { pathname } = new URL(request.url);
        if (!pathname.endsWith("/status")) return await fetch(`http://127.0.0.1:${node.port}${pathname}`);
        return Response.json({
          block_height: 1,
          block_indep_hash: "A".repeat(64),
          number_of_confirmations: 99,
        });
      },
    });
    waiting.join(openNode(`http://127.0.0.1:${liar.port}`));
    const { chain } = await open({ reader: blind, nodes: waiting });
    expect((await chain.look(id, never)).kind).toBe("waiting");
    await liar.stop(true);
    await devnet.mine(1);
  });

  test("is a fault from a node with another, a changed or an invalid transaction", async () => {
    const one = await post(devnet, rsa, { ...fee, target: ours, quantity: 7n });
    const other = sign(devnet, rsa, { ...fee, target: ours, quantity: 8n });
    const responses = [
      other.text,
      one.text.replace('"quantity":"7"', '"quantity":"70"'),
      "{",
      JSON.stringify({ ...JSON.parse(one.text), data: "A".repeat(300_000) }),
    ];
    for (const body of responses) {
      const server = Bun.serve({ port: 0, fetch: () => new Response(body) });
      const staged = createNodes([openNode(`http://127.0.0.1:${server.port}`)], nodeParts);
      const { chain } = await open({ reader: blind, nodes: staged });
      expect((await chain.look(one.id, never)).kind).toBe("fault");
      await server.stop(true);
    }
  });
});

const nodeParts = { clock: systemClock, random: () => 0.5, log: silentLog };

function nodesOf(node: TestNode): Nodes {
  return createNodes([openNode(`http://127.0.0.1:${node.port}`)], nodeParts);
}

function addressOf(text: string): UserAddress {
  const read = readAddress(text, "native");
  if (read === undefined) throw new Error(`${text} is not a valid address`);
  return read.address;
}
