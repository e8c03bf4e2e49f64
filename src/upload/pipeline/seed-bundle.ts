/**
 * Seeding: handing the chunks of a bundle to the nodes, a few at a time, and noting how far it came. All of it may be
 * done again: a node that has a chunk says so.
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
import { layOut } from "./prepare-bundle.ts";

/** Chunks are made in jobs of so many, of which so many are made or sent at once: 4 MB in memory. */
const chunksPerJob = 4;
const slots = 3;

/** Progress is written to the ledger after so many chunks: 32 MiB, which a restart sends again. */
const chunksPerNote = 128;

/** A chunk that nobody could be reached for is tried so often, after longer and longer pauses. */
const triesMax = 5;
const pauseMs = 200;

/** What nodes say of a chunk whose transaction they do not know, or not yet. */
const unknownRoot = "data_root_not_found";

/** What nodes say of a chunk that is not what its transaction says. */
const wrongWords: ReadonlySet<string> = new Set([
  "invalid_proof",
  "invalid_json",
  "chunk_too_big",
  "data_path_too_big",
  "offset_too_big",
  "data_size_too_big",
  "chunk_proof_ratio_not_attractive",
]);

/** How the seeding of a bundle ended. */
type SeedEnd =
  | Readonly<{ kind: "seeded" }>
  /** The nodes do not know the transaction. */
  | Readonly<{ kind: "unknown" }>
  /** The chunks are not those of the transaction, or cannot be made. */
  | Readonly<{ kind: "unlaid" | "wrong"; reason: string }>;

/** Seeds the chunks. @throws Failure `source_failed` {reason} when nodes could not be reached for one, `busy`. */
export async function seed(parts: StepParts, bundle: Bundle, signal: AbortSignal): Promise<void> {
  const { ledger, chain, rules, clock, log } = parts;
  const { transaction } = bundle;
  assert(transaction !== undefined, "a bundle is posted with its transaction");
  const { dataRoot } = readTransactionHeader(transaction.text);
  const end = await seedChunks(parts, bundle, dataRoot, signal);
  const now = clock();
  if (end.kind === "seeded") {
    // What our own index could not read before is there now; it is also told of a bundle that it does not want.
    await chain.wantIndexed(transaction.id);
    await ledger.write((tx) => stepBundle(tx, { bundle, to: "seeded", now, nextAt: now + rules.lookMs }));
    return;
  }
  if (end.kind === "unknown") {
    const reason = "the nodes do not know the transaction whose chunks they are sent";
    log.warn("a bundle is posted again", { bundleId: bundle.id, transaction: transaction.id, reason });
    const nextAt = now + pauseAfter(parts, bundle);
    await ledger.write((tx) => returnBundle(tx, { bundle, to: "prepared", now, nextAt, reason }));
    return;
  }
  // Its items are compared again: those that have changed since it was laid out end the bundle.
  const laid = await layOut(parts, bundle, signal);
  if (laid !== undefined)
    throw new Failure("source_failed", { reason: `the chunks of a bundle were not taken: ${end.reason}` });
}

/** Nodes hear of a transaction one from another: at first that takes moments. */
function pauseAfter({ rules }: StepParts, { attempts }: Bundle): number {
  return Math.min(rules.againMs, rules.lookMs * 2 ** Math.min(attempts, attemptsDoubledMax));
}

const attemptsDoubledMax = 10;

/** Sends the chunks from where it stopped. */
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

/** Makes and sends a run of chunks. @returns What ends the seeding; `undefined` when all were taken. */
async function sendRun(
  parts: StepParts,
  bundle: Bundle,
  run: ChunkRun,
  signal: AbortSignal,
): Promise<Exclude<SeedEnd, Readonly<{ kind: "seeded" }>> | undefined> {
  const made = await makeRun(parts, bundle, run, signal);
  if (made.kind === "unlaid") return made;
  const ends = await Promise.all(made.bodies.map((body) => sendChunk(parts, body, signal)));
  return ends.find((each) => each !== undefined);
}

/** A run of chunks as nodes take them. */
type MadeRun =
  | Readonly<{ kind: "made"; bodies: readonly Uint8Array<ArrayBuffer>[] }>
  | Readonly<{ kind: "unlaid"; reason: string }>;

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
    if (response.kind === "unlaid") return { kind: "unlaid", reason: "its layout is not there" };
    if (response.kind === "fault") return { kind: "unlaid", reason: response.reason };
    const bodies = parcel.take();
    assert(bodies?.length === run.count, "as many chunks are made as were asked for");
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
    if (tried === triesMax) throw new Failure("source_failed", { reason: `a chunk was not taken: ${posted.reason}` });
    await sleep(pauseMs * 2 ** (tried - 1), signal);
  }
}

/** How many of the first chunks are done, where they end in any order. */
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
