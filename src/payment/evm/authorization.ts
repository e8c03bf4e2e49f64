/**
 * Authorizations to move a coin, signed by its owner and executable by any sender: EIP-3009's calls and events.
 *
 * The contract marks an authorization as used, emits its event, and moves the coins, in this order. The next transfer
 * event after the use is therefore the authorized transfer, and no transfer belongs to two authorizations.
 * Source: EIP-3009; Circle's FiatTokenV2_2, which accepts a key's signature as v, r and s, and any signature as bytes.
 * @module
 */
import { keccak_256 as keccak256 } from "@noble/hashes/sha3.js";
import { ethereumAddress, ethereumSignatureSize, recoverSigner } from "../../arweave/signers/ethereum.ts";
import { isJsonArray, isJsonObject, type JsonValue } from "../../lib/json.ts";
import type { UserAddress } from "../addresses.ts";
import {
  joinBytes,
  readEvmAddress,
  readHash,
  readHexBytes,
  readQuantity,
  tailOfBytes,
  wordOfAddress,
  wordOfHash,
  wordOfNumber,
  wordSize,
  writeHexBytes,
} from "./evm-values.ts";

/** A one-time permission of a coin's owner. */
export type Authorization = Readonly<{
  /** The owner. */
  from: UserAddress;
  to: UserAddress;
  /** Smallest unit. */
  value: bigint;
  /** Unix seconds, both exclusive bounds of the block's time. */
  validAfter: bigint;
  validBefore: bigint;
  /** 32 bytes by the owner's choice, `0x` and lower case; an owner's nonce is used once. */
  nonce: string;
}>;

/** The end of an authorization: it moved the authorized amount, or not. */
type AuthorizationEnd = "moved" | "otherwise";

/** The first bytes of `keccak256("transferWithAuthorization(address,address,uint256,…,uint8,bytes32,bytes32)")`. */
const transferSelector = Uint8Array.of(0xe3, 0xee, 0x16, 0x0e);
/** The first bytes of `keccak256("transferWithAuthorization(address,address,uint256,…,bytes)")`. */
const bytesTransferSelector = Uint8Array.of(0xcf, 0x09, 0x29, 0x95);
/** The first bytes of `keccak256("authorizationState(address,bytes32)")`. */
const stateSelector = Uint8Array.of(0xe9, 0x4a, 0x01, 0x02);

/** `keccak256("AuthorizationUsed(address,bytes32)")`. */
const usedTopic = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
/** `keccak256("AuthorizationCanceled(address,bytes32)")`. */
const canceledTopic = "0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81";

/** Calldata that executes an authorization. @param signature - 65 bytes. */
export function writeTransferCall(authorization: Authorization, signature: Uint8Array): Uint8Array {
  // Contracts accept only 27 and 28; some wallets write the parity itself.
  const last = BigInt(signature[64] ?? 0);
  return joinBytes([
    transferSelector,
    ...wordsOf(authorization),
    wordOfNumber(last < 27n ? last + 27n : last),
    signature.subarray(0, 32),
    signature.subarray(32, 64),
  ]);
}

/** The same for a signature that the owner's contract checks. @param signature - Of any size. */
export function writeBytesTransferCall(authorization: Authorization, signature: Uint8Array): Uint8Array {
  const words = wordsOf(authorization);
  const tailAt = wordOfNumber(BigInt((words.length + 1) * wordSize));
  return joinBytes([bytesTransferSelector, ...words, tailAt, tailOfBytes(signature)]);
}

function wordsOf({ from, to, value, validAfter, validBefore, nonce }: Authorization): readonly Uint8Array[] {
  return [
    wordOfAddress(from),
    wordOfAddress(to),
    wordOfNumber(value),
    wordOfNumber(validAfter),
    wordOfNumber(validBefore),
    wordOfHash(nonce),
  ];
}

/** Calldata of a request whether a nonce was used; the result is a word, 0 or 1. */
export function writeStateCall({ from, nonce }: Pick<Authorization, "from" | "nonce">): Uint8Array {
  return joinBytes([stateSelector, wordOfAddress(from), wordOfHash(nonce)]);
}

/** Topics of the events at the end of an authorization. */
export function endTopics({ from, nonce }: Pick<Authorization, "from" | "nonce">): readonly JsonValue[] {
  return [[usedTopic, canceledTopic], writeHexBytes(wordOfAddress(from)), nonce];
}

/**
 * Reads the effect of a transaction on an authorization.
 *
 * @param logs - The logs of the successful transaction's receipt, in order.
 * @param contract - The coin's contract.
 * @returns `undefined` without an effect, or when the logs are invalid.
 */
export function readAuthorizationEnd(
  logs: JsonValue,
  contract: UserAddress,
  authorization: Authorization,
): AuthorizationEnd | undefined {
  if (!isJsonArray(logs)) return undefined;
  const own = logs.filter((log) => isJsonObject(log) && readEvmAddress(log["address"]) === contract);
  const at = own.findIndex((log) => isEndOf(log, authorization));
  if (at === -1) return undefined;
  const next = readTransferLogs(own.slice(at + 1, at + 2), contract)?.[0];
  const { from, to, value } = authorization;
  const isMoved = isUse(own[at]) && next?.from === from && next.to === to && next.amount === value && !next.isRemoved;
  return isMoved ? "moved" : "otherwise";
}

function isEndOf(log: JsonValue, { from, nonce }: Authorization): boolean {
  const [kind, owner, used] = topicsOf(log);
  return (
    (kind === usedTopic || kind === canceledTopic) && owner === writeHexBytes(wordOfAddress(from)) && used === nonce
  );
}

function isUse(log: JsonValue | undefined): boolean {
  return topicsOf(log)[0] === usedTopic;
}

function topicsOf(log: JsonValue | undefined): readonly (string | undefined)[] {
  const topics = isJsonObject(log) ? log["topics"] : undefined;
  return isJsonArray(topics) ? topics.map(readHash) : [];
}

// Hashing of typed data for EIP-3009's authorization.
//
// The domain binds a signature to a coin on a chain: the same authorization for another coin has another hash, and so
// another signer.
// Source: EIP-712; EIP-3009.

/** The EIP-712 domain of a coin. */
export type TypedDomain = Readonly<{
  /** The contract's `name()`. */
  name: string;
  version: string;
  chainId: bigint;
  contract: UserAddress;
}>;

const encoder = new TextEncoder();

/** `keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")`. */
const domainType = Uint8Array.fromHex("8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f");
/**
 * `keccak256` of "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256
 * validBefore,bytes32 nonce)", without the line break.
 */
const authorizationType = Uint8Array.fromHex("7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267");
const prefix = Uint8Array.of(0x19, 0x01);

/** The 32 bytes that the owner of the coins signs. */
export function authorizationHash(domain: TypedDomain, authorization: Authorization): Uint8Array {
  const content = keccak256(joinBytes([authorizationType, ...wordsOf(authorization)]));
  return keccak256(joinBytes([prefix, domainHash(domain), content]));
}

/**
 * Whether an authorization is signed with the key of the owner of the coins.
 *
 * Signatures of contracts are checked on the chain (`isSignedByWallet`).
 * @param signature - 65 bytes, r, s and v, with a low s; v is 27 or 28, or 0 or 1.
 */
export function isSignedByOwner(domain: TypedDomain, authorization: Authorization, signature: Uint8Array): boolean {
  if (signature.length !== ethereumSignatureSize) return false;
  const key = recoverSigner(authorizationHash(domain, authorization), signature);
  return typeof key !== "string" && ethereumAddress(key) === authorization.from;
}

function domainHash({ name, version, chainId, contract }: TypedDomain): Uint8Array {
  const texts = [keccak256(encoder.encode(name)), keccak256(encoder.encode(version))];
  return keccak256(joinBytes([domainType, ...texts, wordOfNumber(chainId), wordOfAddress(contract)]));
}

// ERC-20 transfers as calls and as logs.
// Source: EIP-20; the contract ABI specification (words of 32 bytes, big-endian, addresses at the right).

/** `keccak256("Transfer(address,address,uint256)")`. */
export const transferTopic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/** The first bytes of `keccak256("transfer(address,uint256)")`. */
const erc20TransferSelector = "a9059cbb";

/** The selector and two words. */
const transferCallSize = 4 + 2 * wordSize;

/** A call of `transfer`. */
type TransferCall = Readonly<{
  to: UserAddress;
  amount: bigint;
  /** Bytes after the arguments, which the contract ignores. */
  rest: Uint8Array;
}>;

/** A transfer event of a token's contract. */
export type TransferLog = Readonly<{
  transactionHash: string;
  from: UserAddress;
  to: UserAddress;
  amount: bigint;
  /** A reorg removed its block. */
  isRemoved: boolean;
}>;

/** Reads calldata as a call of `transfer`; `undefined` for any other call. */
export function readTransferCall(calldata: Uint8Array): TransferCall | undefined {
  if (calldata.length < transferCallSize || calldata.subarray(0, 4).toHex() !== erc20TransferSelector) return undefined;
  const to = addressOfWord(`0x${calldata.subarray(4, 4 + wordSize).toHex()}`);
  const amount = BigInt(`0x${calldata.subarray(4 + wordSize, transferCallSize).toHex()}`);
  return to === undefined ? undefined : { to, amount, rest: calldata.subarray(transferCallSize) };
}

/**
 * Reads the transfers among logs.
 *
 * @param contract - The token's contract, canonical; logs of other contracts are omitted.
 * @returns `undefined` when the value is not a list of logs.
 */
export function readTransferLogs(
  value: JsonValue | undefined,
  contract: UserAddress,
): readonly TransferLog[] | undefined {
  if (!isJsonArray(value)) return undefined;
  const logs = value.filter(isJsonObject);
  if (logs.length !== value.length) return undefined;
  return logs.flatMap((log) => {
    if (readEvmAddress(log["address"]) !== contract) return [];
    return readTransferLog(log) ?? [];
  });
}

/** An address as a topic or an argument. */
export function addressTopic(address: UserAddress): string {
  return `0x${"0".repeat(24)}${address.slice(2).toLowerCase()}`;
}

function readTransferLog(log: Readonly<Record<string, JsonValue>>): TransferLog | undefined {
  const topics = isJsonArray(log["topics"]) ? log["topics"] : [];
  // Other token standards use the same event with a third index and without data.
  if (topics.length !== 3 || topics[0] !== transferTopic) return undefined;
  const from = addressOfWord(topics[1]);
  const to = addressOfWord(topics[2]);
  const amount = readHexBytes(log["data"])?.length === wordSize ? readQuantity(log["data"]) : undefined;
  const transactionHash = readHash(log["transactionHash"]);
  if (from === undefined || to === undefined || amount === undefined || transactionHash === undefined) return undefined;
  return { transactionHash, from, to, amount, isRemoved: log["removed"] === true };
}

function addressOfWord(word: JsonValue | undefined): UserAddress | undefined {
  const text = readHash(word);
  return text?.startsWith(`0x${"0".repeat(24)}`) ? readEvmAddress(`0x${text.slice(26)}`) : undefined;
}
