/**
 * What the controls of the development chain wait for under `cairn dev`: the gateway has followed the chain, has
 * indexed its bundles and has forgotten what it kept of responses.
 *
 * A wait ends when the gateway stops, or makes no progress for a while: then the control responds all the same.
 * @module
 */

import type { OpenGateway } from "../app/gateway.ts";
import type { Config } from "../config/settings.ts";
import type { Devnet } from "../dev/devnet/devnet.ts";
import type { Shown } from "../dev/devnet-routes/controls.ts";
import { type Clock, systemClock } from "../lib/clock.ts";

/** The gateway, as far as a control waits for it. */
type ShowingGateway = Pick<OpenGateway, "reader" | "indexing" | "forgetAll">;

/** The wait of the controls; until `by` was called they respond at once. */
export type ShownControls = Readonly<{
  shown: Shown;
  by: (gateway: ShowingGateway, devnet: Pick<Devnet, "height" | "tipHash" | "pendingIds">) => void;
}>;

/** Longest wait without progress, and in all. Milliseconds. */
const stillMsMax = 5_000;
const waitMsMax = 60_000;

const askEveryMs = 5;

type Heights = Pick<Config, "START_HEIGHT" | "STOP_HEIGHT">;
type Chain = Pick<Devnet, "height" | "tipHash" | "pendingIds">;

/** Creates it. */
export function createShownControls(heights: Heights, clock: Clock = systemClock): ShownControls {
  let wait: Shown = async () => undefined;
  return {
    shown: (control) => wait(control),
    by: (gateway, devnet) => {
      wait = async (control) => {
        if (control !== "mint") await untilFollowed(gateway, () => isShown(heights, gateway, devnet), clock);
        // Anchors of the chain before are dead; what waits now was posted after it.
        if (control === "reset") await gateway.indexing.removePendingBut(new Set(devnet.pendingIds()));
        gateway.forgetAll();
      };
    },
  };
}

async function untilFollowed({ reader, indexing }: ShowingGateway, isDone: () => boolean, clock: Clock): Promise<void> {
  const progress = () => `${reader.tip()?.hash} ${JSON.stringify(reader.counts())}`;
  const start = clock();
  let last = progress();
  let lastAt = start;
  while (!isDone() && indexing.status().follow.running) {
    indexing.wake();
    const now = clock();
    const next = progress();
    if (next !== last) lastAt = now;
    last = next;
    if (now - lastAt > stillMsMax || now - start > waitMsMax) return;
    await Bun.sleep(askEveryMs);
  }
}

/** Whether the gateway has followed the chain, as far as it goes, and has indexed its bundles. */
function isShown({ START_HEIGHT, STOP_HEIGHT }: Heights, gateway: ShowingGateway, devnet: Chain): boolean {
  const { reader, indexing } = gateway;
  const height = devnet.height();
  if (typeof START_HEIGHT === "number" && height < START_HEIGHT) return true;
  const tip = reader.tip();
  const isStopped = STOP_HEIGHT !== undefined && height > STOP_HEIGHT;
  if (isStopped ? tip?.height !== STOP_HEIGHT : tip?.hash !== devnet.tipHash()) return false;
  return reader.counts().bundlesQueued === 0 && indexing.status().bundles.working.length === 0;
}
