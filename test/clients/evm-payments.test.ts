/**
 * Payments in the coin and in a token of an EVM chain, against anvil: reported and found, confirmed, reverted, forked
 * away; and servers that have limits, forget, or are of another chain.
 * @module
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readAddress, type UserAddress } from "../../src/payment/addresses.ts";
import { createEvmChain, type EvmChain } from "../../src/payment/evm/evm-chain.ts";
import { openJsonRpc } from "../../src/payment/evm/json-rpc.ts";
import { createEvmCoin, createEvmToken } from "../../src/payment/tokens/chains/evm-token-chains.ts";
import type { TokenChain } from "../../src/payment/tokens/token-chain.ts";
import {
  never,
  openTokenFixture,
  rejectionOf,
  type TokenFixture,
  tokenSteps,
} from "../payment/tokens/token-fixture.ts";
import { describeWith } from "../support/helpers.ts";
import { type Anvil, anvilAccounts, anvilNeed, callOf, openAnvil, selectors, wordOf } from "./anvil.ts";
import contracts from "./contracts/dollar.json";

const [alice, bob, carol] = anvilAccounts.map(({ address }) => address) as [string, string, string, string];
const payee = "0x1111111111111111111111111111111111111111";
const depths = { confirmations: 3, finalConfirmations: 8 };
const dollars = 1_000_000n;

describeWith(anvilNeed, "an EVM chain", () => {
  let anvil: Anvil;
  let front: Front;
  const fixtures: TokenFixture[] = [];

  beforeAll(async () => {
    anvil = await openAnvil({ isManual: true });
    front = openFront(anvil.url);
  }, 120_000);

  beforeEach(() => front.reset());

  afterEach(async () => {
    for (const fixture of fixtures.splice(0)) {
      expect(await fixture.findings()).toEqual([]);
      await fixture.close();
    }
  });

  afterAll(async () => {
    await front?.close();
    await anvil?.close();
  });

  const evm = (): EvmChain => createEvmChain(openJsonRpc(front.url), BigInt(anvil.chainId));

  async function open(chain: TokenChain) {
    const fixture = await openTokenFixture([chain]);
    fixtures.push(fixture);
    return {
      ...fixture,
      ...tokenSteps(fixture, chain),
      stateOf: async (hash: string) => (await fixture.stored(chain, hash)).map(({ state }) => state),
    };
  }

  const openCoin = (to = payee) =>
    open(createEvmCoin({ token: "base-eth", address: known(to), evm: evm(), ...depths }));

  describe("pays in its coin", () => {
    test("and is pending, then credited at its confirmations; capitals name the same payment", async () => {
      const { submit, follow, balance } = await openCoin();
      const value = 2n ** 53n + 1n;
      const hash = await anvil.send({ from: alice, to: payee, value });
      const { payment } = await submit(hash);
      expect(payment).toMatchObject({
        state: "pending",
        sender: alice,
        quantity: value,
        destinationType: "ethereum",
      });
      expect((await submit(`0x${hash.slice(2).toUpperCase()}`)).isKnown).toBe(true);
      await anvil.mine(2);
      await follow();
      expect((await submit(hash)).payment.state).toBe("pending");
      await anvil.mine();
      await follow();
      expect((await submit(hash)).payment).toMatchObject({ state: "credited", transactionId: hash });
      expect(await balance(known(alice))).toBe(value * 2n);
    });

    test("once, though a hundred report it at once", async () => {
      const { submit, balance } = await openCoin();
      const hash = await anvil.send({ from: bob, to: payee, value: 5n });
      await anvil.mine(3);
      const upper = `0x${hash.slice(2).toUpperCase()}`;
      await Promise.all(Array.from({ length: 100 }, (_, index) => submit(index % 2 === 0 ? hash : upper)));
      expect(await balance(known(bob))).toBe(10n);
    });

    test("for the account that its calldata names", async () => {
      const { submit } = await openCoin();
      const text = `turboCreditDestinationAddress=${carol.toLowerCase()}`;
      const data = `0x${new TextEncoder().encode(text).toHex()}`;
      const hash = await anvil.send({ from: alice, to: payee, value: 5n, data });
      await anvil.mine(3);
      expect((await submit(hash)).payment).toMatchObject({
        state: "credited",
        destination: carol,
        sender: alice,
      });
    });

    test("nothing, or to another address: rejected with the specified message", async () => {
      const { submit } = await openCoin();
      const nothing = await anvil.send({ from: alice, to: payee });
      const elsewhere = await anvil.send({ from: alice, to: bob, value: 5n });
      await anvil.mine(3);
      expect(await rejectionOf(submit(nothing))).toEqual([
        "payment_rejected",
        "Transaction quantity must be greater than 0",
      ]);
      expect(await rejectionOf(submit(elsewhere))).toEqual([
        "payment_rejected",
        `Payment transaction '${elsewhere}' has wrong target address '${bob}'`,
      ]);
      expect((await rejectionOf(submit(`0x${"ab".repeat(32)}`)))[0]).toBe("transaction_not_found");
    });

    test("to a contract that rejects: the transaction is in a block and nothing is credited", async () => {
      const contract = await anvil.deploy(contracts.Payee.bytecode);
      const { submit, balance, look } = await openCoin(contract);
      await look();
      await anvil.send({ from: alice, to: contract, data: callOf(selectors.reject, 1n) });
      await anvil.mine();
      const rejected = await anvil.send({ from: alice, to: contract, value: 5n });
      await anvil.mine(1);
      expect((await submit(rejected)).payment.state).toBe("pending");
      await anvil.mine(2);
      expect((await submit(rejected)).payment).toMatchObject({
        state: "failed",
        failureReason: "The chain did not carry the transaction out",
      });
      await anvil.send({ from: alice, to: contract, data: callOf(selectors.reject, 0n) });
      await anvil.mine();
      const taken = await anvil.send({ from: alice, to: contract, value: 7n });
      await anvil.mine(3);
      expect((await look()).ids).toContain(taken);
      expect(await balance(known(alice))).toBe(14n);
    });

    test("and is found in its block without a report; blocks that hold nothing of ours are not read", async () => {
      const { look, balance } = await openCoin();
      await anvil.send({ from: alice, to: payee, value: 1_000n });
      await anvil.mine(3);
      await look();
      const before = await balance(known(alice));
      await anvil.mine(300);
      front.reset();
      const { ids, hasMore } = await look();
      expect([ids, hasMore]).toEqual([[], false]);
      expect(front.wholeBlocks()).toBe(0);
      await anvil.mine(120);
      const hash = await anvil.send({ from: carol, to: payee, value: 9n });
      await anvil.mine(150);
      const found: string[] = [];
      for (let step = 0; step < 100; step += 1) {
        const { ids, hasMore } = await look();
        found.push(...ids);
        if (!hasMore) break;
      }
      expect(found).toEqual([hash]);
      expect(front.wholeBlocks()).toBeLessThanOrEqual(32);
      expect(await balance(known(carol))).toBe(18n);
      expect(await balance(known(alice))).toBe(before);
    });

    test("and is found though we paid out as much in the same block", async () => {
      const { look, balance } = await openCoin(bob);
      await look();
      await anvil.send({ from: alice, to: bob, value: 10n ** 18n });
      await anvil.send({ from: bob, to: alice, value: 10n ** 18n });
      await anvil.mine(3);
      await look();
      expect(await balance(known(alice))).toBe(2n * 10n ** 18n);
    });

    test("and is found at a server that has forgotten how accounts were", async () => {
      const { look } = await openCoin();
      await look();
      front.reject((method) => method === "eth_getBalance");
      const hash = await anvil.send({ from: alice, to: payee, value: 5n });
      await anvil.mine(40);
      const first = await look();
      expect([first.ids, first.hasMore]).toEqual([[hash], true]);
    });

    test("and is reversed when its block is replaced, and credited when it is mined again", async () => {
      const { submit, follow, look, balance, stateOf } = await openCoin();
      await look();
      const snapshot = await anvil.rpc("evm_snapshot");
      const hash = await anvil.send({ from: bob, to: payee, value: 5n });
      await anvil.mine(3);
      await submit(hash);
      await look();
      expect(await balance(known(bob))).toBe(10n);
      await anvil.rpc("evm_revert", snapshot);
      await follow();
      expect(await stateOf(hash)).toEqual(["credited"]); // a shorter chain may only be behind
      await anvil.mine(4);
      await follow();
      expect(await stateOf(hash)).toEqual(["reversed"]);
      expect(await balance(known(bob))).toBe(0n);
      expect(await anvil.send({ from: bob, to: payee, value: 5n })).not.toBe("");
      await anvil.mine(3);
      await look();
      await follow();
      expect(await balance(known(bob))).toBe(10n);
    });

    test("and stays credited when a reorganisation only moves it", async () => {
      const { submit, follow, stateOf, stored } = await openCoin();
      const hash = await anvil.send({ from: carol, to: payee, value: 5n });
      await anvil.mine(3);
      await submit(hash);
      const raw = await anvil.rpc<string>("eth_getRawTransactionByHash", hash);
      await anvil.rpc("anvil_reorg", 3, [[raw, 1]]);
      await anvil.mine(3);
      await follow();
      expect(await stateOf(hash)).toEqual(["credited"]);
      const chain = createEvmCoin({ token: "base-eth", address: known(payee), evm: evm(), ...depths });
      const [payment] = await stored(chain, hash);
      const receipt = await anvil.rpc<{ blockHash: string }>("eth_getTransactionReceipt", hash);
      expect(payment).toMatchObject({ credits: 1, block: { hash: receipt.blockHash } });
    });
  });

  describe("pays in a token", () => {
    let contract: string;

    beforeAll(async () => {
      contract = await anvil.deployDollar();
      for (const account of [alice, bob, carol])
        await anvil.send({
          from: alice,
          to: contract,
          data: callOf(selectors.mint, account, 1_000n * dollars),
        });
      await anvil.mine();
    });

    const openToken = () =>
      open(
        createEvmToken({
          token: "base-usdc",
          address: known(payee),
          contract: known(contract),
          evm: evm(),
          ...depths,
        }),
      );
    const call = (from: string, ...parts: Parameters<typeof callOf>) =>
      anvil.send({ from, to: contract, data: callOf(...parts) });

    test("and is pending by its call, credited by its log, for the account named after its arguments", async () => {
      const { submit, balance } = await openToken();
      const text = new TextEncoder().encode(`turboCreditDestinationAddress=${carol}`).toHex();
      const data = `${callOf(selectors.transfer, payee, 3n * dollars)}${text}`;
      const hash = await anvil.send({ from: alice, to: contract, data });
      expect((await submit(hash)).payment).toMatchObject({
        state: "pending",
        sender: alice,
        destination: carol,
        quantity: 3n * dollars,
      });
      await anvil.mine(3);
      expect((await submit(hash)).payment.state).toBe("credited");
      expect(await balance(known(carol))).toBe(6n * dollars);
    });

    test("and is found by its log, for any caller of the contract; empty transfers are not", async () => {
      const { submit, look, balance } = await openToken();
      await look();
      await call(bob, selectors.approve, carol, 5n * dollars);
      const hash = await call(carol, selectors.transferFrom, bob, payee, 5n * dollars);
      expect((await rejectionOf(submit(hash)))[1]).toBe(`Transaction with id '${hash}' has not been mined yet!`);
      await call(carol, selectors.transfer, payee, 0n);
      await anvil.mine(3);
      expect((await look()).ids).toEqual([hash]);
      expect(await balance(known(bob))).toBe(10n * dollars);
    });

    test("and is credited to each sender of a gathered call", async () => {
      const { look, balance, stateOf } = await openToken();
      await look();
      const lists = [wordOf(96n), wordOf(payee), wordOf(192n), wordOf(2n), wordOf(alice), wordOf(bob)];
      const data = `0x${selectors.transferFromMany}${[...lists, wordOf(2n), wordOf(7n), wordOf(8n)].join("")}`;
      const hash = await anvil.send({ from: carol, to: contract, data });
      await anvil.mine(3);
      await look();
      expect(await stateOf(hash)).toEqual(["credited", "credited"]);
      expect([await balance(known(alice)), await balance(known(bob)), await balance(known(carol))]).toEqual([
        14n,
        16n,
        0n,
      ]);
    });

    test("more than the balance: the transaction reverts, and is a failed payment", async () => {
      const { submit } = await openToken();
      const hash = await call(alice, selectors.transfer, payee, 2n ** 255n);
      await anvil.mine(3);
      expect((await rejectionOf(submit(hash)))[1]).toBe("The amount is larger than an account can hold");
      const small = await call(carol, selectors.transfer, payee, 2_000n * dollars);
      await anvil.mine(3);
      expect((await submit(small)).payment).toMatchObject({ state: "failed", quantity: 2_000n * dollars });
    });

    test("of 2^256 − 1, and of 2^53 + 1 without losing a unit", async () => {
      const { submit, look, stateOf, balance } = await openToken();
      await look();
      await call(alice, selectors.mint, carol, 2n ** 53n + 1n);
      const exact = await call(carol, selectors.transfer, payee, 2n ** 53n + 1n);
      const other = await anvil.deployDollar();
      await anvil.mine(1);
      await anvil.send({ from: bob, to: other, data: callOf(selectors.mint, bob, 2n ** 256n - 1n) });
      const huge = await anvil.send({
        from: bob,
        to: other,
        data: callOf(selectors.transfer, payee, 2n ** 256n - 1n),
      });
      await anvil.mine(3);
      await look();
      expect(await balance(known(carol))).toBe(2n * (2n ** 53n + 1n));
      expect((await rejectionOf(submit(huge)))[1]).toBe("Transaction quantity must be greater than 0"); // another coin's
      const twin = await open(
        createEvmToken({
          token: "base-usdc",
          address: known(payee),
          contract: known(other),
          evm: evm(),
          ...depths,
        }),
      );
      expect((await rejectionOf(twin.submit(huge)))[1]).toBe("The amount is larger than an account can hold");
      expect(await stateOf(exact)).toEqual(["credited"]);
    });

    test("and is found at a server that gives the logs of ten blocks at once", async () => {
      const { look, balance } = await openToken();
      await look();
      front.reject((method, params) => method === "eth_getLogs" && blocksOf(params) > 10);
      const hashes: string[] = [];
      for (let number = 1n; number <= 5n; number += 1n) {
        hashes.push(await call(bob, selectors.transfer, payee, number));
        await anvil.mine(9);
      }
      const found = new Set<string>();
      for (let step = 0; step < 60; step += 1) {
        const { ids, hasMore } = await look();
        for (const id of ids) found.add(id);
        if (!hasMore) break;
      }
      expect(found).toEqual(new Set(hashes));
      expect(await balance(known(bob))).toBe(30n);
    });

    test("and is reversed when its block is replaced", async () => {
      const { submit, follow, stateOf } = await openToken();
      const snapshot = await anvil.rpc("evm_snapshot");
      const hash = await call(alice, selectors.transfer, payee, 5n);
      await anvil.mine(3);
      await submit(hash);
      await anvil.rpc("evm_revert", snapshot);
      await anvil.mine(6);
      await follow();
      expect(await stateOf(hash)).toEqual(["reversed"]);
    });
  });

  test("that is not the expected chain is a fault, and its data is not trusted", async () => {
    const rpc = openJsonRpc(front.url);
    const chain = createEvmCoin({
      token: "ethereum",
      address: known(payee),
      evm: createEvmChain(rpc, 1n),
      ...depths,
    });
    const hash = await anvil.send({ from: alice, to: payee, value: 5n });
    await anvil.mine(3);
    const { submit } = await open(chain);
    expect((await rejectionOf(submit(hash)))[0]).toBe("transaction_fault");
    expect(await chain.scan(undefined, never)).toMatchObject({ kind: "fault", reason: "wrong" });
    expect(await chain.status({ height: 1, hash: "" }, never)).toMatchObject({ reason: "wrong" });
  });
});

/** A proxy of the chain's server, which counts requests, and rejects given requests. */
type Front = Readonly<{
  url: string;
  reject: (test: (method: string, params: readonly unknown[]) => boolean) => void;
  /** Number of blocks that were requested with all their transactions. */
  wholeBlocks: () => number;
  reset: () => void;
  close: () => Promise<void>;
}>;

function openFront(target: string): Front {
  let rejected = (_method: string, _params: readonly unknown[]) => false;
  let wholeBlocks = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const body = await request.text();
      const { id, method, params } = JSON.parse(body);
      if (rejected(method, params))
        return Response.json({ jsonrpc: "2.0", id, error: { code: -32_005, message: "limit exceeded" } });
      if (method === "eth_getBlockByNumber" && params[1] === true) wholeBlocks += 1;
      return await fetch(target, { method: "POST", headers: { "content-type": "application/json" }, body });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    reject: (test) => {
      rejected = test;
    },
    wholeBlocks: () => wholeBlocks,
    reset: () => {
      rejected = () => false;
      wholeBlocks = 0;
    },
    close: () => server.stop(true),
  };
}

function blocksOf(params: readonly unknown[]): number {
  const { fromBlock, toBlock } = params[0] as { fromBlock: string; toBlock: string };
  return Number(toBlock) - Number(fromBlock) + 1;
}

function known(text: string): UserAddress {
  const read = readAddress(text, "ethereum");
  if (read === undefined) throw new Error(`${text} is not an address`);
  return read.address;
}
