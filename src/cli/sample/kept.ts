/**
 * The sample planted once for each chain: a later start finds where it lies.
 * @module
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readId } from "../../arweave/id.ts";
import type { Node } from "../../chain/node.ts";
import type { Devnet } from "../../devnet/devnet.ts";
import { isJsonObject, readJson } from "../../lib/json.ts";
import type { OpenGateway } from "../open/gateway.ts";
import { plantSample, type Sample } from "./plant.ts";

/** Long enough on a busy machine; without it the lines to try would lead nowhere. Milliseconds. */
const readableMsMax = 60_000;

const askEveryMs = 25;

/**
 * Finds the sample, or plants it and waits until the gateway serves it.
 *
 * @returns Undefined when the chain has no wallet that could pay for it.
 * @throws Failure when the chain does not take it, Error when the gateway does not serve it in time.
 */
export async function keptSample(
  dir: string,
  devnet: Devnet,
  node: Node,
  gateway: OpenGateway,
  seed: string,
): Promise<Sample | undefined> {
  const file = join(dir, "sample.json");
  const before = readKept(file, devnet);
  if (before !== undefined) return before;
  const wallet = devnet.wallets.find(({ type }) => type === "rsa");
  if (wallet === undefined) return undefined;
  const signal = AbortSignal.timeout(readableMsMax);
  const sample = await plantSample(node, wallet.jwk, seed, signal);
  if (devnet.pendingIds().length > 0) await devnet.mine(1);
  await untilServed(gateway, sample, signal);
  writeFileSync(`${file}.new`, JSON.stringify(sample));
  renameSync(`${file}.new`, file);
  return sample;
}

/** A chain that was reset has forgotten its sample. */
function readKept(file: string, devnet: Devnet): Sample | undefined {
  if (!existsSync(file)) return undefined;
  const kept = readJson(readFileSync(file, "utf8"));
  if (!isJsonObject(kept)) return undefined;
  const [manifest, sound, bundle] = [kept["manifest"], kept["sound"], kept["bundle"]].map((id) =>
    typeof id === "string" ? readId(id) : undefined,
  );
  if (manifest === undefined || sound === undefined || bundle === undefined) return undefined;
  return devnet.transaction(bundle).kind === "mined" ? { manifest, sound, bundle } : undefined;
}

async function untilServed(gateway: OpenGateway, sample: Sample, signal: AbortSignal): Promise<void> {
  for (const id of [sample.sound, sample.manifest]) {
    while (gateway.reader.locate(id)?.pending !== false) {
      signal.throwIfAborted();
      await Bun.sleep(askEveryMs);
    }
  }
}
