/**
 * Paths of manifests that are too large to be read between two requests: a thread builds an index of each, once, which
 * is stored on the disk and read by binary search.
 *
 * A build goes on when its clients have left: its index serves the next ones. Who may see the manifest is the
 * caller's question, before each look-up.
 * Source: docs/decisions/090-manifest-indexes.md.
 * @module
 */
import { manifestSizeMax, type ResolvedPath } from "../arweave/manifest.ts";
import { saltSize } from "../arweave/manifest-scan.ts";
import type { OpenContent } from "../content/opened-content.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { createSemaphore, type Release } from "../lib/semaphore.ts";
import { ignoreRejection, isTimeout, untilStopped, withDeadline } from "../lib/stop.ts";
import {
  type BeginIndex,
  type BuildIndexJob,
  type BuildIndexResult,
  buildPieceBytes,
  type LeaveIndexJob,
} from "../store/manifests/manifest-index-build.ts";
import type { IndexKey, ManifestIndexes } from "../store/manifests/manifest-indexes.ts";
import type { Pool, Workers } from "../threads/pool.ts";

export type LargeManifests = Readonly<{
  /**
   * @returns Undefined when the manifest does not contain the path.
   * Rejects with Failure `manifest_too_large`; `malformed_input` with `context.reason` when it cannot be read; `busy`
   * when its index cannot be built now; as reading its content does; with the signal's reason.
   */
  resolve: (manifest: OpenContent, path: string, signal: AbortSignal) => Promise<ResolvedPath | undefined>;
  /** Ends the builds under way. */
  close: () => Promise<void>;
}>;

export type LargeManifestsOptions = Readonly<{
  indexes: ManifestIndexes;
  /** Of one thread each, entry `manifests`: as many indexes are built at once. */
  builders: readonly Pick<Pool<Workers["manifests"]>, "run">[];
  /** Returns unpredictable bytes. */
  randomBytes: (size: number) => Uint8Array;
  clock: Clock;
  log: Log;
}>;

/** Limit of running and waiting builds; further ones are rejected. */
const buildsMax = 32;

/** Timeout of the wait for a builder. Milliseconds. */
const waitMsMax = 20_000;

/** Timeout of fetching the content, and of building the index. Milliseconds. */
const fetchMsMax = 60_000;
const buildMsMax = 60_000;

/** Attempts to rebuild an index that was evicted or damaged. */
const attemptsMax = 3;

export function createLargeManifests(options: LargeManifestsOptions): LargeManifests {
  const { indexes } = options;
  const life = new AbortController();
  const building = new Map<string, Promise<void>>();
  const builders = createBuilders(options, life.signal);

  function build(manifest: OpenContent): Promise<void> {
    const key = keyOf(manifest);
    const name = `${key.id} ${key.verified}`;
    const known = building.get(name);
    if (known !== undefined) return known;
    if (building.size >= buildsMax) throw new Failure("busy", { id: key.id, building: building.size });
    const work = bring(manifest, life.signal)
      .then(() => builders.build(key, manifest))
      .finally(() => building.delete(name));
    ignoreRejection(work); // every client has its own copy of a failure
    building.set(name, work);
    return work;
  }

  return {
    async resolve(manifest, path, signal) {
      const { id, size } = manifest;
      if (size > manifestSizeMax)
        throw new Failure("manifest_too_large", {
          id,
          size,
          manifestSizeMax,
          reason: `the manifest has ${size} bytes, at most ${manifestSizeMax} are read`,
        });
      for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
        const response = await indexes.lookUp(keyOf(manifest), path);
        if (response?.kind === "found") return response.resolved;
        if (response?.kind === "unreadable") throw new Failure("malformed_input", { id, reason: response.reason });
        signal.throwIfAborted();
        await untilStopped(build(manifest), signal);
      }
      throw new Failure("busy", { id, reason: "its index does not stay" });
    },
    close: async () => {
      life.abort(new DOMException("the gateway was closed", "AbortError"));
      await Promise.allSettled(building.values());
    },
  };
}

function keyOf({ id, verified }: OpenContent): IndexKey {
  return { id, verified };
}

/** Stores a manifest on this disk, so that no builder waits for a slow source. */
async function bring(manifest: OpenContent, life: AbortSignal): Promise<void> {
  const whole = { start: 0, end: manifest.size };
  if (manifest.root === undefined || manifest.cached(whole)) return;
  await ended("source_timeout", life, fetchMsMax, async (signal) => {
    const pieces = manifest.read(whole, signal)[Symbol.asyncIterator]();
    while (!(await pieces.next()).done);
  });
}

async function ended<Value>(
  code: "source_timeout" | "busy",
  life: AbortSignal,
  ms: number,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  try {
    return await withDeadline(life, ms, work);
  } catch (error) {
    if (isTimeout(error)) throw new Failure(code, { ms }, error);
    throw error;
  }
}

type Builder = Pick<Pool<Workers["manifests"]>, "run">;

function createBuilders({ indexes, builders, randomBytes, clock, log }: LargeManifestsOptions, life: AbortSignal) {
  const idle: Builder[] = [...builders];
  const semaphore = createSemaphore(builders.length, buildsMax);

  async function takePermit(signal: AbortSignal): Promise<Release> {
    const slot = semaphore.take(signal);
    if (slot === undefined) throw new Failure("busy", { waiting: semaphore.waiting() });
    return await slot;
  }

  async function buildWith(builder: Builder, key: IndexKey, manifest: OpenContent): Promise<void> {
    const { path, temporaryPath } = indexes.place(key);
    const { id, size } = manifest;
    const begin = { id, size, path, temporaryPath, salt: randomBytes(saltSize), builtAt: clock() };
    const response = await ended("busy", life, buildMsMax, (signal) => feed(builder, begin, manifest, signal));
    if (response.kind === "built") {
      indexes.add(key, response.bytes);
      return;
    }
    log.warn("the index of a manifest could not be built", { id, ...response });
    throw new Failure("busy", { id, ...response });
  }

  return {
    async build(key: IndexKey, manifest: OpenContent): Promise<void> {
      const release = await ended("busy", life, waitMsMax, takePermit);
      const builder = idle.pop();
      assert(builder !== undefined, "there is a builder for every permit");
      try {
        await buildWith(builder, key, manifest);
      } finally {
        idle.push(builder);
        release();
      }
    },
  };
}

/** Passes a manifest to a builder piece by piece, until the index is complete or the builder stops. */
async function feed(
  pool: Builder,
  begin: BeginIndex,
  manifest: OpenContent,
  signal: AbortSignal,
): Promise<BuildIndexResult> {
  const session = begin.temporaryPath;
  const shared = new SharedArrayBuffer(buildPieceBytes);
  const buffer = new Uint8Array(shared);
  let held = 0;
  let given = 0;

  async function give(isLast: boolean): Promise<BuildIndexResult> {
    const first = given === 0 ? { begin } : {};
    const job: BuildIndexJob = { session, shared, size: held, isLast, ...first };
    given += held;
    held = 0;
    // Not aborted with the wait: the builder owns the buffer until it responds.
    return await pool.run("buildIndex", job);
  }

  let response: BuildIndexResult = { kind: "more" };
  try {
    for await (const piece of manifest.read({ start: 0, end: manifest.size }, signal)) {
      for (let at = 0; at < piece.length; ) {
        if (held === buffer.length) response = await give(false);
        if (response.kind !== "more") return response;
        const part = piece.subarray(at, at + buffer.length - held);
        buffer.set(part, held);
        held += part.length;
        at += part.length;
      }
    }
    response = await give(true);
    return response;
  } finally {
    const left: LeaveIndexJob = { session };
    if (response.kind === "more" && given > 0) ignoreRejection(pool.run("leaveIndex", left));
  }
}
