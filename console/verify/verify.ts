/**
 * The module for web apps: fetches content with its proof, and resolves with verified bytes or rejects with the reason.
 * Served at `/svc/verify.js`. Source: docs/verify-module.md.
 * @module
 */
import { type Bytes, sha256, toBase64url } from "./bytes.ts";
import { checkProof, type ProofRecord, type ProofStep, resultOf, signedFieldsOf } from "./proof-check.ts";

export type { ProofStep } from "./proof-check.ts";

export type VerifyOptions = Readonly<{
  /** URL of a gateway; it need not be trusted. */
  gateway: string;
  /** Address that must have signed, 43 characters. */
  owner?: string;
  /**
   * `tx_root` of the block, from a node that you trust: the content must be in that block. Without it, the content is
   * signed by its owner, and the block is what the gateway says.
   */
  txRoot?: string;
  /** Largest content, in bytes; at most 16 MiB, the limit of proofs. */
  maxBytes?: number;
  /** Limit of time, in milliseconds. */
  timeoutMs?: number;
  signal?: AbortSignal;
}>;

/** Content that its owner signed under this id. */
export type Verified = Readonly<{
  bytes: Uint8Array<ArrayBuffer>;
  /** Value of the signed tag Content-Type. */
  type: string;
  tags: readonly Readonly<{ name: string; value: string }>[];
  /** Address of the owner. */
  owner: string;
  /** The block that the gateway shows; null if the content was not found to be in one. */
  block: Readonly<{ height: number; hash: string }> | null;
  steps: readonly ProofStep[];
}>;

/** The content is not what its id promises, or that cannot be checked here. */
export class VerificationError extends Error {
  /** Name of the step that does not hold. */
  readonly step: string;

  constructor(step: string, reason: string) {
    super(`${step}: ${reason}`);
    this.name = "VerificationError";
    this.step = step;
  }
}

const largestProof = 16 * 2 ** 20;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Fetches the content of an id, and verifies it.
 *
 * @param id - Of a transaction or a data item.
 * @throws VerificationError if the content is not what the owner signed, or this cannot be checked.
 * @throws Error if the gateway does not respond, or not with content.
 */
export async function fetchVerified(id: string, options: VerifyOptions): Promise<Verified> {
  const limit = AbortSignal.timeout(options.timeoutMs ?? 60_000);
  const signal = options.signal === undefined ? limit : AbortSignal.any([limit, options.signal]);
  const gateway = options.gateway.replace(/\/+$/, "");
  const proof: ProofRecord = JSON.parse(
    decoder.decode(await fetchBytes(`${gateway}/svc/proof/${id}`, 8 * largestProof, signal)),
  );
  const maxBytes = Math.min(options.maxBytes ?? largestProof, largestProof);
  const { size } = proof;
  if (!(size <= maxBytes))
    throw new VerificationError("Size", `The content has ${size} bytes; ${maxBytes} are allowed.`);
  const bytes = await fetchBytes(`${gateway}/raw/${id}`, size, signal);
  return await verifyContent(id, bytes, proof, options);
}

async function verifyContent(
  id: string,
  bytes: Bytes,
  proof: ProofRecord,
  { owner: expected, txRoot }: VerifyOptions,
): Promise<Verified> {
  if (proof.range.end !== proof.size) throw new VerificationError("Size", "The proof is of a part of the content.");
  const steps: ProofStep[] = [];
  for await (const step of checkProof(proof, id, bytes)) steps.push(step);
  const isPlaced = requireHolds(steps, txRoot);
  const signed = signedFieldsOf(proof);
  const owner = toBase64url(await sha256(signed.owner));
  if (expected !== undefined && expected !== owner)
    throw new VerificationError("Signature", `The owner is ${owner}, not ${expected}.`);
  const tags = signed.tags.map(({ name, value }) => ({ name: decoder.decode(name), value: decoder.decode(value) }));
  const type = tags.find(({ name }) => name.toLowerCase() === "content-type")?.value ?? "application/octet-stream";
  const block = isPlaced && proof.block !== null ? { height: proof.block.height, hash: proof.block.hash } : null;
  return { bytes, type, tags, owner, block, steps };
}

/** @returns Whether the content is in the block. @throws VerificationError for steps that are not enough. */
function requireHolds(steps: readonly ProofStep[], txRoot: string | undefined): boolean {
  const { failed, open, isPlaced, isSigned } = resultOf(steps);
  if (failed !== undefined) throw new VerificationError(failed.name, failed.text);
  if (!isSigned) throw new VerificationError("Signature", steps.at(-1)?.text ?? "It was not checked.");
  if (txRoot !== undefined && !isPlaced) throw new VerificationError("Block", open?.text ?? "It was not checked.");
  if (txRoot !== undefined && steps[0]?.hash !== txRoot)
    throw new VerificationError("Block", "The block has another tx_root.");
  return isPlaced;
}

/** Reads a response of at most `maxBytes`. */
async function fetchBytes(url: string, maxBytes: number, signal: AbortSignal): Promise<Bytes> {
  const response = await fetch(url, { signal, credentials: "omit" });
  if (!response.ok || response.body === null) throw new Error(`${url} responds with ${response.status}`);
  const parts: Uint8Array[] = [];
  let size = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > maxBytes) {
      await reader.cancel();
      throw new VerificationError("Size", `${url} sends more than ${maxBytes} bytes.`);
    }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts.map((part) => new Uint8Array(part))).arrayBuffer());
}
