/**
 * Wallets that sign uploads: the one of the browser, and under `cairn dev` the funded test wallet.
 * @module
 */
import { connectInjectedWallet, findTestWallet } from "../wallets.ts";
import { readSignedItem, type SignedItem, signItem, type Tag } from "./data-item.ts";

export type UploadWallet = Readonly<{
  /** For example "Test wallet". */
  name: string;
  address: string;
  sign: (data: Blob, tags: readonly Tag[]) => Promise<SignedItem>;
}>;

/** Connects the wallet of the browser. Rejects when its user declines. */
export async function connectUploadWallet(): Promise<UploadWallet> {
  const wallet = await connectInjectedWallet(["ACCESS_ADDRESS", "ACCESS_PUBLIC_KEY", "SIGN_TRANSACTION"]);
  return {
    name: "Browser wallet",
    address: await wallet.getActiveAddress(),
    sign: async (data, tags) => {
      const signed = await wallet.signDataItem({ data: new Uint8Array(await data.arrayBuffer()), tags });
      return await readSignedItem(new Uint8Array(signed));
    },
  };
}

/** The test wallet of `cairn dev`; undefined elsewhere. */
export async function findUploadTestWallet(signal: AbortSignal): Promise<UploadWallet | undefined> {
  const wallet = await findTestWallet("upload", signal);
  return (
    wallet && {
      name: "Test wallet",
      address: wallet.address,
      sign: (data, tags) => signItem(data, tags, wallet),
    }
  );
}
