/**
 * What `cairn upload` says when all is taken: ids, what it cost, and where to open it.
 * @module
 */
import { bytesText, countText, wincText } from "../quantities.ts";
import type { SigningWallet } from "../wallet-file.ts";
import type { SentItem } from "./send.ts";

/** A file and what became of it. */
export type UploadedFile = Readonly<{
  path: string;
  /** Of the file, bytes. */
  size: number;
  /** Whether another file of this run has the same content, and is the same item. */
  isCopy: boolean;
  sent: SentItem;
}>;

/** What there is to say. */
export type UploadReport = Readonly<{
  wallet: Pick<SigningWallet, "address" | "file">;
  to: string;
  /** Where items are read; `undefined` where the service names no gateway. */
  gateway: string | undefined;
  files: readonly UploadedFile[];
  /** Of a folder. */
  manifest: SentItem | undefined;
  /** Paths that were left out. */
  leftOut: readonly string[];
  /** The folder where receipts are kept. */
  receipts: string;
}>;

/** As text for people, or as one line of JSON. */
export function printUpload(report: UploadReport, json: boolean): string {
  return json ? `${JSON.stringify(recordOf(report))}\n` : page(report);
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
    leftOut,
  };
}

function itemRecord({ id, wasThere, winc, receipt, receiptFault }: SentItem, isCopy: boolean) {
  const state = wasThere ? "there" : isCopy ? "copy" : "uploaded";
  const told = { ...(receipt && { receipt }), ...(receiptFault !== undefined && { receiptFault }) };
  return { id, state, winc: winc.toString(), ...(isCopy ? {} : told) };
}

/** What this run was charged. */
function chargedFor({ files, manifest }: UploadReport): bigint {
  const charged = files.filter(({ isCopy }) => !isCopy).map(({ sent }) => sent);
  const all = manifest === undefined ? charged : [...charged, manifest];
  return all.reduce((sum, { wasThere, winc }) => sum + (wasThere ? 0n : winc), 0n);
}

/** The id to be passed on: the folder's, or the lone file's. */
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
    ...(leftOut.length === 0 ? [] : [["left out", leftOutText(leftOut)] as const]),
    [manifest === undefined ? "id" : "manifest", String(mainIdOf(report))],
    ["receipts", receipts],
    ...receiptFaults(report).map((fault) => ["damaged", fault] as const),
    ...(url === undefined ? [] : [["open", url] as const]),
  ];
  return `${rows.map(([name, value]) => `  ${name.padEnd(9)} ${value}`).join("\n")}\n`;
}

const receiptFaultsShown = 3;

function receiptFaults({ files, manifest }: UploadReport): string[] {
  const sent = [
    ...files.filter(({ isCopy }) => !isCopy).map((file) => file.sent),
    ...(manifest ? [manifest] : []),
  ];
  const faults = sent.flatMap(({ receiptFault }) => receiptFault ?? []);
  const rest = faults.length - receiptFaultsShown;
  return [...faults.slice(0, receiptFaultsShown), ...(rest > 0 ? [`and ${rest} more`] : [])];
}

const leftOutShown = 3;

function leftOutText(leftOut: readonly string[]): string {
  const rest = leftOut.length - leftOutShown;
  const names = leftOut.slice(0, leftOutShown).join(", ");
  return `${names}${rest > 0 ? ` and ${rest} more` : ""}  (--hidden takes along what begins with a dot)`;
}
