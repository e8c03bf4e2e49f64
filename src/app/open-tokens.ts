/**
 * Opens payments in tokens, on the chains of the settings.
 * @module
 */
import type { Wallet } from "../arweave/wallet.ts";
import type { Nodes } from "../chain/nodes.ts";
import type { Config } from "../config/settings.ts";
import type { HealthCheck } from "../gateway/health.ts";
import { systemClock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics.ts";
import { invalidValue } from "../lib/printable.ts";
import {
  chainOf,
  type EvmChainName,
  evmChainNames,
  evmChains,
  readAddress,
  type Token,
  type UserAddress,
} from "../payment/addresses.ts";
import type { PriceRules } from "../payment/prices/price-rules.ts";
import type { Prices } from "../payment/prices/price-types.ts";
import {
  type ChainSources,
  type EvmSource,
  type KyveSource,
  listedTokens,
  openTokenChains,
  readExcluded,
  type SolanaSource,
} from "../payment/tokens/open-chains.ts";
import { createTokenPayments, type TokenPayments } from "../payment/tokens/token-payments.ts";
import { openTokenWatcher, type WatchStatus } from "../payment/tokens/token-watcher.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import type { MakeId } from "../store/ledger/transfers.ts";
import type { AppContext } from "./base.ts";
import { badSettings } from "./complaints.ts";
import { systemRandom } from "./random.ts";

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
export type EvmChainSettings = Readonly<{ coin: Token; usdc: Token; prefix: EvmPrefix }>;

type EvmPrefix = "ETHEREUM" | "MATIC" | "BASE";

const prefixes: Readonly<Record<EvmChainName, EvmPrefix>> = { ethereum: "ETHEREUM", polygon: "MATIC", base: "BASE" };

export const evmChainSettings: readonly EvmChainSettings[] = evmChainNames.map((chain) => ({
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
