/**
 * `cairn upload`: a file, or a folder with its manifest, signed here and taken by an upload service.
 *
 * The same content, wallet and tags give the same ids, so that a run that was cut short is gone on with by running it
 * again: what the service has is not sent, and nothing is charged twice.
 * @module
 */
import { join, resolve } from "node:path";
import { exitCodes, misuse } from "../../app/complaints.ts";
import { dataFolderAt } from "../../app/data-folder.ts";
import type { Id } from "../../arweave/id.ts";
import { manifestContentType } from "../../arweave/manifest.ts";
import { type Tag, tagsFault } from "../../arweave/tags.ts";
import { Failure } from "../../failures.ts";
import { systemClock } from "../../lib/clock.ts";
import { createSemaphore } from "../../lib/semaphore.ts";
import { createProgress, errorScreen, type Progress } from "../progress.ts";
import { bytesText, durationText } from "../quantities.ts";
import { ownTerminal } from "../question.ts";
import { objectIn, openServiceClient, readServiceUrl, type ServiceClient, webUrl } from "../service-client.ts";
import { createStoredReceipts } from "../stored-receipts.ts";
import { readSigningWallet, type SigningWallet } from "../wallet-file.ts";
import { eachAtOnce } from "./at-once.ts";
import { type LocalFile, type LocalFiles, listLocalFiles } from "./files.ts";
import { isWanted } from "./go-ahead.ts";
import { signBytes, signFile, wholePayloadBytesMax } from "./item.ts";
import { chooseFolderPages, type FolderPages, writeManifest } from "./manifest.ts";
import { createKeyTest, type KeyTest } from "./private-keys.ts";
import { type ItemSender, type SentItem, sendItem } from "./send.ts";
import { printUpload, type UploadedFile } from "./text.ts";

/** The arguments as they were typed, and what stands where none was. */
export type UploadOptions = Readonly<{
  path: string;
  wallet: string | undefined;
  to: string;
  /** Paths in the folder. */
  index: string | undefined;
  fallback: string | undefined;
  /** `name=value`, separated by commas. */
  tags: string | undefined;
  hidden: boolean;
  /** Whether links that lead out of the folder are followed. */
  followLinks: boolean;
  /** Whether nothing is asked. */
  yes: boolean;
  json: boolean;
  /** Where a development chain may lie, whose wallet is used when none is named. */
  dataDir: string;
  /** Where ids of uploads in parts are kept, and receipts. */
  stateFolder: string;
}>;

/** Requests at once: enough to fill a line, few enough that their bodies fit in memory. */
const requestsAtOnce = 6;

/** Files that are signed or sent at once. */
const filesAtOnce = 8;

/** Parts of large files that may wait for their turn. */
const requestsWaitingMax = 1_000;

/** What one run works with. */
type Run = Readonly<{
  wallet: SigningWallet;
  tags: readonly Tag[];
  progress: Progress;
  sender: ItemSender;
  /** What no file may have become since it was examined. */
  isKey: KeyTest;
}>;

/** Uploads, prints what came of it, and answers the exit code. */
export async function runUpload(options: UploadOptions): Promise<number> {
  const wallet = readSigningWallet(options.wallet, options.dataDir);
  const isKey = createKeyTest(wallet.text);
  const found = listLocalFiles(options.path, {
    hidden: !options.hidden,
    outside: !options.followLinks,
    paths: [dataFolderAt(options.dataDir).root, resolve(wallet.file)],
    isKey,
  });
  const tags = readTags(options.tags);
  const pages = pagesOf(found, options);
  if (!(await isWanted(found, options.yes, ownTerminal()))) return exitCodes.failed;
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
  const onRetry = sayOnce((why, waitMs) => progress.say(`again in ${durationText(waitMs)}: ${why}`));
  const client = openServiceClient({ url: readServiceUrl(options.to), onRetry });
  const stop = new AbortController();
  const unhook = onInterrupt(() => {
    progress.end();
    progress.say("stopped; run it again, and it goes on");
  });
  try {
    const gateway = await askService(client, files, stop.signal);
    const sender = createSender(client, wallet, options.stateFolder, progress);
    const run = { wallet, tags, progress, sender, isKey: found.isKey ? () => false : isKey };
    const sent = await sendFiles(run, files, stop);
    const manifest = pages === undefined ? undefined : await sendManifest(run, sent, pages, stop.signal);
    progress.end();
    const receipts = sender.receipts.folder;
    const report = { wallet, to: client.url, gateway, files: sent, manifest, leftOut, receipts };
    process.stdout.write(printUpload(report, options.json));
    return exitCodes.done;
  } finally {
    unhook();
    progress.end();
    client.close();
  }
}

/** 128 and the number of SIGINT, as shells have it. */
const interruptedCode = 130;

/** Ends the program at Ctrl-C with a word: nothing needs to be tidied up. @returns Takes that back. */
function onInterrupt(say: () => void): () => void {
  const end = () => {
    say();
    process.exit(interruptedCode);
  };
  process.once("SIGINT", end);
  return () => process.off("SIGINT", end);
}

/** Requests that are under way together fail together: what the first says need not be said by the others. */
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
  const told = { onSent: progress.add, onThere: progress.pass };
  return { client, token, semaphore, stateFolder: join(stateFolder, "uploads"), receipts, ...told };
}

/** Asks the service who it is: nothing is signed for one that is none, or that takes no file of this size. */
async function askService(
  client: ServiceClient,
  files: readonly LocalFile[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const { gateway, uploadLimitBytes, network } = objectIn(await client.get("/info", signal), client.url);
  if (network !== undefined)
    throw misuse(`${client.url} is a gateway; the upload service beside it may be ${client.url}/upload`);
  const limit = typeof uploadLimitBytes === "number" ? uploadLimitBytes : Number.POSITIVE_INFINITY;
  const tooLarge = files.find(({ size }) => size > limit);
  if (tooLarge !== undefined) {
    const reason = `${tooLarge.path} has ${bytesText(tooLarge.size)}, ${client.url} takes at most ${bytesText(limit)}`;
    throw new Failure("item_too_large", { reason });
  }
  return typeof gateway === "string" ? webUrl(gateway)?.replace(/\/+$/, "") : undefined;
}

/** Sends every file; the first that fails ends the others. Answers them in their order. */
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
  if (index !== undefined || fallback !== undefined) throw misuse("--index and --fallback are of folders");
  return undefined;
}

/** The type by the file's extension, unless the tags name one. */
function withContentType(tags: readonly Tag[], type: string): readonly Tag[] {
  const name = "Content-Type";
  const isNamed = type !== manifestContentType && tags.some((tag) => tag.name === name);
  return isNamed ? tags : [{ name, value: type }, ...tags.filter((tag) => tag.name !== name)];
}

function readTags(text: string | undefined): Tag[] {
  const tags = (text ?? "")
    .split(",")
    .filter((part) => part !== "")
    .map(readTag);
  const fault = tagsFault(tags);
  if (fault !== undefined) throw misuse(`--tags: ${fault}`);
  return tags;
}

function readTag(text: string): Tag {
  const at = text.indexOf("=");
  if (at < 1) throw misuse(`--tags must be name=value, separated by commas, got "${text}"`);
  return { name: text.slice(0, at), value: text.slice(at + 1) };
}
