/**
 * What `cairn dev` says when everything runs: where it is, the key, and what to try.
 * @module
 */
import { winstonPerAr } from "../arweave/winston.ts";
import type { Devnet } from "../devnet/devnet.ts";
import type { TestWallet } from "../devnet/wallets.ts";
import type { Sample } from "./sample/plant.ts";

/** What there is to say. */
export type DevRecord = Readonly<{
  gateway: string;
  payment?: string;
  upload?: string;
  node: string;
  /** Undefined when administration is on the gateway's own listener. */
  adminUrl: string | undefined;
  /** Absent when the operator set it. */
  adminKey?: string;
  wallets: readonly TestWallet[];
  sample: Sample | undefined;
}>;

/** One line of JSON, or a page for people. */
export function printDev(record: DevRecord, devnet: Pick<Devnet, "account">, json: boolean): string {
  const balanceOf = ({ address }: TestWallet) => devnet.account(address)?.balance ?? 0n;
  if (!json) return page(record, balanceOf);
  const wallets = record.wallets.map((wallet) => ({ ...wallet, balance: balanceOf(wallet).toString() }));
  return `${JSON.stringify({ ...record, wallets })}\n`;
}

function page(record: DevRecord, balanceOf: (wallet: TestWallet) => bigint): string {
  const { gateway, payment, upload, node, adminUrl, adminKey, wallets, sample } = record;
  const rows: (readonly [string, string])[] = [
    ["gateway", gateway],
    ...(payment === undefined ? [] : [["payment", payment] as const]),
    ...(upload === undefined ? [] : [["upload", upload] as const]),
    ["chain", `${node}  (mine: POST ${node}/mine)`],
    ...(adminUrl === undefined ? [] : [["admin", adminUrl] as const]),
    ...(adminKey === undefined ? [] : [["admin key", adminKey] as const]),
    ...wallets.map((wallet) => [`${wallet.type} wallet`, walletText(wallet, balanceOf(wallet))] as const),
  ];
  const lines = rows.map(([name, value]) => `  ${name.padEnd(13)} ${value}`);
  return `\n${lines.join("\n")}\n${sample === undefined ? "" : triesOf(gateway, sample)}\n`;
}

function walletText({ address, file }: TestWallet, balance: bigint): string {
  const amount = `${balance / winstonPerAr} tokens`;
  return `${address}  ${amount}${file === undefined ? "" : `  ${file}`}`;
}

function triesOf(gateway: string, { manifest, sound }: Sample): string {
  const query = `{"query":"{ transactions(first: 3) { edges { node { id tags { name value } } } } }"}`;
  return `
  Try:
    open ${gateway}/${manifest}/
    curl -s -D - -o /dev/null -H 'Range: bytes=0-99' ${gateway}/raw/${sound}
    curl -s -H 'Content-Type: application/json' -d '${query}' ${gateway}/graphql
`;
}
