/**
 * The output of `cairn dev` when every service runs: addresses, the admin key, wallets, and commands to try.
 * @module
 */
import { winstonPerAr } from "../arweave/winston.ts";
import { type Config, settings } from "../config/settings.ts";
import type { TestWallet } from "../dev/devnet/wallets.ts";
import type { Sample } from "../dev/sample/sample-site.ts";
import { wincText } from "../lib/quantity-text.ts";
import type { UserAddress } from "../payment/addresses.ts";
import { startedAs, typedProgram } from "./environment.ts";

/** A wallet of the development chain, with its tokens and credits. */
export type FundedWallet = TestWallet &
  Readonly<{
    /** Winston on the chain. */
    balance: bigint;
    /** The account that is charged for uploads; an ECDSA key signs as Ethereum. Undefined: the key cannot upload. */
    account: UserAddress | undefined;
    /** Credits of the account, winc. */
    credits: bigint;
  }>;

export type DevRecord = Readonly<{
  gateway: string;
  payment?: string;
  upload?: string;
  sandbox?: string;
  node: string;
  /** Undefined when the gateway's own listener serves the admin API. */
  adminUrl: string | undefined;
  /** The operator's page; undefined where it is not served. */
  console: string | undefined;
  /** Absent when a setting has the key. */
  adminKey?: string;
  wallets: readonly FundedWallet[];
  sample: Sample | undefined;
}>;

/** The commands to try, as a user types them. */
export type DevCommands = Readonly<{ upload: string; topUp: string; balance: string }>;

/** The record as one line of JSON. */
export function devLine(record: DevRecord): string {
  const wallets = record.wallets.map((wallet) => {
    const { balance, credits } = wallet;
    return { ...wallet, balance: balance.toString(), credits: credits.toString() };
  });
  return `${JSON.stringify({ ...record, wallets })}\n`;
}

/** The record as text. */
export function devPage(record: DevRecord, commands: DevCommands): string {
  const { gateway, payment, upload, sandbox, node, adminUrl, console, adminKey, wallets, sample } = record;
  const rows: (readonly [string, string])[] = [
    ["gateway", gateway],
    ...(payment === undefined ? [] : [["payment", payment] as const]),
    ...(upload === undefined ? [] : [["upload", upload] as const]),
    ...(sandbox === undefined ? [] : [["sandbox", `${sandbox}  (simulates Stripe and its cards)`] as const]),
    ["chain", `${node}  (mine: POST ${node}/mine)`],
    ...(adminUrl === undefined ? [] : [["admin", adminUrl] as const]),
    ...(console === undefined ? [] : [["console", console] as const]),
    ...(adminKey === undefined ? [] : [["admin key", adminKey] as const]),
    ...wallets.flatMap(walletRows),
  ];
  const lines = rows.map(([name, value]) => `  ${name.padEnd(13)} ${value}`);
  const open = sample === undefined ? "" : `\n  Open ${gateway}/${sample.manifest}/\n`;
  const tries = triesOf(record, commands).map((line) => `    ${line}\n`);
  return `\n${lines.join("\n")}\n${open}\n  Try, in another terminal:\n${tries.join("")}\n`;
}

/**
 * The commands for another terminal in the same folder. Options name the wallet and the services only where they
 * differ from the defaults.
 *
 * @param config - The settings in force.
 */
export function commandsOf(
  config: Pick<Config, "UPLOAD_PORT" | "PAYMENT_PORT" | "DATA_DIR">,
  { ephemeral, path }: Readonly<{ ephemeral: boolean; path: string }>,
  { upload = "", payment = "", wallets }: Pick<DevRecord, "upload" | "payment" | "wallets">,
): DevCommands {
  const program = typedProgram(startedAs(path));
  const file = wallets.find(({ type }) => type === "rsa")?.file;
  const isElsewhere = ephemeral || config.DATA_DIR !== settings.DATA_DIR.fallback;
  const wallet = isElsewhere && file !== undefined ? ` --wallet ${file}` : "";
  const toUpload = config.UPLOAD_PORT === settings.UPLOAD_PORT.fallback ? "" : ` --to ${upload}`;
  const toPayment = config.PAYMENT_PORT === settings.PAYMENT_PORT.fallback ? "" : ` --to ${payment}`;
  return {
    upload: `${program} upload site${wallet}${toUpload}`,
    topUp: `${program} topup 10 usd${wallet}${toPayment}`,
    balance: `${program} balance${wallet}${toPayment}`,
  };
}

/** The address and tokens of a wallet, and below them the account and its credits. */
function walletRows({ type, address, file, balance, account, credits }: FundedWallet): (readonly [string, string])[] {
  const money = `${balance / winstonPerAr} tokens`;
  const own = `${address}  ${money}${file === undefined ? "" : `  ${file}`}`;
  const as = account === String(address) ? "" : `  as ${account}`;
  return [
    [`${type} wallet`, own],
    ...(account === undefined ? [] : [["", `${wincText(credits)} to upload with${as}`] as const]),
  ];
}

function triesOf({ gateway, payment, upload, sample }: DevRecord, commands: DevCommands): readonly string[] {
  const uploads = [
    "mkdir -p site && echo '<h1>Hello</h1>' > site/index.html",
    `${commands.upload}  # then open what it prints`,
  ];
  return [
    ...(sample === undefined ? [] : sampleTries(gateway, sample)),
    ...(upload === undefined ? [] : uploads),
    ...(payment === undefined ? [] : [`${commands.topUp}  # card 4242 4242 4242 4242`, commands.balance]),
  ];
}

function sampleTries(gateway: string, { sound }: Sample): readonly string[] {
  const query = `{"query":"{ transactions(first: 3) { edges { node { id tags { name value } } } } }"}`;
  return [
    `curl -s -D - -o /dev/null -H 'Range: bytes=0-99' ${gateway}/raw/${sound}`,
    `curl -s -H 'Content-Type: application/json' -d '${query}' ${gateway}/graphql`,
  ];
}
