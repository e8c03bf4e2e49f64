/**
 * The account of who signed a data item: the address that its signer's own chain knows it by.
 * Source: docs/reference/formats.md#data-items; docs/reference/upload.md#posting-an-item.
 * @module
 */
import { addressOf } from "../../arweave/id.ts";
import { signatureLayout } from "../../arweave/signature.ts";
import { ethereum } from "../../arweave/signers/ethereum.ts";
import { kyve } from "../../arweave/signers/kyve.ts";
import { Failure } from "../../failures.ts";
import { readAddress, type Token, type UserAddress } from "../../payment/addresses.ts";

/**
 * Tells whose item it is. Whoever charges for it must have checked its signature.
 *
 * @param token - The one by whose name the item was sent: an Ethereum key that came as KYVE's pays with that account.
 * @throws Failure `upload_rejected` for an owner that is no account: a key that is on no curve.
 */
export function accountOf(signatureType: number, owner: Uint8Array, token?: Token): UserAddress {
  const isKyve = token === "kyve" && signatureType === ethereum.type;
  const scheme = isKyve ? kyve : signatureLayout(signatureType);
  const address = readAddress(scheme?.nativeAddress(owner) ?? "");
  if (address === undefined)
    throw new Failure("upload_rejected", { reason: "Invalid Data Item! its owner is no account" });
  return address.address;
}

/**
 * Every name of who signed an item, canonical: under whichever an operator has listed it, it is meant.
 *
 * @param account - What `accountOf` told.
 */
export function namesOf(signatureType: number, owner: Uint8Array, account: UserAddress): readonly string[] {
  const names = [account, addressOf(owner)];
  const hasTwoChains = signatureType === ethereum.type || signatureType === kyve.type;
  return hasTwoChains ? [...names, ethereum.nativeAddress(owner), kyve.nativeAddress(owner)] : names;
}
