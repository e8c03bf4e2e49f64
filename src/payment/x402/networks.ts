/**
 * The chains and dollars that x402 payments are made in, with what their signatures are bound to.
 *
 * Source: CAIP-2 (names of chains); Circle's list of USDC contracts; each contract's own `name()` and `version()`,
 * which are what its signatures say.
 * @module
 */
import { readAddress, type Token, type UserAddress } from "../addresses.ts";

/** A coin, as its signatures name it (EIP-712). */
export type X402Asset = Readonly<{
  /** The contract, canonical. */
  address: UserAddress;
  name: string;
  version: string;
  /** By whose price it is sold. */
  token: Token;
}>;

/** A chain and the coin that is taken on it. */
export type X402Network = Readonly<{
  chainId: bigint;
  /** CAIP-2: `eip155:8453`. What version 2 says, and what the ledger keeps. */
  name: string;
  /** What version 1 says: `base`; the CAIP-2 name where it has none. */
  nameV1: string;
  asset: X402Asset;
}>;

/** What an operator may set in the place of the known coin. */
export type AssetSettings = Readonly<{
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
 * Reads a network.
 *
 * @param text - A name of version 1, or a CAIP-2 name of an EVM chain.
 * @param set - Takes the place of what is known of the network's coin; an unknown network needs all three.
 * @returns The network, or what is wrong with it.
 */
export function readX402Network(text: string, set: AssetSettings): X402Network | Readonly<{ fault: string }> {
  const chainText = caipPattern.exec(text)?.[1];
  const known = knownNetworks.find(({ chainId, nameV1 }) => nameV1 === text || String(chainId) === chainText);
  const chainId = known?.chainId ?? (chainText === undefined ? undefined : BigInt(chainText));
  if (chainId === undefined) return { fault: 'X402_NETWORK must be "base", "base-sepolia" or like "eip155:8453"' };
  const addressText = set.address ?? known?.asset.address;
  const name = set.name ?? known?.asset.name;
  const version = set.version ?? known?.asset.version;
  if (addressText === undefined || name === undefined || version === undefined)
    return {
      fault: "X402_NETWORK is not known: set X402_ASSET_ADDRESS, X402_ASSET_NAME, X402_ASSET_VERSION",
    };
  const address = readAddress(addressText, "ethereum")?.address;
  if (address === undefined) return { fault: "X402_ASSET_ADDRESS must be an address of ethereum" };
  const caip = `eip155:${chainId}`;
  const asset = { address, name, version, token: known?.token ?? "base-usdc" };
  return { chainId, name: caip, nameV1: known?.nameV1 ?? caip, asset };
}
