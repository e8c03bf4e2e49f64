/**
 * Posts the sample site once to each development chain; a later start reads its ids from a file.
 *
 * The sample is optional. The start continues without it when the settings exclude it, when the chain is reset during
 * the post, or after a timeout.
 * @module
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { OpenGateway } from "../app/open-gateway.ts";
import { readId } from "../arweave/id.ts";
import type { Node } from "../chain/node.ts";
import type { Config } from "../config/settings.ts";
import type { Devnet } from "../dev/devnet/devnet.ts";
import { postSample, type Sample } from "../dev/sample/sample-site.ts";
import { Failure } from "../failures.ts";
import { isJsonObject, type JsonObject, readJson } from "../lib/json.ts";
import type { Log } from "../lib/log.ts";
import { sleep } from "../lib/stop.ts";

export type SampleParts = Readonly<{
  /** Folder of the file with the sample's ids. */
  dir: string;
  devnet: Devnet;
  node: Node;
  gateway: Pick<OpenGateway, "reader">;
  config: Pick<Config, "DEVNET_SEED" | "START_HEIGHT" | "STOP_HEIGHT">;
  log: Log;
}>;

/** Timeout until the gateway serves the sample; long enough on a busy machine. Milliseconds. */
const readableMsMax = 60_000;

/** A client may reset the chain during the post; the sample is then posted again, at most this often in total. */
const attemptsMax = 3;

const askEveryMs = 25;

/**
 * Finds the sample, or posts it and waits until the gateway serves it.
 *
 * @returns Undefined when no wallet can pay, or the gateway does not serve the sample; the reason is logged.
 * @throws The reason of `stop`.
 */
export async function storedSample(parts: SampleParts, stop: AbortSignal): Promise<Sample | undefined> {
  const { dir, devnet, log } = parts;
  const file = join(dir, "sample.json");
  const before = readStored(file, devnet);
  if (before !== undefined) return isExcluded(parts, before) ? undefined : before;
  const wallet = devnet.wallets.find(({ type }) => type === "rsa");
  if (wallet === undefined) return undefined;
  const posted = await postUntilServed(parts, wallet.jwk, stop);
  if (posted === undefined) return undefined;
  writeFileSync(`${file}.new`, JSON.stringify(posted.sample));
  renameSync(`${file}.new`, file);
  if (posted.outcome === "served") return posted.sample;
  log.info("the sample site is on the chain; the settings exclude it from the index");
  return undefined;
}

type Posted = Readonly<{ sample: Sample; outcome: "served" | "excluded" }>;

/** Posts the sample, again after a reset of the chain. @returns Undefined after a failure, which is logged. */
async function postUntilServed(parts: SampleParts, jwk: JsonObject, stop: AbortSignal): Promise<Posted | undefined> {
  const late = AbortSignal.timeout(readableMsMax);
  const signal = AbortSignal.any([stop, late]);
  let reason: unknown = "the chain was reset during the post";
  for (let tries = 1; tries <= attemptsMax && !late.aborted; tries += 1) {
    try {
      const sample = await postAndMine(parts, jwk, signal);
      const outcome = await untilServed(parts, sample, signal);
      if (outcome !== "gone") return { sample, outcome };
    } catch (error) {
      stop.throwIfAborted();
      // A Failure comes from the chain. Another error is a defect, unless it only reports the timeout.
      if (!(error instanceof Failure || late.aborted)) throw error;
      reason = late.aborted ? `not readable within ${readableMsMax} ms` : failureText(error);
    }
  }
  parts.log.warn("the sample site was not posted", { reason, tip: parts.gateway.reader.tip()?.height });
  return undefined;
}

function failureText(error: unknown): unknown {
  return error instanceof Failure ? (error.context["reason"] ?? error.message) : error;
}

async function postAndMine(
  { devnet, node, config }: SampleParts,
  jwk: JsonObject,
  signal: AbortSignal,
): Promise<Sample> {
  const sample = await postSample(node, jwk, config.DEVNET_SEED, signal);
  if (devnet.pendingIds().length > 0) await devnet.mine(1);
  return sample;
}

/** The sample of the file, unless the chain was reset since. */
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

/** Waits until the gateway has indexed the sample, or a setting has excluded it. */
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

/** Whether the gateway never indexes the sample: its block is outside the heights, or a filter excludes it. */
function isExcluded({ devnet, gateway, config }: SampleParts, sample: Sample): boolean {
  const { START_HEIGHT: start, STOP_HEIGHT: end } = config;
  const isOutside = [sample.sound, sample.bundle].some((id) => {
    const found = devnet.transaction(id);
    if (found.kind !== "mined") return false;
    const { height } = found.transaction;
    return (typeof start === "number" && height < start) || (end !== undefined && height > end);
  });
  // Read before the place: in a fully indexed bundle the manifest either has a place, or never gets one.
  const status = gateway.reader.bundleStatus(sample.bundle);
  const isDone = (status?.lastSkippedAt ?? status?.lastFullyIndexedAt ?? null) !== null;
  return (isOutside || isDone) && gateway.reader.locate(sample.manifest)?.pending !== false;
}
