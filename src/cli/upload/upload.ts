/**
 * `cairn upload`: signs a file, or a folder with its manifest, and sends it to an upload service.
 *
 * The same content, wallet and tags give the same ids, so an interrupted run continues when it is started again: items
 * that the service has are not sent, and nothing is charged twice.
 * @module
 */
import { join, resolve } from "node:path";
import { exitCodes, misuse } from "../../app/complaints.ts";
import { dataFolderAt } from "../../app/data-folder.ts";
import type { Id } from "../../arweave/id.ts";
import { manifestContentType, manifestSizeMax } from "../../arweave/manifest.ts";
import { type Tag, tagsFault } from "../../arweave/tags.ts";
import { Failure } from "../../failures.ts";
import { systemClock } from "../../lib/clock.ts";
import { invalidValue } from "../../lib/printable.ts";
import { bytesText, durationText } from "../../lib/quantity-text.ts";
import { createSemaphore } from "../../lib/semaphore.ts";
import { print } from "../print.ts";
import { createStoredReceipts } from "../receipts.ts";
import { objectIn, openServiceClient, readServiceUrl, type ServiceClient, webUrl } from "../service-client.ts";
import { createProgress, errorScreen, ownTerminal, type Progress } from "../terminal.ts";
import { readSigningWallet, type SigningWallet } from "../wallet-file.ts";
import { eachAtOnce, type ItemSender, type SentItem, sendItem } from "./item-sender.ts";
import { type LocalFile, type LocalFiles, listLocalFiles } from "./local-files.ts";
import { signBytes, signFile, wholePayloadBytesMax } from "./local-item.ts";
import { createKeyTest, type KeyTest } from "./private-keys.ts";
import { confirmUpload, type PlannedItem, planUpload, printPlan } from "./upload-plan.ts";
import { printUpload, type UploadedFile } from "./upload-report.ts";

export type UploadOptions = Readonly<{
  path: string;
  wallet: string | undefined;
  to: string;
  /** Paths in the folder. */
  index: string | undefined;
  fallback: string | undefined;
  /** Of every item: each `name=value`, where the value may have commas, and several in one text. */
  tag: readonly string[];
  tags: string | undefined;
  hidden: boolean;
  /** Whether links that lead out of the folder are followed. */
  followLinks: boolean;
  /** Skips the confirmation. */
  yes: boolean;
  /** Uploads above this price need confirmation. */
  wincUnconfirmedMax: bigint;
  /** Prints what would be sent and its price, and sends nothing. */
  dryRun: boolean;
  json: boolean;
  /** Data folder of a development chain, whose wallet is used by default. */
  dataDir: string;
  /** Folder of the ids of uploads in parts, and of receipts. */
  stateFolder: string;
}>;

/** Concurrent requests: enough to use the bandwidth, few enough that their bodies fit in memory. */
const requestsAtOnce = 6;

/** Files that are signed or sent concurrently. */
const filesAtOnce = 8;

/** Parts of large files that may wait for a request slot. */
const requestsWaitingMax = 1_000;

type Run = Readonly<{
  wallet: SigningWallet;
  tags: readonly Tag[];
  progress: Progress;
  sender: ItemSender;
  /** A file must not have become a key since it was examined. */
  isKey: KeyTest;
}>;

/** Uploads and prints a report. @returns The exit code. */
export async function runUpload(options: UploadOptions): Promise<number> {
  const wallet = readSigningWallet(options.wallet, options.dataDir);
  const isKey = createKeyTest(wallet.text);
  const found = listLocalFiles(options.path, {
    hidden: !options.hidden,
    outside: !options.followLinks,
    paths: [dataFolderAt(options.dataDir).root, resolve(wallet.file)],
    isKey,
  });
  const tags = readTags(options);
  const pages = pagesOf(found, options);
  const { files, leftOut } = found;
  const { signatureSize, ownerSize } = wallet.signer.scheme;
  const bytesTotal = files.reduce((sum, { size }) => sum + size + signatureSize + ownerSize, 0);
  const progress = createProgress({
    screen: errorScreen(),
    clock: systemClock,
    verb: "uploading",
    bytesTotal,
    filesTotal: files.length,
  });
  const onRetry = sayOnce((why, waitMs) => progress.say(`retry in ${durationText(waitMs)}: ${why}`));
  const client = openServiceClient({ url: readServiceUrl(options.to), onRetry });
  const stop = new AbortController();
  const unhook = onInterrupt(() => {
    progress.end();
    progress.say("stopped; run the command again to continue");
  });
  try {
    const { gateway, freeBytesMax } = await askService(client, files, stop.signal);
    const planned = plannedItems(found, tags, pages);
    const plan = await planUpload(client, wallet, planned, freeBytesMax, stop.signal);
    if (options.dryRun) {
      print(printPlan(plan, found, { wallet, to: client.url, json: options.json }));
      return exitCodes.done;
    }
    const { yes, wincUnconfirmedMax } = options;
    if (!(await confirmUpload(found, { winc: plan.winc, wincUnconfirmedMax, yes }, ownTerminal())))
      return exitCodes.failed;
    const sender = createSender(client, wallet, options.stateFolder, progress);
    const run = { wallet, tags, progress, sender, isKey: found.isKey ? () => false : isKey };
    const sent = await sendFiles(run, files, stop);
    const manifest = pages === undefined ? undefined : await sendManifest(run, sent, pages, stop.signal);
    progress.end();
    const receipts = sender.receipts.folder;
    const report = { wallet, to: client.url, gateway, files: sent, manifest, leftOut, receipts };
    print(printUpload(report, options.json));
    return exitCodes.done;
  } finally {
    unhook();
    progress.end();
    client.close();
  }
}

/** Ends the program at Ctrl-C with a message; nothing needs cleanup. @returns Removes the handler. */
function onInterrupt(say: () => void): () => void {
  const end = () => {
    say();
    process.exit(exitCodes.interrupted);
  };
  process.once("SIGINT", end);
  return () => process.off("SIGINT", end);
}

/** Reports the same fault of concurrent requests only once. */
function sayOnce(say: (why: string, waitMs: number) => void): (why: string, waitMs: number) => void {
  const said = new Map<string, number>();
  return (why, waitMs) => {
    const now = systemClock();
    if ((said.get(why) ?? 0) > now) return;
    said.set(why, now + waitMs);
    say(why, waitMs);
  };
}

function createSender(
  client: ServiceClient,
  { token }: SigningWallet,
  stateFolder: string,
  progress: Progress,
): ItemSender {
  const semaphore = createSemaphore(requestsAtOnce, requestsWaitingMax);
  const receipts = createStoredReceipts(stateFolder);
  const callbacks = { onSent: progress.add, onThere: progress.pass };
  return { client, token, semaphore, stateFolder: join(stateFolder, "uploads"), receipts, ...callbacks };
}

/** The items of an upload, the manifest last; ids have the same length, so any id gives its size. */
function plannedItems(
  { files }: LocalFiles,
  tags: readonly Tag[],
  pages: FolderPages | undefined,
): readonly PlannedItem[] {
  const items = files.map(({ path, size }) => ({ size, tags: withContentType(tags, Bun.file(path).type) }));
  if (pages === undefined) return items;
  const manifest = writeManifest(new Map(files.map(({ path }) => [path, anyId])), pages);
  const size = Buffer.byteLength(manifest);
  return [...items, { size, tags: withContentType(tags, manifestContentType) }];
}

const anyId = "A".repeat(43) as Id;

type AskedService = Readonly<{
  /** URL of the gateway; undefined if the service reports none. */
  gateway: string | undefined;
  /** Items up to this size are free. Bytes. */
  freeBytesMax: number;
}>;

/** Requests `/info`. @throws Failure for a file above the limit; Misuse for a gateway. */
async function askService(
  client: ServiceClient,
  files: readonly LocalFile[],
  signal: AbortSignal,
): Promise<AskedService> {
  const { gateway, uploadLimitBytes, freeUploadLimitBytes, network } = objectIn(
    await client.get("/info", signal),
    client.url,
  );
  if (network !== undefined)
    throw misuse(`${client.url} is a gateway; the upload service beside it may be ${client.url}/upload`);
  const limit = typeof uploadLimitBytes === "number" ? uploadLimitBytes : Number.POSITIVE_INFINITY;
  const tooLarge = files.find(({ size }) => size > limit);
  if (tooLarge !== undefined) {
    const size = bytesText(tooLarge.size);
    const reason = `${tooLarge.path} has ${size}, ${client.url} accepts at most ${bytesText(limit)}`;
    throw new Failure("item_too_large", { reason });
  }
  return {
    gateway: typeof gateway === "string" ? webUrl(gateway)?.replace(/\/+$/, "") : undefined,
    freeBytesMax: typeof freeUploadLimitBytes === "number" ? freeUploadLimitBytes : 0,
  };
}

/** Sends all files; the first failure stops the others. @returns The results in the order of the files. */
async function sendFiles(run: Run, files: readonly LocalFile[], stop: AbortController): Promise<UploadedFile[]> {
  const sent: UploadedFile[] = [];
  // Files with the same content are one item: it is sent, and counted, once.
  const items = new Map<Id, Promise<SentItem>>();
  await eachAtOnce(files.entries(), filesAtOnce, stop, async ([index, file]) => {
    sent[index] = await sendFile(run, file, items, stop.signal);
  });
  return sent;
}

async function sendFile(
  { wallet, tags, progress, sender, isKey }: Run,
  file: LocalFile,
  items: Map<Id, Promise<SentItem>>,
  signal: AbortSignal,
): Promise<UploadedFile> {
  const { path, size } = file;
  if (size > 8 * wholePayloadBytesMax) progress.say(`signing ${path}, ${bytesText(size)}`);
  const fileTags = withContentType(tags, Bun.file(path).type);
  const item = await signFile(file, fileTags, wallet.signer, isKey, signal);
  const before = items.get(item.id);
  if (before !== undefined) {
    progress.pass(item.size);
    const sent = await before;
    progress.count();
    return { path, size, isCopy: true, sent };
  }
  const sending = sendItem(sender, item, signal);
  items.set(item.id, sending);
  const sent = await sending;
  progress.count();
  return { path, size, isCopy: false, sent };
}

async function sendManifest(
  { wallet, tags, sender }: Run,
  files: readonly UploadedFile[],
  pages: FolderPages,
  signal: AbortSignal,
): Promise<SentItem> {
  const ids = new Map(files.map(({ path, sent }) => [path, sent.id]));
  const text = writeManifest(ids, pages);
  return await sendItem(sender, signBytes(text, withContentType(tags, manifestContentType), wallet.signer), signal);
}

function pagesOf({ kind, files }: LocalFiles, { index, fallback }: UploadOptions): FolderPages | undefined {
  if (kind === "folder")
    return chooseFolderPages(
      files.map(({ path }) => path),
      { index, fallback },
    );
  if (index !== undefined || fallback !== undefined) throw misuse("--index and --fallback require a folder");
  return undefined;
}

/** Adds the content type of the file's extension, unless the tags have one. */
function withContentType(tags: readonly Tag[], type: string): readonly Tag[] {
  const name = "Content-Type";
  const isNamed = type !== manifestContentType && tags.some((tag) => tag.name === name);
  return isNamed ? tags : [{ name, value: type }, ...tags.filter((tag) => tag.name !== name)];
}

function readTags({ tag, tags }: Pick<UploadOptions, "tag" | "tags">): Tag[] {
  const parts = (tags ?? "").split(",").filter((part) => part !== "");
  const read = [
    ...tag.map((text) => readTag("--tag", text, "name=value")),
    ...parts.map((text) => readTag("--tags", text, "name=value, separated by commas")),
  ];
  const fault = tagsFault(read);
  if (fault !== undefined) throw misuse(`${tag.length > 0 ? "--tag" : "--tags"}: ${fault}`);
  return read;
}

function readTag(option: string, text: string, expected: string): Tag {
  const at = text.indexOf("=");
  if (at < 1) throw misuse(invalidValue(option, text, expected));
  return { name: text.slice(0, at), value: text.slice(at + 1) };
}

/** The special pages of a folder. */
export type FolderPages = Readonly<{
  /** Path that is served for the folder itself. */
  index: string;
  /** Path that is served for unknown paths; `undefined` responds 404. */
  fallback: string | undefined;
}>;

const indexDefault = "index.html";
const fallbackDefault = "404.html";

/**
 * Chooses the pages: from the options, else by name; a folder without an index serves its first file.
 *
 * @param paths - In order; at least one.
 * @throws Misuse when an option names a path that is not in the folder.
 */
export function chooseFolderPages(
  paths: readonly string[],
  named: Readonly<{ index: string | undefined; fallback: string | undefined }>,
): FolderPages {
  const has = new Set(paths);
  for (const [option, path] of Object.entries(named))
    if (path !== undefined && !has.has(path)) throw misuse(invalidValue(`--${option}`, path, "a file of the folder"));
  const [first = indexDefault] = paths;
  const index = named.index ?? (has.has(indexDefault) ? indexDefault : first);
  const fallback = named.fallback ?? (has.has(fallbackDefault) ? fallbackDefault : undefined);
  return { index, fallback };
}

/**
 * Writes the manifest; the same files give the same text in any order of upload.
 *
 * @param ids - The id of each path, in order.
 * @throws Misuse when the manifest would be too large.
 */
export function writeManifest(ids: ReadonlyMap<string, Id>, { index, fallback }: FolderPages): string {
  const fallbackId = fallback === undefined ? undefined : ids.get(fallback);
  const text = JSON.stringify({
    manifest: "arweave/paths",
    version: "0.2.0",
    index: { path: index },
    ...(fallbackId === undefined ? {} : { fallback: { id: fallbackId } }),
    paths: Object.fromEntries([...ids].map(([path, id]) => [path, { id }])),
  });
  if (Buffer.byteLength(text) > manifestSizeMax) throw misuse("the folder has more paths than a manifest can hold");
  return text;
}
