/**
 * The chains on which an operator takes payments, from what the settings say of them.
 * @module
 */
import { type Chain, chainOf, readAddress, type Token, type UserAddress } from "../addresses.ts";
import { createEvmChain } from "../evm/chain.ts";
import { openJsonRpc } from "../evm/json-rpc.ts";
import type { PriceRules } from "../prices/rules.ts";
import { createEvmCoin } from "./chains/evm-coin.ts";
import { createEvmToken } from "./chains/evm-token.ts";
import { createKyveChain } from "./chains/kyve.ts";
import { openKyveServer } from "./chains/kyve-server.ts";
import { createNativeChain, type NativeChainOptions } from "./chains/native.ts";
import { createSolanaChain } from "./chains/solana.ts";
import { depthsOf } from "./depths.ts";
import type { TokenChain } from "./sight.ts";

/** The native token. */
export type NativeSource = Pick<NativeChainOptions, "address" | "clock" | "nodes" | "reader"> &
  Readonly<{
    /** Blocks on top of a payment before it is credited; unset is what the rules say. */
    blocksOnTop: number | undefined;
  }>;

/** An EVM chain: its coin, USDC, and the tokens that the price rules list on it. Addresses are canonical. */
export type EvmSource = Readonly<{
  coin: Token;
  dollars: Token;
  address: UserAddress;
  rpcUrl: string;
  chainId: bigint;
  /** The contract of USDC. */
  contract: UserAddress;
}>;

/** KYVE. */
export type KyveSource = Readonly<{
  address: UserAddress;
  /** The REST API of a node. */
  restUrl: string;
  chainId: string;
  /** Name of the coin's smallest unit. */
  denom: string;
}>;

/** Solana: its coin and USDC. */
export type SolanaSource = Readonly<{
  address: UserAddress;
  rpcUrl: string;
  genesisHash: string;
  /** The mint of USDC. */
  mint: string;
}>;

/** What is taken. */
export type ChainSources = Readonly<{
  rules: Pick<PriceRules, "tokens">;
  native: NativeSource | undefined;
  evm: readonly EvmSource[];
  solana: SolanaSource | undefined;
  kyve: KyveSource | undefined;
}>;

/** Chains, open. */
export type TokenChains = Readonly<{ chains: readonly TokenChain[]; close: () => void }>;

/** Opens the chains; nothing is asked of them yet. */
export function openTokenChains({ rules, native, evm, solana, kyve }: ChainSources): TokenChains {
  const closers: (() => void)[] = [];
  const open = (url: string) => {
    const rpc = openJsonRpc(url);
    closers.push(rpc.close);
    return rpc;
  };
  const chains: TokenChain[] = [];
  if (native !== undefined)
    chains.push(createNativeChain({ ...native, ...depthsOf("native", rules, native.blocksOnTop) }));
  for (const { coin, dollars, address, rpcUrl, chainId, contract } of evm) {
    const chain = createEvmChain(open(rpcUrl), chainId);
    chains.push(createEvmCoin({ token: coin, address, evm: chain, ...depthsOf(coin, rules) }));
    for (const token of [{ token: dollars, contract }, ...listedTokens(rules, chainOf(coin))])
      chains.push(createEvmToken({ ...token, address, evm: chain, ...depthsOf(token.token, rules) }));
  }
  if (solana !== undefined) {
    const { address, rpcUrl, genesisHash, mint } = solana;
    const server = { address, rpc: open(rpcUrl), genesisHash };
    chains.push(createSolanaChain({ ...server, token: "solana", mint: undefined }));
    chains.push(createSolanaChain({ ...server, token: "solana-usdc", mint }));
  }
  if (kyve !== undefined) {
    const { address, restUrl, chainId, denom } = kyve;
    const server = openKyveServer(restUrl, chainId);
    closers.push(server.close);
    chains.push(createKyveChain({ address, denom, server, ...depthsOf("kyve", rules) }));
  }
  return {
    chains,
    close: () => {
      for (const close of closers) close();
    },
  };
}

/** The ERC-20 tokens that price rules list on a chain. */
export function listedTokens(
  { tokens }: Pick<PriceRules, "tokens">,
  chain: Chain,
): readonly Readonly<{ token: Token; contract: UserAddress }>[] {
  return [...tokens].flatMap(([token, { erc20 }]) =>
    erc20 === undefined || chainOf(token) !== chain ? [] : [{ token, contract: erc20.contract }],
  );
}

/** Reads the addresses whose payments are refused; `undefined` when one of them is none. */
export function readExcluded(texts: readonly string[]): ReadonlySet<string> | undefined {
  const addresses = texts.map((text) => readAddress(text)?.address);
  return addresses.includes(undefined) ? undefined : new Set(addresses.filter((each) => each !== undefined));
}
