/**
 * The settings of payments in tokens, rows of the one table: which networks and which tokens are meant.
 * @module
 */
import { count, list, setting, text } from "./setting-readers.ts";

const chainId = "chain id";
const contract = "address";

export const tokenSettings = {
  NATIVE_CONFIRMATIONS: setting({
    read: count,
    dev: 0,
    unit: "blocks",
    effect: "Blocks on top of a native payment before it is credited; unset is what the price rules say.",
  }),
  ETHEREUM_CHAIN_ID: setting({
    read: count,
    fallback: 1,
    unit: chainId,
    effect: "Chain that ETHEREUM_RPC_URL must be of.",
  }),
  MATIC_CHAIN_ID: setting({
    read: count,
    fallback: 137,
    unit: chainId,
    effect: "Chain that MATIC_RPC_URL must be of.",
  }),
  BASE_CHAIN_ID: setting({
    read: count,
    fallback: 8453,
    unit: chainId,
    effect: "Chain that BASE_RPC_URL must be of.",
  }),
  SOLANA_GENESIS_HASH: setting({
    read: text,
    fallback: "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d",
    unit: "hash",
    effect: "First block of the cluster that SOLANA_RPC_URL must be of.",
  }),
  KYVE_CHAIN_ID: setting({
    read: text,
    fallback: "kyve-1",
    unit: chainId,
    effect: "Chain that KYVE_REST_URL must be of.",
  }),
  KYVE_DENOM: setting({
    read: text,
    fallback: "ukyve",
    unit: "denomination",
    effect: "Smallest unit of KYVE on its chain: a millionth. Test networks have `tkyve`.",
  }),
  ETHEREUM_USDC_ADDRESS: setting({
    read: text,
    fallback: "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
    unit: contract,
    effect: "Contract of USDC on Ethereum.",
  }),
  MATIC_USDC_ADDRESS: setting({
    read: text,
    fallback: "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359",
    unit: contract,
    effect: "Contract of USDC on Polygon.",
  }),
  BASE_USDC_ADDRESS: setting({
    read: text,
    fallback: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    unit: contract,
    effect: "Contract of USDC on Base.",
  }),
  SOLANA_USDC_MINT: setting({
    read: text,
    fallback: "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGkTwyTDt1v",
    unit: contract,
    effect: "Mint of USDC on Solana.",
  }),
  PAYMENT_EXCLUDED_ADDRESSES: setting({
    read: list(text),
    fallback: [],
    unit: "addresses",
    effect: "Senders whose token payments are refused, separated by commas.",
  }),
} as const;
