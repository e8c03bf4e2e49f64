/**
 * Blocks: every shape since 2.6 made and checked, every byte damaged, every link broken.
 *
 * Real blocks are in transaction-vectors.test.ts.
 * @module
 */
import { describe, expect, test } from "bun:test";
import {
  type Block,
  type BlockShape,
  blockHash,
  blockShapes,
  isShapeSince,
  nextHashListMerkle,
  readBlock,
  signedHash,
} from "../../src/arweave/block.ts";
import { mainNetFault, mainNetGenesis, nextCumulativeDifficulty, verifyBlock } from "../../src/arweave/block-check.ts";
import { idFromBytes, readBlockHash } from "../../src/arweave/id.ts";
import { buildTxTree, type PlacedTransaction } from "../../src/arweave/tx-root.ts";
import { ecdsaWallet, readWallet, type Wallet } from "../../src/arweave/wallet.ts";
import { Failure } from "../../src/failures.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { concatBytes, readUnsigned, writeUnsignedFixed } from "../../src/lib/bytes.ts";
import type { JsonObject } from "../../src/lib/json.ts";
import { createChance, mutateText, mutationCount, mutationSeed } from "../support/mutate.ts";
import { rsaKeys } from "../support/rsa-keys.ts";
import { fill, makeSample } from "../support/sample-block.ts";

const rsa = readWallet(rsaKeys["4096"]);
const ecdsa = ecdsaWallet(new Uint8Array(32).fill(7));
const recent: BlockShape[] = ["2.6", "2.7", "2.8", "2.9"];

const transactions: PlacedTransaction[] = [1, 2, 3].map((first) => ({
  id: idFromBytes(new Uint8Array(32).fill(first)),
  format: 2,
  dataSize: first * 1_000,
  dataRoot: fill(first, 32),
}));
const tree = buildTxTree(transactions, "padded");

/** A block with transactions, and the one before it. */
function pairOf(shape: BlockShape, wallet: Wallet, change: JsonObject = {}): [Block, Block] {
  const previous = makeSample({ shape, wallet });
  const txs = transactions.map(({ id }) => id).reverse();
  return [previous, makeSample({ shape, wallet, previous, txs, txRoot: tree.root, blockSize: tree.size, change })];
}

function reasonOf(block: Block, list: readonly PlacedTransaction[] | undefined, previous?: Block): string {
  const verdict = verifyBlock(block, list, previous);
  return verdict.kind === "rejected" ? verdict.reason : "accepted";
}

describe("verifyBlock", () => {
  test.each(recent)("a sound block of %s is accepted, and everything that can be is checked", (shape) => {
    const [previous, block] = pairOf(shape, rsa);
    expect(block.shape).toBe(shape);
    const verdict = verifyBlock(block, transactions, previous);
    expect(verdict).toMatchObject({
      kind: "accepted",
      checked: [
        "hash",
        "signature",
        "difficulty",
        ...(isShapeSince(shape, "2.7") ? ["proof chunks"] : []),
        "previous block",
        "block index",
        "cumulative difficulty",
        "weave size",
        "transactions",
      ],
      unchecked: isShapeSince(shape, "2.7") ? [] : ["proof chunks"],
    });
  });

  test("since 2.9 producers may sign with ECDSA, before they may not", () => {
    const [previous, block] = pairOf("2.9", ecdsa);
    expect(reasonOf(block, transactions, previous)).toBe("accepted");
    expect(reasonOf(makeSample({ shape: "2.8", wallet: ecdsa }), undefined)).toBe(
      "signature is not that of reward_key over the block",
    );
  });

  test("an ECDSA signature with a high S, a second spelling, is rejected, and so is another key's", () => {
    const order = 2n ** 256n - 0x14551231950b75fc4402da1732fc9bebfn;
    const highS = (message: Uint8Array) => {
      const low = ecdsa.sign(message);
      const s = writeUnsignedFixed(order - readUnsigned(low.subarray(32, 64)), 32);
      return concatBytes([low.subarray(0, 32), s, Uint8Array.of((low[64] ?? 0) ^ 1)]);
    };
    const others = ecdsaWallet(new Uint8Array(32).fill(8)).sign;
    for (const sign of [highS, others]) {
      expect(reasonOf(makeSample({ shape: "2.9", wallet: { ...ecdsa, sign } }), undefined)).toBe(
        "signature is not that of reward_key over the block",
      );
    }
  });

  test("an RSA key of another size than 4,096 bits is not a producer's key", () => {
    const small = readWallet(rsaKeys["2048"]);
    expect(reasonOf(makeSample({ shape: "2.9", wallet: small }), undefined)).toBe(
      "signature is not that of reward_key over the block",
    );
  });

  test("the parts of a hash are distinguished: shapes, orders, absent fields", () => {
    const [, { fields }] = pairOf("2.9", ecdsa);
    const { recall_byte: _recall, ...withoutRecall } = fields;
    const { unpacked_chunk_hash: _hash, ...withoutHash } = fields;
    const variants: [JsonObject, BlockShape][] = [
      [fields, "2.9"],
      [fields, "2.8"],
      [fields, "2.7"],
      [fields, "2.6"],
      [{ ...fields, txs: [...transactions.map(({ id }) => id)] }, "2.9"],
      [{ ...fields, tags: [fill(9, 2), fill(8, 3)] }, "2.9"],
      [{ ...fields, tags: [fill(8, 5)] }, "2.9"],
      [withoutRecall, "2.9"],
      [{ ...fields, recall_byte: "0" }, "2.9"],
      [withoutHash, "2.9"],
      [{ ...fields, recall_byte2: "0" }, "2.9"],
      [{ ...fields, chunk2_hash: "" }, "2.9"],
    ];
    const hashes = variants.map(([variant, shape]) => encodeBase64url(signedHash(variant, shape)));
    // An empty chunk2_hash is written as an absent one; both mean that there was no second chunk.
    expect(new Set(hashes).size).toBe(variants.length - 1);
    expect(hashes[0]).toBe(hashes.at(-1) ?? "");
  });

  test("a proof that a producer signed twice is part of the hash", () => {
    const half = { sig1: fill(1, 65), cdiff1: "1", prev_cdiff1: "0", preimage1: fill(2, 64) };
    const other = { sig2: fill(3, 65), cdiff2: "2", prev_cdiff2: "0", preimage2: fill(4, 64) };
    const proof = { pub_key: fill(5, 33), ...half, ...other };
    const block = makeSample({ shape: "2.9", wallet: ecdsa, change: { double_signing_proof: proof } });
    expect(reasonOf(block, undefined)).toBe("accepted");
    const older = () => blockHash(block.fields, "2.8");
    expect(older).toThrow(Failure);
  });

  const rejections: [change: JsonObject, reason: string][] = [
    [{ hash: fill(0, 32) }, "hash is not above diff"],
    [
      { diff: "115792089237316195423570985008687907853269984665640564039457584007913129639935" },
      "hash is not above diff",
    ],
    [{ cumulative_diff: "8" }, "cumulative_diff does not follow from the previous block"],
    [{ previous_cumulative_diff: "8" }, "previous_cumulative_diff is not the previous block's"],
    [{ previous_block: fill(1, 48) }, "previous_block is not the previous block's hash"],
    [{ height: 102 }, "height is not one above the previous block's"],
    [{ previous_solution_hash: fill(1, 32) }, "previous_solution_hash is not the previous block's hash"],
    [{ hash_list_merkle: fill(1, 48) }, "hash_list_merkle does not follow from the previous block"],
    [{ weave_size: "1048577" }, "weave_size is not the previous block's and block_size"],
    [{ tx_root: fill(1, 32) }, "tx_root is not that of the block's transactions"],
    [{ txs: [] }, "the transactions are not those that the block names"],
    [{ reward_addr: fill(1, 32) }, "reward_addr is not that of reward_key"],
    [{ chunk_hash: fill(1, 32) }, "chunk_hash is not the hash of poa.chunk"],
    [{ unpacked_chunk_hash: fill(1, 32) }, "unpacked_chunk_hash is not the hash of poa.unpacked_chunk"],
    [{ poa: { option: "2", tx_path: "", data_path: "", chunk: "" } }, "poa.option is not 1"],
    [{ poa: { option: "1", tx_path: "", data_path: "", chunk: "", more: "" } }, "poa has the unknown part more"],
    [{ poa2: { option: "1", tx_path: "", data_path: "", chunk: "QQ" } }, "chunk2_hash is not the hash of poa2.chunk"],
  ];
  test.each(rejections)("a block signed and hashed with %p is rejected: %s", (change, reason) => {
    const [previous, block] = pairOf("2.9", ecdsa, change);
    expect(reasonOf(block, transactions, previous)).toBe(reason);
  });

  test("a proof whose chunk a relay emptied stays unchecked", () => {
    const poa = { option: "1", tx_path: "", data_path: "", chunk: "" };
    const verdict = verifyBlock(makeSample({ shape: "2.9", wallet: ecdsa, change: { poa } }), undefined, undefined);
    expect(verdict).toMatchObject({ kind: "accepted", unchecked: expect.arrayContaining(["proof chunks"]) });
  });

  test("a block may not have an older shape than the one before", () => {
    const previous = makeSample({ shape: "2.9", wallet: rsa });
    expect(reasonOf(makeSample({ shape: "2.7", wallet: rsa, previous }), undefined, previous)).toBe(
      "the block has an older shape than the previous one",
    );
  });

  test("the first block may have no owner", () => {
    const first = makeSample({
      shape: "2.9",
      wallet: { ...ecdsa, sign: () => new Uint8Array(0) },
      change: { height: 0, previous_block: "", reward_addr: "unclaimed", hash_list_merkle: "" },
    });
    expect(verifyBlock(first, [], undefined)).toMatchObject({
      kind: "accepted",
      checked: expect.arrayContaining(["hash"]),
    });
    const second = makeSample({ shape: "2.9", wallet: ecdsa, previous: first });
    expect(reasonOf(second, [], first)).toBe("accepted");
  });

  test("any block but the first needs a signature", () => {
    const unsigned = makeSample({ shape: "2.9", wallet: { ...ecdsa, sign: () => new Uint8Array(0) } });
    expect(reasonOf(unsigned, [])).toBe("signature is not that of reward_key over the block");
  });

  test("one wrong character anywhere in a block is rejected", () => {
    const [previous, block] = pairOf("2.9", ecdsa);
    const chance = createChance(mutationSeed);
    const accepted: string[] = [];
    for (let at = 0; at < block.text.length; at++) {
      const other = String.fromCharCode(33 + chance.below(94));
      if (other === block.text[at]) continue;
      const text = block.text.slice(0, at) + other + block.text.slice(at + 1);
      const read = attempt(text);
      if (read === undefined || reasonOf(read, transactions, previous) !== "accepted") continue;
      accepted.push(`${at}: ${text.slice(Math.max(0, at - 20), at + 20)}`);
    }
    expect(accepted).toEqual([]);
  }, 120_000);
});

describe("readBlock", () => {
  const sound = makeSample({ shape: "2.9", wallet: ecdsa, txs: transactions.map(({ id }) => id) });
  const rows: [name: string, change: object, reason: string][] = [
    ["no height", { height: undefined }, "height is not a whole number below 2^53"],
    ["a height as text", { height: "5" }, "height is not a whole number below 2^53"],
    ["a negative height", { height: -1 }, "height is not a whole number below 2^53"],
    ["a short hash", { indep_hash: "AA" }, "indep_hash is not a valid block hash"],
    ["no previous block", { previous_block: "" }, "previous_block is not a valid block hash"],
    ["ids that are numbers", { txs: [1] }, "txs contains an invalid id"],
    ["an id twice", { txs: [sound.txs[0], sound.txs[0]] }, "txs names a transaction twice"],
    ["1,001 ids", { txs: Array(1_001).fill("") }, "txs has more than 1000 items"],
    ["a root of 31 bytes", { tx_root: fill(1, 31) }, "tx_root has 31 bytes instead of 32"],
    ["a weave size of 79 digits", { weave_size: "1".repeat(79) }, "weave_size has more than 78 digits"],
    ["a negative size", { block_size: "-1" }, "block_size is not a whole number"],
    ["no wallet list in an old block", { ...oldKeys(), wallet_list: undefined }, "wallet_list is not text"],
  ];
  test.each(rows)("%s is rejected", (_name, change, reason) => {
    expect(failureOf(JSON.stringify({ ...sound.fields, ...change }))).toBe(reason);
  });

  /** The keys that came with later shapes, taken out. */
  function oldKeys(): object {
    const keys = ["replica_format", "packing_difficulty", "merkle_rebase_support_threshold", "nonce_limiter_info"];
    return Object.fromEntries([...keys, "strict_data_split_threshold"].map((key) => [key, undefined]));
  }

  test("the shape follows from the keys, and where these are gone from sizes as text and the account tree", () => {
    const shapeOf = (change: object) => readBlock(JSON.stringify({ ...sound.fields, ...change })).shape;
    const found = [
      {},
      { replica_format: undefined },
      { replica_format: undefined, packing_difficulty: undefined },
      {
        replica_format: undefined,
        packing_difficulty: undefined,
        merkle_rebase_support_threshold: undefined,
      },
      { ...oldKeys(), strict_data_split_threshold: "5" },
      oldKeys(),
      { ...oldKeys(), weave_size: 5 },
      { ...oldKeys(), weave_size: 5, wallet_list: fill(1, 32) },
    ].map(shapeOf);
    expect(found).toEqual([...blockShapes].reverse());
  });

  test("thresholds that are not stated are undefined, stated ones are numbers", () => {
    const old = readBlock(JSON.stringify({ ...sound.fields, ...oldKeys() }));
    expect([old.strictSplitThreshold, old.rebaseThreshold]).toEqual([undefined, undefined]);
    expect([sound.strictSplitThreshold, sound.rebaseThreshold]).toEqual([0n, 0n]);
  });

  test("more text than a block has is not parsed", () => {
    expect(failureOf(" ".repeat(4 * 2 ** 20 + 1))).toContain("expected at most 4194304");
  });
});

describe("mainNetFault", () => {
  const block = makeSample({ shape: "2.9", wallet: ecdsa });
  const rows: [height: number, shape: BlockShape, fault: string | undefined][] = [
    [1, "1.0", undefined],
    [422_249, "1.0", undefined],
    [422_250, "1.0", "block 422250 has the shape of 1.0 instead of 2.0"],
    [422_249, "2.0", "block 422249 has the shape of 2.0 instead of 1.0"],
    [633_720, "2.4", undefined],
    [812_970, "2.5", undefined],
    [1_132_210, "2.6", undefined],
    [1_275_480, "2.7", undefined],
    [1_547_120, "2.8", undefined],
    [1_602_349, "2.8", undefined],
    [1_602_350, "2.9", undefined],
    [9_999_999, "2.9", undefined],
    [0, "1.0", "this is not the main network's first block"],
  ];
  test.each(rows)("at height %p the shape %s gives %p", (height, shape, fault) => {
    expect(mainNetFault({ ...block, height, shape })).toBe(fault);
  });

  test("the main network's first block is fine", () => {
    const hash = readBlockHash(mainNetGenesis) ?? block.hash;
    expect(mainNetFault({ ...block, height: 0, shape: "1.0", hash })).toBeUndefined();
  });
});

describe("nextCumulativeDifficulty", () => {
  test("a real pair: 2.9, height 1,974,876", () => {
    const difficulty = 115792088820665202135397961725546662584087971921591024597647798129341423615464n;
    expect(nextCumulativeDifficulty(5_408_330_159_672_028n, difficulty)).toBe(5_408_330_437_583_496n);
  });

  test("no difficulty adds one attempt", () => {
    expect(nextCumulativeDifficulty(5n, 0n)).toBe(6n);
    expect(nextCumulativeDifficulty(5n, 1n)).toBe(6n);
    expect(nextCumulativeDifficulty(5n, 2n ** 255n)).toBe(7n);
  });
});

test("the block index grows from nothing", () => {
  const first = {
    hashListMerkle: new Uint8Array(0),
    hash: new Uint8Array(48),
    weaveSize: 0n,
    txRoot: new Uint8Array(0),
  };
  expect(nextHashListMerkle(first)).toHaveLength(48);
  expect(nextHashListMerkle({ ...first, weaveSize: 1n })).not.toEqual(nextHashListMerkle(first));
});

describe(`${mutationCount} damaged blocks (seed ${mutationSeed})`, () => {
  test("are read or rejected with a Failure, and none is accepted with another meaning", () => {
    const sound = recent.map((shape) => makeSample({ shape, wallet: shape === "2.9" ? ecdsa : rsa }));
    const texts = sound.map(({ text }) => text);
    const chance = createChance(mutationSeed);
    let [read, accepted] = [0, 0];
    for (let count = 0; count < mutationCount; count++) {
      const block = attempt(mutateText(texts, chance));
      if (block === undefined) continue;
      read += 1;
      if (read % 4 !== 0 || verifyBlock(block, undefined, undefined).kind === "rejected") continue;
      accepted += 1;
      expect(sound.map(({ hash }) => hash)).toContain(block.hash);
    }
    expect([read > mutationCount / 100, accepted < read / 4]).toEqual([true, true]);
  }, 120_000);
});

function attempt(text: string): Block | undefined {
  try {
    return readBlock(text);
  } catch (error) {
    if (error instanceof Failure && error.code === "malformed_input") return undefined;
    throw error;
  }
}

function failureOf(text: string): string {
  try {
    readBlock(text);
    return "no failure";
  } catch (error) {
    return error instanceof Failure ? String(error.context["reason"]) : `no Failure but ${error}`;
  }
}
