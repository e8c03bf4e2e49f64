/**
 * The sample planted once for each chain: a later start finds its place.
 *
 * The sample is an offer. No start fails for want of it: where the settings exclude it, where the chain is reset while
 * it is planted, or where it takes too long, the start goes on without.
 * @module
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { OpenGateway } from "../app/gateway.ts";
import { readId } from "../arweave/id.ts";
import type { Node } from "../chain/node.ts";
import type { Config } from "../config/settings.ts";
import type { Devnet } from "../dev/devnet/devnet.ts";
import { plantSample, type Sample } from "../dev/sample/sample-site.ts";
import { Failure } from "../failures.ts";
import { isJsonObject, type JsonObject, readJson } from "../lib/json.ts";
import type { Log } from "../lib/log.ts";
import { sleep } from "../lib/stop.ts";

/** What the sample is planted with. */
export type SampleParts = Readonly<{
  /** Where it is written down. */
  dir: string;
  devnet: Devnet;
  node: Node;
  gateway: Pick<OpenGateway, "reader">;
  config: Pick<Config, "DEVNET_SEED" | "START_HEIGHT" | "STOP_HEIGHT">;
  log: Log;
}>;

/** Long enough on a busy machine. Milliseconds. */
const readableMsMax = 60_000;

/** The chain may be reset meanwhile, by whoever has found it already: then it is planted again, this often. */
const plantingsMax = 3;

const askEveryMs = 25;

/**
 * Finds the sample, or plants it and waits until the gateway serves it.
 *
 * @returns Undefined when the chain has no wallet that could pay for it, or it is not served: the log says why.
 * @throws The reason of `stop`.
 */
export async function storedSample(parts: SampleParts, stop: AbortSignal): Promise<Sample | undefined> {
  const { dir, devnet, log } = parts;
  const file = join(dir, "sample.json");
  const before = readStored(file, devnet);
  if (before !== undefined) return isExcluded(parts, before) ? undefined : before;
  const wallet = devnet.wallets.find(({ type }) => type === "rsa");
  if (wallet === undefined) return undefined;
  const planted = await plantUntilServed(parts, wallet.jwk, stop);
  if (planted === undefined) return undefined;
  writeFileSync(`${file}.new`, JSON.stringify(planted.sample));
  renameSync(`${file}.new`, file);
  if (planted.outcome === "served") return planted.sample;
  log.info("the sample site is on the chain; the settings exclude it from the index");
  return undefined;
}

type Planted = Readonly<{ sample: Sample; outcome: "served" | "excluded" }>;

/** Plants it, again where the chain was reset meanwhile. @returns Undefined when it is not served: the log says why. */
async function plantUntilServed(parts: SampleParts, jwk: JsonObject, stop: AbortSignal): Promise<Planted | undefined> {
  const late = AbortSignal.timeout(readableMsMax);
  const signal = AbortSignal.any([stop, late]);
  let reason: unknown = "the chain was reset while it was planted";
  for (let tries = 1; tries <= plantingsMax && !late.aborted; tries += 1) {
    try {
      const sample = await plantAndMine(parts, jwk, signal);
      const outcome = await untilServed(parts, sample, signal);
      if (outcome !== "gone") return { sample, outcome };
    } catch (error) {
      stop.throwIfAborted();
      // A failure is the chain's; another error is a defect, unless it only says that time is up.
      if (!(error instanceof Failure || late.aborted)) throw error;
      reason = late.aborted ? `it was not readable within ${readableMsMax} ms` : failureText(error);
    }
  }
  parts.log.warn("the sample site was not planted", { reason, tip: parts.gateway.reader.tip()?.height });
  return undefined;
}

function failureText(error: unknown): unknown {
  return error instanceof Failure ? (error.context["reason"] ?? error.message) : error;
}

async function plantAndMine(
  { devnet, node, config }: SampleParts,
  jwk: JsonObject,
  signal: AbortSignal,
): Promise<Sample> {
  const sample = await plantSample(node, jwk, config.DEVNET_SEED, signal);
  if (devnet.pendingIds().length > 0) await devnet.mine(1);
  return sample;
}

/** A chain that was reset has forgotten its sample. */
function readStored(file: string, devnet: Devnet): Sample | undefined {
  if (!existsSync(file)) return undefined;
  const stored = readJson(readFileSync(file, "utf8"));
  if (!isJsonObject(stored)) return undefined;
  const [manifest, sound, bundle] = [stored["manifest"], stored["sound"], stored["bundle"]].map((id) =>
    typeof id === "string" ? readId(id) : undefined,
  );
  if (manifest === undefined || sound === undefined || bundle === undefined) return undefined;
  return devnet.transaction(bundle).kind === "mined" ? { manifest, sound, bundle } : undefined;
}

/** Waits for the verdict of whoever indexes it: that it is there, or that a setting has excluded it. */
async function untilServed(
  parts: SampleParts,
  sample: Sample,
  signal: AbortSignal,
): Promise<"served" | "excluded" | "gone"> {
  const { devnet, gateway } = parts;
  for (;;) {
    if ([sample.sound, sample.manifest].every((id) => gateway.reader.locate(id)?.pending === false)) return "served";
    if (devnet.transaction(sample.bundle).kind === "unknown") return "gone";
    if (isExcluded(parts, sample)) return "excluded";
    await sleep(askEveryMs, signal);
  }
}

/** Whether the gateway never indexes it: its block is outside of the heights, or a filter has left it out. */
function isExcluded({ devnet, gateway, config }: SampleParts, sample: Sample): boolean {
  const { START_HEIGHT: start, STOP_HEIGHT: end } = config;
  const isOutside = [sample.sound, sample.bundle].some((id) => {
    const found = devnet.transaction(id);
    if (found.kind !== "mined") return false;
    const { height } = found.transaction;
    return (typeof start === "number" && height < start) || (end !== undefined && height > end);
  });
  // Asked before the place: when all of the bundle is indexed, the manifest has its place or never gets one.
  const status = gateway.reader.bundleStatus(sample.bundle);
  const isDone = (status?.lastSkippedAt ?? status?.lastFullyIndexedAt ?? null) !== null;
  return (isOutside || isDone) && gateway.reader.locate(sample.manifest)?.pending !== false;
}
