/**
 * How senders name the account that is to be credited in place of their own.
 *
 * The chain's own: a tag. EVM: text as calldata, after the arguments of an ERC-20 transfer. Solana: a memo.
 * Source: docs/reference/payment.md#destinations.
 * @module
 */
import { readAddress, type TypedAddress } from "../addresses.ts";
import type { TokenTransfer } from "./sight.ts";

/** The tag of a native payment. */
export const destinationTag = "Turbo-Credit-Destination-Address";

const destinationText = /^turboCreditDestinationAddress=([A-Za-z0-9_-]{1,64})\0*$/;

/** Longer texts name nobody. Bytes. */
const textSizeMax = 256;

const decoder = new TextDecoder("utf-8", { fatal: true });

/** The address that a memo names, if it names one. */
export function destinationInText(text: string): string | undefined {
  return destinationText.exec(text)?.[1];
}

/** The address that calldata names, if it is text that names one. */
export function destinationInBytes(bytes: Uint8Array): string | undefined {
  if (bytes.length === 0 || bytes.length > textSizeMax) return undefined;
  try {
    return destinationInText(decoder.decode(bytes));
  } catch {
    return undefined; // Calldata need not be text.
  }
}

/** The account to credit: the one that is named, where that is an address, else the sender's. */
export function creditedAccount(
  { sender, destination }: TokenTransfer,
  senderType: TypedAddress["type"],
): TypedAddress {
  const named = destination === undefined ? undefined : readAddress(destination);
  return named ?? { address: sender, type: senderType };
}
