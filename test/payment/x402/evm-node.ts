/**
 * A node of an EVM chain with one dollar coin, behind a socket: blocks, a pool of what waits, EIP-3009, its events, and
 * reorganisations. It responds in JSON-RPC, and checks signatures itself.
 * @module
 */
import type { Authorization } from "../../../src/payment/evm/authorization.ts";
import { type Domain, evmAddress, signerOf } from "./payers.ts";

/** What can be done to the coin. */
type Move =
  | Readonly<{ kind: "mint"; to: string; value: bigint }>
  | Readonly<{ kind: "transfer"; from: string; to: string; value: bigint }>
  | Readonly<{ kind: "cancel"; from: string; nonce: string }>
  | Readonly<{ kind: "authorized"; authorization: Authorization; signature: Uint8Array }>
  /** Several in one transaction, as contracts make them. */
  | Readonly<{ kind: "several"; moves: readonly Move[] }>;

type Log = Readonly<{ topics: readonly string[]; data: string }>;
type Mined = Readonly<{ hash: string; move: Move; succeeded: boolean; logs: readonly Log[] }>;
type Block = Readonly<{ number: number; hash: string; time: bigint; mined: readonly Mined[]; coins: Coins }>;
type Coins = { readonly balances: Map<string, bigint>; readonly used: Set<string> };

const noCoins: Coins = { balances: new Map(), used: new Set() };

/** The node at work. */
export type EvmNode = Readonly<{
  url: string;
  chainId: bigint;
  contract: string;
  domain: Domain;
  /** Puts a transaction into the pool; unless mining is manual it is in a block at once. @returns its hash. */
  send: (move: Move) => string;
  mint: (to: string, value: bigint) => void;
  balanceOf: (address: string) => bigint;
  /** Whether the pool is mined only on request. */
  setManual: (isManual: boolean) => void;
  mine: (blocks?: number) => void;
  /** Takes blocks back, none that ever had 20 confirmations; what was in them is forgotten, or waits again. */
  takeBack: (blocks: number, forgets: boolean) => void;
  /** Responses a method with an error, or not at all, while the test says so. */
  fault: (test: (method: string) => "error" | "silent" | undefined) => void;
  /** Questions so far, by method. */
  asked: ReadonlyMap<string, number>;
  close: () => Promise<void>;
}>;

const transferTopic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const usedTopic = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
const canceledTopic = "0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81";

const word = (value: bigint | string) =>
  `0x${(typeof value === "bigint" ? value.toString(16) : value.slice(2).toLowerCase()).padStart(64, "0")}`;
const quantity = (value: bigint | number) => `0x${value.toString(16)}`;

const blockSeconds = 2n;

class Reverted extends Error {}

/** Starts a node. @param now - Unix milliseconds; blocks are made as it passes. */
export function openEvmNode(now: () => number, chainId = 8_453n): EvmNode {
  const contract = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913";
  const domain: Domain = { name: "USD Coin", version: "2", chainId, contract };
  const blocks: Block[] = [];
  const pool: Readonly<{ hash: string; move: Move }>[] = [];
  let isManual = false;
  let hashes = 0;
  let highest = 0;
  let faultOf: (method: string) => "error" | "silent" | undefined = () => undefined;
  const asked = new Map<string, number>();
  const seconds = () => BigInt(Math.floor(now() / 1_000));
  const newHash = () => {
    hashes += 1;
    return word(BigInt(hashes) * 2n ** 200n + chainId);
  };

  /** As they are after a block. */
  function coinsAt(height: number): Coins {
    const { balances, used } = blocks[Math.min(height, blocks.length - 1)]?.coins ?? noCoins;
    return { balances: new Map(balances), used: new Set(used) };
  }

  function apply(coins: Coins, move: Move, time: bigint, logs: Log[]): void {
    const shift = (from: string | undefined, to: string, value: bigint) => {
      if (from !== undefined) {
        const held = coins.balances.get(from) ?? 0n;
        if (held < value) throw new Reverted("ERC20: transfer amount exceeds balance");
        coins.balances.set(from, held - value);
      }
      coins.balances.set(to, (coins.balances.get(to) ?? 0n) + value);
      logs.push({ topics: [transferTopic, word(from ?? "0x0"), word(to)], data: word(value) });
    };
    const use = (from: string, nonce: string, topic: string) => {
      const name = `${from} ${nonce}`;
      if (coins.used.has(name)) throw new Reverted("FiatTokenV2: authorization is used or canceled");
      coins.used.add(name);
      logs.push({ topics: [topic, word(from), nonce], data: "0x" });
    };
    switch (move.kind) {
      case "mint":
        shift(undefined, move.to, move.value);
        return;
      case "transfer":
        shift(move.from, move.to, move.value);
        return;
      case "cancel":
        use(move.from, move.nonce, canceledTopic);
        return;
      case "several":
        for (const each of move.moves) apply(coins, each, time, logs);
        return;
      case "authorized": {
        const { authorization, signature } = move;
        const { from, to, value, validAfter, validBefore, nonce } = authorization;
        if (time <= validAfter) throw new Reverted("FiatTokenV2: authorization is not yet valid");
        if (time >= validBefore) throw new Reverted("FiatTokenV2: authorization is expired");
        if (signerOf(domain, authorization, signature) !== from) throw new Reverted("FiatTokenV2: invalid signature");
        use(from, nonce, usedTopic);
        shift(from, to, value);
        return;
      }
    }
  }

  function addBlock(moves: readonly Readonly<{ hash: string; move: Move }>[], time = seconds()): void {
    const number = blocks.length;
    let coins = coinsAt(number - 1);
    const mined = moves.map(({ hash, move }) => {
      const logs: Log[] = [];
      try {
        const after = { balances: new Map(coins.balances), used: new Set(coins.used) };
        apply(after, move, time, logs);
        coins = after;
        return { hash, move, succeeded: true, logs };
      } catch (error) {
        if (!(error instanceof Reverted)) throw error;
        return { hash, move, succeeded: false, logs: [] };
      }
    });
    blocks.push({ number, hash: newHash(), time, mined, coins });
  }

  function minePool(): void {
    addBlock(pool.splice(0));
  }

  /** Chains go on by themselves: a block every other second. */
  function tick(): void {
    const last = blocks.at(-1);
    if (last === undefined) addBlock([]);
    for (let time = (last?.time ?? seconds()) + blockSeconds; time <= seconds(); time += blockSeconds) {
      const moves = isManual ? [] : pool.splice(0);
      addBlock(moves, time);
    }
  }

  const rawLog = (block: Block, tx: Mined, log: Log, index: number) => ({
    address: contract,
    topics: log.topics,
    data: log.data,
    logIndex: quantity(index),
    removed: false,
    blockNumber: quantity(block.number),
    blockHash: block.hash,
    transactionHash: tx.hash,
  });

  function receiptOf(hash: string) {
    for (const block of blocks)
      for (const tx of block.mined)
        if (tx.hash === hash)
          return {
            transactionHash: hash,
            blockNumber: quantity(block.number),
            blockHash: block.hash,
            status: tx.succeeded ? "0x1" : "0x0",
            logs: tx.logs.map((log, index) => rawLog(block, tx, log, index)),
          };
    return null;
  }

  function logsOf(filter: { fromBlock: string; toBlock: string; topics: readonly (string | string[])[] }) {
    const fits = (log: Log) =>
      filter.topics.every((wanted, index) => [wanted].flat().includes(log.topics[index] ?? ""));
    return blocks
      .filter(({ number }) => number >= Number(filter.fromBlock) && number <= Number(filter.toBlock))
      .flatMap((block) =>
        block.mined.flatMap((tx) =>
          tx.logs.flatMap((log, index) => (fits(log) ? [rawLog(block, tx, log, index)] : [])),
        ),
      );
  }

  function call({ to, data }: { to: string; data: string }, at: string) {
    if (to.toLowerCase() !== contract) return "0x";
    const head = blocks.length - 1;
    const height = at === "latest" ? head : Number(at);
    if (height > head) throw new Error("header not found");
    const coins = coinsAt(height);
    const words = data.slice(10).match(/.{64}/g) ?? [];
    const address = (index: number) => evmAddress(`0x${words[index]?.slice(24)}`);
    const number = (index: number) => BigInt(`0x${words[index]}`);
    if (data.startsWith("0xe94a0102")) return word(coins.used.has(`${address(0)} 0x${words[1]}`) ? 1n : 0n);
    if (!data.startsWith("0xe3ee160e")) throw new Reverted("unknown call");
    const authorization: Authorization = {
      from: address(0),
      to: address(1),
      value: number(2),
      validAfter: number(3),
      validBefore: number(4),
      nonce: `0x${words[5]}`,
    };
    const signature = Uint8Array.from([...Uint8Array.fromHex(`${words[7]}${words[8]}`), Number(number(6))]);
    apply(coins, { kind: "authorized", authorization, signature }, seconds(), []);
    return "0x";
  }

  function response(method: string, params: readonly never[]): unknown {
    tick();
    const [first, second] = params as readonly unknown[];
    const head = blocks.at(-1);
    switch (method) {
      case "eth_chainId":
        return quantity(chainId);
      case "eth_blockNumber":
        return quantity(head?.number ?? 0);
      case "eth_getBlockByNumber": {
        const block = first === "latest" ? head : blocks[Number(first)];
        return block === undefined
          ? null
          : { number: quantity(block.number), hash: block.hash, timestamp: quantity(block.time) };
      }
      case "eth_getTransactionReceipt":
        return receiptOf(String(first));
      case "eth_getLogs":
        return logsOf(first as Parameters<typeof logsOf>[0]);
      case "eth_call":
        return call(first as Parameters<typeof call>[0], String(second));
      default:
        throw new Error(`the method ${method} does not exist`);
    }
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const { id, method, params } = await request.json();
      asked.set(method, (asked.get(method) ?? 0) + 1);
      const fault = faultOf(method);
      if (fault === "silent") await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
      if (fault !== undefined)
        return Response.json({ jsonrpc: "2.0", id, error: { code: -32_000, message: "try again later" } });
      try {
        return Response.json({ jsonrpc: "2.0", id, result: response(method, params) });
      } catch (error) {
        const code = error instanceof Reverted ? 3 : -32_000;
        const said = error instanceof Error ? error.message : String(error);
        const message = code === 3 ? `execution reverted: ${said}` : said;
        return Response.json({ jsonrpc: "2.0", id, error: { code, message } });
      }
    },
  });

  const send = (move: Move) => {
    const hash = newHash();
    pool.push({ hash, move });
    if (!isManual) minePool();
    return hash;
  };
  tick();
  return {
    url: `http://127.0.0.1:${server.port}`,
    chainId,
    contract: evmAddress(contract),
    domain,
    send,
    asked,
    mint: (to, value) => void send({ kind: "mint", to, value }),
    balanceOf: (address) => coinsAt(blocks.length).balances.get(address) ?? 0n,
    setManual: (manual) => {
      isManual = manual;
    },
    mine: (count = 1) => {
      for (let index = 0; index < count; index += 1) minePool();
    },
    takeBack: (count, forgets) => {
      highest = Math.max(highest, blocks.length - 1);
      const deepest = Math.max(1, highest - 18);
      const gone = blocks.splice(Math.max(deepest, blocks.length - count));
      if (!forgets) pool.unshift(...gone.flatMap(({ mined }) => mined));
      addBlock([]);
    },
    fault: (test) => {
      faultOf = test;
    },
    close: () => server.stop(true),
  };
}
