/**
 * Opens payments by x402: their chain, and the facilitator or the key that settles them.
 * @module
 */
import type { Config } from "../config/settings.ts";
import type { HealthCheck } from "../gateway/health.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import { invalidValue } from "../lib/printable.ts";
import { secp256k1 } from "../lib/secp256k1.ts";
import { chainOf, readAddress } from "../payment/addresses.ts";
import { createEvmChain, createEvmClient, type EvmClient } from "../payment/evm/evm-chain.ts";
import { createEvmSender } from "../payment/evm/evm-sender.ts";
import { openJsonRpc } from "../payment/evm/json-rpc.ts";
import type { PriceRules } from "../payment/prices/price-rules.ts";
import type { Prices } from "../payment/prices/price-types.ts";
import { depthsOf, listedTokens, readExcluded } from "../payment/tokens/open-chains.ts";
import { openX402 as openX402Payments } from "../payment/x402/open-x402.ts";
import type { X402, X402Terms } from "../payment/x402/x402.ts";
import { readX402Network, type X402Network } from "../payment/x402/x402-networks.ts";
import {
  createDirectSettler,
  type FacilitatorAccess,
  isBearerKey,
  openFacilitator,
  readPlatformSecret,
  type Settler,
} from "../payment/x402/x402-settlers.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import type { MakeId } from "../store/ledger/transfers.ts";
import type { AppContext } from "./base.ts";
import { badSettings } from "./complaints.ts";
import { type EvmChainSettings, evmChainSettings } from "./open-tokens.ts";

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
