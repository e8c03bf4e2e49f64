/**
 * Values of EVM JSON-RPC: quantities, hashes, addresses and bytes, all as hexadecimal text.
 * Source: https://ethereum.org/en/developers/docs/apis/json-rpc/#conventions.
 * @module
 */
import type { JsonValue } from "../../lib/json.ts";
import { readAddress, type UserAddress } from "../addresses.ts";

const quantityPattern = /^0x[0-9a-fA-F]{1,64}$/;
const hashPattern = /^0x[0-9a-fA-F]{64}$/;
const bytesPattern = /^0x(?:[0-9a-fA-F]{2})*$/;

/** Reads a whole number below 2^256. */
export function readQuantity(value: JsonValue | undefined): bigint | undefined {
  return typeof value === "string" && quantityPattern.test(value) ? BigInt(value) : undefined;
}

/** Reads a block's height, a safe integer. */
export function readHeight(value: JsonValue | undefined): number | undefined {
  if (typeof value !== "string" || !quantityPattern.test(value)) return undefined;
  const height = Number.parseInt(value, 16);
  return Number.isSafeInteger(height) ? height : undefined;
}

/** Writes a whole number, 0 or more. */
export function writeQuantity(value: bigint | number): string {
  return `0x${value.toString(16)}`;
}

/** Reads a hash of 32 bytes as lower-case text with `0x`. */
export function readHash(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" && hashPattern.test(value) ? value.toLowerCase() : undefined;
}

/** Reads an address of 20 bytes into its canonical text. */
export function readEvmAddress(value: JsonValue | undefined): UserAddress | undefined {
  // Servers write lower case; what they capitalise is no checksum.
  return typeof value === "string" ? readAddress(value.toLowerCase(), "ethereum")?.address : undefined;
}

/** Reads bytes; "0x" is none. */
export function readHexBytes(value: JsonValue | undefined): Uint8Array | undefined {
  if (typeof value !== "string" || !bytesPattern.test(value)) return undefined;
  return Uint8Array.fromHex(value.slice(2));
}
