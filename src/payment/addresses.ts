/**
 * Accounts' addresses and chains' transaction ids, each in its canonical text, and the names of tokens.
 *
 * Every address or transaction id is parsed here before it is stored or compared: two spellings of one payment must
 * never be two payments, and two spellings of one Ethereum or KYVE address never two accounts. The canonical text of a
 * native address is the given text: any 43 characters of base64url are one account.
 * Source: docs/compatibility.md (addresses); EIP-55, BIP-173.
 * @module
 */
import { ed25519 as curve } from "@noble/curves/ed25519.js";
import { isAddress, isId } from "../arweave/id.ts";
import { spellEthereumAddress } from "../arweave/signers/ethereum.ts";
import { assert } from "../lib/assert.ts";
import { decodeBase58, decodeBech32, encodeBech32 } from "../lib/base-encodings.ts";
import { stringSchema, type TextParser, textParser } from "../lib/value-schema.ts";

/** The canonical text of an address. Equal texts are the same account. */
export type UserAddress = string & { readonly __brand: "UserAddress" };

/** The format of an address. Chains with the same format share their accounts. */
export type AddressType = "native" | "ethereum" | "solana" | "ed25519" | "kyve";

/** An address and its format. */
export type TypedAddress = Readonly<{ address: UserAddress; type: AddressType }>;

/** A chain of payments; a transaction id is unique on its chain. */
export type Chain = "native" | "ethereum" | "polygon" | "base" | "solana" | "kyve";

/** One token: its chain, and its names, the canonical name first. */
export type TokenDetails = Readonly<{
  chain: Chain;
  /** Power of ten between the smallest unit and the whole one. */
  exponent: number;
  words: readonly string[];
}>;

/** The EVM chains, each with its coin and its USDC. The price rules may list further ERC-20 tokens. */
export const evmChains = {
  ethereum: { coin: "ethereum", usdc: "usdc" },
  polygon: { coin: "matic", usdc: "polygon-usdc" },
  base: { coin: "base-eth", usdc: "base-usdc" },
} as const satisfies Partial<Record<Chain, Readonly<{ coin: KnownToken; usdc: KnownToken }>>>;

export type EvmChainName = keyof typeof evmChains;

export const evmChainNames: readonly EvmChainName[] = Object.keys(evmChains).filter(isEvmChain);

/** An ERC-20 token that the price rules list: the chain and the token's own name. */
export type Erc20Token = `${EvmChainName}-${string}`;

const tokenTable = {
  native: { chain: "native", exponent: 12, words: ["native", "arweave"] },
  ario: { chain: "solana", exponent: 6, words: ["ario"] },
  ethereum: { chain: "ethereum", exponent: 18, words: ["ethereum"] },
  matic: { chain: "polygon", exponent: 18, words: ["matic", "pol"] },
  "base-eth": { chain: "base", exponent: 18, words: ["base-eth"] },
  solana: { chain: "solana", exponent: 9, words: ["solana", "ed25519"] },
  kyve: { chain: "kyve", exponent: 6, words: ["kyve"] },
  usdc: { chain: "ethereum", exponent: 6, words: ["usdc"] },
  "polygon-usdc": { chain: "polygon", exponent: 6, words: ["polygon-usdc"] },
  "base-usdc": { chain: "base", exponent: 6, words: ["base-usdc"] },
  "solana-usdc": { chain: "solana", exponent: 6, words: ["solana-usdc"] },
} as const satisfies Record<string, TokenDetails>;

/** A token that is known without a row of the price rules. */
export type KnownToken = keyof typeof tokenTable;

/** The canonical names of tokens. */
export type Token = KnownToken | Erc20Token;

/** Every known token. The settings decide which of them are accepted. */
export const tokens: Readonly<Record<KnownToken, TokenDetails>> = tokenTable;

/** The canonical word of every known token. */
export const tokenNames: readonly KnownToken[] = Object.keys(tokenTable).filter(isKnownToken);

const erc20Pattern = `(?:${evmChainNames.join("|")})-[a-z0-9]{1,16}`;
const erc20Shape = new RegExp(`^${erc20Pattern}$`);

const tokenOfWord: ReadonlyMap<string, KnownToken> = new Map(
  tokenNames.flatMap((name) => tokens[name].words.map((word) => [word, name])),
);

const addressTypesOfChain: Readonly<Record<Chain, readonly AddressType[]>> = {
  native: ["native"],
  ethereum: ["ethereum"],
  polygon: ["ethereum"],
  base: ["ethereum"],
  solana: ["solana"],
  kyve: ["kyve"],
};

/** The detections for a text of unknown type, in this order; `ed25519` keys have the format of Solana's. */
const detectedTypes: readonly ((text: string) => AddressType | undefined)[] = [
  // A checksum decides first: a KYVE address, also a mistyped one, has the shape of a native address.
  (text) => fitting(text, "ethereum"),
  (text) => fitting(text, "kyve"),
  (text) => (isId(text) && !kyveShape.test(text) ? "native" : undefined),
  // Solana keys of 43 characters come before native addresses that no key hashes to.
  (text) => fitting(text, "solana"),
  (text) => (isAddress(text) && !kyveShape.test(text) ? "native" : undefined),
];

/** Longer texts are not addresses of any type, and are not parsed. */
const addressLengthMax = 64;

const ethereumPattern = /^0x[0-9a-fA-F]{40}$/;
const ethereumIdPattern = /^0x[0-9a-fA-F]{64}$/;
const kyveShape = /^kyve1[a-z0-9]{38}$/i;
const kyveIdPattern = /^[0-9a-fA-F]{64}$/;
const kyveAddressSize = 20;
const solanaKeySize = 32;
const solanaIdSize = 64;

/** Base58 of 64 bytes takes at most this many characters. */
const solanaIdLengthMax = 88;

/**
 * Parses an address.
 *
 * @param text - In any spelling and length.
 * @param type - The expected type; any type by default. A text may be both a native and a Solana address: the account
 *   is the same, and `type` is native.
 * @returns The canonical text: EIP-55 for Ethereum, lower case for KYVE, unchanged for the others. `undefined` for an
 *   invalid address: a wrong checksum, a Solana address off the curve.
 */
export function readAddress(text: string, type?: AddressType): TypedAddress | undefined {
  if (text.length > addressLengthMax) return undefined;
  const found = type ?? firstOf(detectedTypes, text);
  const address = found === undefined ? undefined : canonicalAddress(text, found);
  return found === undefined || address === undefined ? undefined : { address: address as UserAddress, type: found };
}

/** Accounts, by the address of any chain. */
export const accountText: TextParser<UserAddress> = textParser(
  stringSchema({
    maxLength: addressLengthMax,
    description: "An address of any chain; a Solana address must be a point of the curve.",
  }),
  (text) => readAddress(text)?.address,
);

/**
 * Parses an address whose type is given by a name on the wire: a token's name, or `ed25519`.
 *
 * @returns `undefined` also for an unknown name.
 */
export function readAddressOfWord(text: string, word: string): TypedAddress | undefined {
  const types = addressTypesOf(word) ?? [];
  return types.map((type) => readAddress(text, type)).find((address) => address !== undefined);
}

/** The address types of a name on the wire; `undefined` for an unknown name. */
export function addressTypesOf(word: string): readonly AddressType[] | undefined {
  if (word === "ed25519") return ["ed25519"];
  // ARIO moved from one chain to the other; published clients send addresses of either.
  if (word === "ario") return ["native", "solana"];
  const token = readToken(word);
  return token === undefined ? undefined : addressTypesOfChain[chainOf(token)];
}

/** The token of a name on the wire, aliases included; names are case-sensitive. */
export function readToken(word: string): Token | undefined {
  return tokenOfWord.get(word) ?? (erc20Shape.test(word) ? (word as Erc20Token) : undefined);
}

/** The chain of a token. */
export function chainOf(token: Token): Chain {
  if (isKnownToken(token)) return tokens[token].chain;
  const chain = evmChainNames.find((each) => token.startsWith(`${each}-`));
  assert(chain !== undefined, "the name of a listed token begins with its chain");
  return chain;
}

export function isEvmChain(chain: string): chain is EvmChainName {
  return Object.hasOwn(evmChains, chain);
}

/** Every name of a token, the canonical name first. */
export function wordsOf(token: Token): readonly string[] {
  return isKnownToken(token) ? tokens[token].words : [token];
}

/** Whether a token is known without a row of the price rules. */
export function isKnownToken(text: string): text is KnownToken {
  return Object.hasOwn(tokenTable, text);
}

/** Every name of a known token. */
export const tokenWords: readonly string[] = [...tokenOfWord.keys()];

/** Tokens, by any of their names. */
export const tokenText: TextParser<Token> = textParser(
  stringSchema({
    pattern: `^(?:${tokenWords.join("|")}|${erc20Pattern})$`,
    description: "A known token, or an ERC-20 token that the price rules list.",
  }),
  readToken,
);

/**
 * Parses a transaction id of a chain.
 *
 * @returns The canonical text, which is unique on the chain: lower case for the EVM chains, upper case for KYVE.
 *   `undefined` for an invalid id.
 */
export function readTransactionId(text: string, chain: Chain): string | undefined {
  switch (chain) {
    case "native":
      return isId(text) ? text : undefined;
    case "ethereum":
    case "polygon":
    case "base":
      return ethereumIdPattern.test(text) ? text.toLowerCase() : undefined;
    case "solana":
      return text.length <= solanaIdLengthMax && decodeBase58(text)?.length === solanaIdSize ? text : undefined;
    case "kyve":
      return kyveIdPattern.test(text) ? text.toUpperCase() : undefined;
  }
}

function firstOf(
  detections: readonly ((text: string) => AddressType | undefined)[],
  text: string,
): AddressType | undefined {
  for (const detect of detections) {
    const type = detect(text);
    if (type !== undefined) return type;
  }
  return undefined;
}

function fitting(text: string, type: AddressType): AddressType | undefined {
  return canonicalAddress(text, type) === undefined ? undefined : type;
}

function canonicalAddress(text: string, type: AddressType): string | undefined {
  switch (type) {
    case "native":
      return isAddress(text) ? text : undefined;
    case "ethereum":
      return ethereumPattern.test(text) ? canonicalEthereum(text) : undefined;
    case "kyve":
      return canonicalKyve(text);
    case "solana":
    case "ed25519":
      return isEd25519Key(decodeBase58(text)) ? text : undefined;
  }
}

/** A text in one case has no checksum; mixed cases must match EIP-55. */
function canonicalEthereum(text: string): string | undefined {
  const digits = text.slice(2);
  const canonical = spellEthereumAddress(Uint8Array.fromHex(digits));
  const hasOneCase = digits === digits.toLowerCase() || digits === digits.toUpperCase();
  return hasOneCase || canonical === text ? canonical : undefined;
}

function canonicalKyve(text: string): string | undefined {
  const bytes = decodeBech32("kyve", text);
  return bytes?.length === kyveAddressSize ? encodeBech32("kyve", bytes) : undefined;
}

/** Whether a private key can exist: a point of the curve that is not of small order, for which anyone can sign. */
function isEd25519Key(bytes: Uint8Array | undefined): boolean {
  if (bytes?.length !== solanaKeySize) return false;
  try {
    return !curve.Point.fromBytes(bytes).isSmallOrder();
  } catch {
    // Bytes off the curve throw: program addresses are off the curve on purpose.
    return false;
  }
}
