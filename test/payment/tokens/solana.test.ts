/**
 * Payments on Solana, in its coin and in tokens, over a node on a socket: credited when they are final, found by the
 * signatures of the accounts that receive them.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { encodeBase58 } from "../../../src/lib/base-encodings.ts";
import { readAddress, type UserAddress } from "../../../src/payment/addresses.ts";
import { openJsonRpc } from "../../../src/payment/evm/json-rpc.ts";
import { createSolanaChain } from "../../../src/payment/tokens/chains/solana-chain.ts";
import { openSolanaNode, programAddress, type SolanaNode, type SolanaPlan, solanaAddress } from "./solana-node.ts";
import { never, openTokenFixture, rejectionOf, type TokenFixture, tokenSteps } from "./token-fixture.ts";

const ours = solanaAddress(1);
const alice = solanaAddress(2);
const bob = solanaAddress(3);
const mint = solanaAddress(100);
const otherMint = solanaAddress(101);
const toFinality = 33;
const opened: { node: SolanaNode; fixture: TokenFixture }[] = [];

afterEach(async () => {
  for (const { node, fixture } of opened.splice(0)) {
    expect(await fixture.findings()).toEqual([]);
    await fixture.close();
    await node.close();
  }
});

async function open(token: "solana" | "solana-usdc" = "solana") {
  const node = openSolanaNode();
  const chain = createSolanaChain({
    token,
    address: ours,
    genesisHash: node.genesisHash,
    mint: token === "solana" ? undefined : mint,
    rpc: openJsonRpc(node.url),
  });
  const fixture = await openTokenFixture([chain]);
  opened.push({ node, fixture });
  return {
    ...fixture,
    node,
    chain,
    ...tokenSteps(fixture, chain),
    final: (plan: SolanaPlan) => {
      const signature = node.send(plan);
      node.advance(toFinality);
      return signature;
    },
  };
}

function pay(amount: bigint, from = alice, to = ours): SolanaPlan {
  return { moves: [{ from, to, amount }] };
}

describe("a payment in SOL", () => {
  test("is pending while it is confirmed, credited when it is final, and then not checked again", async () => {
    const { node, chain, submit, follow, balance, stored } = await open();
    const signature = node.send(pay(2n ** 53n + 1n));
    expect((await submit(signature)).payment).toMatchObject({
      state: "pending",
      sender: alice,
      block: undefined,
    });
    node.advance(toFinality);
    await follow();
    expect((await submit(signature)).payment).toMatchObject({ state: "credited", destinationType: "solana" });
    expect(await balance(known(alice))).toBe(2n ** 54n + 2n);
    expect((await stored(chain, signature))[0]).toMatchObject({ dueAt: undefined, block: { height: 1_000 } });
  });

  test("of several signers is one payment, by its first signature, also on a node that finds it by each", async () => {
    const { submit, final, balance } = await open();
    const others = [encodeBase58(new Uint8Array(64).fill(7)), encodeBase58(new Uint8Array(64).fill(8))];
    const signature = final({ ...pay(5n), otherSignatures: others });
    expect((await submit(signature)).payment).toMatchObject({ state: "credited" });
    for (const other of others) expect(await rejectionOf(submit(other))).toContain("transaction_not_found");
    expect(await balance(known(alice))).toBe(10n);
  });

  test("goes to the account that its memo names", async () => {
    const { submit, final } = await open();
    const named = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A";
    const signature = final({ ...pay(5n), memo: `turboCreditDestinationAddress=${named}` });
    expect((await submit(signature)).payment).toMatchObject({
      destination: named,
      destinationType: "ethereum",
    });
    const other = final({ ...pay(5n), memo: "turboCreditDestinationAddress=unnamed" });
    expect((await submit(other)).payment).toMatchObject({ destination: alice });
  });

  test("counts also when a program makes it, and for each of its senders", async () => {
    const { submit, final, balance } = await open();
    const signature = final({
      payer: bob,
      moves: [
        { from: alice, to: ours, amount: 5n, isInner: true },
        { from: bob, to: ours, amount: 7n },
        { from: alice, to: ours, amount: 1n },
        { from: alice, to: bob, amount: 100n },
      ],
    });
    await submit(signature);
    expect([await balance(known(alice)), await balance(known(bob))]).toEqual([12n, 14n]);
  });

  test("from an account of a program is credited to the signer", async () => {
    const { submit, final } = await open();
    const vault = programAddress(1);
    const signature = final({ payer: bob, moves: [{ from: vault, to: ours, amount: 5n, isInner: true }] });
    expect((await submit(signature)).payment).toMatchObject({ sender: bob });
  });

  test("is not counted when the address paid as much in the same transaction, or when only its balance grew", async () => {
    const { submit, final } = await open();
    const there = final({
      payer: alice,
      moves: [
        { from: alice, to: ours, amount: 5n },
        { from: ours, to: alice, amount: 5n },
      ],
    });
    expect((await rejectionOf(submit(there)))[0]).toBe("payment_rejected");
    const grown = final({
      payer: alice,
      moves: [{ from: alice, to: bob, amount: 5n }],
      gains: { [ours]: 9n },
    });
    expect((await rejectionOf(submit(grown)))[1]).toBe(
      `Payment transaction '${grown}' has wrong target address '${bob}'`,
    );
  });

  test("that failed on the chain is a failed payment", async () => {
    const { submit, final, balance } = await open();
    const signature = final({ ...pay(5n), fails: true });
    expect((await submit(signature)).payment.state).toBe("failed");
    expect(await balance(known(alice))).toBe(0n);
  });

  test("of amount 0 is rejected, and an unknown one is not found", async () => {
    const { submit, final, node } = await open();
    expect((await rejectionOf(submit(final(pay(0n)))))[1]).toBe("Transaction quantity must be greater than 0");
    const unknown = openSolanaNode(9).send(pay(5n));
    expect((await rejectionOf(submit(unknown)))[0]).toBe("transaction_not_found");
    for (const text of ["", "0".repeat(88), unknown.slice(1), alice])
      expect((await rejectionOf(submit(text)))[0]).toBe("transaction_not_found");
    node.rejected.add("getTransaction");
    expect((await rejectionOf(submit(unknown)))[0]).toBe("transaction_fault");
  });

  test("is found without a report, once; earlier, failed and unfinalized ones are not", async () => {
    const { node, look, final, balance, submit } = await open();
    final(pay(1_000n));
    node.send(pay(7n)); // final only after the first look: it is ours
    expect((await look()).ids).toEqual([]);
    node.advance(toFinality);
    const failed = final({ ...pay(11n), fails: true });
    node.send(pay(13n));
    const { ids } = await look();
    expect(ids).not.toContain(failed);
    expect(await balance(known(alice))).toBe(14n);
    node.advance(toFinality);
    await look();
    expect(await balance(known(alice))).toBe(40n);
    const later = final(pay(1n));
    await submit(later);
    await look();
    await look();
    expect(await balance(known(alice))).toBe(42n);
  });

  test("is found among hundreds, a page at a time, while more arrive", async () => {
    const { node, look, balance } = await open();
    await look();
    for (let number = 0; number < 230; number += 1) {
      node.send(pay(1n));
      node.send({ moves: [{ from: ours, to: bob, amount: 1n }] });
    }
    node.advance(toFinality);
    let steps = 0;
    for (let hasMore = true; hasMore && steps < 50; steps += 1) {
      ({ hasMore } = await look());
      if (steps === 1) {
        for (let number = 0; number < 20; number += 1) node.send(pay(1n));
        node.advance(toFinality);
      }
    }
    expect(steps).toBe(5);
    expect(await balance(known(alice))).toBe(460n);
    await look();
    expect(await balance(known(alice))).toBe(500n);
  });
});

describe("a payment in USDC on Solana", () => {
  const dollars = (amount: bigint, from = alice, to = ours, of = mint): SolanaPlan => ({
    moves: [{ from, to, amount, mint: of }],
  });

  test("is credited to the owner of the account that it came from", async () => {
    const { submit, final, balance } = await open("solana-usdc");
    const signature = final({ ...dollars(3_000_000n), payer: bob });
    expect((await submit(signature)).payment).toMatchObject({ state: "credited", sender: alice });
    expect(await balance(known(alice))).toBe(6_000_000n);
  });

  test("of another mint, to another address, or in SOL is rejected", async () => {
    const { submit, final } = await open("solana-usdc");
    for (const plan of [dollars(5n, alice, ours, otherMint), dollars(5n, alice, bob), pay(5n)])
      expect((await rejectionOf(submit(final(plan))))[0]).toBe("payment_rejected");
  });

  test("is found by the signatures of the token account, also when the account is created later", async () => {
    const { node, look, final, balance } = await open("solana-usdc");
    expect((await look()).ids).toEqual([]);
    const first = final(dollars(5n));
    expect((await look()).ids).toEqual([first]);
    final(dollars(6n, bob));
    await look();
    expect([await balance(known(alice)), await balance(known(bob))]).toEqual([10n, 12n]);
    expect(node.calls.get("getTokenAccountsByOwner")).toBe(3);
  });
});

test("a node of another cluster is a fault, and its payments are not credited", async () => {
  const { node } = await open();
  const rpc = openJsonRpc(node.url);
  const chain = createSolanaChain({
    token: "solana",
    address: ours,
    mint: undefined,
    rpc,
    genesisHash: "another",
  });
  const signature = node.send(pay(5n));
  expect(await chain.look(signature, never)).toMatchObject({ kind: "fault", reason: "wrong" });
  expect(await chain.scan(undefined, never)).toMatchObject({ kind: "fault", reason: "wrong" });
});

function known(text: string): UserAddress {
  const read = readAddress(text, "solana");
  if (read === undefined) throw new Error(`${text} is not a valid address`);
  return read.address;
}
