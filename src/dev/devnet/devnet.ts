/**
 * The development chain: the real rules on one machine, mined in milliseconds.
 *
 * The same seed, wallets, calls and clock give the same blocks. Everything is durable unless no folder is given.
 * @module
 */
import type { Database } from "bun:sqlite";
import type { Block } from "../../arweave/block.ts";
import { type Address, readAddress } from "../../arweave/id.ts";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import { type Log, silentLog } from "../../lib/log.ts";
import { type MakeRsaJwk, makeRsaJwk } from "../../lib/rsa-jwk.ts";
import { createAccountOverlay, credit } from "./accounts.ts";
import { yieldToEventLoop } from "./data-tree.ts";
import { openDevnetDatabase } from "./database.ts";
import { genesisBalanceHeight, writeGenesis } from "./genesis.ts";
import { type ChunkOutcome, createIntake, type Intake, type TransactionOutcome } from "./intake.ts";
import { type Miner, type MiningMode, openMiner } from "./miner.ts";
import { mineBlock } from "./mining.ts";
import { type ChainQueries, createQueries } from "./queries.ts";
import { type ChainState, change, createBase, loadState, readAll, writeAccounts } from "./state.ts";
import { type GivenWallet, givenWallet, minerWallet, ownWallets, type TestWallet } from "./wallets.ts";

/** What a chain is made of. */
export type DevnetOptions = Readonly<{
  /** Folder of its own, made when absent; `undefined` keeps the whole chain in memory. */
  dir: string | undefined;
  /** Any text. Chains of different seeds have nothing in common. */
  seed: string;
  clock: Clock;
  mining: MiningMode;
  /** Wallets that begin with funds; absent: one RSA-4096 stored in the folder, and one ECDSA of the seed. */
  wallets?: readonly GivenWallet[];
  /** Makes the RSA key when the folder has none; absent: made then. */
  makeRsaKey?: MakeRsaJwk;
  log?: Log;
}>;

/** A running chain. */
export type Devnet = ChainQueries &
  Readonly<{
    wallets: readonly TestWallet[];
    isProcessed: (id: string) => boolean;
    /** Takes a transaction's JSON; mined soon when mining is automatic. */
    postTransaction: (text: string) => Promise<TransactionOutcome>;
    /** Takes a chunk's JSON, before, with or after its transaction's block. */
    postChunk: (text: string) => ChunkOutcome;
    /**
     * Mines blocks; the first takes what waits.
     *
     * @param count - 1 to 10,000.
     * @throws Failure `malformed_input`.
     */
    mine: (count: number) => Promise<Block>;
    /**
     * Gives an address money out of nothing, at once.
     *
     * @param amount - Winston, above 0.
     * @returns The new balance.
     * @throws Failure `malformed_input` when the address is none.
     */
    mint: (address: string, amount: bigint) => bigint;
    /** Goes back to the first block, which stays the same. */
    reset: () => void;
    /** Stops mining and closes the files. */
    close: () => void;
  }>;

/** More at once is a mistake: at 2 ms a block this is 20 s. */
const mineCountMax = 10_000;

/**
 * Opens a chain, or makes it when the folder has none.
 *
 * @throws Failure `malformed_input` when the folder holds a chain of another version or seed, or a key is unusable;
 *   `busy` when another process has the folder.
 */
export async function openDevnet(options: DevnetOptions): Promise<Devnet> {
  const database = openDevnetDatabase(options.dir);
  try {
    return await openOn(database, options);
  } catch (error) {
    database.close();
    throw error;
  }
}

/** The folder belongs to this process by now: nobody else makes its wallets or its first block. */
async function openOn(database: Database, options: DevnetOptions): Promise<Devnet> {
  const { dir, seed, clock, log = silentLog } = options;
  const wallets = options.wallets?.map(givenWallet) ?? (await ownWallets(dir, seed, options.makeRsaKey ?? makeRsaJwk));
  const base = createBase(database, { clock, seed, miner: minerWallet(seed) });
  if (base.history.tip() === undefined)
    await writeGenesis(
      base,
      wallets.map(({ address }) => address),
    );
  const state = loadState(base);
  if (state.tip.fields["reward_addr"] !== base.miner.address)
    throw new Failure("malformed_input", { reason: "the folder holds a chain of another seed", dir });
  const intake = createIntake(state);
  const miner = openMiner(options.mining, {
    waiting: () => state.mempool.size(),
    mine: () => mineBlock(state).txs.length,
    log,
  });
  return {
    wallets,
    ...createQueries(state),
    ...createActions(state, intake, miner),
    close: () => {
      miner.close();
      database.close();
    },
  };
}

type Actions = Pick<Devnet, "isProcessed" | "postTransaction" | "postChunk" | "mine" | "mint" | "reset">;

function createActions(state: ChainState, intake: Intake, miner: Miner): Actions {
  return {
    isProcessed: intake.isProcessed,
    postTransaction: async (text) => {
      const outcome = await intake.takeTransaction(text);
      if (outcome.kind === "accepted") miner.arrived();
      return outcome;
    },
    postChunk: intake.takeChunk,
    mine: (count) => mineMany(state, count),
    mint: (address, amount) => mint(state, readAddress(address), amount),
    reset: () => {
      intake.clear();
      reset(state);
    },
  };
}

async function mineMany(state: ChainState, count: number): Promise<Block> {
  if (!Number.isSafeInteger(count) || count < 1 || count > mineCountMax) {
    throw new Failure("malformed_input", { reason: `blocks are mined 1 to ${mineCountMax} at a time` });
  }
  let block = mineBlock(state);
  for (let mined = 1; mined < count; mined += 1) {
    await yieldToEventLoop();
    block = mineBlock(state);
  }
  return block;
}

function mint(state: ChainState, address: Address | undefined, amount: bigint): bigint {
  if (address === undefined || amount <= 0n) {
    throw new Failure("malformed_input", {
      reason: "minting takes an address of 43 characters and winston above 0",
    });
  }
  const overlay = createAccountOverlay(state.accounts);
  credit(overlay, address, amount);
  change(state, () => writeAccounts(state, state.tip.height, overlay.changes));
  return state.accounts.get(address)?.balance ?? 0n;
}

function reset(state: ChainState): void {
  change(state, () => {
    state.history.cut(0);
    state.mempool.clear();
    state.database.run("DELETE FROM balances WHERE height > ?", [genesisBalanceHeight]);
    const first = state.history.holding(1)?.data;
    if (first !== undefined) state.chunks.dropAllBut(first);
    readAll(state);
  });
}
