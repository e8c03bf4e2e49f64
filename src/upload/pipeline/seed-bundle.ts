/**
 * Seeds a bundle: posts its chunks to the nodes, a few at a time, and stores the progress. Seeding can be repeated:
 * nodes accept a chunk that they already have.
 * Source: docs/reference/upload.md#from-an-item-to-the-chain; docs/reference/node-api.md#posting-chunks.
 * @module
 */
import type { BundleChunksJob } from "../../../workers/bundles.ts";
import { chunkSpans } from "../../arweave/merkle.ts";
import { readTransactionHeader } from "../../arweave/transaction.ts";
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { linkedController, sleep } from "../../lib/stop.ts";
import { openParcel } from "../../threads/parcel.ts";
import { type Bundle, noteSeeded, returnBundle, stepBundle } from "./bundle-rows.ts";
import type { StepParts } from "./pipeline-context.ts";
import { makeLayout } from "./prepare-bundle.ts";

/** Chunks of a job, and jobs at once: 4 MB in memory. */
const chunksPerJob = 4;
const slots = 3;

/** Chunks between two writes of the progress: 32 MiB, which a restart posts again. */
const chunksPerNote = 128;

/** Attempts for a chunk that no node accepts, with exponential backoff. */
const triesMax = 5;
const pauseMs = 200;

/** The error of nodes for a chunk of a transaction that they do not know, or not yet. */
const unknownRoot = "data_root_not_found";

/** Errors of nodes for a chunk that does not match its transaction. */
const wrongWords: ReadonlySet<string> = new Set([
  "invalid_proof",
  "invalid_json",
  "chunk_too_big",
  "data_path_too_big",
  "offset_too_big",
  "data_size_too_big",
  "chunk_proof_ratio_not_attractive",
]);

/** Outcome of a seeding. */
type SeedEnd =
  | Readonly<{ kind: "seeded" }>
  /** The nodes do not know the transaction. */
  | Readonly<{ kind: "unknown" }>
  /** The chunks do not match the transaction, or cannot be made. */
  | Readonly<{ kind: "no-layout" | "wrong"; reason: string }>;

/** @throws Failure `source_failed` {reason} when no node accepts a chunk; `busy`. */
export async function seed(parts: StepParts, bundle: Bundle, signal: AbortSignal): Promise<void> {
  const { ledger, chain, rules, clock, log } = parts;
  const { transaction } = bundle;
  assert(transaction !== undefined, "a bundle is posted with its transaction");
  const { dataRoot } = readTransactionHeader(transaction.text);
  const end = await seedChunks(parts, bundle, dataRoot, signal);
  const now = clock();
  if (end.kind === "seeded") {
    // The index can now read the bytes. Its filters may exclude the bundle, which is requested nevertheless.
    await chain.wantIndexed(transaction.id);
    await ledger.write((tx) => stepBundle(tx, { bundle, to: "seeded", now, nextAt: now + rules.lookMs }));
    return;
  }
  if (end.kind === "unknown") {
    const reason = "the nodes do not know the transaction of the chunks";
    log.warn("a bundle is posted again", { bundleId: bundle.id, transaction: transaction.id, reason });
    const nextAt = now + pauseAfter(parts, bundle);
    await ledger.write((tx) => returnBundle(tx, { bundle, to: "prepared", now, nextAt, reason }));
    return;
  }
  // Verifies the items again: a changed item ends the bundle.
  const layout = await makeLayout(parts, bundle, signal);
  if (layout !== undefined)
    throw new Failure("source_failed", { reason: `the nodes rejected chunks of a bundle: ${end.reason}` });
}

/** Backoff for the time in which nodes pass the transaction to each other. */
function pauseAfter({ rules }: StepParts, { attempts }: Bundle): number {
  return Math.min(rules.againMs, rules.lookMs * 2 ** Math.min(attempts, attemptsDoubledMax));
}

const attemptsDoubledMax = 10;

/** Posts the chunks after the stored progress. */
async function seedChunks(parts: StepParts, bundle: Bundle, dataRoot: string, signal: AbortSignal): Promise<SeedEnd> {
  const count = chunkSpans(bundle.dataSize, "halved").filter(({ start, end }) => start < end).length;
  const progress = createProgress(bundle.seededChunks);
  const own = linkedController(signal);
  let next = bundle.seededChunks;
  let noted = next;
  let end: SeedEnd | undefined;

  async function slot(): Promise<void> {
    while (next < count && end === undefined) {
      const first = next;
      next = Math.min(count, first + chunksPerJob);
      const run = { first, count: next - first, dataRoot };
      const bad = await sendRun(parts, bundle, run, own.controller.signal);
      end ??= bad;
      if (bad === undefined) progress.done(first, run.count);
      if (progress.count() - noted >= chunksPerNote) await note();
    }
  }

  async function note(): Promise<void> {
    noted = progress.count();
    await parts.ledger.write((tx) => noteSeeded(tx, bundle, noted));
  }

  const work = Array.from({ length: slots }, () => slot());
  try {
    await Promise.all(work);
  } finally {
    own.unlink();
    own.controller.abort(new DOMException("another chunk could not be sent", "AbortError"));
    await Promise.allSettled(work);
    if (progress.count() > noted && !signal.aborted) await note();
  }
  return end ?? { kind: "seeded" };
}

type ChunkRun = Readonly<{ first: number; count: number; dataRoot: string }>;

/** Makes and posts a run of chunks. @returns The outcome that ends the seeding; `undefined` if all were accepted. */
async function sendRun(
  parts: StepParts,
  bundle: Bundle,
  run: ChunkRun,
  signal: AbortSignal,
): Promise<Exclude<SeedEnd, Readonly<{ kind: "seeded" }>> | undefined> {
  const made = await makeRun(parts, bundle, run, signal);
  if (made.kind === "no-layout") return made;
  const ends = await Promise.all(made.bodies.map((body) => sendChunk(parts, body, signal)));
  return ends.find((each) => each !== undefined);
}

/** The request bodies of a run of chunks. */
type MadeRun =
  | Readonly<{ kind: "made"; bodies: readonly Uint8Array<ArrayBuffer>[] }>
  | Readonly<{ kind: "no-layout"; reason: string }>;

async function makeRun(
  { threads, folder }: StepParts,
  bundle: Bundle,
  run: ChunkRun,
  signal: AbortSignal,
): Promise<MadeRun> {
  const parcel = openParcel();
  const { port } = parcel;
  try {
    const job: BundleChunksJob = { folder, bundleId: bundle.id, ...run, port };
    const response = await threads.run("bundleChunks", job, { signal, transfer: [port] });
    if (response.kind === "no-layout") return { kind: "no-layout", reason: "its layout is missing" };
    if (response.kind === "fault") return { kind: "no-layout", reason: response.reason };
    const bodies = parcel.take();
    assert(bodies?.length === run.count, "as many chunks are made as were requested");
    return { kind: "made", bodies };
  } finally {
    parcel.close();
  }
}

async function sendChunk(
  { chain }: StepParts,
  body: Uint8Array<ArrayBuffer>,
  signal: AbortSignal,
): Promise<Exclude<SeedEnd, Readonly<{ kind: "seeded" }>> | undefined> {
  for (let tried = 1; ; tried += 1) {
    const posted = await chain.post("/chunk", body, signal);
    if (posted.kind === "taken") return undefined;
    if (posted.kind === "rejected" && posted.word === unknownRoot) return { kind: "unknown" };
    if (posted.kind === "rejected" && wrongWords.has(posted.word)) return { kind: "wrong", reason: posted.reason };
    if (tried === triesMax)
      throw new Failure("source_failed", { reason: `no node accepted a chunk: ${posted.reason}` });
    await sleep(pauseMs * 2 ** (tried - 1), signal);
  }
}

/** Counts the contiguous chunks that are done, which end in any order. */
function createProgress(start: number) {
  const ended = new Map<number, number>();
  let reached = start;
  return {
    count: () => reached,
    done: (first: number, count: number) => {
      ended.set(first, count);
      for (let run = ended.get(reached); run !== undefined; run = ended.get(reached)) {
        ended.delete(reached);
        reached += run;
      }
    },
  };
}
