/**
 * The keys that a first `cairn dev` makes, begun before the rest of the program is loaded.
 *
 * A key takes up to a second of a processor, and nothing can be signed before. Loading the program takes the main
 * thread 0.35 s: the two go side by side. This file therefore imports little.
 * @module
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { dataFolderAt } from "../app/data-folder.ts";
import { beginRsaJwks, type MakeRsaJwk } from "../lib/rsa.ts";

/** The file of the chain's RSA wallet, below `devnet/`. */
const chainWalletFile = "wallet-rsa.json";

/** The file of the wallet that posts bundles, below `keys/`. */
const uploadWalletFile = "upload-wallet.json";

/**
 * Begins to make each key that a folder does not have yet.
 *
 * @param settings - An ephemeral folder is new, whatever `DATA_DIR` has.
 */
export function beginDevKeys(
  config: Readonly<{ DATA_DIR: string; WALLET_FILE?: string | undefined }>,
  { ephemeral }: Readonly<{ ephemeral: boolean }>,
): MakeRsaJwk {
  const { devnet, keys } = dataFolderAt(config.DATA_DIR);
  const files = [join(devnet, chainWalletFile)];
  if (config.WALLET_FILE === undefined) files.push(join(keys, uploadWalletFile));
  return beginRsaJwks(files.filter((file) => ephemeral || !existsSync(file)).length);
}
