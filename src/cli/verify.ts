/**
 * `cairn verify`: is this the content of an id, and does a block hold it? Nobody is believed but a block that is named
 * by hand, and what had to be believed is said.
 *
 * Works on a gateway, or on an answer of its proof route and the content in files, with no network at all.
 * @module
 */

import { exitCodes, misuse } from "../app/complaints.ts";
import { blockTextSizeMax } from "../arweave/block.ts";
import { type Address, readAddress, readBlockHash, readId } from "../arweave/id.ts";
import { type Proof, proofTextSizeMax, readProof } from "../arweave/proof.ts";
import { type Anchor, type ProofQuestion, verifyProof } from "../arweave/proof-verify.ts";
import { Failure } from "../failures.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import { openHttp } from "../lib/http-client.ts";
import type { ByteSpan } from "../lib/range.ts";
import { verifyAtGateway } from "./verify-gateway.ts";
import { factsOf, printVerification, type Verification } from "./verify-text.ts";

/** The arguments as they were typed. */
export type VerifyOptions = Readonly<{
  id: string;
  gateway: string | undefined;
  blockHash: string | undefined;
  txRoot: string | undefined;
  /** File with a block's JSON. */
  block: string | undefined;
  /** Address of who must have signed. */
  owner: string | undefined;
  /** First and last byte, as in a Range header. */
  range: string | undefined;
  /** File with an answer of the proof route, and one with the content it is about or all of it. */
  proof: string | undefined;
  data: string | undefined;
  json: boolean;
}>;

/** Larger content is verified at a gateway, part by part. Bytes. */
const dataFileSizeMax = 256 * 2 ** 20;

/** A gateway may have to fetch what it proves. */
const timeouts = { firstByteMs: 120_000, stallMs: 60_000, totalMs: 300_000 } as const;

/**
 * Verifies, and prints what was shown.
 *
 * @returns The exit code: 0 proven, 1 not.
 * @throws Misuse when the arguments do not name one thing to verify.
 */
export async function runVerify(options: VerifyOptions): Promise<number> {
  const id = readId(options.id);
  if (id === undefined) throw misuse(`"${options.id}" is no id: those have 43 characters of base64url`);
  const anchor = await readAnchor(options);
  const owner = readOwner(options.owner);
  const verification = await verify(options, { id, anchor, ...(owner === undefined ? {} : { owner }) });
  process.stdout.write(printVerification(verification, options.json));
  return verification.outcome === "proven" ? exitCodes.done : exitCodes.failed;
}

type Beliefs = Pick<ProofQuestion, "id" | "anchor" | "owner">;

async function verify(options: VerifyOptions, beliefs: Beliefs): Promise<Verification> {
  const { gateway, proof, data, range } = options;
  if (proof !== undefined || data !== undefined) {
    if (proof === undefined || data === undefined) throw misuse("--proof and --data go together");
    if (gateway !== undefined) throw misuse("--gateway is not asked when --proof is given");
    if (range !== undefined) throw misuse("a recorded proof has its own range: leave --range out");
    return await verifyFiles(beliefs, proof, data);
  }
  if (gateway === undefined) throw misuse("give --gateway, or --proof and --data");
  const http = openHttp(timeouts);
  try {
    return await verifyAtGateway(
      { ...beliefs, http, gateway: readOrigin(gateway), range: readRange(range) },
      new AbortController().signal,
    );
  } finally {
    http.close();
  }
}

async function verifyFiles(beliefs: Beliefs, proofFile: string, dataFile: string): Promise<Verification> {
  const proof = await readProofFile(proofFile);
  const bytes = new Uint8Array(await (await boundedFile(dataFile, dataFileSizeMax)).arrayBuffer());
  const { start, end } = proof.range;
  const isWhole = bytes.length === proof.size && end - start < proof.size;
  const parts = isWhole ? ({ bytes: bytes.subarray(start, end), whole: { kind: "bytes", bytes } } as const) : { bytes };
  const verdict = verifyProof({ ...beliefs, proof, ...parts });
  return { id: beliefs.id, size: proof.size, range: proof.range, ...factsOf(verdict) };
}

async function readProofFile(path: string): Promise<Proof> {
  const text = await (await boundedFile(path, proofTextSizeMax)).text();
  try {
    return readProof(text);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw misuse(`${path} is no proof: ${String(error.context["reason"] ?? error.message)}`);
  }
}

async function readAnchor({ blockHash, txRoot, block }: VerifyOptions): Promise<Anchor> {
  const given = [blockHash, txRoot, block].filter((each) => each !== undefined);
  if (given.length > 1) throw misuse("give one of --block-hash, --tx-root and --block");
  if (block !== undefined) return { kind: "block", text: await (await boundedFile(block, blockTextSizeMax)).text() };
  if (blockHash !== undefined) {
    const hash = readBlockHash(blockHash);
    if (hash === undefined) throw misuse(`"${blockHash}" is no block hash: those have 64 characters of base64url`);
    return { kind: "hash", hash };
  }
  if (txRoot === undefined) return { kind: "none" };
  const root = decodeBase64url(txRoot);
  if (root?.length !== 32) throw misuse(`"${txRoot}" is no tx_root: those are 43 characters of base64url`);
  return { kind: "tx root", txRoot: root };
}

function readOwner(text: string | undefined): Address | undefined {
  const owner = text === undefined ? undefined : readAddress(text);
  if (text !== undefined && owner === undefined)
    throw misuse(`"${text}" is no address: those have 43 characters of base64url`);
  return owner;
}

async function boundedFile(path: string, sizeMax: number) {
  const file = Bun.file(path);
  if (!(await file.exists())) throw misuse(`${path} cannot be read`);
  if (file.size > sizeMax) throw misuse(`${path} has ${file.size} bytes, ${sizeMax} is the most`);
  return file;
}

function readOrigin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol))
    throw misuse(`--gateway must be an http or https URL, got "${text}"`);
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

function readRange(text: string | undefined): ByteSpan | undefined {
  if (text === undefined) return undefined;
  const [, first, last] = /^(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  if (first === undefined || last === undefined || Number(first) > Number(last))
    throw misuse(`--range must be the first and the last byte, as in 0-99, got "${text}"`);
  return { start: Number(first), end: Number(last) + 1 };
}
