/**
 * The first block: funded wallets, and one small transaction, so that every later block can prove that it has data.
 *
 * It follows from seed, wallets and time alone. The transaction is signed by the miner's key.
 * @module
 */
import type { Address } from "../../arweave/id.ts";
import { signTransaction } from "../../arweave/transaction-sign.ts";
import { buildTxTree } from "../../arweave/tx-root.ts";
import { winstonPerAr } from "../../arweave/winston.ts";
import { assert } from "../../lib/assert.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import { utf8Bytes } from "../../lib/bytes.ts";
import { unixSeconds } from "../../lib/clock.ts";
import { accountTreeRoot } from "./account-tree.ts";
import type { Account } from "./accounts.ts";
import { makeBlock } from "./blocks.ts";
import { type SplitData, splitData } from "./data-tree.ts";
import { type ChainBase, writeBalances } from "./state.ts";

/** What each funded wallet begins with, in winston: a million AR. */
const fundsAtStart = 1_000_000n * winstonPerAr;

/** Height under which the first balances are stored: before any block, so that a reset finds them again. */
export const genesisBalanceHeight = -1;

const greeting = "A chain for development: the rules are real, the coins are not.\n";

/**
 * Makes and stores the first block.
 *
 * @param funded - Addresses that begin with funds.
 */
export async function writeGenesis(base: ChainBase, funded: readonly Address[]): Promise<void> {
  const split = await splitData(encodeBase64url(utf8Bytes(greeting)));
  assert(split !== undefined, "the greeting is data");
  const transaction = greetingTransaction(base, split);
  const tree = buildTxTree([transaction], "padded");
  const [place] = tree.places;
  assert(place !== undefined, "the first transaction has a place");
  const accounts = new Map<Address, Account>(funded.map((address) => [address, { balance: fundsAtStart, lastTx: "" }]));
  const draft = {
    previous: undefined,
    timestamp: unixSeconds(base.clock),
    txs: [transaction.id],
    txRoot: tree.root,
    size: tree.size,
    accountsRoot: accountTreeRoot(accounts),
    endowment: 0n,
    reward: 0n,
    recall: undefined,
  };
  const { height, hash, text } = makeBlock(draft, base.miner, base.seed);
  const data = { ...split.key, weaveEnd: Number(place.end), txPath: place.path() };
  base.database
    .transaction(() => {
      base.history.add({ height, hash, text }, [
        { id: transaction.id, height, position: 0, text: transaction.text, data },
      ]);
      for (const chunk of split.chunks) base.chunks.put(split.key, chunk);
      writeBalances(base, genesisBalanceHeight, accounts);
    })
    .immediate();
}

function greetingTransaction({ miner }: ChainBase, { key }: SplitData) {
  const dataRoot = decodeBase64url(key.root) ?? new Uint8Array(0);
  return signTransaction(
    {
      format: 2,
      lastTx: "",
      reward: 0n,
      tags: [{ name: "Content-Type", value: "text/plain" }],
      stated: { dataSize: key.size, dataRoot },
    },
    miner,
  );
}
