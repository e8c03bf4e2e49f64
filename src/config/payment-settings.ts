/**
 * The settings of the payment service, rows of the one table.
 * @module
 */
import { count, duration, flag, list, port, postgresUrl, secretText, setting, text, url } from "./setting-readers.ts";

export const paymentSettings = {
  PAYMENT_PORT: setting({
    read: port,
    fallback: 3001,
    unit: "port",
    effect: "Port of the payment service; 0 takes a free one.",
  }),
  PAYMENT_PUBLIC_URL: setting({
    read: url,
    unit: "URL",
    effect: "Address under which payers reach the payment service: in x402 answers and checkout pages.",
  }),
  MOUNT_SERVICES: setting({
    read: flag,
    fallback: true,
    unit: "true or false",
    effect: "Whether the gateway's port answers for the other services too, below `/payment` and `/upload`.",
  }),
  LEDGER_URL: setting({
    read: postgresUrl,
    unit: "URL",
    effect: "PostgreSQL database of the ledger (`postgres://…`); unset is SQLite in DATA_DIR.",
    secret: true,
  }),
  JWT_SECRET: setting({
    read: secretText,
    unit: "text",
    effect:
      "Key of the tokens that a signed balance request is given, at least 32 characters; unset is a random one, " +
      "kept in DATA_DIR.",
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
    read: url,
    unit: "URL",
    effect:
      "Source of fiat and token prices that speaks CoinGecko's `/simple/price`; unset is CoinGecko, " +
      "under `dev` the sandbox's fixed prices.",
  }),
  PRICE_AGE_MAX: setting({
    read: duration,
    fallback: 6 * 60 * 60_000,
    unit: "milliseconds",
    effect: "Oldest price that is still used while its source cannot be reached.",
  }),
  STRIPE_SECRET_KEY: setting({
    read: text,
    unit: "text",
    effect: "Key of the Stripe account that takes cards; unset turns cards off, under `dev` the sandbox takes them.",
    secret: true,
  }),
  STRIPE_WEBHOOK_SECRET: setting({
    read: text,
    unit: "text",
    effect: "Key with which Stripe signs what it reports to `/v1/stripe-webhook`.",
    secret: true,
  }),
  STRIPE_API_URL: setting({
    read: url,
    unit: "URL",
    effect: "Where Stripe's protocol is spoken; unset is Stripe, under `dev` without a key the sandbox.",
  }),
  SANDBOX_PORT: setting({
    read: port,
    fallback: 3003,
    unit: "port",
    effect: "Port of the sandbox that stands for Stripe and the price feed under `dev`; 0 takes a free one.",
  }),
  CARD_WATCH_MS: setting({
    read: duration,
    fallback: 30_000,
    dev: 2_000,
    unit: "milliseconds",
    effect: "How often Stripe is asked for payments that it has not reported, and told of refunds.",
  }),
  TOP_UP_RETURN_ORIGINS: setting({
    read: list(url),
    fallback: [],
    unit: "URLs",
    effect: "Origins that a checkout may return to, separated by commas; none listed is any https origin.",
  }),
  PAYMENT_ADDRESS_NATIVE: setting({
    read: text,
    unit: "address",
    effect: "Address on the chain that native payments go to; unset is the wallet's own, where there is one.",
  }),
  PAYMENT_ADDRESS_ETHEREUM: setting({
    read: text,
    unit: "address",
    effect: "Address that ether, USDC and listed ERC-20 tokens on Ethereum go to; unset takes none.",
  }),
  PAYMENT_ADDRESS_MATIC: setting({
    read: text,
    unit: "address",
    effect: "Address that POL, USDC and listed ERC-20 tokens on Polygon go to; unset takes none.",
  }),
  PAYMENT_ADDRESS_BASE: setting({
    read: text,
    unit: "address",
    effect: "Address that ether, USDC, ARIO and listed ERC-20 tokens on Base go to; unset takes none.",
  }),
  PAYMENT_ADDRESS_SOLANA: setting({
    read: text,
    unit: "address",
    effect: "Address that SOL and USDC on Solana go to; unset takes none.",
  }),
  PAYMENT_ADDRESS_KYVE: setting({
    read: text,
    unit: "address",
    effect: "Address that KYVE goes to; unset takes none.",
  }),
  ETHEREUM_RPC_URL: setting({ read: url, unit: "URL", effect: "JSON-RPC of Ethereum.", secret: true }),
  MATIC_RPC_URL: setting({ read: url, unit: "URL", effect: "JSON-RPC of Polygon.", secret: true }),
  BASE_RPC_URL: setting({ read: url, unit: "URL", effect: "JSON-RPC of Base.", secret: true }),
  SOLANA_RPC_URL: setting({ read: url, unit: "URL", effect: "JSON-RPC of Solana.", secret: true }),
  KYVE_REST_URL: setting({ read: url, unit: "URL", effect: "REST API of a KYVE node.", secret: true }),
  TOKEN_WATCH_MS: setting({
    read: duration,
    fallback: 15_000,
    dev: 500,
    unit: "milliseconds",
    effect: "How often the chains are asked for payments that nobody reported, and for confirmations.",
  }),
  X402_PAY_TO: setting({
    read: text,
    unit: "address",
    effect: "Address that x402 payments go to; unset switches x402 off.",
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
      "Contract of the dollars that x402 payments are made in; unset is USDC of the network. It must have 6 decimals " +
      "and EIP-3009.",
  }),
  X402_ASSET_NAME: setting({
    read: text,
    unit: "text",
    effect: "What the contract's signatures name it (EIP-712); unset is what is known of USDC on the network.",
  }),
  X402_ASSET_VERSION: setting({
    read: text,
    unit: "text",
    effect: "Version in the contract's signatures (EIP-712); unset is what is known of USDC on the network.",
  }),
  X402_RPC_URL: setting({
    read: url,
    unit: "URL",
    effect:
      "JSON-RPC of the network, by which payments are checked and followed; unset is the one that is set for token " +
      "payments on the same chain.",
    secret: true,
  }),
  X402_FACILITATOR_URL: setting({
    read: url,
    unit: "URL",
    effect: "Facilitator that settles x402 payments; unset settles directly, which needs X402_SETTLE_KEY.",
  }),
  X402_FACILITATOR_KEY: setting({
    read: text,
    unit: "text",
    effect:
      "Key that the facilitator wants with each request, sent as a bearer token; with X402_FACILITATOR_KEY_ID the " +
      "secret that signs a token for each request.",
    secret: true,
  }),
  X402_FACILITATOR_KEY_ID: setting({
    read: text,
    unit: "text",
    effect:
      "Name of a key of Coinbase's Developer Platform, whose Ed25519 secret is X402_FACILITATOR_KEY; unset, the key " +
      "is sent itself.",
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
      "The most that the gas of one direct settlement may cost, in billionths of the chain's coin; dearer ones wait " +
      "until they are not, or over. Unset is no limit: a payment of a tenth of a cent may then cost more than it " +
      "brings.",
  }),
  FREE_UPLOAD_BYTES: setting({
    read: count,
    fallback: 0,
    dev: 16 * 2 ** 20,
    unit: "bytes",
    effect: "Largest item that is uploaded free of charge.",
  }),
} as const;
