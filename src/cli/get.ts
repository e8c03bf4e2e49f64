/**
 * `cairn get`: the content of an id, written only when it is verified.
 *
 * The content is verified as it arrives, into a temporary file. A file gets its name, and standard output its bytes,
 * after the last byte is verified, so that no reader sees other bytes.
 * @module
 */
import {
  closeSync,
  createReadStream,
  createWriteStream,
  fsyncSync,
  mkdtempSync,
  openSync,
  renameSync,
  statSync,
  writeSync,
} from "node:fs";
import { constants, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { exitCodes, misuse } from "../app/complaints.ts";
import { openHttp } from "../lib/http-client.ts";
import { printable } from "../lib/printable.ts";
import { bytesText } from "../lib/quantity-text.ts";
import { removeFolder } from "../lib/remove-folder.ts";
import { untilStopped } from "../lib/stop.ts";
import { isClosedPipe } from "./print.ts";
import { readServiceUrl } from "./service-client.ts";
import { type Assumptions, readAssumptions } from "./verify.ts";
import { type Verification, verifyAtGateway } from "./verify-gateway.ts";

export type GetOptions = Readonly<{
  id: string;
  gateway: string;
  /** Trusted hash of the block, and expected address of the signer. */
  blockHash: string | undefined;
  owner: string | undefined;
  /** File to write; standard output without one. */
  output: string | undefined;
}>;

/** A gateway may have to fetch the content first; large content may take hours. */
const timeouts = { firstByteMs: 120_000, stallMs: 60_000, totalMs: 24 * 3_600_000 } as const;

/**
 * Writes verified content. A signal exits the process here. @returns The exit code: 0 written, 1 not verified or
 * unavailable. @throws Misuse.
 */
export async function runGet(options: GetOptions): Promise<number> {
  const { output, blockHash, owner } = options;
  const assumptions = await readAssumptions({ id: options.id, blockHash, owner, txRoot: undefined, block: undefined });
  const gateway = readServiceUrl(options.gateway, "--gateway");
  const folder = temporaryFolder(output);
  const remove = () => removeFolder(folder);
  const stop = new AbortController();
  let signalCode: number | undefined;
  const onInterrupt = (name: "SIGINT" | "SIGTERM") => {
    signalCode = 128 + constants.signals[name];
    stop.abort(new Error("interrupted"));
  };
  process.once("SIGINT", onInterrupt);
  process.once("SIGTERM", onInterrupt);
  try {
    const path = join(folder, "content");
    const verification = await download({ ...assumptions, gateway, path, signal: stop.signal });
    const { outcome, size = 0 } = verification;
    // Who names a block wants the content that is in it.
    const isEnough = outcome === "proven" || (outcome === "signed" && blockHash === undefined);
    if (!isEnough) {
      process.stderr.write(`${printable(faultText(verification))}\n`);
      return exitCodes.failed;
    }
    if (output !== undefined && !isSpecial(output)) renameSync(path, resolve(output));
    else if ((await untilStopped(copyTo(output, path), stop.signal)) === "closed") return exitCodes.done;
    const place = verification.open.includes("it is in no block yet") ? "in no block yet" : "its place is not proven";
    const shown = outcome === "proven" ? "proven by its block" : `signed by its owner, ${place}`;
    process.stderr.write(`${assumptions.id}: ${bytesText(size)}, ${shown}\n`);
    return exitCodes.done;
  } catch (error) {
    if (signalCode === undefined) throw error;
    process.stderr.write("cairn: interrupted\n");
    remove();
    process.exit(signalCode); // a slow reader of the output would keep the process alive
  } finally {
    process.off("SIGINT", onInterrupt);
    process.off("SIGTERM", onInterrupt);
    remove();
  }
}

type Download = Assumptions & Readonly<{ gateway: string; path: string; signal: AbortSignal }>;

async function download({ path, signal, ...question }: Download): Promise<Verification> {
  const http = openHttp(timeouts);
  const file = openSync(path, "wx");
  try {
    const onPiece = (piece: Uint8Array) => writeWhole(file, piece);
    const verification = await verifyAtGateway({ ...question, http, range: undefined, onPiece }, signal);
    fsyncSync(file);
    return verification;
  } finally {
    closeSync(file);
    http.close();
  }
}

/**
 * Copies the verified content to standard output, or to a pipe or device, which a rename would replace.
 *
 * @returns "closed" when the reader wants no more of it, as `head` does.
 */
async function copyTo(output: string | undefined, path: string): Promise<"complete" | "closed"> {
  const content = createReadStream(path);
  try {
    if (output === undefined) await pipeline(content, process.stdout, { end: false });
    else await pipeline(content, createWriteStream(output));
    return "complete";
  } catch (error) {
    if (isClosedPipe(error)) return "closed";
    throw error;
  }
}

/** Whether a path is of a pipe, a device or a socket. */
function isSpecial(output: string): boolean {
  const found = statSync(output, { throwIfNoEntry: false });
  return found !== undefined && !found.isFile() && !found.isDirectory();
}

/** A write may be short. */
function writeWhole(file: number, piece: Uint8Array): void {
  for (let at = 0; at < piece.length; ) at += writeSync(file, piece, at);
}

/** A new folder, for a file on the disk of the output: a rename then puts it in place whole. @throws Misuse. */
function temporaryFolder(output: string | undefined): string {
  if (output === undefined || isSpecial(output)) return mkdtempSync(join(tmpdir(), "cairn-get-"));
  const path = resolve(output);
  if (statSync(dirname(path), { throwIfNoEntry: false })?.isDirectory() !== true)
    throw misuse(`${dirname(path)} is not a folder`);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) throw misuse(`${output} is a folder`);
  return mkdtempSync(join(dirname(path), ".cairn-get-"));
}

function faultText({ id, outcome, fault, open }: Verification): string {
  if (fault !== undefined) return `${id} is not verified, nothing was written: ${fault.step}: ${fault.reason}`;
  const reason =
    outcome === "placed" ? "its signature was not verified (an ECDSA transaction requires --owner)" : open.join(", ");
  return `${id} is not verified, nothing was written: ${reason}`;
}
