/**
 * The chains and dollars of x402 payments, with the domains of their signatures.
 *
 * Source: CAIP-2 (names of chains); Circle's list of USDC contracts; each contract's `name()` and `version()`, which
 * its signatures contain.
 * @module
 */
import { readAddress, type Token, type UserAddress } from "../addresses.ts";

/** A coin, with the fields of its EIP-712 domain. */
type X402Asset = Readonly<{
  /** The contract, canonical. */
  address: UserAddress;
  name: string;
  version: string;
  /** The token of its price. */
  token: Token;
}>;

/** A chain and its accepted coin. */
export type X402Network = Readonly<{
  chainId: bigint;
  /** The CAIP-2 name, `eip155:8453`, of version 2 and of the ledger. */
  name: string;
  /** The network's name in version 1, `base`, or its CAIP-2 name. */
  nameV1: string;
  asset: X402Asset;
}>;

/** The operator's coin, which replaces the known coin. */
type AssetSettings = Readonly<{
  address: string | undefined;
  name: string | undefined;
  version: string | undefined;
}>;

type KnownNetwork = Readonly<{
  chainId: bigint;
  nameV1?: string;
  token: Token;
  asset: Readonly<{ address: string; name: string; version: string }>;
}>;

const knownNetworks: readonly KnownNetwork[] = [
  {
    chainId: 8_453n,
    nameV1: "base",
    token: "base-usdc",
    asset: { address: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", name: "USD Coin", version: "2" },
  },
  {
    chainId: 84_532n,
    nameV1: "base-sepolia",
    token: "base-usdc",
    asset: { address: "0x036CbD53842c5426634e7929541eC2318f3dCF7e", name: "USDC", version: "2" },
  },
  {
    chainId: 1n,
    token: "usdc",
    asset: { address: "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", name: "USD Coin", version: "2" },
  },
  {
    chainId: 137n,
    nameV1: "polygon",
    token: "polygon-usdc",
    asset: { address: "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", name: "USD Coin", version: "2" },
  },
];

const caipPattern = /^eip155:([1-9]\d{0,15})$/;

/**
 * Parses a network.
 *
 * @param text - A name of version 1, or a CAIP-2 name of an EVM chain.
 * @param set - Replaces the known coin of the network; an unknown network needs all three settings.
 * @returns The network, or the fault of the settings.
 */
export function readX402Network(text: string, set: AssetSettings): X402Network | Readonly<{ fault: string }> {
  const chainText = caipPattern.exec(text)?.[1];
  const known = knownNetworks.find(({ chainId, nameV1 }) => nameV1 === text || String(chainId) === chainText);
  const chainId = known?.chainId ?? (chainText === undefined ? undefined : BigInt(chainText));
  if (chainId === undefined)
    return { fault: `invalid value '${text}' for X402_NETWORK: expected base, base-sepolia or the form eip155:8453` };
  const addressText = set.address ?? known?.asset.address;
  const name = set.name ?? known?.asset.name;
  const version = set.version ?? known?.asset.version;
  if (addressText === undefined || name === undefined || version === undefined)
    return {
      fault: `unknown X402_NETWORK '${text}': set X402_ASSET_ADDRESS, X402_ASSET_NAME and X402_ASSET_VERSION`,
    };
  const address = readAddress(addressText, "ethereum")?.address;
  if (address === undefined)
    return { fault: `invalid value '${addressText}' for X402_ASSET_ADDRESS: expected an Ethereum address` };
  const caip = `eip155:${chainId}`;
  const asset = { address, name, version, token: known?.token ?? "base-usdc" };
  return { chainId, name: caip, nameV1: known?.nameV1 ?? caip, asset };
}
