/**
 * The report of `cairn upload`: ids, cost, and the URL of the content.
 * @module
 */
import { jsonText } from "../../lib/printable.ts";
import { bytesText, countText, wincText } from "../../lib/quantity-text.ts";
import { rowsText } from "../terminal.ts";
import type { SigningWallet } from "../wallet-file.ts";
import type { SentItem } from "./item-sender.ts";
import type { LeftOut, LeftOutReason } from "./local-files.ts";

export type UploadedFile = Readonly<{
  path: string;
  /** Size of the file, bytes. */
  size: number;
  /** Whether another file of this run has the same content, and so is the same item. */
  isCopy: boolean;
  sent: SentItem;
}>;

export type UploadReport = Readonly<{
  wallet: Pick<SigningWallet, "address" | "file">;
  to: string;
  /** Gateway of the service; `undefined` if it reports none. */
  gateway: string | undefined;
  files: readonly UploadedFile[];
  /** Only of a folder. */
  manifest: SentItem | undefined;
  leftOut: readonly LeftOut[];
  /** Folder of stored receipts. */
  receipts: string;
}>;

/** The report as text or as one line of JSON. */
export function printUpload(report: UploadReport, json: boolean): string {
  return json ? `${jsonText(recordOf(report))}\n` : page(report);
}

function recordOf(report: UploadReport) {
  const { wallet, to, files, manifest, leftOut } = report;
  const id = mainIdOf(report);
  const url = urlOf(report);
  return {
    ...(id === undefined ? {} : { id }),
    ...(url === undefined ? {} : { url }),
    address: wallet.address,
    to,
    winc: chargedFor(report).toString(),
    items: files.map(({ path, size, isCopy, sent }) => ({ path, size, ...itemRecord(sent, isCopy) })),
    ...(manifest === undefined ? {} : { manifest: itemRecord(manifest, false) }),
    leftOut: leftOut.map(({ path }) => path),
    leftOutReasons: Object.fromEntries(leftOut.map(({ path, reason }) => [path, reason])),
  };
}

function itemRecord({ id, wasThere, winc, receipt, receiptFault }: SentItem, isCopy: boolean) {
  const state = wasThere ? "there" : isCopy ? "copy" : "uploaded";
  const receipts = { ...(receipt && { receipt }), ...(receiptFault !== undefined && { receiptFault }) };
  return { id, state, winc: winc.toString(), ...(isCopy ? {} : receipts) };
}

/** The charge of this run. */
function chargedFor({ files, manifest }: UploadReport): bigint {
  const charged = files.filter(({ isCopy }) => !isCopy).map(({ sent }) => sent);
  const all = manifest === undefined ? charged : [...charged, manifest];
  return all.reduce((sum, { wasThere, winc }) => sum + (wasThere ? 0n : winc), 0n);
}

/** The id of the folder's manifest, or of the single file. */
function mainIdOf({ files, manifest }: UploadReport): string | undefined {
  return manifest?.id ?? files[0]?.sent.id;
}

function urlOf(report: UploadReport): string | undefined {
  const { gateway, manifest } = report;
  const id = mainIdOf(report);
  if (gateway === undefined || id === undefined) return undefined;
  return `${gateway}/${id}${manifest === undefined ? "" : "/"}`;
}

function page(report: UploadReport): string {
  const { wallet, to, files, manifest, leftOut, receipts } = report;
  const size = files.reduce((sum, file) => sum + file.size, 0);
  const there = files.filter(({ sent }) => sent.wasThere).length;
  const which = files.length === 1 ? "" : there === files.length ? "all " : `${there} `;
  const notes = there === 0 ? "" : `, ${which}there already`;
  const what = manifest === undefined ? (files[0]?.path ?? "") : countText(files.length, "file");
  const url = urlOf(report);
  const rows: (readonly [string, string])[] = [
    ["uploaded", `${what}, ${bytesText(size)}${notes}`],
    ["as", `${wallet.address}  (${wallet.file})`],
    ["to", to],
    ["cost", wincText(chargedFor(report))],
    ...leftOutLines(leftOut).map((line) => ["left out", line] as const),
    [manifest === undefined ? "id" : "manifest", String(mainIdOf(report))],
    ["receipts", receipts],
    ...receiptFaults(report).map((fault) => ["damaged", fault] as const),
    ...(url === undefined ? [] : [["open", url] as const]),
  ];
  return rowsText(rows, 9);
}

const receiptFaultsShown = 3;

function receiptFaults({ files, manifest }: UploadReport): string[] {
  const sent = [...files.filter(({ isCopy }) => !isCopy).map((file) => file.sent), ...(manifest ? [manifest] : [])];
  const faults = sent.flatMap(({ receiptFault }) => receiptFault ?? []);
  const rest = faults.length - receiptFaultsShown;
  return [...faults.slice(0, receiptFaultsShown), ...(rest > 0 ? [`and ${rest} more`] : [])];
}

/** The text of each reason, with the option that includes such paths. */
const reasonTexts: Readonly<Record<LeftOutReason, string>> = {
  key: "keys, which would be public",
  outside: "links out of the folder; included by --follow-links",
  hidden: "hidden; included by --hidden",
  loop: "circular links",
  broken: "links to nothing",
  special: "neither files nor folders",
};

/** How many paths are listed for each reason: hidden files are many and rarely missed. */
const shownMax: Readonly<Record<LeftOutReason, number>> = {
  key: 100,
  outside: 100,
  hidden: 3,
  loop: 10,
  broken: 10,
  special: 10,
};

/** A line for each reason. */
export function leftOutLines(leftOut: readonly LeftOut[]): string[] {
  return Object.entries(reasonTexts).flatMap(([reason, says]) => {
    const paths = leftOut.filter((each) => each.reason === reason).map(({ path }) => path);
    if (paths.length === 0) return [];
    const most = shownMax[reason as LeftOutReason];
    const rest = paths.length - most;
    return [`${paths.slice(0, most).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}  (${says})`];
  });
}
