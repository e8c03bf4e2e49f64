/**
 * Opens payments in cryptocurrencies: tokens on the chains of the settings, x402, and paid reading by x402 beyond the
 * rate limits.
 * @module
 */
import type { Wallet } from "../arweave/wallet.ts";
import type { Nodes } from "../chain/nodes.ts";
import type { Config } from "../config/settings.ts";
import type { HealthCheck } from "../gateway/health.ts";
import { createPaidReads, type PaidReads } from "../http/paid-reads.ts";
import type { PublicUrl } from "../http/public-url.ts";
import type { RateLimiter } from "../http/rate-limiter.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import { invalidValue } from "../lib/printable.ts";
import { secp256k1 } from "../lib/secp256k1.ts";
import {
  chainOf,
  type EvmChainName,
  evmChainNames,
  evmChains,
  readAddress,
  type Token,
  type UserAddress,
} from "../payment/addresses.ts";
import { createEvmChain, createEvmClient, type EvmClient } from "../payment/evm/evm-chain.ts";
import { createEvmSender } from "../payment/evm/evm-sender.ts";
import { openJsonRpc } from "../payment/evm/json-rpc.ts";
import type { PriceRules } from "../payment/prices/price-rules.ts";
import type { Prices } from "../payment/prices/price-types.ts";
import {
  type ChainSources,
  depthsOf,
  type EvmSource,
  type KyveSource,
  listedTokens,
  openTokenChains,
  readExcluded,
  type SolanaSource,
} from "../payment/tokens/open-chains.ts";
import { createTokenPayments, type TokenPayments } from "../payment/tokens/token-payments.ts";
import { openTokenWatcher, type WatchStatus } from "../payment/tokens/token-watcher.ts";
import { openX402 as openX402Payments } from "../payment/x402/open-x402.ts";
import { openPaidReading as open, type PaidReading } from "../payment/x402/paid-reading.ts";
import { readX402Network, type X402, type X402Network, type X402Terms, x402AmountMin } from "../payment/x402/x402.ts";
import {
  createDirectSettler,
  type FacilitatorAccess,
  isBearerKey,
  openFacilitator,
  readPlatformSecret,
  type Settler,
} from "../payment/x402/x402-settlers.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { createTransferIds, type MakeId } from "../store/ledger/transfers.ts";
import type { AppContext } from "./base.ts";
import { badSettings } from "./complaints.ts";
import { storedKey } from "./keys.ts";
import { randomSeed, systemRandom } from "./random.ts";

type TokensParts = Readonly<{
  reader: IndexReader;
  nodes: Nodes;
  metrics: Metrics;
  ledger: LedgerDatabase;
  makeId: MakeId;
  prices: Pick<Prices, "token">;
  rules: Pick<PriceRules, "tokens">;
  /** Receives native payments unless a setting names another address. */
  wallet?: Readonly<{ wallet: Pick<Wallet, "address"> }> | undefined;
}>;

export type OpenTokens = Readonly<{
  payments: TokenPayments;
  /** The receiving address of each token. */
  addresses: ReadonlyMap<Token, string>;
  /** Reports which chains have faults. */
  check: HealthCheck;
}>;

/** Health reports a chain that could not be scanned for longer. Milliseconds. */
const faultNotedMs = 5 * 60_000;

/**
 * Opens payments in tokens; `closers` close them.
 *
 * @throws Misuse when an address is invalid, or its chain has no URL.
 */
export function openTokens({ config, log, closers }: Omit<AppContext, "folder">, parts: TokensParts): OpenTokens {
  const { metrics, ledger, makeId, prices } = parts;
  const { sources, excluded } = readSources(config, parts);
  const { chains, close } = openTokenChains(sources);
  closers.add("chains of token payments", close);
  const payments = createTokenPayments({
    ledger,
    prices,
    chains,
    excluded,
    makeId,
    log,
    clock: systemClock,
    random: systemRandom,
    lookAgainMs: config.TOKEN_WATCH_MS,
  });
  const watcher = openTokenWatcher({
    payments,
    ledger,
    log,
    intervalMs: config.TOKEN_WATCH_MS,
    clock: systemClock,
    random: systemRandom,
  });
  closers.add("token watcher", watcher.close);
  metrics.gaugesOf({
    name: "payment_token_watch_age_seconds",
    help: "Seconds since the last scan of a token's chain; absent before the first scan.",
    label: "token",
    values: watcher.status().map(({ token }) => token),
    read: () => Object.fromEntries(watcher.status().flatMap(({ token, doneAt }) => ageOf(token, doneAt))),
  });
  return {
    payments,
    addresses: new Map(chains.map(({ token, address }) => [token, address])),
    check: () => watcher.status().flatMap(noteOf),
  };
}

function ageOf(token: Token, doneAt: number | undefined): readonly (readonly [Token, number])[] {
  return doneAt === undefined ? [] : [[token, (systemClock() - doneAt) / 1_000]];
}

/** Faults that may resolve by themselves are not reported. */
function noteOf({ token, doneAt, fault }: WatchStatus): readonly string[] {
  const isPassing = doneAt !== undefined && systemClock() - doneAt < faultNotedMs;
  return fault === undefined || isPassing ? [] : [`Payments in ${token} cannot be watched: ${fault}.`];
}

function readSources(
  config: Config,
  { rules, reader, nodes, wallet }: TokensParts,
): Readonly<{ sources: ChainSources; excluded: ReadonlySet<string> }> {
  const { native: set, excluded, ...chains } = readTokenSettings(config);
  const own = wallet === undefined ? undefined : readAddress(wallet.wallet.address, "native")?.address;
  const native = set ?? own;
  const sources: ChainSources = {
    rules,
    native: native && {
      address: native,
      reader,
      nodes,
      clock: systemClock,
      blocksOnTop: config.NATIVE_CONFIRMATIONS,
    },
    ...chains,
  };
  return { sources, excluded };
}

type TokenSettings = Pick<ChainSources, "evm" | "solana" | "kyve"> &
  Readonly<{ native: UserAddress | undefined; excluded: ReadonlySet<string> }>;

/** Parses the settings of token payments. @throws Misuse when an address is invalid, or its chain has no URL. */
export function readTokenSettings(config: Config): TokenSettings {
  const complaints: string[] = [];
  const native = addressOf(config, "PAYMENT_ADDRESS_NATIVE", "native", complaints);
  const excluded = readExcluded(config.PAYMENT_EXCLUDED_ADDRESSES);
  if (excluded === undefined) complaints.push("PAYMENT_EXCLUDED_ADDRESSES must be addresses");
  const evm = evmChainSettings.flatMap((names) => evmSource(config, names, complaints) ?? []);
  const solana = solanaSource(config, complaints);
  const kyve = kyveSource(config, complaints);
  complaints.push(...sharedChains(config));
  if (complaints.length > 0 || excluded === undefined) throw badSettings(complaints);
  return { native, excluded, evm, solana, kyve };
}

/**
 * Checks that the contract of each token in the price rules differs from the contracts of the settings. Otherwise one
 * transfer would be found as payments in two tokens.
 *
 * @throws Misuse for equal contracts.
 */
export function checkListedTokens(config: Config, rules: Pick<PriceRules, "tokens">): void {
  const complaints = evmChainSettings.flatMap(({ coin, usdc, prefix }) => {
    const usdcContract = readAddress(config[`${prefix}_USDC_ADDRESS`], "ethereum")?.address;
    return listedTokens(rules, chainOf(coin))
      .filter(({ contract }) => contract === usdcContract)
      .map(
        ({ token }) =>
          `${prefix}_USDC_ADDRESS must not be the contract of ${token} in the price rules: ` +
          `one transfer would be ${usdc} and ${token}`,
      );
  });
  if (complaints.length > 0) throw badSettings(complaints);
}

/** Complaints about chains that share an id and an address: one transfer would be found as two payments. */
function sharedChains(config: Config): readonly string[] {
  const taken = evmChainSettings.flatMap(({ prefix }) => {
    const text = config[`PAYMENT_ADDRESS_${prefix}`];
    const address = text === undefined ? undefined : readAddress(text, "ethereum")?.address;
    return address === undefined ? [] : [{ prefix, chainId: BigInt(config[`${prefix}_CHAIN_ID`]), address }];
  });
  return taken.flatMap((one, index) =>
    taken
      .slice(0, index)
      .filter(({ chainId, address }) => chainId === one.chainId && address === one.address)
      .map(({ prefix }) => {
        const names = `${one.prefix}_CHAIN_ID and PAYMENT_ADDRESS_${one.prefix}`;
        return `${names} must not both be those of ${prefix}: its payments would be credited twice`;
      }),
  );
}

/** An EVM chain: its coin, its USDC, and the prefix of its settings. The settings of Polygon are named after MATIC. */
type EvmChainSettings = Readonly<{ coin: Token; usdc: Token; prefix: EvmPrefix }>;

type EvmPrefix = "ETHEREUM" | "MATIC" | "BASE";

const prefixes: Readonly<Record<EvmChainName, EvmPrefix>> = { ethereum: "ETHEREUM", polygon: "MATIC", base: "BASE" };

const evmChainSettings: readonly EvmChainSettings[] = evmChainNames.map((chain) => ({
  ...evmChains[chain],
  prefix: prefixes[chain],
}));

function evmSource(
  config: Config,
  { coin, usdc, prefix }: EvmChainSettings,
  complaints: string[],
): EvmSource | undefined {
  const address = addressOf(config, `PAYMENT_ADDRESS_${prefix}`, "ethereum", complaints);
  const usdcContract = addressOf(config, `${prefix}_USDC_ADDRESS`, "ethereum", complaints);
  const rpcUrl = rpcUrlOf(config, prefix, address, complaints);
  if (address === undefined || usdcContract === undefined || rpcUrl === undefined) return undefined;
  return { coin, usdc, address, usdcContract, rpcUrl, chainId: BigInt(config[`${prefix}_CHAIN_ID`]) };
}

function solanaSource(config: Config, complaints: string[]): SolanaSource | undefined {
  const address = addressOf(config, "PAYMENT_ADDRESS_SOLANA", "solana", complaints);
  const rpcUrl = rpcUrlOf(config, "SOLANA", address, complaints);
  if (address === undefined || rpcUrl === undefined) return undefined;
  return { address, rpcUrl, genesisHash: config.SOLANA_GENESIS_HASH, mint: config.SOLANA_USDC_MINT };
}

function kyveSource(config: Config, complaints: string[]): KyveSource | undefined {
  const address = addressOf(config, "PAYMENT_ADDRESS_KYVE", "kyve", complaints);
  const restUrl = config.KYVE_REST_URL;
  if (address !== undefined && restUrl === undefined) complaints.push("PAYMENT_ADDRESS_KYVE needs KYVE_REST_URL");
  if (address === undefined || restUrl === undefined) return undefined;
  return { address, restUrl, chainId: config.KYVE_CHAIN_ID, denom: config.KYVE_DENOM };
}

type AddressSetting = `PAYMENT_ADDRESS_${EvmPrefix | "NATIVE" | "SOLANA" | "KYVE"}` | `${EvmPrefix}_USDC_ADDRESS`;

function addressOf(
  config: Config,
  name: AddressSetting,
  type: "native" | "ethereum" | "solana" | "kyve",
  complaints: string[],
): UserAddress | undefined {
  const text = config[name];
  const address = text === undefined ? undefined : readAddress(text, type)?.address;
  if (text !== undefined && address === undefined) complaints.push(invalidValue(name, text, `an address of ${type}`));
  return address;
}

function rpcUrlOf(
  config: Config,
  prefix: EvmPrefix | "SOLANA",
  address: UserAddress | undefined,
  complaints: string[],
): string | undefined {
  const url = config[`${prefix}_RPC_URL`];
  if (address !== undefined && url === undefined) complaints.push(`PAYMENT_ADDRESS_${prefix} needs ${prefix}_RPC_URL`);
  return url;
}

type X402Parts = Readonly<{
  ledger: LedgerDatabase;
  makeId: MakeId;
  prices: Pick<Prices, "bytes" | "token" | "tokenFor">;
  rules: Pick<PriceRules, "tokens">;
}>;

type OpenX402 = Readonly<{
  /** Undefined: x402 is off. */
  x402: X402 | undefined;
  /** Reports why payments cannot be confirmed. */
  check: HealthCheck;
}>;

/** Longest time from quote to settlement; the usual value of x402 services. Seconds. */
const timeoutSeconds = 300;

const weiPerGwei = 1_000_000_000n;

/** Settles payments: a facilitator, or this process with a key. */
type Settlement =
  | Readonly<{ kind: "facilitator"; url: string; access: FacilitatorAccess | undefined }>
  | Readonly<{ kind: "direct"; privateKey: Uint8Array }>;

/** The settings of x402, parsed. */
type X402Source = Readonly<{ terms: X402Terms; rpcUrl: string; settlement: Settlement }>;

/**
 * Opens payments by x402; `closers` close them.
 *
 * @throws Misuse when an address is invalid, or when no settler or no chain URL is set.
 */
export function openX402(
  { config, log, closers }: Omit<AppContext, "folder">,
  { ledger, makeId, prices, rules }: X402Parts,
): OpenX402 {
  const source = readX402Source(config);
  if (source === undefined) return { x402: undefined, check: () => [] };
  const { terms, rpcUrl, settlement } = source;
  const { chainId, asset } = terms.network;
  const rpc = openJsonRpc(rpcUrl);
  closers.add("chain of x402 payments", rpc.close);
  const client = createEvmClient(rpc, chainId);
  const x402 = openX402Payments({
    terms,
    client,
    ledger,
    makeId,
    prices,
    log,
    evm: createEvmChain(rpc, chainId),
    settle: settlerOf(settlement, terms, client, config, closers),
    finalConfirmations: depthsOf(asset.token, rules).finalConfirmations,
    excluded: readExcluded(config.PAYMENT_EXCLUDED_ADDRESSES) ?? new Set(),
    clock: systemClock,
  });
  closers.add("x402 payments", x402.close);
  log.info("x402 payments are accepted", { network: terms.network.name, payTo: terms.payTo, by: settlement.kind });
  return { x402, check: () => faultNotes(x402.fault()) };
}

function faultNotes(problem: string | undefined): readonly string[] {
  return problem === undefined ? [] : [`Payments by x402 cannot be confirmed: ${problem}.`];
}

function settlerOf(
  settlement: Settlement,
  terms: X402Terms,
  client: EvmClient,
  config: Config,
  closers: Closers,
): Settler {
  if (settlement.kind === "facilitator") {
    const facilitator = openFacilitator({ url: settlement.url, access: settlement.access, terms });
    closers.add("x402 facilitator", facilitator.close);
    return facilitator.settle;
  }
  const { privateKey } = settlement;
  const { X402_GAS_COST_MAX: gwei } = config;
  const costMax = gwei === undefined ? undefined : BigInt(gwei) * weiPerGwei;
  const { chainId } = terms.network;
  const sender = createEvmSender({ client, chainId, privateKey, costMax, clock: systemClock });
  return createDirectSettler(sender, terms);
}

/** Parses the settings of x402; undefined if it is off. @throws Misuse for invalid or missing settings. */
export function readX402Source(config: Config): X402Source | undefined {
  if (config.X402_PAY_TO === undefined) return undefined;
  const complaints: string[] = [];
  const payTo = readAddress(config.X402_PAY_TO, "ethereum")?.address;
  if (payTo === undefined) complaints.push(invalidValue("X402_PAY_TO", config.X402_PAY_TO, "an address of ethereum"));
  const network = networkOf(config, complaints);
  const rpcUrl = network && x402RpcUrlOf(config, network, complaints);
  const settlement = settlementOf(config, complaints);
  if (payTo !== undefined && network !== undefined) complaints.push(...sharedWithTokens(config, network, payTo));
  if (complaints.length > 0 || !payTo || !network || !rpcUrl || !settlement) throw badSettings(complaints);
  return { terms: { network, payTo, timeoutSeconds }, rpcUrl, settlement };
}

/** The EVM chain of token payments with an id. */
function evmChainOf(config: Config, chainId: bigint): EvmChainSettings | undefined {
  return evmChainSettings.find(({ prefix }) => BigInt(config[`${prefix}_CHAIN_ID`]) === chainId);
}

function networkOf(config: Config, complaints: string[]): X402Network | undefined {
  const { X402_NETWORK: text, X402_ASSET_NAME: name, X402_ASSET_VERSION: version } = config;
  const network = readX402Network(text, { address: config.X402_ASSET_ADDRESS, name, version });
  if (!("fault" in network)) return network;
  complaints.push(network.fault);
  return undefined;
}

function x402RpcUrlOf(config: Config, { chainId, name }: X402Network, complaints: string[]): string | undefined {
  const prefix = evmChainOf(config, chainId)?.prefix;
  const url = config.X402_RPC_URL ?? (prefix && config[`${prefix}_RPC_URL`]);
  if (url === undefined) complaints.push(`X402_PAY_TO needs X402_RPC_URL, a JSON-RPC of ${name}`);
  return url;
}

function settlementOf(config: Config, complaints: string[]): Settlement | undefined {
  const { X402_FACILITATOR_URL: url, X402_SETTLE_KEY: keyText } = config;
  if (url !== undefined) return { kind: "facilitator", url, access: accessOf(config, complaints) };
  const privateKey = keyText === undefined ? undefined : readPrivateKey(keyText);
  if (privateKey !== undefined) return { kind: "direct", privateKey };
  complaints.push(
    keyText === undefined
      ? "X402_PAY_TO needs X402_FACILITATOR_URL or X402_SETTLE_KEY to settle payments"
      : "X402_SETTLE_KEY must be a private key of secp256k1, 64 hexadecimal digits",
  );
  return undefined;
}

/** The credentials for the facilitator. Adds a complaint about an invalid key. */
function accessOf(config: Config, complaints: string[]): FacilitatorAccess | undefined {
  const { X402_FACILITATOR_KEY: key, X402_FACILITATOR_KEY_ID: keyId } = config;
  if (key === undefined) {
    if (keyId !== undefined) complaints.push("X402_FACILITATOR_KEY_ID needs X402_FACILITATOR_KEY");
    return undefined;
  }
  if (keyId === undefined) {
    if (!isBearerKey(key)) complaints.push("X402_FACILITATOR_KEY must be a bearer token (RFC 6750)");
    return { kind: "bearer", key };
  }
  const privateKey = readPlatformSecret(key);
  if (privateKey === undefined)
    complaints.push(
      "X402_FACILITATOR_KEY must be an Ed25519 secret in base64, of 64 bytes, with X402_FACILITATOR_KEY_ID",
    );
  return privateKey && { kind: "platform", keyId, privateKey };
}

function readPrivateKey(text: string): Uint8Array | undefined {
  const digits = /^(?:0x)?([0-9a-fA-F]{64})$/.exec(text)?.[1];
  if (digits === undefined) return undefined;
  const key = Uint8Array.fromHex(digits);
  try {
    secp256k1.publicKeyOf(key);
    return key;
  } catch {
    // Zero, or not below the order of the curve.
    return undefined;
  }
}

/**
 * Checks that no token of the price rules is the asset of x402 payments at the same address. Otherwise one transfer
 * would be found as two payments.
 *
 * @throws Misuse for such a token.
 */
export function checkX402Asset(config: Config, rules: Pick<PriceRules, "tokens">): void {
  const payTo = readAddress(config.X402_PAY_TO ?? "", "ethereum")?.address;
  const network = networkOf(config, []);
  const evm = network && evmChainOf(config, network.chainId);
  if (payTo === undefined || evm === undefined) return; // other checks report missing settings
  const { coin, prefix } = evm;
  if (readAddress(config[`PAYMENT_ADDRESS_${prefix}`] ?? "", "ethereum")?.address !== payTo) return;
  const shared = listedTokens(rules, chainOf(coin)).find(({ contract }) => contract === network?.asset.address);
  if (shared !== undefined)
    throw badSettings([`X402_PAY_TO must not be PAYMENT_ADDRESS_${prefix}: ${shared.token} would be credited twice`]);
}

/** Complaints about an address and an asset that token payments use too: one transfer would be two payments. */
function sharedWithTokens(config: Config, { chainId, asset }: X402Network, payTo: string): readonly string[] {
  return evmChainSettings.flatMap(({ prefix }) => {
    const text = config[`PAYMENT_ADDRESS_${prefix}`];
    const isSame =
      BigInt(config[`${prefix}_CHAIN_ID`]) === chainId &&
      readAddress(config[`${prefix}_USDC_ADDRESS`])?.address === asset.address &&
      text !== undefined &&
      readAddress(text, "ethereum")?.address === payTo;
    return isSame ? [`X402_PAY_TO must not be PAYMENT_ADDRESS_${prefix}: its transfers would be credited twice`] : [];
  });
}

type PaidReadingParts = Readonly<{
  ledger: LedgerDatabase;
  /** Undefined: x402 is off. */
  x402: X402 | undefined;
}>;

/** Opens paid reading if the settings enable it. Rejects when the ledger cannot be read. */
export async function openPaidReading(
  { config, folder }: AppContext,
  { ledger, x402 }: PaidReadingParts,
): Promise<PaidReading | undefined> {
  if (!config.RATE_LIMITER_PAYMENT || x402 === undefined) return undefined;
  return await open({
    x402,
    ledger,
    key: storedKey(folder.keys, "readers"),
    clock: systemClock,
    amount: BigInt(config.RATE_LIMITER_PAYMENT_PRICE),
    bytes: config.RATE_LIMITER_PAYMENT_BYTES,
    makeId: createTransferIds(systemClock, systemRandom),
  });
}

/** Paid reading, and the base URL at which clients reach the gateway. */
export type SoldReading = Readonly<{ reading: PaidReading; publicUrl: PublicUrl }>;

/** Creates paid reading at a listener; undefined without paid reading or without rate limits. */
export function paidReadsOf(
  sold: SoldReading | undefined,
  limiter: RateLimiter | undefined,
  log: Log,
): PaidReads | undefined {
  if (sold === undefined || limiter === undefined) return undefined;
  return createPaidReads({ ...sold, limiter, seed: randomSeed(), clock: systemClock, log });
}

/** Checks the settings of paid reading. @throws Misuse when a setting is missing or too low. */
export function checkPaidReading(config: Config): void {
  if (!config.RATE_LIMITER_PAYMENT) return;
  const complaints: string[] = [];
  if (!config.ENABLE_RATE_LIMITER) complaints.push("RATE_LIMITER_PAYMENT needs ENABLE_RATE_LIMITER");
  if (config.X402_PAY_TO === undefined) complaints.push("RATE_LIMITER_PAYMENT needs X402_PAY_TO");
  if (BigInt(config.RATE_LIMITER_PAYMENT_PRICE) < x402AmountMin)
    complaints.push(
      invalidValue("RATE_LIMITER_PAYMENT_PRICE", String(config.RATE_LIMITER_PAYMENT_PRICE), `${x402AmountMin} or more`),
    );
  if (complaints.length > 0) throw badSettings(complaints);
}
