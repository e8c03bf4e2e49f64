/**
 * Thread entry: signs data items for clients without a key, with the service's key.
 *
 * The same payload with the same tags always results in the same item: the signature has no salt.
 * Source: docs/reference/upload.md#paying-with-the-request; ANS-104 §2.
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createItemSigning, type ItemSigning } from "../src/arweave/data-item.ts";
import { createArweaveSigner } from "../src/arweave/signers/arweave.ts";
import type { Signer } from "../src/arweave/signers/scheme.ts";
import { Failure } from "../src/failures.ts";
import { isJsonObject, readJson } from "../src/lib/json.ts";
import { createFileSessions, type FileSteps, openFileSteps } from "../src/store/file-sessions.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

/** A step of signing an item with its payload in a file. */
export type SignItemJob = Readonly<{
  /** The folder of uploads, as an absolute path. */
  folder: string;
  /** Identifies the item among those in progress in this thread. */
  session: string;
  /** Below the folder. */
  file: string;
  /** Where the payload begins in the file, and its size. Bytes. */
  start: number;
  size: number;
  tags: readonly Readonly<{ name: string; value: string }>[];
  /** Key (JWK), RSA of 4096 bits. */
  keyFile: string;
  /** Whether this is the first step; later steps continue after the previous one. */
  isFirst: boolean;
}>;

/** The result of a step. */
export type SignItemResult =
  | Readonly<{ kind: "more" }>
  /** The bytes before the payload. */
  | Readonly<{ kind: "signed"; header: Uint8Array<ArrayBuffer> }>
  /** The payload could not be read from disk. */
  | Readonly<{ kind: "unread"; reason: string }>
  /** The thread of the first step has ended. */
  | Readonly<{ kind: "lost" }>;

/** Releases an item that will not be signed. */
export type LeaveSigningJob = Readonly<{ session: string }>;

type Session = Readonly<{ file: FileSteps; signing: ItemSigning }>;

const sessions = createFileSessions<Session>(({ file }) => file.close());
const signers = new Map<string, Signer>();

/** Hashes the next bytes of an item's payload; after the last ones, signs. */
export function signItem(job: SignItemJob): SignItemResult {
  return sessions.step(job.session, job.isFirst ? () => begin(job) : undefined, stepOf);
}

export function leaveSigning({ session }: LeaveSigningJob): void {
  sessions.leave(session);
}

function begin({ folder, file, start, size, tags, keyFile }: SignItemJob): Session {
  const signing = createItemSigning({ tags }, size, signerOf(keyFile));
  return { file: openFileSteps(join(folder, file), start, size), signing };
}

function stepOf({ file, signing }: Session): SignItemResult {
  const reached = file.step(signing.update);
  if (reached === "more") return { kind: "more" };
  if (reached === "short") return { kind: "unread", reason: "the payload is cut short" };
  return { kind: "signed", header: new Uint8Array(signing.finish().header) };
}

function signerOf(file: string): Signer {
  const known = signers.get(file);
  if (known !== undefined) return known;
  const jwk = readJson(readFileSync(file, "utf8"));
  if (!isJsonObject(jwk)) throw new Failure("malformed_input", { reason: "the key's file is not a JSON object", file });
  // The signer validates the fields of the key.
  const signer = createArweaveSigner(jwk as JsonWebKey, 0);
  signers.set(file, signer);
  return signer;
}
