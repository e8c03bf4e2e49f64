/**
 * Typed data and what of it is signed, for the one structure that payments need: EIP-3009's authorization.
 *
 * The domain binds a signature to a coin on a chain: the same words signed for another coin have another hash, and so
 * another signer.
 * Source: EIP-712; EIP-3009.
 * @module
 */
import { keccak_256 as keccak256 } from "@noble/hashes/sha3.js";
import { ethereumAddress, ethereumSignatureSize, recoverSigner } from "../../arweave/signers/ethereum.ts";
import type { UserAddress } from "../addresses.ts";
import type { Authorization } from "./authorization.ts";
import { joinBytes, wordOfAddress, wordOfHash, wordOfNumber } from "./words.ts";

/** What the signatures of a coin are bound to. */
export type TypedDomain = Readonly<{
  /** As the contract names itself. */
  name: string;
  version: string;
  chainId: bigint;
  contract: UserAddress;
}>;

const encoder = new TextEncoder();

const domainType = keccak256(
  encoder.encode("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
);
const authorizationType = keccak256(
  encoder.encode(
    "TransferWithAuthorization(address from,address to,uint256 value," +
      "uint256 validAfter,uint256 validBefore,bytes32 nonce)",
  ),
);
const prefix = Uint8Array.of(0x19, 0x01);

/** The 32 bytes that the owner of the coins signs. */
export function authorizationHash(domain: TypedDomain, authorization: Authorization): Uint8Array {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const content = keccak256(
    joinBytes([
      authorizationType,
      wordOfAddress(from),
      wordOfAddress(to),
      wordOfNumber(value),
      wordOfNumber(validAfter),
      wordOfNumber(validBefore),
      wordOfHash(nonce),
    ]),
  );
  return keccak256(joinBytes([prefix, domainHash(domain), content]));
}

/**
 * Tells whether an authorization is signed with the key of the owner of the coins.
 *
 * Of signatures of contracts only the chain can tell (`isSignedByWallet`).
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
