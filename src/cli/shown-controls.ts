/**
 * Waits of the development chain's controls under `cairn dev`: the gateway has followed the chain, has indexed its
 * bundles and has cleared its response cache.
 *
 * A wait also ends when the gateway stops or makes no progress; the control then responds anyway.
 * @module
 */
import type { OpenProgram } from "../app/program.ts";
import type { Config } from "../config/settings.ts";
import type { Devnet } from "../dev/devnet/devnet.ts";
import type { Shown } from "../dev/devnet-routes/controls.ts";
import { type Clock, systemClock } from "../lib/clock.ts";

type ShowingGateway = Pick<OpenProgram, "reader" | "indexing" | "forgetAll" | "failPermanentUploads">;

/** The wait of the controls; before `by` is called they respond at once. */
export type ShownControls = Readonly<{
  shown: Shown;
  by: (gateway: ShowingGateway, devnet: Pick<Devnet, "height" | "tipHash" | "pendingIds">) => void;
}>;

/** Maximum wait without progress, and in total. Milliseconds. */
const stillMsMax = 5_000;
const waitMsMax = 60_000;

const askEveryMs = 5;

type Heights = Pick<Config, "START_HEIGHT" | "STOP_HEIGHT">;
type Chain = Pick<Devnet, "height" | "tipHash" | "pendingIds">;

export function createShownControls(heights: Heights, clock: Clock = systemClock): ShownControls {
  let wait: Shown = async () => undefined;
  return {
    shown: (control) => wait(control),
    by: (gateway, devnet) => {
      wait = async (control) => {
        if (control !== "mint") await untilFollowed(gateway, () => isShown(heights, gateway, devnet), clock);
        try {
          if (control === "reset") await endOldChain(gateway, devnet);
        } finally {
          gateway.forgetAll();
        }
      };
    },
  };
}

/** Ends what was on the old chain: anchors of its pending transactions are invalid, those of the new chain stay. */
async function endOldChain(gateway: ShowingGateway, devnet: Pick<Chain, "pendingIds">): Promise<void> {
  await gateway.indexing.removePendingBut(new Set(devnet.pendingIds()));
  await gateway.failPermanentUploads();
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

/** Whether the gateway has followed the chain up to STOP_HEIGHT and has indexed its bundles. */
function isShown({ START_HEIGHT, STOP_HEIGHT }: Heights, gateway: ShowingGateway, devnet: Chain): boolean {
  const { reader, indexing } = gateway;
  const height = devnet.height();
  if (typeof START_HEIGHT === "number" && height < START_HEIGHT) return true;
  const tip = reader.tip();
  const isStopped = STOP_HEIGHT !== undefined && height > STOP_HEIGHT;
  if (isStopped ? tip?.height !== STOP_HEIGHT : tip?.hash !== devnet.tipHash()) return false;
  return reader.counts().bundlesQueued === 0 && indexing.status().bundles.working.length === 0;
}
