/**
 * Signature type 101: the same as type 3, except that addresses are KYVE's.
 * Source: Cosmos SDK (address = RIPEMD-160 of SHA-256 of the compressed key).
 * @module
 */
import { ripemd160 } from "@noble/hashes/legacy.js";
import { encodeBech32 } from "../../lib/base-encodings.ts";
import { sha256 } from "../../lib/hash.ts";
import { compressPoint } from "../../lib/secp256k1.ts";
import { ethereumOwnerSize, ethereumSignatureSize, recoveryByteEncodings, verifyEthereum } from "./ethereum.ts";
import type { SignatureScheme } from "./scheme.ts";

/** KYVE keys as owner: 04, x, y. */
export const kyve: SignatureScheme = {
  type: 101,
  name: "kyve",
  signatureSize: ethereumSignatureSize,
  ownerSize: ethereumOwnerSize,
  encodings: recoveryByteEncodings,
  verify: verifyEthereum,
  nativeAddress: kyveAddress,
};

function kyveAddress(owner: Uint8Array): string {
  return encodeBech32("kyve", ripemd160(sha256(compressPoint(owner))));
}
