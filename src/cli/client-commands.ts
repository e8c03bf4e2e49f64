/**
 * The commands that use services as anybody does, over HTTP: their arguments, and what stands where none is given.
 *
 * Beside a running `cairn dev` nothing need be named: its ports are asked, and its funded wallet signs.
 * @module
 */
import { defineCommand } from "citty";
import type { Config } from "../config/settings.ts";
import type { Environment } from "./environment.ts";
import { stateFolderOf } from "./stored-receipts.ts";

/** Reads the settings and the environment when a command is run. */
export type ReadSettings = Readonly<{ config: () => Config; environment: () => Environment }>;

const walletArgument = {
  type: "string",
  description:
    "Key file: an Arweave or secp256k1 JSON Web Key, an Ethereum or a Solana key; unset is that of cairn dev",
  valueHint: "file",
} as const;
const jsonArgument = { type: "boolean", description: "Print JSON instead of text" } as const;
const addressArgument = {
  type: "positional",
  description: "Whose, if not the wallet's",
  required: false,
} as const;

/** `cairn upload`. */
export function uploadCommand({ config, environment }: ReadSettings) {
  return defineCommand({
    meta: { name: "upload", description: "Upload a file, or a folder as a site; run again, it goes on" },
    args: {
      path: { type: "positional", description: "File or folder", required: true },
      wallet: walletArgument,
      to: toArgument("upload", "UPLOAD_PORT"),
      index: { type: "string", description: "File that the folder's address opens", valueHint: "path" },
      fallback: { type: "string", description: "File that unknown paths open", valueHint: "path" },
      tags: { type: "string", description: "Tags of every item: name=value,…", valueHint: "tags" },
      hidden: { type: "boolean", description: "Take files along whose names begin with a dot" },
      "follow-links": { type: "boolean", description: "Take along what links outside of the folder lead to" },
      yes: { type: "boolean", description: "Do not ask before many files, or a private key, are uploaded" },
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const { UPLOAD_PORT, DATA_DIR } = config();
      const { runUpload } = await import("./upload/upload.ts");
      const { path, wallet, index, fallback, tags } = args;
      const given = { path, wallet, index, fallback, tags, hidden: args.hidden === true };
      const asked = { followLinks: args["follow-links"] === true, yes: args.yes === true };
      const to = args.to ?? localUrl(UPLOAD_PORT);
      const stateFolder = stateFolderOf(environment());
      const json = args.json === true;
      return runUpload({ ...given, ...asked, to, json, dataDir: DATA_DIR, stateFolder });
    },
  });
}

/** `cairn balance`. */
export function balanceCommand({ config }: ReadSettings) {
  return defineCommand({
    meta: { name: "balance", description: "Tell the credits of a wallet or an address" },
    args: {
      address: addressArgument,
      wallet: walletArgument,
      to: toArgument("payment", "PAYMENT_PORT"),
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const { PAYMENT_PORT, DATA_DIR } = config();
      const { runBalance } = await import("./balance.ts");
      const { address, wallet } = args;
      const to = args.to ?? localUrl(PAYMENT_PORT);
      return runBalance({ address, wallet, to, json: args.json === true, dataDir: DATA_DIR });
    },
  });
}

/** `cairn topup`. */
export function topUpCommand({ config }: ReadSettings) {
  return defineCommand({
    meta: {
      name: "topup",
      description: "Buy credits by card: print the page to pay on, wait for the credits",
    },
    args: {
      amount: { type: "positional", description: "How much, as in 10 or 10.50", required: true },
      currency: { type: "positional", description: "Of which currency, as in usd", required: true },
      address: addressArgument,
      wallet: walletArgument,
      to: toArgument("payment", "PAYMENT_PORT"),
      wait: { type: "string", description: "Wait so long for the credits; 0 does not", valueHint: "seconds" },
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const { PAYMENT_PORT, DATA_DIR } = config();
      const { runTopUp } = await import("./topup.ts");
      const { amount, currency, address, wallet, wait } = args;
      const to = args.to ?? localUrl(PAYMENT_PORT);
      return runTopUp({
        amount,
        currency,
        address,
        wallet,
        wait,
        to,
        json: args.json === true,
        dataDir: DATA_DIR,
      });
    },
  });
}

/** `cairn receipt`. */
export function receiptCommand({ environment }: Pick<ReadSettings, "environment">) {
  return defineCommand({
    meta: { name: "receipt", description: "Check that receipts of uploads are signed: cairn receipt verify" },
    args: {
      action: { type: "positional", description: "verify", required: true },
      file: {
        type: "positional",
        description: "File with a receipt, or with what `cairn upload --json` printed; - reads a pipe; or an item's id",
        required: true,
      },
      signer: {
        type: "string",
        description: "Address of the wallet that must have signed",
        valueHint: "address",
      },
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const { runReceipt } = await import("./receipt.ts");
      const { action, file, signer } = args;
      const stateFolder = stateFolderOf(environment());
      return runReceipt({ action, file, signer, json: args.json === true, stateFolder });
    },
  });
}

function toArgument(service: string, port: string) {
  return {
    type: "string",
    description: `The ${service} service; unset is this machine's, at ${port}`,
    valueHint: "url",
  } as const;
}

/** A service of this machine. */
export function localUrl(port: number): string {
  return `http://localhost:${port}`;
}
