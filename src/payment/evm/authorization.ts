/**
 * Authorizations to move a coin, signed by its owner and carried out by anybody: EIP-3009's calls and events.
 *
 * The contract marks an authorization as used, tells of it, and moves the coins, in this order: so what it tells of
 * next after the use is the transfer that was authorized, and no transfer is two authorizations'.
 * Source: EIP-3009; Circle's FiatTokenV2_2, which takes a key's signatures as v, r and s, and any as bytes.
 * @module
 */
import { isJsonArray, isJsonObject, type JsonValue } from "../../lib/json.ts";
import type { UserAddress } from "../addresses.ts";
import { readTransferLogs } from "./erc20.ts";
import { readEvmAddress, readHash } from "./values.ts";
import { joinBytes, tailOfBytes, wordOfAddress, wordOfHash, wordOfNumber, wordSize, writeHexBytes } from "./words.ts";

/** What an owner of coins allows, once. */
export type Authorization = Readonly<{
  /** The owner. */
  from: UserAddress;
  to: UserAddress;
  /** Smallest unit. */
  value: bigint;
  /** Unix seconds, both exclusive: the block's time lies between them. */
  validAfter: bigint;
  validBefore: bigint;
  /** 32 bytes by the owner's choice, `0x` and lower case; an owner's nonce is used once. */
  nonce: string;
}>;

/** What became of an authorization that can no longer be used: it moved what it said, or anything else. */
export type AuthorizationEnd = "moved" | "otherwise";

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

/** Calldata that carries an authorization out. @param signature - 65 bytes. */
export function writeTransferCall(authorization: Authorization, signature: Uint8Array): Uint8Array {
  // Contracts take 27 and 28 alone; some wallets write the parity itself.
  const last = BigInt(signature[64] ?? 0);
  return joinBytes([
    transferSelector,
    ...wordsOf(authorization),
    wordOfNumber(last < 27n ? last + 27n : last),
    signature.subarray(0, 32),
    signature.subarray(32, 64),
  ]);
}

/** The same for a signature that the owner's contract checks. @param signature - As long as the contract wants. */
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

/** Calldata that asks whether a nonce was used; the answer is a word, 0 or 1. */
export function writeStateCall({ from, nonce }: Pick<Authorization, "from" | "nonce">): Uint8Array {
  return joinBytes([stateSelector, wordOfAddress(from), wordOfHash(nonce)]);
}

/** Topics of the events that tell of the end of an authorization. */
export function endTopics({ from, nonce }: Pick<Authorization, "from" | "nonce">): readonly JsonValue[] {
  return [[usedTopic, canceledTopic], writeHexBytes(wordOfAddress(from)), nonce];
}

/**
 * Reads what a transaction did with an authorization.
 *
 * @param logs - Of the transaction's receipt, in order; it was carried out.
 * @param contract - The coin's.
 * @returns `undefined` when it did nothing with it, or its logs cannot be read.
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
