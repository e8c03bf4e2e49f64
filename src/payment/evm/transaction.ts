/**
 * Transactions that are signed here: type 2, with a fee that follows the chain's.
 * Source: EIP-1559, EIP-2718.
 * @module
 */
import { keccak_256 as keccak256 } from "@noble/hashes/sha3.js";
import { secp256k1 } from "../../lib/secp256k1.ts";
import type { UserAddress } from "../addresses.ts";
import { type RlpValue, rlpNumber, writeRlp } from "./rlp.ts";
import { joinBytes, writeHexBytes } from "./words.ts";

/** A transaction that calls a contract. */
export type UnsignedTransaction = Readonly<{
  chainId: bigint;
  /** How many the sender has sent before. */
  nonce: bigint;
  /** The most that is paid for a unit of gas, the tip included. Wei. */
  feeMax: bigint;
  /** What of it may go to the block's maker. Wei. */
  tipMax: bigint;
  /** The most gas that it may take. */
  gasMax: bigint;
  to: UserAddress;
  data: Uint8Array;
}>;

/** A transaction as it is sent. */
export type SignedTransaction = Readonly<{
  /** `0x` and hex: for `eth_sendRawTransaction`. */
  raw: string;
  /** Its id on the chain, known before it is sent. */
  hash: string;
}>;

const typeByte = Uint8Array.of(2);

/** Signs a transaction; the same one has the same signature. @param privateKey - 32 bytes in [1, n). */
export function signTransaction(transaction: UnsignedTransaction, privateKey: Uint8Array): SignedTransaction {
  const { chainId, nonce, feeMax, tipMax, gasMax, to, data } = transaction;
  const fields: RlpValue[] = [
    ...[chainId, nonce, tipMax, feeMax, gasMax].map(rlpNumber),
    Uint8Array.fromHex(to.slice(2)),
    rlpNumber(0n), // no coins go with it
    data,
    [],
  ];
  const hash = keccak256(joinBytes([typeByte, writeRlp(fields)]));
  const { signature, recovery } = secp256k1.sign(hash, privateKey);
  const parts = [BigInt(recovery), numberOf(signature.subarray(0, 32)), numberOf(signature.subarray(32, 64))];
  const whole = joinBytes([typeByte, writeRlp([...fields, ...parts.map(rlpNumber)])]);
  return { raw: writeHexBytes(whole), hash: writeHexBytes(keccak256(whole)) };
}

function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${bytes.toHex()}`);
}
