/**
 * Receipts checked with node's crypto alone, by no path of the program.
 *
 * Source: docs/reference/formats.md#receipts: RSA-PSS with SHA-256 and a salt of any length over the deep hash of
 * ["Bundlr", version, id, deadline height, timestamp], each as UTF-8.
 * @module
 */
import { constants, createHash, createPublicKey, verify } from "node:crypto";

/** A receipt as it is sent. */
export type WireReceipt = Readonly<{
  id: string;
  timestamp: number;
  winc: string;
  version: string;
  deadlineHeight: number;
  dataCaches: readonly string[];
  fastFinalityIndexes: readonly string[];
  public: string;
  signature: string;
  owner: string;
}>;

/** Whether a receipt is signed by the key that it names. */
export function isSigned(receipt: WireReceipt): boolean {
  const { version, id, deadlineHeight, timestamp } = receipt;
  const texts = ["Bundlr", version, id, String(deadlineHeight), String(timestamp)];
  const key = createPublicKey({ key: { kty: "RSA", n: receipt.public, e: "AQAB" }, format: "jwk" });
  const padding = constants.RSA_PKCS1_PSS_PADDING;
  const options = { key, padding, saltLength: constants.RSA_PSS_SALTLEN_AUTO };
  return verify("sha256", listHash(texts), options, Buffer.from(receipt.signature, "base64url"));
}

/** The address of the key that signed. */
export function signerOf(receipt: WireReceipt): string {
  return createHash("sha256").update(Buffer.from(receipt.public, "base64url")).digest("base64url");
}

/** The deep hash of a list of texts. */
function listHash(texts: readonly string[]): Buffer {
  let running = sha384(`list${texts.length}`);
  for (const text of texts) {
    const bytes = Buffer.from(text, "utf8");
    const blob = sha384(Buffer.concat([sha384(`blob${bytes.length}`), sha384(bytes)]));
    running = sha384(Buffer.concat([running, blob]));
  }
  return running;
}

function sha384(bytes: string | Buffer): Buffer {
  return createHash("sha384").update(bytes).digest();
}
