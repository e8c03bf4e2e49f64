/**
 * Payments in KYVE, over a node on a socket: credited once they are in a block, found by their recipient.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { encodeBech32 } from "../../../src/lib/base-encodings.ts";
import { readAddress, type UserAddress } from "../../../src/payment/addresses.ts";
import { createKyveChain, type KyveServer, openKyveServer } from "../../../src/payment/tokens/chains/kyve-chain.ts";
import { type KyveNode, kyveSend, openKyveNode } from "./kyve-node.ts";
import { never, openTokenFixture, rejectionOf, type TokenFixture, tokenSteps } from "./token-fixture.ts";

const kyveAddress = (number: number) => encodeBech32("kyve", new Uint8Array(20).fill(number));
const ours = kyveAddress(1);
const alice = kyveAddress(2);
const bob = kyveAddress(3);
const opened: { node: KyveNode; server: KyveServer; fixture: TokenFixture }[] = [];

afterEach(async () => {
  for (const { node, server, fixture } of opened.splice(0)) {
    expect(await fixture.findings()).toEqual([]);
    await fixture.close();
    server.close();
    await node.close();
  }
});

async function open(options: Parameters<typeof openKyveNode>[0] = {}, chainId = "kyve-1", confirmations = 1) {
  const node = openKyveNode(options);
  const server = openKyveServer(node.url, chainId);
  const address = known(ours);
  const depths = { confirmations, finalConfirmations: confirmations };
  const chain = createKyveChain({ address, denom: "ukyve", server, ...depths });
  const fixture = await openTokenFixture([chain]);
  opened.push({ node, server, fixture });
  return {
    ...fixture,
    node,
    chain,
    pay: (amount: bigint, from = alice, to = ours) => node.send({ messages: [kyveSend(from, to, amount)] }),
    ...tokenSteps(fixture, chain),
  };
}

describe("a payment in KYVE", () => {
  test("is credited to its sender when it is in a block, and not checked again", async () => {
    const { chain, pay, submit, balance, stored, node } = await open();
    const id = pay(2n ** 53n + 1n);
    const expected = { state: "credited", sender: alice, destination: alice, destinationType: "kyve" };
    expect((await submit(id)).payment).toMatchObject(expected);
    expect(await balance(known(alice))).toBe(2n ** 54n + 2n);
    expect((await stored(chain, id))[0]).toMatchObject({
      dueAt: undefined,
      block: { height: node.height() },
    });
  });

  test("is one payment in either case of its hash", async () => {
    const { pay, submit, balance } = await open();
    const id = pay(5n);
    await Promise.all(Array.from({ length: 20 }, (_, index) => submit(index % 2 ? id : id.toLowerCase())));
    expect(await balance(known(alice))).toBe(10n);
  });

  test("waits for the confirmations of the rules", async () => {
    const { node, pay, submit, follow, balance } = await open({}, "kyve-1", 3);
    const id = pay(5n);
    expect((await submit(id)).payment.state).toBe("pending");
    node.advance(2);
    await follow();
    expect((await submit(id)).payment.state).toBe("credited");
    expect(await balance(known(alice))).toBe(10n);
  });

  test("of several messages is credited to each sender; other coins and other recipients are not counted", async () => {
    const { node, submit, balance } = await open();
    const multi = {
      "@type": "/cosmos.bank.v1beta1.MsgMultiSend",
      inputs: [{ address: bob, coins: [{ denom: "ukyve", amount: "9" }] }],
      outputs: [
        { address: ours, coins: [{ denom: "ukyve", amount: "4" }] },
        { address: alice, coins: [{ denom: "ukyve", amount: "5" }] },
      ],
    };
    const messages = [
      kyveSend(alice, ours, 7n),
      kyveSend(alice, ours, 100n, "tkyve"),
      kyveSend(alice, bob, 100n),
      multi,
    ];
    await submit(node.send({ messages }));
    expect([await balance(known(alice)), await balance(known(bob))]).toEqual([14n, 8n]);
  });

  test("goes to the account that its memo names", async () => {
    const { node, submit } = await open();
    const named = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A";
    const memo = `turboCreditDestinationAddress=${named}`;
    const id = node.send({ messages: [kyveSend(alice, ours, 5n)], memo });
    expect((await submit(id)).payment).toMatchObject({ destination: named, destinationType: "ethereum" });
  });

  test("that failed on the chain is a failed payment", async () => {
    const { node, submit, balance } = await open();
    const id = node.send({ messages: [kyveSend(alice, ours, 5n)], fails: true });
    expect((await submit(id)).payment.state).toBe("failed");
    expect(await balance(known(alice))).toBe(0n);
  });

  test("of amount 0, of another coin or to another address is rejected; an unmined one is not found", async () => {
    const { node, pay, submit } = await open();
    const nothing = "Transaction quantity must be greater than 0";
    expect((await rejectionOf(submit(pay(0n))))[1]).toBe(nothing);
    const testCoins = node.send({ messages: [kyveSend(alice, ours, 5n, "tkyve")] });
    expect((await rejectionOf(submit(testCoins)))[1]).toBe(nothing);
    const elsewhere = pay(5n, alice, bob);
    const wrong = `Payment transaction '${elsewhere}' has wrong target address '${bob}'`;
    expect((await rejectionOf(submit(elsewhere)))[1]).toBe(wrong);
    for (const id of ["", "AB".repeat(32), "xy", `0x${"ab".repeat(32)}`])
      expect((await rejectionOf(submit(id)))[0]).toBe("transaction_not_found");
    node.reject("/txs/");
    expect((await rejectionOf(submit("CD".repeat(32))))[0]).toBe("transaction_fault");
  });

  test("sent within another message is not a payment of the signer", async () => {
    const { node, look, balance } = await open();
    await look();
    const inner = {
      "@type": "/cosmos.authz.v1beta1.MsgExec",
      grantee: bob,
      msgs: [kyveSend(alice, ours, 5n)],
    };
    node.send({ messages: [inner], recipients: [ours] });
    await look();
    expect([await balance(known(alice)), await balance(known(bob))]).toEqual([0n, 0n]);
  });

  test.each(["0.47", "0.50"] as const)("is found without a report at a node of version %s", async (sdk) => {
    const { node, pay, look, balance, submit } = await open({ sdk });
    pay(1_000n);
    expect((await look()).ids).toEqual([]);
    const failed = node.send({ messages: [kyveSend(alice, ours, 11n)], fails: true });
    const id = pay(7n);
    expect((await look()).ids).toEqual([id]);
    expect(failed).not.toBe(id);
    const later = pay(2n);
    await submit(later);
    await look();
    await look();
    expect(await balance(known(alice))).toBe(18n);
  });

  test("is found though the node's index follows its blocks with a delay", async () => {
    const { node, pay, look, balance } = await open();
    await look();
    node.indexDelay(5);
    pay(7n);
    expect((await look()).ids).toEqual([]);
    node.advance(5);
    await look();
    expect(await balance(known(alice))).toBe(14n);
  });

  test.each([30, 60, 75])("is found among %p others, a page at a time, while more come", async (count) => {
    const { pay, look, balance } = await open();
    await look();
    for (let number = 0; number < count; number += 1) pay(1n);
    let steps = 0;
    for (let hasMore = true; (hasMore || steps < 2) && steps < 20; steps += 1) {
      ({ hasMore } = await look());
      if (steps === 0) pay(1n);
    }
    expect(await balance(known(alice))).toBe(BigInt(count + 1) * 2n);
    expect(steps).toBeLessThan(10);
  });

  test("is not found in transactions without the watched recipient", async () => {
    const { node, look } = await open();
    await look();
    node.send({ messages: [kyveSend(ours, bob, 5n)] });
    expect((await look()).ids).toEqual([]);
  });

  test("of another chain is a fault, and is not credited", async () => {
    const { chain, pay, submit } = await open({ chainId: "kaon-1" });
    expect((await rejectionOf(submit(pay(5n))))[0]).toBe("transaction_fault");
    expect(await chain.scan(undefined, never)).toMatchObject({ kind: "fault", reason: "wrong" });
  });
});

test("a node that responds with another transaction is a fault", async () => {
  const node = openKyveNode();
  const id = node.send({ messages: [kyveSend(alice, ours, 5n)] });
  const front = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      const { pathname } = new URL(request.url);
      return fetch(`${node.url}${pathname.replace(/[0-9A-F]{64}$/, id)}`);
    },
  });
  const server = openKyveServer(`http://127.0.0.1:${front.port}/`, "kyve-1");
  try {
    expect(await server.transaction(id, never)).toMatchObject({ kind: "ok", value: { id } });
    expect(await server.transaction("AB".repeat(32), never)).toMatchObject({
      kind: "fault",
      reason: "malformed",
    });
  } finally {
    server.close();
    await front.stop(true);
    await node.close();
  }
});

function known(text: string): UserAddress {
  const read = readAddress(text, "kyve");
  if (read === undefined) throw new Error(`${text} is not a valid address`);
  return read.address;
}
