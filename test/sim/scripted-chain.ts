/**
 * A chain made for a test: blocks of the 2.5 shape with true hashes, roots and links, in as many branches as
 * the script wants.
 *
 * Everything follows from the seed but the keys, which are here.
 * @module
 */
import { blockHash, nextHashListMerkle } from "../../src/arweave/block.ts";
import { nextCumulativeDifficulty } from "../../src/arweave/block-check.ts";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { type BlockHash, blockHashBytes, type Id } from "../../src/arweave/id.ts";
import { dataRootOf } from "../../src/arweave/merkle.ts";
import type { Tag } from "../../src/arweave/tags.ts";
import { type Transaction, treeRootOf } from "../../src/arweave/transaction.ts";
import { signTransaction } from "../../src/arweave/transaction-sign.ts";
import { buildTxTree, type PlacedTransaction } from "../../src/arweave/tx-root.ts";
import { ecdsaWallet, readWallet } from "../../src/arweave/wallet.ts";
import { decodeBase64url, encodeBase64url } from "../../src/lib/base64url.ts";
import type { JsonObject } from "../../src/lib/json.ts";
import { bundleTags, makeItem, makeNested, noise, seedOf } from "../indexing/samples.ts";
import { createRandom } from "../support/random.ts";

/** A transaction of the script, its data, and the items in it when it is a bundle. */
export type ScriptedTransaction = Readonly<{
  transaction: Transaction;
  /** The JSON that a node gives: format 2 without its data. */
  text: string;
  data: Uint8Array;
  isBundle: boolean;
}>;

/** A block of one branch. */
export type ScriptedBlock = Readonly<{
  height: number;
  hash: BlockHash;
  text: string;
  transactions: readonly ScriptedTransaction[];
  parent: ScriptedBlock | undefined;
  weaveSize: bigint;
  blockSize: bigint;
}>;

/** A key for format 1 alone: small, so that signing costs little. */
const rsaWallet = readWallet(
  {
    kty: "RSA",
    n: "ynbcVU17P3-pAUjhdT9cnxquWRRzh32-Zdhm_oZCriJf23MWOmdhTuULqYpk8rHtFmITpHsNxkriE31_sZLZY3ybKcH6x5b6PiwgAEdWDExjlJFSkHcti8Xm2fU3zrBI8nItGmRwRGK162g5sixxOpGxlgw0PoUPVNifREURly0",
    e: "AQAB",
    d: "DjdLAJZV1BSTpP_IDOKBD2Q2imdcNqRGooIPtp7DadSyDwear554qlXSJs-33NlPa2XsOSgGxJNCIoTfsB6T3ZSppen_FTs_KnQ5DysoGbRjHSwFgSCH8jCQLWcuhFS4Mm6uDnOiVM4dT-nB64HyyywfsJAYNK7O-BpnjAVzEaU",
    p: "-XsnEn8YACQfK5R_PcACNxxT63FqrLl3_t7YImCBj5Q5DcMfRjWDYodjKshkBFuHi1J7HNBsWJqaV2CKEvcDzw",
    q: "z8EzMqUjOtYGx9PNzDDCfqMNJMtLZWcvqGnKopzNsuClgFnlXVjKD_5HdkCOkTZnezAYVRkenHsrEJKUA4joQw",
    dp: "bDyK4hJzxjPlthGR9qdkDqbincYyAsfgkJn76UY3T6R98EOUQPCclNWqJ3iTM_TF5KMfOIwQRYylo30Fyl6Srw",
    dq: "J04nEIrbqnL5n267_civ02OnxfFMV2f5RUSWmMNPy2rjBPB9C3cT64ixHndCQcjoNQ85W0hAWVyYHi-NH0oUnw",
    qi: "s6HL49MNzxg70Sc1VWDT0n6ZpxDTqqzLWWIbJ9q4qBairrebzMYNIDwX0r3nHm1Uto07OSrJaSq07vazNj7jAQ",
  },
  0,
);
const wallets = [ecdsaWallet(seedOf(31)), ecdsaWallet(seedOf(32)), ecdsaWallet(seedOf(33))];

/** What a transaction of the script may be. */
export type Kind = "transfer" | "data" | "large" | "old" | "bundle" | "nested" | "broken bundle";

/** A maker of blocks. */
export type Script = Readonly<{
  /** A transaction unlike every other. */
  transaction: (kind: Kind) => ScriptedTransaction;
  /** A transaction that carries these bytes. */
  carrying: (data: Uint8Array, tags: readonly Tag[]) => ScriptedTransaction;
  /** A block on top of another, unlike every other. */
  block: (parent: ScriptedBlock | undefined, transactions: readonly ScriptedTransaction[]) => ScriptedBlock;
  random: () => number;
}>;

const kinds: readonly Kind[] = ["transfer", "data", "data", "large", "old", "bundle", "nested", "broken bundle"];

/** Begins a script. */
export function createScript(seed: number): Script {
  const random = createRandom(seed).next;
  let made = 0;

  const carrying = (data: Uint8Array, tags: readonly Tag[], format: 1 | 2 = 2): ScriptedTransaction => {
    made += 1;
    const wallet = format === 1 ? rsaWallet : (wallets[made % wallets.length] ?? wallets[0]!);
    const transaction = signTransaction(
      {
        format,
        lastTx: "",
        reward: BigInt(1_000_000 + made),
        tags: [...tags, { name: "Made", value: `${seed}/${made}` }],
        data,
        ...(data.length === 0 && {
          target: wallets[0]!.address === wallet.address ? wallets[1]!.address : wallets[0]!.address,
          quantity: BigInt(made),
        }),
      },
      wallet,
    );
    const text = format === 1 ? transaction.text : transaction.text.replace(/"data":"[^"]*"/, '"data":""');
    return {
      transaction,
      text,
      data,
      isBundle: data.length > 0 && tags.some(({ name }) => name === "Bundle-Format"),
    };
  };

  const items = (count: number) =>
    Array.from({ length: count }, () => {
      made += 1;
      return makeItem(`item ${seed}/${made}`, { tags: [{ name: "Made", value: `${seed}/${made}` }] });
    });

  const transaction = (kind: Kind): ScriptedTransaction => {
    const plain = [{ name: "Content-Type", value: "text/plain" }];
    switch (kind) {
      case "transfer":
        return carrying(new Uint8Array(0), []);
      case "data":
        return carrying(noise(1 + Math.floor(random() * 3_000), made), plain);
      case "large":
        return carrying(noise(262_144 + Math.floor(random() * 300_000), made), plain);
      case "old":
        return carrying(noise(Math.floor(random() * 5_000), made), plain, 1);
      case "bundle":
        return carrying(writeBundle(items(1 + Math.floor(random() * 12))), bundleTags);
      case "nested":
        return carrying(
          writeBundle([...items(2), makeNested([...items(3), makeNested(items(2))]), ...items(1)]),
          bundleTags,
        );
      case "broken bundle": {
        const bundle = writeBundle(items(4));
        const last = bundle.length - 1;
        bundle[last] = (bundle[last] ?? 0) ^ 1;
        return carrying(bundle, bundleTags);
      }
    }
  };

  const block = (parent: ScriptedBlock | undefined, transactions: readonly ScriptedTransaction[]): ScriptedBlock => {
    made += 1;
    const placed = transactions.map(({ transaction: tx }): PlacedTransaction => {
      const { id, format, dataSize } = tx;
      return { id, format, dataSize, dataRoot: treeRootOf(tx) };
    });
    const tree = buildTxTree(placed, "padded");
    const weaveSize = (parent?.weaveSize ?? 0n) + tree.size;
    const previous = parent === undefined ? undefined : fieldsOf(parent);
    const fields = {
      nonce: encodeBase64url(seedOf(made)),
      previous_block: parent?.hash ?? "",
      timestamp: 1_700_000_000 + made,
      last_retarget: 1_700_000_000,
      diff: "1",
      height: parent === undefined ? 0 : parent.height + 1,
      hash: encodeBase64url(seedOf(made + 1_000_000)),
      indep_hash: "",
      txs: transactions.map(({ transaction: tx }) => tx.id),
      tx_root: encodeBase64url(tree.root),
      wallet_list: encodeBase64url(new Uint8Array(48).fill(7)),
      reward_addr: "unclaimed",
      tags: [],
      reward_pool: "0",
      weave_size: weaveSize.toString(),
      block_size: tree.size.toString(),
      cumulative_diff:
        previous === undefined
          ? "1"
          : nextCumulativeDifficulty(BigInt(String(previous["cumulative_diff"])), 1n).toString(),
      hash_list_merkle: parent === undefined ? "" : encodeBase64url(merkleAfter(parent)),
      poa: { option: "1", tx_path: "", data_path: "", chunk: "" },
      usd_to_ar_rate: ["1", "10"],
      scheduled_usd_to_ar_rate: ["1", "10"],
      packing_2_5_threshold: "0",
      strict_data_split_threshold: "0",
    };
    const hash = blockHash(fields, "2.5");
    if (hash === undefined) throw new Error("the shape has a hash");
    return {
      height: fields.height,
      hash,
      text: JSON.stringify({ ...fields, indep_hash: hash }),
      transactions,
      parent,
      weaveSize,
      blockSize: tree.size,
    };
  };

  return { transaction, carrying, block, random };
}

/** A branch of blocks with transactions of chance, on top of another block. */
export function growBranch(script: Script, parent: ScriptedBlock | undefined, count: number): ScriptedBlock {
  let tip = parent;
  for (let grown = 0; grown < count; grown += 1) {
    const length = Math.floor(script.random() * 4);
    const transactions = Array.from({ length }, () =>
      script.transaction(kinds[Math.floor(script.random() * kinds.length)] ?? "data"),
    );
    tip = script.block(tip, transactions);
  }
  if (tip === undefined) throw new Error("a branch has a block");
  return tip;
}

/** A block and all before it, lowest first. */
export function chainTo(tip: ScriptedBlock): readonly ScriptedBlock[] {
  const blocks: ScriptedBlock[] = [];
  for (let block: ScriptedBlock | undefined = tip; block !== undefined; block = block.parent) blocks.push(block);
  return blocks.reverse();
}

/** The block of a chain at a height. */
export function ancestorAt(tip: ScriptedBlock, height: number): ScriptedBlock {
  let block: ScriptedBlock | undefined = tip;
  while (block !== undefined && block.height > height) block = block.parent;
  if (block === undefined) throw new Error(`there is no block ${height}`);
  return block;
}

/** Ids of a block's transactions, in the block's order. */
export function idsOf(block: ScriptedBlock): readonly Id[] {
  return block.transactions.map(({ transaction }) => transaction.id);
}

/** The data root of some bytes as base64url. */
export function rootOf(data: Uint8Array): string {
  return encodeBase64url(dataRootOf(data, "plain"));
}

function fieldsOf(block: ScriptedBlock): JsonObject {
  const fields: JsonObject = JSON.parse(block.text);
  return fields;
}

function merkleAfter(parent: ScriptedBlock): Uint8Array {
  const fields = fieldsOf(parent);
  return nextHashListMerkle({
    hashListMerkle: decodeBase64url(String(fields["hash_list_merkle"])) ?? new Uint8Array(0),
    hash: blockHashBytes(parent.hash),
    weaveSize: parent.weaveSize,
    txRoot: decodeBase64url(String(fields["tx_root"])) ?? new Uint8Array(0),
  });
}
