/**
 * Settings of the payment service: prices and the ledger, cards, tokens, and x402.
 * @module
 */
import {
  baseUrl,
  count,
  duration,
  flag,
  hourToWeekOrNone,
  list,
  port,
  positive,
  postgresUrl,
  secretText,
  setting,
  text,
  url,
} from "./setting-readers.ts";

export const paymentSettings = {
  PAYMENT_PORT: setting({
    read: port,
    fallback: 3001,
    unit: "port",
    effect: "Port of the payment service; 0 picks a free port.",
  }),
  PAYMENT_PUBLIC_URL: setting({
    read: baseUrl,
    unit: "URL",
    effect: "URL under which payers reach the payment service, for x402 responses and checkout pages.",
  }),
  ACCOUNT_PAGE: setting({
    read: flag,
    fallback: false,
    dev: true,
    unit: "true or false",
    effect:
      "Whether the gateway serves a page for accounts at `/svc/account`: credits, top-ups, history. It needs " +
      "MOUNT_SERVICES, and content on its own origins (CONTENT_ISOLATION).",
  }),
  LEDGER_URL: setting({
    read: postgresUrl,
    unit: "URL",
    effect: "PostgreSQL database of the ledger (`postgres://…`); unset is SQLite in DATA_DIR.",
    secret: true,
  }),
  SOLVENCY_PUBLISH_MS: setting({
    read: hourToWeekOrNone,
    fallback: 0,
    unit: "milliseconds",
    effect:
      "Interval between the roots of solvency that the program publishes as data items, an hour to a week: 86400000 " +
      "is each day, at 00:00 UTC. 0 publishes none. It needs uploads (WALLET_FILE).",
  }),
  JWT_SECRET: setting({
    read: secretText,
    unit: "text",
    effect:
      "Key of the tokens that signed balance requests receive, at least 32 characters; unset is a random key, " +
      "stored in DATA_DIR.",
    secret: true,
  }),
  PAYMENT_RULES_FILE: setting({
    read: text,
    unit: "file",
    effect:
      "JSON that replaces parts of the price rules: fees, limits, adjustments, promo codes, tokens, confirmations " +
      "(docs/price-rules.md).",
  }),
  PRICE_FEED_URL: setting({
    read: baseUrl,
    unit: "URL",
    effect:
      "Source of fiat and token prices with CoinGecko's `/simple/price` API; unset is CoinGecko, " +
      "under `dev` the sandbox's fixed prices.",
  }),
  PRICE_AGE_MAX: setting({
    read: positive,
    fallback: 6 * 60 * 60_000,
    unit: "milliseconds",
    effect: "Maximum age of a price that is used while its source is unavailable.",
  }),
} as const;

export const cardSettings = {
  STRIPE_SECRET_KEY: setting({
    read: text,
    unit: "text",
    effect:
      "Key of the Stripe account for card payments; unset switches cards off, under `dev` it selects the sandbox.",
    secret: true,
  }),
  STRIPE_WEBHOOK_SECRET: setting({
    read: text,
    unit: "text",
    effect: "Key with which Stripe signs its events to `/v1/stripe-webhook`.",
    secret: true,
  }),
  STRIPE_API_URL: setting({
    read: baseUrl,
    unit: "URL",
    effect: "URL of the Stripe API; unset is Stripe, under `dev` without a key the sandbox.",
  }),
  CARD_WATCH_MS: setting({
    read: duration,
    fallback: 30_000,
    dev: 2_000,
    unit: "milliseconds",
    effect: "Interval between requests to Stripe for unreported payments and pending refunds.",
  }),
  TOP_UP_RETURN_ORIGINS: setting({
    read: list(baseUrl),
    fallback: [],
    unit: "URLs",
    effect: "Origins that a checkout may return to, separated by commas; an empty list is any https origin.",
  }),
} as const;

const chainId = "chain id";
const contract = "address";

export const tokenSettings = {
  PAYMENT_ADDRESS_NATIVE: setting({
    read: text,
    unit: "address",
    effect: "Address of native payments; unset is the address of WALLET_FILE, if set.",
  }),
  PAYMENT_ADDRESS_ETHEREUM: setting({
    read: text,
    unit: "address",
    effect: "Address of payments in ether, USDC and listed ERC-20 tokens on Ethereum; unset switches them off.",
  }),
  PAYMENT_ADDRESS_MATIC: setting({
    read: text,
    unit: "address",
    effect: "Address of payments in POL, USDC and listed ERC-20 tokens on Polygon; unset switches them off.",
  }),
  PAYMENT_ADDRESS_BASE: setting({
    read: text,
    unit: "address",
    effect: "Address of payments in ether, USDC, ARIO and listed ERC-20 tokens on Base; unset switches them off.",
  }),
  PAYMENT_ADDRESS_SOLANA: setting({
    read: text,
    unit: "address",
    effect: "Address of payments in SOL and USDC on Solana; unset switches them off.",
  }),
  PAYMENT_ADDRESS_KYVE: setting({
    read: text,
    unit: "address",
    effect: "Address of payments in KYVE; unset switches them off.",
  }),
  ETHEREUM_RPC_URL: setting({ read: url, unit: "URL", effect: "JSON-RPC of Ethereum.", secret: true }),
  MATIC_RPC_URL: setting({ read: url, unit: "URL", effect: "JSON-RPC of Polygon.", secret: true }),
  BASE_RPC_URL: setting({ read: url, unit: "URL", effect: "JSON-RPC of Base.", secret: true }),
  SOLANA_RPC_URL: setting({ read: url, unit: "URL", effect: "JSON-RPC of Solana.", secret: true }),
  KYVE_REST_URL: setting({ read: baseUrl, unit: "URL", effect: "REST API of a KYVE node.", secret: true }),
  TOKEN_WATCH_MS: setting({
    read: duration,
    fallback: 15_000,
    dev: 500,
    unit: "milliseconds",
    effect: "Interval between requests to the chains for unreported payments and for confirmations.",
  }),
  NATIVE_CONFIRMATIONS: setting({
    read: count,
    dev: 0,
    unit: "blocks",
    effect: "Blocks on top of a native payment before it is credited; unset is the value of the price rules.",
  }),
  ETHEREUM_CHAIN_ID: setting({
    read: count,
    fallback: 1,
    unit: chainId,
    effect: "Expected chain of ETHEREUM_RPC_URL.",
  }),
  MATIC_CHAIN_ID: setting({
    read: count,
    fallback: 137,
    unit: chainId,
    effect: "Expected chain of MATIC_RPC_URL.",
  }),
  BASE_CHAIN_ID: setting({
    read: count,
    fallback: 8453,
    unit: chainId,
    effect: "Expected chain of BASE_RPC_URL.",
  }),
  SOLANA_GENESIS_HASH: setting({
    read: text,
    fallback: "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d",
    unit: "hash",
    effect: "Hash of the first block of the cluster expected at SOLANA_RPC_URL.",
  }),
  KYVE_CHAIN_ID: setting({
    read: text,
    fallback: "kyve-1",
    unit: chainId,
    effect: "Expected chain of KYVE_REST_URL.",
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
    effect: "Senders whose token payments are rejected, separated by commas.",
  }),
} as const;

export const x402Settings = {
  X402_PAY_TO: setting({
    read: text,
    unit: "address",
    effect: "Address that receives x402 payments; unset switches x402 off.",
  }),
  X402_NETWORK: setting({
    read: text,
    fallback: "base",
    unit: "network",
    effect: "Network of x402 payments: `base`, `base-sepolia`, or a CAIP-2 name.",
  }),
  X402_ASSET_ADDRESS: setting({
    read: text,
    unit: "address",
    effect:
      "Contract of the token of x402 payments; unset is USDC of the network. The token must have 6 decimals " +
      "and EIP-3009.",
  }),
  X402_ASSET_NAME: setting({
    read: text,
    unit: "text",
    effect: "Name in the EIP-712 domain of the contract; unset is the name of USDC on the network.",
  }),
  X402_ASSET_VERSION: setting({
    read: text,
    unit: "text",
    effect: "Version in the EIP-712 domain of the contract; unset is the version of USDC on the network.",
  }),
  X402_RPC_URL: setting({
    read: url,
    unit: "URL",
    effect:
      "JSON-RPC of the network, for checks and confirmations of payments; unset is the URL that is set for token " +
      "payments on the same chain.",
    secret: true,
  }),
  X402_FACILITATOR_URL: setting({
    read: baseUrl,
    unit: "URL",
    effect: "Facilitator that settles x402 payments; unset settles directly, which requires X402_SETTLE_KEY.",
  }),
  X402_FACILITATOR_KEY: setting({
    read: text,
    unit: "text",
    effect:
      "Bearer token of requests to the facilitator; with X402_FACILITATOR_KEY_ID, the secret that signs a token for " +
      "each request.",
    secret: true,
  }),
  X402_FACILITATOR_KEY_ID: setting({
    read: text,
    unit: "text",
    effect:
      "Name of a Coinbase Developer Platform key whose Ed25519 secret is X402_FACILITATOR_KEY; when unset, the key " +
      "itself is sent.",
  }),
  X402_SETTLE_KEY: setting({
    read: text,
    unit: "text",
    effect:
      "Private key, hex, of the account that pays the gas of direct settlement; no other program may send from it.",
    secret: true,
  }),
  X402_GAS_COST_MAX: setting({
    read: count,
    unit: "gwei",
    effect:
      "Maximum gas cost of one direct settlement, in billionths of the chain's coin; a settlement above it waits " +
      "until gas is cheaper or the payment expires. Unset is no limit: a payment of a tenth of a cent may then cost " +
      "more than it brings.",
  }),
} as const;
