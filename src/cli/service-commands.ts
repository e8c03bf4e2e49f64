/**
 * The commands of clients of the upload and payment services: arguments and descriptions.
 *
 * Without options they use a running `cairn dev`: its ports and its funded wallet.
 * @module
 */
import { defineCommand } from "citty";
import type { Config } from "../config/settings.ts";
import { type Environment, stateFolderOf } from "./environment.ts";

/** Reads settings and environment when a command runs. */
export type ReadSettings = Readonly<{ config: () => Config; environment: () => Environment }>;

export const jsonArgument = { type: "boolean", description: "Print JSON instead of text" } as const;

export const walletArgument = {
  type: "string",
  description:
    "Key file: an Arweave or secp256k1 JSON Web Key, an Ethereum or a Solana key; default: the wallet of cairn dev",
  valueHint: "file",
} as const;

const addressArgument = {
  type: "positional",
  description: "Address of the account; default: the wallet",
  required: false,
} as const;

/** All values of an option that may be repeated: the parser has only the last. @param words - After the command. */
function valuesOf(option: string, words: readonly string[]): string[] {
  const end = words.indexOf("--");
  const options = end === -1 ? words : words.slice(0, end);
  return options.flatMap((word, index) => {
    if (word.startsWith(`--${option}=`)) return [word.slice(option.length + 3)];
    return word === `--${option}` ? [options[index + 1] ?? ""] : [];
  });
}

export function uploadCommand({ config, environment }: ReadSettings) {
  return defineCommand({
    meta: { name: "upload", description: "Upload a file, or a folder as a site; a second run continues" },
    args: {
      path: { type: "positional", description: "File or folder", required: true },
      wallet: walletArgument,
      to: toArgument("upload", "UPLOAD_PORT"),
      index: { type: "string", description: "File that is served for the folder itself", valueHint: "path" },
      fallback: { type: "string", description: "File that is served for unknown paths", valueHint: "path" },
      tag: { type: "string", description: "A tag of every item: name=value; may be repeated", valueHint: "tag" },
      tags: { type: "string", description: "Tags of every item: name=value,…", valueHint: "tags" },
      hidden: { type: "boolean", description: "Include files whose names start with a dot" },
      "follow-links": { type: "boolean", description: "Include targets of links out of the folder" },
      yes: { type: "boolean", description: "Skip the confirmation of large or expensive uploads and private keys" },
      "dry-run": { type: "boolean", description: "Print what would be uploaded and its price; send nothing" },
      json: jsonArgument,
    },
    run: async ({ args, rawArgs }) => {
      const { UPLOAD_PORT, DATA_DIR, UPLOAD_CONFIRM_WINC } = config();
      const { runUpload } = await import("./upload/upload.ts");
      const { path, wallet, index, fallback, tags } = args;
      const tag = valuesOf("tag", rawArgs);
      const given = { path, wallet, index, fallback, tag, tags, hidden: args.hidden === true };
      const asked = { followLinks: args["follow-links"] === true, yes: args.yes === true };
      const to = args.to ?? localUrl(UPLOAD_PORT);
      const stateFolder = stateFolderOf(environment());
      const json = args.json === true;
      const spending = { dryRun: args["dry-run"] === true, wincUnconfirmedMax: BigInt(UPLOAD_CONFIRM_WINC) };
      return runUpload({ ...given, ...asked, ...spending, to, json, dataDir: DATA_DIR, stateFolder });
    },
  });
}

export function balanceCommand({ config }: ReadSettings) {
  return defineCommand({
    meta: { name: "balance", description: "Print the credits of a wallet or an address" },
    args: {
      address: addressArgument,
      wallet: walletArgument,
      to: toArgument("payment", "PAYMENT_PORT"),
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const { PAYMENT_PORT, DATA_DIR } = config();
      const { runBalance } = await import("./credit-commands.ts");
      const { address, wallet } = args;
      const to = args.to ?? localUrl(PAYMENT_PORT);
      return runBalance({ address, wallet, to, json: args.json === true, dataDir: DATA_DIR });
    },
  });
}

export function topUpCommand({ config }: ReadSettings) {
  return defineCommand({
    meta: {
      name: "topup",
      description: "Buy credits by card: print the payment page, wait for the credits",
    },
    args: {
      amount: { type: "positional", description: "Amount, such as 10 or 10.50", required: true },
      currency: { type: "positional", description: "Currency, such as usd", required: true },
      address: addressArgument,
      wallet: walletArgument,
      to: toArgument("payment", "PAYMENT_PORT"),
      wait: {
        type: "string",
        description: "Maximum wait for the credits; default: 2100; 0 does not wait",
        valueHint: "seconds",
      },
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const { PAYMENT_PORT, DATA_DIR } = config();
      const { runTopUp } = await import("./credit-commands.ts");
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

export function priceCommand({ config }: ReadSettings) {
  return defineCommand({
    meta: { name: "price", description: "Print the price of an upload" },
    args: {
      subject: {
        type: "positional",
        description: "Size such as 10GiB, or a file or folder",
        required: true,
        valueHint: "path",
      },
      to: toArgument("payment", "PAYMENT_PORT"),
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const { runPrice } = await import("./price.ts");
      const to = args.to ?? localUrl(config().PAYMENT_PORT);
      return runPrice({ subject: args.subject, to, json: args.json === true });
    },
  });
}

export function receiptCommand({ environment }: Pick<ReadSettings, "environment">) {
  return defineCommand({
    meta: { name: "receipt", description: "Verify receipts of uploads: cairn receipt verify" },
    args: {
      action: { type: "positional", description: "verify", required: true, valueHint: "verify" },
      file: {
        type: "positional",
        description: "File with a receipt or the output of `cairn upload --json`; - is standard input; or an item's id",
        required: true,
      },
      signer: {
        type: "string",
        description: "Expected address of the signing wallet",
        valueHint: "address",
      },
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const { runReceipt } = await import("./receipts.ts");
      const { action, file, signer } = args;
      const stateFolder = stateFolderOf(environment());
      return runReceipt({ action, file, signer, json: args.json === true, stateFolder });
    },
  });
}

export function toArgument(service: string, port: string) {
  return {
    type: "string",
    description: `URL of the ${service} service; default: this machine, ${port}`,
    valueHint: "url",
  } as const;
}

/** A service of this machine. */
export function localUrl(port: number): string {
  return `http://localhost:${port}`;
}
