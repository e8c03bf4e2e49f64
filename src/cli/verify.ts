/**
 * `cairn verify`: verifies the content of an id by its proof. Only a block that the user names is trusted; other
 * assumptions are printed.
 *
 * Reads the proof and the content from a gateway, or from files without network access.
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
import { invalidValue, jsonText } from "../lib/printable.ts";
import type { ByteSpan } from "../lib/range.ts";
import { print } from "./print.ts";
import { readServiceUrl } from "./service-client.ts";
import { rowsText } from "./terminal.ts";
import { type Verification, verdictFields, verifyAtGateway } from "./verify-gateway.ts";

export type VerifyOptions = Readonly<{
  id: string;
  gateway: string | undefined;
  blockHash: string | undefined;
  txRoot: string | undefined;
  /** File with a block's JSON. */
  block: string | undefined;
  /** Expected address of the signer. */
  owner: string | undefined;
  /** First and last byte, as in a Range header. */
  range: string | undefined;
  /** Files with a response of the proof route, and with the content of its range or the whole content. */
  proof: string | undefined;
  data: string | undefined;
  json: boolean;
}>;

/** Larger content is verified at a gateway, part by part. Bytes. */
const dataFileSizeMax = 256 * 2 ** 20;

/** A gateway may have to fetch the content first. */
const timeouts = { firstByteMs: 120_000, stallMs: 60_000, totalMs: 300_000 } as const;

/** Verifies content and prints the steps. @returns The exit code: 0 proven, 1 not. @throws Misuse. */
export async function runVerify(options: VerifyOptions): Promise<number> {
  const verification = await verify(options, await readAssumptions(options));
  print(printVerification(verification, options.json));
  return verification.outcome === "proven" ? exitCodes.done : exitCodes.failed;
}

export type Assumptions = Pick<ProofQuestion, "id" | "anchor" | "owner">;

type AssumptionOptions = Pick<VerifyOptions, "id" | "blockHash" | "txRoot" | "block" | "owner">;

/** Reads the id, and what is trusted. @throws Misuse for an invalid value, and for more than one trusted block. */
export async function readAssumptions(options: AssumptionOptions): Promise<Assumptions> {
  const id = readId(options.id);
  if (id === undefined) throw misuse(invalidValue("<id>", options.id, "an id of 43 base64url characters"));
  const anchor = await readAnchor(options);
  const owner = readOwner(options.owner);
  return { id, anchor, ...(owner === undefined ? {} : { owner }) };
}

async function verify(options: VerifyOptions, assumptions: Assumptions): Promise<Verification> {
  const { gateway, proof, data, range } = options;
  if (proof !== undefined || data !== undefined) {
    if (proof === undefined || data === undefined) throw misuse("--proof and --data must be given together");
    if (gateway !== undefined) throw misuse("--gateway and --proof exclude each other");
    if (range !== undefined) throw misuse("--range and --proof exclude each other: a recorded proof has its own range");
    return await verifyFiles(assumptions, proof, data);
  }
  if (gateway === undefined) throw misuse("missing option --gateway, or --proof and --data");
  const http = openHttp(timeouts);
  try {
    return await verifyAtGateway(
      { ...assumptions, http, gateway: readServiceUrl(gateway, "--gateway"), range: readRange(range) },
      new AbortController().signal,
    );
  } finally {
    http.close();
  }
}

async function verifyFiles(assumptions: Assumptions, proofFile: string, dataFile: string): Promise<Verification> {
  const proof = await readProofFile(proofFile);
  const bytes = new Uint8Array(await (await boundedFile(dataFile, dataFileSizeMax)).arrayBuffer());
  const { start, end } = proof.range;
  const isWhole = bytes.length === proof.size && end - start < proof.size;
  const parts = isWhole ? ({ bytes: bytes.subarray(start, end), whole: { kind: "bytes", bytes } } as const) : { bytes };
  const verdict = verifyProof({ ...assumptions, proof, ...parts });
  return { id: assumptions.id, size: proof.size, range: proof.range, ...verdictFields(verdict) };
}

async function readProofFile(path: string): Promise<Proof> {
  const text = await (await boundedFile(path, proofTextSizeMax)).text();
  try {
    return readProof(text);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw misuse(`${path} is not a valid proof: ${String(error.context["reason"] ?? error.message)}`);
  }
}

async function readAnchor({ blockHash, txRoot, block }: AssumptionOptions): Promise<Anchor> {
  const given = [blockHash, txRoot, block].filter((each) => each !== undefined);
  if (given.length > 1) throw misuse("--block-hash, --tx-root and --block exclude each other");
  if (block !== undefined) return { kind: "block", text: await (await boundedFile(block, blockTextSizeMax)).text() };
  if (blockHash !== undefined) {
    const hash = readBlockHash(blockHash);
    if (hash === undefined)
      throw misuse(invalidValue("--block-hash", blockHash, "a block hash of 64 base64url characters"));
    return { kind: "hash", hash };
  }
  if (txRoot === undefined) return { kind: "none" };
  const root = decodeBase64url(txRoot);
  if (root?.length !== 32) throw misuse(invalidValue("--tx-root", txRoot, "a tx_root of 43 base64url characters"));
  return { kind: "tx root", txRoot: root };
}

function readOwner(text: string | undefined): Address | undefined {
  const owner = text === undefined ? undefined : readAddress(text);
  if (text !== undefined && owner === undefined)
    throw misuse(invalidValue("--owner", text, "an address of 43 base64url characters"));
  return owner;
}

async function boundedFile(path: string, sizeMax: number) {
  const file = Bun.file(path);
  if (!(await file.exists())) throw misuse(`${path} cannot be read`);
  if (file.size > sizeMax) throw misuse(`${path} has ${file.size} bytes, the maximum is ${sizeMax}`);
  return file;
}

function readRange(text: string | undefined): ByteSpan | undefined {
  if (text === undefined) return undefined;
  const [, first, last] = /^(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  if (first === undefined || last === undefined || Number(first) > Number(last))
    throw misuse(invalidValue("--range", text, "the first and the last byte, such as 0-99"));
  return { start: Number(first), end: Number(last) + 1 };
}

const headlines: Readonly<Record<Verification["outcome"], string>> = {
  proven: "proven",
  signed: "not proven: signed by its owner, but not shown to be in a block",
  placed: "not proven: these bytes are in a block, but not shown to be signed",
  rejected: "not proven",
  unavailable: "not proven: the gateway returned no proof",
};

function printVerification(verification: Verification, json: boolean): string {
  if (json) return `${jsonText(verification)}\n`;
  const { id, outcome, steps, fault, trusted, open } = verification;
  const rows: (readonly [string, string])[] = [
    ...steps.map(({ step, says }) => [step, says] as const),
    ...(fault === undefined ? [] : [["failed at", `${fault.step}: ${fault.reason}`] as const]),
    ...trusted.map((assumption) => ["trusted", assumption] as const),
    ...open.map((sentence) => ["not shown", sentence] as const),
  ];
  return `${headlines[outcome]}: ${id}${extent(verification)}\n${rowsText(rows, 12)}`;
}

function extent({ size, range }: Verification): string {
  if (size === undefined || range === undefined) return "";
  const isWhole = range.start === 0 && range.end === size;
  return isWhole ? `, all ${size} bytes` : `, bytes ${range.start} to ${range.end - 1} of ${size}`;
}
