/**
 * The account of who signed a data item: the address that its signer's own chain knows it by.
 * Source: reference/upload.md §3 ("native address").
 * @module
 */
import { signatureLayout } from "../arweave/signature.ts";
import { Failure } from "../failures.ts";
import { readAddress, type UserAddress } from "../payment/addresses.ts";

/**
 * Tells whose item it is. Whoever charges for it must have checked its signature.
 *
 * @throws Failure `upload_refused` for an owner that is no account: a key that is on no curve.
 */
export function accountOf(signatureType: number, owner: Uint8Array): UserAddress {
  const address = readAddress(signatureLayout(signatureType)?.nativeAddress(owner) ?? "");
  if (address === undefined)
    throw new Failure("upload_refused", { reason: "Invalid Data Item! its owner is no account" });
  return address.address;
}
