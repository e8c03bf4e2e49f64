/**
 * Starts the key generation of a first `cairn dev` before the rest of the program is loaded.
 *
 * A key takes up to one second in another thread, and signing needs the key. Loading the program takes the main thread
 * 0.35 s, so both run at the same time. This file therefore imports little.
 * @module
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { dataFolderAt } from "../app/data-folder.ts";
import { beginRsaJwks, type MakeRsaJwk } from "../lib/rsa.ts";

/** File of the chain's RSA wallet in `devnet/`. */
const chainWalletFile = "wallet-rsa.json";

/** File of the wallet that posts bundles in `keys/`. */
const uploadWalletFile = "upload-wallet.json";

/**
 * Starts the generation of each key that the data folder lacks. An ephemeral folder lacks all keys.
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
