/**
 * What `cairn dev` says when everything runs: where it is, the key, what the wallets have, and what to try.
 * @module
 */
import { winstonPerAr } from "../arweave/winston.ts";
import { type Config, settings } from "../config/settings.ts";
import type { Sample } from "../dev/sample/sample-site.ts";
import type { FundedWallet } from "./dev-wallets.ts";
import { startedAs, typedProgram } from "./environment.ts";
import { wincText } from "./terminal.ts";

/** What there is to say. */
export type DevRecord = Readonly<{
  gateway: string;
  payment?: string;
  upload?: string;
  /** The sandbox's address. */
  sandbox: string;
  node: string;
  /** Undefined when administration is on the gateway's own listener. */
  adminUrl: string | undefined;
  /** Absent when the operator set it. */
  adminKey?: string;
  wallets: readonly FundedWallet[];
  sample: Sample | undefined;
}>;

/** How the commands to try are typed here. */
export type DevCommands = Readonly<{ upload: string; topUp: string; balance: string }>;

/** One line of JSON. */
export function devLine(record: DevRecord): string {
  const wallets = record.wallets.map((wallet) => {
    const { balance, credits } = wallet;
    return { ...wallet, balance: balance.toString(), credits: credits.toString() };
  });
  return `${JSON.stringify({ ...record, wallets })}\n`;
}

/** A page for people. */
export function devPage(record: DevRecord, commands: DevCommands): string {
  const { gateway, payment, upload, sandbox, node, adminUrl, adminKey, wallets, sample } = record;
  const rows: (readonly [string, string])[] = [
    ["gateway", gateway],
    ...(payment === undefined ? [] : [["payment", payment] as const]),
    ...(upload === undefined ? [] : [["upload", upload] as const]),
    ["sandbox", `${sandbox}  (simulates Stripe and its cards)`],
    ["chain", `${node}  (mine: POST ${node}/mine)`],
    ...(adminUrl === undefined ? [] : [["admin", adminUrl] as const]),
    ...(adminKey === undefined ? [] : [["admin key", adminKey] as const]),
    ...wallets.flatMap(walletRows),
  ];
  const lines = rows.map(([name, value]) => `  ${name.padEnd(13)} ${value}`);
  const open = sample === undefined ? "" : `\n  Open ${gateway}/${sample.manifest}/\n`;
  const tries = triesOf(gateway, sample, commands).map((line) => `    ${line}\n`);
  return `\n${lines.join("\n")}\n${open}\n  Try, in another terminal:\n${tries.join("")}\n`;
}

/**
 * The commands as they are typed in another terminal where this program was started: what they would not find there
 * by themselves is named.
 *
 * @param config - As the program has it.
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

/** Its own address and money, and below that the account that it uploads as, with its credits. */
function walletRows({ type, address, file, balance, account, credits }: FundedWallet): (readonly [string, string])[] {
  const money = `${balance / winstonPerAr} tokens`;
  const own = `${address}  ${money}${file === undefined ? "" : `  ${file}`}`;
  const as = account === String(address) ? "" : `  as ${account}`;
  return [
    [`${type} wallet`, own],
    ...(account === undefined ? [] : [["", `${wincText(credits)} to upload with${as}`] as const]),
  ];
}

function triesOf(gateway: string, sample: Sample | undefined, commands: DevCommands): readonly string[] {
  return [
    ...(sample === undefined ? [] : sampleTries(gateway, sample)),
    "mkdir -p site && echo '<h1>Hello</h1>' > site/index.html",
    `${commands.upload}  # then open what it prints`,
    `${commands.topUp}  # card 4242 4242 4242 4242`,
    commands.balance,
  ];
}

function sampleTries(gateway: string, { sound }: Sample): readonly string[] {
  const query = `{"query":"{ transactions(first: 3) { edges { node { id tags { name value } } } } }"}`;
  return [
    `curl -s -D - -o /dev/null -H 'Range: bytes=0-99' ${gateway}/raw/${sound}`,
    `curl -s -H 'Content-Type: application/json' -d '${query}' ${gateway}/graphql`,
  ];
}
