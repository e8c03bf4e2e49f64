/**
 * Payments by x402: the network and its dollars, settlement, the watcher, and paid reading beyond the rate limits.
 * @module
 */
import type { Config } from "../config/settings.ts";
import type { HealthCheck } from "../gateway/health.ts";
import { createPaidReads, type PaidReads } from "../http/paid-reads.ts";
import type { PublicUrl } from "../http/public-url.ts";
import type { RateLimiter } from "../http/rate-limiter.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import { invalidValue } from "../lib/printable.ts";
import { secp256k1 } from "../lib/secp256k1.ts";
import { readAddress } from "../payment/addresses.ts";
import { createEvmChain, createEvmClient, type EvmClient } from "../payment/evm/evm-chain.ts";
import { createEvmSender } from "../payment/evm/evm-sender.ts";
import { openJsonRpc } from "../payment/evm/json-rpc.ts";
import type { PriceRules } from "../payment/prices/price-rules.ts";
import type { Prices } from "../payment/prices/price-types.ts";
import { depthsOf, listedTokens, readExcluded } from "../payment/tokens/open-chains.ts";
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
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { createTransferIds, type MakeId } from "../store/ledger/transfers.ts";
import { badSettings } from "./complaints.ts";
import type { DataFolder } from "./data-folder.ts";
import { storedKey } from "./keys.ts";
import { systemRandom } from "./random.ts";

/** What it is opened with. */
export type X402Parts = Readonly<{
  config: Config;
  ledger: LedgerDatabase;
  makeId: MakeId;
  prices: Pick<Prices, "bytes" | "token" | "tokenFor">;
  rules: Pick<PriceRules, "tokens">;
  log: Log;
  closers: Closers;
}>;

/** x402, open or off. */
export type OpenX402 = Readonly<{
  /** Undefined: off. */
  x402: X402 | undefined;
  /** Says that payments cannot be followed. */
  check: HealthCheck;
}>;

/** How long a payment may take from quote to settlement: what payers are used to. Seconds. */
const timeoutSeconds = 300;

const weiPerGwei = 1_000_000_000n;

/** How a payment is carried out. */
type Carrier =
  | Readonly<{ kind: "facilitator"; url: string; access: FacilitatorAccess | undefined }>
  | Readonly<{ kind: "direct"; privateKey: Uint8Array }>;

/** What the settings say. */
type X402Source = Readonly<{ terms: X402Terms; rpcUrl: string; carrier: Carrier }>;

/**
 * Opens it; what has to be closed is closed by `closers`.
 *
 * @throws Misuse when an address is none, when nobody would carry payments out, or when the chain cannot be asked.
 */
export function openX402(parts: X402Parts): OpenX402 {
  const { config, ledger, makeId, prices, rules, log, closers } = parts;
  const source = readX402Source(config);
  if (source === undefined) return { x402: undefined, check: () => [] };
  const { terms, rpcUrl, carrier } = source;
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
    settle: settlerOf(carrier, terms, client, parts),
    finalConfirmations: depthsOf(asset.token, rules).finalConfirmations,
    excluded: readExcluded(config.PAYMENT_EXCLUDED_ADDRESSES) ?? new Set(),
    clock: systemClock,
  });
  closers.add("x402 payments", x402.close);
  log.info("x402 payments are taken", { network: terms.network.name, payTo: terms.payTo, by: carrier.kind });
  return { x402, check: () => faultNotes(x402.fault()) };
}

function faultNotes(problem: string | undefined): readonly string[] {
  return problem === undefined ? [] : [`Payments by x402 cannot be followed: ${problem}.`];
}

function settlerOf(carrier: Carrier, terms: X402Terms, client: EvmClient, { config, closers }: X402Parts): Settler {
  if (carrier.kind === "facilitator") {
    const facilitator = openFacilitator({ url: carrier.url, access: carrier.access, terms });
    closers.add("x402 facilitator", facilitator.close);
    return facilitator.settle;
  }
  const { privateKey } = carrier;
  const { X402_GAS_COST_MAX: gwei } = config;
  const costMax = gwei === undefined ? undefined : BigInt(gwei) * weiPerGwei;
  const { chainId } = terms.network;
  const sender = createEvmSender({ client, chainId, privateKey, costMax, clock: systemClock });
  return createDirectSettler(sender, terms);
}

/** Reads what x402 payments are set to. @throws Misuse when something does not fit. */
export function readX402Source(config: Config): X402Source | undefined {
  if (config.X402_PAY_TO === undefined) return undefined;
  const complaints: string[] = [];
  const payTo = readAddress(config.X402_PAY_TO, "ethereum")?.address;
  if (payTo === undefined) complaints.push(invalidValue("X402_PAY_TO", config.X402_PAY_TO, "an address of ethereum"));
  const network = networkOf(config, complaints);
  const rpcUrl = network && rpcUrlOf(config, network, complaints);
  const carrier = carrierOf(config, complaints);
  if (payTo !== undefined && network !== undefined) complaints.push(...sharedWithTokens(config, network, payTo));
  if (complaints.length > 0 || !payTo || !network || !rpcUrl || !carrier) throw badSettings(complaints);
  return { terms: { network, payTo, timeoutSeconds }, rpcUrl, carrier };
}

/** Chains of token payments, by the beginnings of their settings. */
const tokenChains = ["BASE", "ETHEREUM", "MATIC"] as const;

/** The settings of token payments on the chain, if there are any. */
function tokenChainOf(config: Config, chainId: bigint): (typeof tokenChains)[number] | undefined {
  return tokenChains.find((prefix) => BigInt(config[`${prefix}_CHAIN_ID`]) === chainId);
}

function networkOf(config: Config, complaints: string[]): X402Network | undefined {
  const { X402_NETWORK: text, X402_ASSET_NAME: name, X402_ASSET_VERSION: version } = config;
  const network = readX402Network(text, { address: config.X402_ASSET_ADDRESS, name, version });
  if (!("fault" in network)) return network;
  complaints.push(network.fault);
  return undefined;
}

function rpcUrlOf(config: Config, { chainId, name }: X402Network, complaints: string[]): string | undefined {
  const prefix = tokenChainOf(config, chainId);
  const url = config.X402_RPC_URL ?? (prefix && config[`${prefix}_RPC_URL`]);
  if (url === undefined) complaints.push(`X402_PAY_TO needs X402_RPC_URL, a JSON-RPC of ${name}`);
  return url;
}

function carrierOf(config: Config, complaints: string[]): Carrier | undefined {
  const { X402_FACILITATOR_URL: url, X402_SETTLE_KEY: keyText } = config;
  if (url !== undefined) return { kind: "facilitator", url, access: accessOf(config, complaints) };
  const privateKey = keyText === undefined ? undefined : readPrivateKey(keyText);
  if (privateKey !== undefined) return { kind: "direct", privateKey };
  complaints.push(
    keyText === undefined
      ? "X402_PAY_TO needs X402_FACILITATOR_URL or X402_SETTLE_KEY: somebody has to carry payments out"
      : "X402_SETTLE_KEY must be a private key of secp256k1, 64 hexadecimal digits",
  );
  return undefined;
}

/** How the facilitator knows us; a key that cannot be used is a complaint. */
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
    // Zero, or not below the order of the curve: nobody's key.
    return undefined;
  }
}

/**
 * Checks that no token of the price rules is what x402 payments are made in, where both go to one address: one
 * transfer must not be found as two payments.
 *
 * @throws Misuse when one is.
 */
export function checkX402Asset(config: Config, rules: Pick<PriceRules, "tokens">): void {
  const payTo = readAddress(config.X402_PAY_TO ?? "", "ethereum")?.address;
  const network = networkOf(config, []);
  const prefix = network && tokenChainOf(config, network.chainId);
  if (payTo === undefined || prefix === undefined) return; // other checks say why, where that is a fault
  if (readAddress(config[`PAYMENT_ADDRESS_${prefix}`] ?? "", "ethereum")?.address !== payTo) return;
  const chain = prefix === "MATIC" ? "polygon" : prefix === "BASE" ? "base" : "ethereum";
  const shared = listedTokens(rules, chain).find(({ contract }) => contract === network?.asset.address);
  if (shared !== undefined)
    throw badSettings([`X402_PAY_TO must not be PAYMENT_ADDRESS_${prefix}: ${shared.token} would be credited twice`]);
}

/** One transfer must not be found as two payments. */
function sharedWithTokens(config: Config, { chainId, asset }: X402Network, payTo: string): readonly string[] {
  return tokenChains.flatMap((prefix) => {
    const text = config[`PAYMENT_ADDRESS_${prefix}`];
    const isSame =
      BigInt(config[`${prefix}_CHAIN_ID`]) === chainId &&
      readAddress(config[`${prefix}_USDC_ADDRESS`])?.address === asset.address &&
      text !== undefined &&
      readAddress(text, "ethereum")?.address === payTo;
    return isSame ? [`X402_PAY_TO must not be PAYMENT_ADDRESS_${prefix}: its transfers would be credited twice`] : [];
  });
}

/** What it is opened with. */
export type PaidReadingParts = Readonly<{
  config: Config;
  folder: Pick<DataFolder, "keys">;
  ledger: LedgerDatabase;
  /** Undefined: x402 is off. */
  x402: X402 | undefined;
}>;

/** Opens it where the settings ask for it. Rejects when the ledger cannot be read. */
export async function openPaidReading(parts: PaidReadingParts): Promise<PaidReading | undefined> {
  const { config, folder, ledger, x402 } = parts;
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

/** What readers can pay for beyond the limits, and where they reach the gateway. */
export type SoldReading = Readonly<{ reading: PaidReading; publicUrl: PublicUrl }>;

/** Sells it at a listener; `undefined` where nothing is sold, or nothing limited. */
export function paidReadsOf(
  sold: SoldReading | undefined,
  limiter: RateLimiter | undefined,
  log: Log,
): PaidReads | undefined {
  if (sold === undefined || limiter === undefined) return undefined;
  const seed = Math.floor(systemRandom() * 2 ** 32);
  return createPaidReads({ ...sold, limiter, seed, clock: systemClock, log });
}

/** Checks what it is set to. @throws Misuse when something is missing. */
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
