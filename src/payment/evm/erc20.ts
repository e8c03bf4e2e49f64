/**
 * ERC-20 transfers as calls and as logs.
 * Source: EIP-20; the contract ABI specification (words of 32 bytes, big-endian, addresses at the right).
 * @module
 */
import { isJsonArray, isJsonObject, type JsonValue } from "../../lib/json.ts";
import type { UserAddress } from "../addresses.ts";
import { readEvmAddress, readHash, readHexBytes, readQuantity } from "./values.ts";

/** `keccak256("Transfer(address,address,uint256)")`. */
export const transferTopic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/** The first bytes of `keccak256("transfer(address,uint256)")`. */
const transferSelector = "a9059cbb";

const wordSize = 32;
/** The selector and two words. */
const transferCallSize = 4 + 2 * wordSize;

/** A call of `transfer`. */
export type TransferCall = Readonly<{
  to: UserAddress;
  amount: bigint;
  /** Bytes after the arguments, which the contract does not read. */
  rest: Uint8Array;
}>;

/** What a token's contract says that it moved. */
export type TransferLog = Readonly<{
  transactionHash: string;
  from: UserAddress;
  to: UserAddress;
  amount: bigint;
  /** The block it stood in was taken back. */
  isRemoved: boolean;
}>;

/** Reads calldata as a call of `transfer`; `undefined` for any other call. */
export function readTransferCall(calldata: Uint8Array): TransferCall | undefined {
  if (calldata.length < transferCallSize || calldata.subarray(0, 4).toHex() !== transferSelector) return undefined;
  const to = addressOfWord(`0x${calldata.subarray(4, 4 + wordSize).toHex()}`);
  const amount = BigInt(`0x${calldata.subarray(4 + wordSize, transferCallSize).toHex()}`);
  return to === undefined ? undefined : { to, amount, rest: calldata.subarray(transferCallSize) };
}

/**
 * Reads the transfers among logs.
 *
 * @param contract - The token's contract, canonical; logs of others are left out.
 * @returns `undefined` when the value is no list of logs.
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
export function wordOfAddress(address: UserAddress): string {
  return `0x${"0".repeat(24)}${address.slice(2).toLowerCase()}`;
}

function readTransferLog(log: Readonly<Record<string, JsonValue>>): TransferLog | undefined {
  const topics = isJsonArray(log["topics"]) ? log["topics"] : [];
  // Tokens of other kinds use the same event with a third index; then nothing is in the data.
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
