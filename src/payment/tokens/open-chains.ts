/**
 * Opens the chains on which an operator accepts payments, from the settings.
 * @module
 */
import { readCount } from "../../store/ledger/ledger-database.ts";
import { type Chain, chainOf, readAddress, type Token, type UserAddress } from "../addresses.ts";
import { createEvmChain } from "../evm/evm-chain.ts";
import { openJsonRpc } from "../evm/json-rpc.ts";
import type { PriceRules } from "../prices/price-rules.ts";
import { createEvmCoin, createEvmToken } from "./chains/evm-token-chains.ts";
import { createKyveChain, openKyveServer } from "./chains/kyve-chain.ts";
import { createNativeChain, type NativeChainOptions } from "./chains/native-chain.ts";
import { createSolanaChain } from "./chains/solana-chain.ts";
import type { TokenChain } from "./token-chain.ts";

/** The native token. */
type NativeSource = Pick<NativeChainOptions, "address" | "clock" | "nodes" | "reader"> &
  Readonly<{
    /** Blocks on top of a payment before it is credited; the rules' value by default. */
    blocksOnTop: number | undefined;
  }>;

/** An EVM chain: its coin, USDC, and the tokens that the price rules list on it. Addresses are canonical. */
export type EvmSource = Readonly<{
  coin: Token;
  usdc: Token;
  address: UserAddress;
  rpcUrl: string;
  chainId: bigint;
  usdcContract: UserAddress;
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

/** The accepted tokens. */
export type ChainSources = Readonly<{
  rules: Pick<PriceRules, "tokens">;
  native: NativeSource | undefined;
  evm: readonly EvmSource[];
  solana: SolanaSource | undefined;
  kyve: KyveSource | undefined;
}>;

type TokenChains = Readonly<{ chains: readonly TokenChain[]; close: () => void }>;

/** Opens the chains, without a request. */
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
  for (const { coin, usdc, address, rpcUrl, chainId, usdcContract } of evm) {
    const chain = createEvmChain(open(rpcUrl), chainId);
    chains.push(createEvmCoin({ token: coin, address, evm: chain, ...depthsOf(coin, rules) }));
    for (const token of [{ token: usdc, contract: usdcContract }, ...listedTokens(rules, chainOf(coin))])
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

/** Parses the addresses whose payments are rejected; `undefined` when one is invalid. */
export function readExcluded(texts: readonly string[]): ReadonlySet<string> | undefined {
  const addresses = texts.map((text) => readAddress(text)?.address);
  return addresses.includes(undefined) ? undefined : new Set(addresses.filter((each) => each !== undefined));
}

/**
 * Confirmations at which a transaction is final: the deepest known or possible reorg of each chain.
 *
 * Nodes of the native chain keep 50 blocks in consensus; Ethereum is final after two epochs of 32; Polygon had a reorg
 * of 157 blocks; Base is as final as the Ethereum blocks that hold its batches: 900 blocks are 30 minutes.
 * Source: docs/reference/payment.md#confirmations.
 */
const finalConfirmations: Readonly<Record<Chain, number>> = {
  native: 50,
  ethereum: 96,
  polygon: 300,
  base: 900,
  solana: 1,
  kyve: 1,
};

/** Blocks on top when the price rules of a caller lack the token. */
const blocksOnTopOtherwise = 18n;

/**
 * The depths of a token in confirmations, 1 for a transaction in the newest block.
 *
 * @param blocksOnTop - Replaces the rules' value.
 */
export function depthsOf(
  token: Token,
  rules: Pick<PriceRules, "tokens">,
  blocksOnTop?: number,
): Readonly<{ confirmations: number; finalConfirmations: number }> {
  const ruled = readCount(rules.tokens.get(token)?.confirmations ?? blocksOnTopOtherwise);
  const confirmations = (blocksOnTop ?? ruled) + 1;
  const final = finalConfirmations[chainOf(token)];
  return { confirmations, finalConfirmations: Math.max(final, confirmations) };
}
