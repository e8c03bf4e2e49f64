/**
 * Authorizations to move a coin, signed by its owner and carried out by anybody: EIP-3009.
 * @module
 */
import type { UserAddress } from "../addresses.ts";

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
