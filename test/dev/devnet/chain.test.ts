/**
 * The growing chain: the commitments of blocks, the fate of pending transactions, and the conservation of money.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Block, readBlock } from "../../../src/arweave/block.ts";
import { verifyBlock } from "../../../src/arweave/block-check.ts";
import { readAddress } from "../../../src/arweave/id.ts";
import { validatePath } from "../../../src/arweave/merkle.ts";
import { readTransaction, treeRootOf, verifyTransaction } from "../../../src/arweave/transaction.ts";
import { ecdsaWallet } from "../../../src/arweave/wallet.ts";
import { devnetFee, minerShare } from "../../../src/dev/devnet/chain-rules.ts";
import type { Devnet } from "../../../src/dev/devnet/devnet.ts";
import { isJsonObject } from "../../../src/lib/json.ts";
import { createTestClock, ecdsa, openTestDevnet, post, respelled, rsa, sign, stranger, testBytes } from "./support.ts";

const fee = devnetFee(0n, "none");

describe("a block", () => {
  test("passes every check from the first block on, with its transactions and the previous block", async () => {
    const devnet = await openTestDevnet();
    await post(devnet, rsa, { data: testBytes(1) });
    await post(devnet, rsa, { data: testBytes(262_144) });
    await post(devnet, ecdsa, { data: testBytes(262_145, 5), tailRule: "plain" });
    await post(devnet, ecdsa, { tags: [{ name: "without", value: "data" }] });
    await post(devnet, rsa, {
      format: 1,
      data: testBytes(70_000, 3),
      reward: devnetFee(70_000n, "none"),
    });
    await post(devnet, rsa, { format: 1, target: ecdsa.address, quantity: 5n });
    await devnet.mine(3);
    const blocks = Array.from({ length: 4 }, (_, height) => blockOf(devnet, height));
    expect(blocks.map(({ txs }) => txs.length)).toEqual([1, 6, 0, 0]);
    for (const block of blocks) {
      const transactions = await Promise.all(block.txs.map((id) => minedTransaction(devnet, id)));
      for (const transaction of transactions) expect(verifyTransaction(transaction)).toEqual({ valid: true });
      const placed = transactions.map((transaction) => ({
        ...transaction,
        dataRoot: treeRootOf(transaction),
      }));
      const verdict = verifyBlock(block, placed, blocks[block.height - 1]);
      if (verdict.kind === "rejected") throw new Error(verdict.reason);
      const first = ["previous block", "block index", "cumulative difficulty", "weave size"] as const;
      expect(verdict.unchecked).toEqual(block.height === 0 ? [...first] : []);
    }
    expect(blocks[1]?.blockSize).toBe(262_144n * 5n);
    devnet.close();
  });

  test("has every field of the chain's release 2.9, of the type that the era has", async () => {
    const devnet = await openTestDevnet();
    await devnet.mine(1);
    const { fields } = blockOf(devnet, 1);
    const types = Object.fromEntries(
      Object.entries(fields).map(([key, value]) => [key, Array.isArray(value) ? "list" : typeof value]),
    );
    const text = "string";
    expect(types).toEqual({
      usd_to_ar_rate: "list",
      scheduled_usd_to_ar_rate: "list",
      packing_2_5_threshold: text,
      strict_data_split_threshold: text,
      nonce: text,
      previous_block: text,
      timestamp: "number",
      last_retarget: "number",
      diff: text,
      height: "number",
      hash: text,
      indep_hash: text,
      txs: "list",
      tx_root: text,
      wallet_list: text,
      reward_addr: text,
      tags: "list",
      reward_pool: text,
      weave_size: text,
      block_size: text,
      cumulative_diff: text,
      hash_list_merkle: text,
      poa: "object",
      hash_preimage: text,
      recall_byte: text,
      reward: text,
      previous_solution_hash: text,
      partition_number: "number",
      nonce_limiter_info: "object",
      poa2: "object",
      signature: text,
      reward_key: text,
      price_per_gib_minute: text,
      scheduled_price_per_gib_minute: text,
      reward_history_hash: text,
      debt_supply: text,
      kryder_plus_rate_multiplier: text,
      kryder_plus_rate_multiplier_latch: text,
      denomination: text,
      redenomination_height: "number",
      double_signing_proof: "object",
      previous_cumulative_diff: text,
      merkle_rebase_support_threshold: text,
      chunk_hash: text,
      block_time_history_hash: text,
      packing_difficulty: "number",
      replica_format: "number",
    });
    const info = fields["nonce_limiter_info"];
    expect(isJsonObject(info) ? Object.keys(info).toSorted() : []).toEqual([
      "checkpoints",
      "global_step_number",
      "last_step_checkpoints",
      "next_seed",
      "next_vdf_difficulty",
      "next_zone_upper_bound",
      "output",
      "prev_output",
      "seed",
      "vdf_difficulty",
      "zone_upper_bound",
    ]);
    devnet.close();
  });

  test("proves that its miner has a chunk, by both paths from the root of an earlier block", async () => {
    const devnet = await openTestDevnet();
    const { fields } = await devnet.mine(1);
    const { tx_path: txPath, data_path: dataPath, chunk } = textsOf(fields["poa"]);
    const first = blockOf(devnet, 0);
    const target = Number(fields["recall_byte"]);
    const root = bytesOf(first.txRoot);
    const held = validatePath({
      root,
      path: bytesOf(txPath),
      target,
      size: first.blockSize,
      ruleset: "basic",
    });
    if (held === undefined) throw new Error("the tx path proves nothing");
    const size = held.end - held.start;
    const leaf = validatePath({ root: held.hash, path: bytesOf(dataPath), target, size, ruleset: "relaxed" });
    const sum = new Bun.CryptoHasher("sha256").update(bytesOf(chunk)).digest();
    expect([leaf?.hash.toHex(), bytesOf(String(fields["chunk_hash"])).toHex()]).toEqual([sum.toHex(), sum.toHex()]);
    devnet.close();
  });

  test("continues the delay function of the previous block: 25 hashes, each over a salt and the last", async () => {
    const devnet = await openTestDevnet();
    await devnet.mine(2);
    const steps = [0, 1, 2].map((height) => blockOf(devnet, height).fields["nonce_limiter_info"]);
    for (const [index, step] of steps.entries()) {
      const { output, prev_output: from } = textsOf(step);
      if (index > 0) expect(from).toBe(textsOf(steps[index - 1])["output"] ?? "");
      let state = bytesOf(from);
      // Salts count on without a gap: 0 to 24 for the first step; the chain then begins again at 1.
      const salts = Array.from({ length: 25 }, (_, salt) => (index === 0 ? salt : (index - 1) * 25 + 1 + salt));
      for (const salt of salts) {
        const bytes = new Uint8Array(32);
        new DataView(bytes.buffer).setUint32(28, salt);
        state = new Bun.CryptoHasher("sha256").update(bytes).update(state).digest();
      }
      expect(output).toBe(Buffer.from(state).toString("base64url"));
    }
    devnet.close();
  });

  test("is never older than the previous block, even if the clock is set back", async () => {
    const clock = createTestClock();
    const devnet = await openTestDevnet({ clock });
    clock.now -= 3_600_000;
    const back = await devnet.mine(1);
    clock.now += 7_200_000;
    const forth = await devnet.mine(1);
    expect([back.timestamp, forth.timestamp]).toEqual([1_700_000_000, 1_700_003_600]);
    devnet.close();
  });

  test("takes 1,000 transactions and leaves the rest to the next", async () => {
    const devnet = await openTestDevnet();
    for (let index = 0; index < 1_003; index += 1) await post(devnet, ecdsa, { reward: fee + BigInt(index) });
    expect([(await devnet.mine(1)).txs.length, (await devnet.mine(1)).txs.length]).toEqual([1_000, 3]);
    devnet.close();
  });

  test("takes wallet anchors first, then higher rewards, format 1 with data last", async () => {
    const devnet = await openTestDevnet();
    const poor = await post(devnet, rsa);
    const rich = await post(devnet, rsa, { reward: fee * 5n });
    const reward = devnetFee(200n, "none");
    const heavy = await post(devnet, rsa, { format: 1, data: testBytes(200), reward });
    const byWallet = await post(devnet, ecdsa, { lastTx: "" });
    expect((await devnet.mine(1)).txs).toEqual([byWallet.id, rich.id, poor.id, heavy.id]);
    devnet.close();
  });
});

describe("a pending transaction", () => {
  test("that spends the same money twice is mined once; the other is dropped with the reason", async () => {
    const devnet = await openTestDevnet();
    const held = devnet.account(rsa.address)?.balance ?? 0n;
    const most = { target: ecdsa.address, quantity: held - 3n * fee };
    const lower = await post(devnet, rsa, most);
    const higher = await post(devnet, rsa, { ...most, reward: 2n * fee });
    expect((await devnet.mine(1)).txs).toEqual([higher.id]);
    expect(devnet.transaction(lower.id)).toEqual({ kind: "rejected", codes: ["overspend"] });
    expect(devnet.pendingIds()).toEqual([]);
    devnet.close();
  });

  test("and has a used wallet anchor is dropped", async () => {
    const devnet = await openTestDevnet();
    const one = await post(devnet, rsa, { lastTx: "" });
    const other = await post(devnet, rsa, { lastTx: "", reward: fee + 1n });
    expect((await devnet.mine(1)).txs).toEqual([one.id]);
    expect(devnet.transaction(other.id)).toEqual({ kind: "rejected", codes: ["last_tx_not_valid"] });
    devnet.close();
  });

  test("can spend only mined money", async () => {
    const devnet = await openTestDevnet();
    await post(devnet, rsa, {
      target: stranger.address,
      quantity: 10n * fee,
      reward: devnetFee(0n, "new"),
    });
    const early = sign(devnet, stranger);
    expect(await devnet.postTransaction(early.text)).toMatchObject({
      kind: "faulty",
      faults: [{ code: "overspend" }],
    });
    await devnet.mine(1);
    expect(await devnet.postTransaction(early.text)).toMatchObject({ kind: "accepted" });
    devnet.close();
  });
});

describe("money", () => {
  test("moves exactly: amount to the target, fee to miner and endowment", async () => {
    const devnet = await openTestDevnet();
    const before = devnet.account(rsa.address)?.balance ?? 0n;
    const reward = devnetFee(0n, "new") + 12_345n;
    await post(devnet, rsa, { target: stranger.address, quantity: 1_000n, reward });
    const block = await devnet.mine(1);
    expect(devnet.account(rsa.address)?.balance).toBe(before - 1_000n - reward);
    expect(devnet.account(stranger.address)).toEqual({ balance: 1_000n, lastTx: "" });
    expect(block.fields["reward"]).toBe(`${minerShare(reward)}`);
    expect(block.fields["reward_pool"]).toBe(`${reward - minerShare(reward)}`);
    expect([0, 1].map((height) => devnet.balanceAt(rsa.address, height))).toEqual([before, before - 1_000n - reward]);
    devnet.close();
  });

  test("is minted at once, stored in the next block, and forgotten by a reset", async () => {
    const devnet = await openTestDevnet();
    expect(devnet.mint(stranger.address, 2n ** 60n)).toBe(2n ** 60n);
    expect(devnet.mint(stranger.address, 1n)).toBe(2n ** 60n + 1n);
    const roots = [blockOf(devnet, 0), await devnet.mine(1)].map(({ fields }) => fields["wallet_list"]);
    expect(roots[0]).not.toBe(roots[1]);
    devnet.reset();
    expect(devnet.account(stranger.address)).toBeUndefined();
    devnet.close();
  });

  test("is in one account per address text, as given", async () => {
    const devnet = await openTestDevnet();
    const other = respelled(stranger.address);
    expect([devnet.mint(stranger.address, 5n), devnet.mint(other, 7n)]).toEqual([5n, 7n]);
    const canonical = sign(devnet, rsa, {
      target: stranger.address,
      quantity: 11n,
      reward: devnetFee(0n, "new"),
    });
    const text = canonical.text.replace(stranger.address, other);
    expect(text).not.toBe(canonical.text);
    expect(await devnet.postTransaction(text)).toMatchObject({ kind: "accepted" });
    await devnet.mine(1);
    const balances = [stranger.address, other].map(
      (address) => devnet.account(readAddress(address) ?? rsa.address)?.balance,
    );
    expect(balances).toEqual([5n, 18n]);
    expect(await minedTransaction(devnet, canonical.id)).toMatchObject({ target: other });
    devnet.close();
  });

  test("is neither made nor lost by any sequence of payments and blocks", async () => {
    const people = [rsa, ecdsa, stranger, ecdsaWallet(new Uint8Array(32).fill(11))];
    const step = fc.oneof(
      fc.record({
        from: fc.nat(3),
        to: fc.nat(3),
        quantity: fc.bigInt(0n, 3n * 10n ** 18n),
        extra: fc.nat(5),
        byWallet: fc.boolean(),
      }),
      fc.constant("mine" as const),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const devnet = await openTestDevnet();
        const supply = devnet.supply();
        for (const entry of steps) {
          if (entry === "mine") await devnet.mine(1);
          else {
            const from = people[entry.from] ?? rsa;
            const target = people[entry.to]?.address ?? "";
            const lastTx = entry.byWallet ? (devnet.account(from.address)?.lastTx ?? "") : devnet.suggestedAnchor();
            const reward = devnetFee(0n, "new") + BigInt(entry.extra);
            await devnet.postTransaction(sign(devnet, from, { target, quantity: entry.quantity, reward, lastTx }).text);
          }
        }
        const tip = await devnet.mine(1);
        expect(devnet.supply() + BigInt(`${tip.fields["reward_pool"]}`)).toBe(supply);
        for (const { address } of people) expect(devnet.account(address)?.balance ?? 0n).toBeGreaterThanOrEqual(0n);
        devnet.close();
      }),
      { numRuns: 60 },
    );
  });
});

describe("a seed", () => {
  test("with the same wallets, calls and clock gives the same chain, and another gives another", async () => {
    const hashes = await Promise.all(["one", "one", "two"].map(async (seed) => [...(await grow(seed))]));
    expect(hashes[0]).toEqual(hashes[1]);
    expect(hashes[0]?.some((hash) => hashes[2]?.includes(hash))).toBe(false);
  });

  test("gives the same chain again after a reset, whose first block stays", async () => {
    const clock = createTestClock();
    const devnet = await openTestDevnet({ clock });
    const first = await play(devnet, clock);
    clock.now = 1_700_000_000_000;
    devnet.reset();
    expect([devnet.height(), devnet.tipHash()]).toEqual([0, first[0] ?? ""]);
    expect(await play(devnet, clock)).toEqual(first);
    devnet.close();
  });
});

/** The texts of an object of a block. */
function textsOf(value: unknown): Readonly<Record<string, string>> {
  return Object(value);
}

function bytesOf(text: string | undefined): Uint8Array {
  return Buffer.from(text ?? "", "base64url");
}

async function grow(seed: string): Promise<string[]> {
  const clock = createTestClock();
  const devnet = await openTestDevnet({ seed, clock });
  const hashes = await play(devnet, clock);
  devnet.close();
  return hashes;
}

/** A little of everything that goes into a block. */
async function play(devnet: Devnet, clock: ReturnType<typeof createTestClock>): Promise<string[]> {
  await post(devnet, rsa, { data: testBytes(300), lastTx: "" });
  devnet.mint(stranger.address, 10n ** 12n);
  await devnet.mine(2);
  clock.now += 90_000;
  await post(devnet, ecdsa, { target: stranger.address, quantity: 7n });
  await post(devnet, stranger, { tags: [{ name: "a", value: "b" }] });
  await devnet.mine(1);
  return Array.from({ length: 4 }, (_, height) => blockOf(devnet, height).hash);
}

function blockOf(devnet: Devnet, height: number): Block {
  return readBlock(devnet.blockAt(height)?.text ?? "");
}

async function minedTransaction(devnet: Devnet, id: string) {
  const { kind } = devnet.transaction(id);
  if (kind !== "mined") throw new Error(`${id} is ${kind}`);
  return readTransaction((await devnet.written(id)) ?? "");
}
