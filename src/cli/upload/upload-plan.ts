/**
 * Plan of an upload: its items and its cost, and the confirmation before it is sent. Uploads are public and permanent,
 * and some cost much.
 * @module
 */
import { signedHeaderSize } from "../../arweave/data-item.ts";
import type { Tag } from "../../arweave/tags.ts";
import { jsonText, printable } from "../../lib/printable.ts";
import { arText, bytesText, countText, wincText } from "../../lib/quantity-text.ts";
import type { ServiceClient } from "../service-client.ts";
import { askYesNo, rowsText, type Terminal } from "../terminal.ts";
import type { SigningWallet } from "../wallet-file.ts";
import type { LocalFiles } from "./local-files.ts";
import { leftOutLines } from "./upload-report.ts";

/** An upload before anything is signed: files with the same content, and items that are there, are counted too. */
export type UploadPlan = Readonly<{
  /** Files and manifest. */
  items: number;
  /** With the headers of the items. */
  bytes: number;
  /** Price of the items that are not free; undefined if the service states none. */
  winc: bigint | undefined;
}>;

/** A payload of an item, and its tags. */
export type PlannedItem = Readonly<{ size: number; tags: readonly Tag[] }>;

/**
 * Sums the items, and requests their price.
 *
 * @param freeBytesMax - Items up to this size, header and payload, are free.
 */
export async function planUpload(
  client: Pick<ServiceClient, "get">,
  { signer, token }: SigningWallet,
  planned: readonly PlannedItem[],
  freeBytesMax: number,
  signal: AbortSignal,
): Promise<UploadPlan> {
  const sizes = planned.map(({ size, tags }) => signedHeaderSize({ tags }, signer) + size);
  const sum = (list: readonly number[]) => list.reduce((total, size) => total + size, 0);
  const charged = sum(sizes.filter((size) => size > freeBytesMax));
  const winc = charged === 0 ? 0n : await priceOf(client, token, charged, signal);
  return { items: sizes.length, bytes: sum(sizes), winc };
}

async function priceOf(
  client: Pick<ServiceClient, "get">,
  token: string,
  bytes: number,
  signal: AbortSignal,
): Promise<bigint | undefined> {
  const { status, text } = await client.get(`/price/${token}/${bytes}`, signal);
  const digits = text.trim();
  return status === 200 && /^\d{1,30}$/.test(digits) ? BigInt(digits) : undefined;
}

/** The plan as text, or as one line of JSON, for `--dry-run`. */
export function printPlan(
  { items, bytes, winc }: UploadPlan,
  { files, leftOut }: Pick<LocalFiles, "files" | "leftOut">,
  { wallet, to, json }: Readonly<{ wallet: SigningWallet; to: string; json: boolean }>,
): string {
  if (json) {
    const record = {
      dryRun: true,
      address: wallet.address,
      to,
      items,
      bytes,
      ...(winc === undefined ? {} : { winc: `${winc}` }),
      files: files.map(({ path, size }) => ({ path, size })),
      leftOut: leftOut.map(({ path }) => path),
      leftOutReasons: Object.fromEntries(leftOut.map(({ path, reason }) => [path, reason])),
    };
    return `${jsonText(record)}\n`;
  }
  return rowsText(
    [
      ["would upload", `${countText(files.length, "file")}, ${bytesText(bytes)} in ${countText(items, "item")}`],
      ["as", `${wallet.address}  (${wallet.file})`],
      ["to", to],
      ["cost", winc === undefined ? "unknown: the service states no price" : `at most ${priceText(winc)}`],
      ...leftOutLines(leftOut).map((line) => ["left out", line] as const),
      ["sent", "nothing"],
    ],
    12,
  );
}

function priceText(winc: bigint): string {
  return `${wincText(winc)}  (${arText(winc)} AR)`;
}

/** Larger uploads need confirmation. */
const filesUnconfirmedMax = 1_000;
const bytesUnconfirmedMax = 2 ** 30;

export type Confirmation = Readonly<{
  /** Undefined if the service states no price. */
  winc: bigint | undefined;
  /** Uploads above this price need confirmation. */
  wincUnconfirmedMax: bigint;
  /** Whether the command line confirms the upload. */
  yes: boolean;
}>;

/**
 * Asks for confirmation of a large or expensive upload, or of a private key. Without a terminal, as in a script, prints
 * the size and continues.
 */
export async function confirmUpload(
  { kind, files, isKey }: LocalFiles,
  { winc, wincUnconfirmedMax, yes }: Confirmation,
  terminal: Terminal,
): Promise<boolean> {
  const size = files.reduce((sum, file) => sum + file.size, 0);
  const isLarge = files.length > filesUnconfirmedMax || size > bytesUnconfirmedMax;
  const isExpensive = winc !== undefined && winc > wincUnconfirmedMax;
  if (yes || !(isLarge || isExpensive || isKey)) return true;
  const name = kind === "file" ? printable(files[0]?.path ?? "") : countText(files.length, "file");
  const price = winc === undefined || winc === 0n ? "" : `, at most ${priceText(winc)},`;
  const what = `${name}, ${bytesText(size)}${isKey ? ", a private key," : ""}${price}`;
  const says = `${what} will be public, and cannot be removed.`;
  if (!terminal.isTerminal) {
    terminal.output.write(`${says}\n`);
    return true;
  }
  if (await askYesNo(terminal, `${says} Upload?`)) return true;
  terminal.output.write("nothing was uploaded\n");
  return false;
}
