/**
 * The Solana node of the tests against the published client, which checks the form of every response that it reads.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Connection } from "@solana/web3.js";
import { openSolanaNode, type SolanaNode, solanaAddress } from "../payment/tokens/solana-node.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";

const ours = solanaAddress(1);
const alice = solanaAddress(2);
const mint = solanaAddress(100);

describeWith(clientLibraries, "the published client of Solana", () => {
  let node: SolanaNode;
  let connection: Connection;
  let web3: typeof import("@solana/web3.js");

  beforeAll(async () => {
    web3 = await import("@solana/web3.js");
    node = openSolanaNode();
    connection = new web3.Connection(node.url, "finalized");
  });

  afterAll(() => node?.close());

  const key = (text: string) => new web3.PublicKey(text);
  const how = { maxSupportedTransactionVersion: 0, commitment: "finalized" } as const;

  test("reads transactions of coins and tokens, with memos, inner calls and failures", async () => {
    const moves = [
      { from: alice, to: ours, amount: 5n },
      { from: alice, to: ours, amount: 7n, mint },
      { from: alice, to: ours, amount: 9n, isInner: true },
    ];
    const signature = node.send({ moves, memo: "turboCreditDestinationAddress=x" });
    const failed = node.send({ moves, fails: true });
    expect(await connection.getParsedTransaction(signature, how)).toBeNull();
    const confirmed = await connection.getParsedTransaction(signature, { ...how, commitment: "confirmed" });
    expect(confirmed?.slot).toBe(node.slot());
    node.advance(33);
    const found = await connection.getParsedTransaction(signature, how);
    expect(found?.transaction.message.instructions).toHaveLength(3);
    expect(found?.meta?.innerInstructions).toHaveLength(1);
    expect(found?.meta?.postTokenBalances?.map(({ owner }) => owner)).toContain(ours);
    expect((await connection.getParsedTransaction(failed, how))?.meta?.err).not.toBeNull();
    expect(await connection.getParsedTransaction("1".repeat(88), how)).toBeNull();
  });

  test("reads pages of signatures, token accounts, the slot and the cluster", async () => {
    for (let count = 0; count < 5; count += 1) node.send({ moves: [{ from: alice, to: ours, amount: 1n }] });
    node.advance(33);
    const all = await connection.getSignaturesForAddress(key(ours), {}, "finalized");
    const [first] = await connection.getSignaturesForAddress(key(ours), { limit: 1 }, "finalized");
    expect(all[0]).toEqual(first!);
    const rest = { before: all[0]!.signature, until: all[4]!.signature };
    expect(await connection.getSignaturesForAddress(key(ours), rest, "finalized")).toEqual(all.slice(1, 4));
    const accounts = await connection.getParsedTokenAccountsByOwner(key(ours), { mint: key(mint) });
    expect(accounts.value.map(({ pubkey }) => pubkey.toBase58())).toEqual([node.tokenAccount(ours, mint)]);
    expect(await connection.getSlot("confirmed")).toBe(node.slot());
    expect(await connection.getGenesisHash()).toBe(node.genesisHash);
  });
});
