/**
 * The signers of @dha-team/arbundles, one of every way of signing that it has and that needs no browser.
 * @module
 */
import { ed25519KeyPair } from "../../src/arweave/signers/ed25519.ts";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import { encodeBase58 } from "../../src/lib/base-encodings.ts";
import { rsaKeys } from "../support/rsa-keys.ts";
import { signers, testKey } from "../support/signers.ts";

/** The library. */
export type Library = typeof import("@dha-team/arbundles");

/** Each of the library's signers that needs no browser: its type, and the signer. */
export function librarySigners(
  library: Library,
): Readonly<Record<string, () => readonly [number, InstanceType<Library["Signer"]>]>> {
  const hex = (value: number) => Buffer.from(testKey(value)).toString("hex");
  const pair = ed25519KeyPair(testKey(5));
  const base58 = encodeBase58(Buffer.concat([testKey(5), pair.publicKey]));
  const publicHex = `0x${pair.publicKey.toHex()}`;
  return {
    ArweaveSigner: () => [1, new library.ArweaveSigner(rsaKeys["4096"])],
    SolanaSigner: () => [2, new library.SolanaSigner(base58)],
    NearSigner: () => [2, new library.NearSigner(`ed25519:${base58}`)],
    AptosSigner: () => [2, new library.AptosSigner(`0x${hex(5)}`, publicHex)],
    EthereumSigner: () => [3, new library.EthereumSigner(hex(3))],
    PolygonSigner: () => [3, new library.PolygonSigner(hex(3))],
    HexSolanaSigner: () => [4, new library.HexSolanaSigner(base58)],
    InjectedAptosSigner: () => [5, new library.InjectedAptosSigner(aptosWallet(pair), Buffer.from(pair.publicKey))],
    MultiSignatureAptosSigner: () => [6, multiSigner(library)],
    TypedEthereumSigner: () => [7, new library.TypedEthereumSigner(hex(9))],
    KyveSigner: () => [101, new library.KyveSigner(hex(10))],
  };
}

/** What a browser's Aptos wallet does when it is asked to sign. */
function aptosWallet(pair: ReturnType<typeof ed25519KeyPair>) {
  return {
    signMessage: async ({ message, nonce }: { message: string; nonce: string }) => {
      const text = new TextEncoder().encode(`APTOS\nmessage: ${message}\nnonce: ${nonce}`);
      return { signature: pair.sign(text).toHex() };
    },
  };
}

/** Three keys of which two must sign, and the first and the third do. */
function multiSigner(library: Library) {
  const ours: Signer | undefined = signers.find(({ scheme }) => scheme.type === 6);
  const pairs = [testKey(6), testKey(8)].map(ed25519KeyPair);
  const collect = async (message: Uint8Array) => ({
    signatures: pairs.map((pair) => Buffer.from(pair.sign(message))),
    bitmap: [0, 2],
  });
  return new library.MultiSignatureAptosSigner(Buffer.from(ours?.owner ?? []), collect);
}
