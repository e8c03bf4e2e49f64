/**
 * The sandbox under `dev`: replaces Stripe and the price feed, on this machine alone, without a network.
 *
 * It is a server like those that it replaces: the payment service reaches it over a socket, and it reports to the
 * payment service's listener over another.
 * @module
 */

import type { Config } from "../config/settings.ts";
import { createSandboxPriceFeed } from "../dev/sandbox/price-feed.ts";
import { openStripeSandbox } from "../dev/sandbox/stripe.ts";
import { createSandboxRoutes } from "../dev/sandbox-routes/sandbox-routes.ts";
import { checkPortFree } from "../http/listener.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import { claimPort } from "./claim-port.ts";
import type { DataFolder } from "./data-folder.ts";
import { storedKey } from "./keys.ts";
import { systemRandom } from "./random.ts";

/** What the sandbox is opened with. */
export type SandboxParts = Readonly<{
  config: Pick<Config, "SANDBOX_PORT">;
  folder: Pick<DataFolder, "sandbox" | "keys">;
  log: Log;
  closers: Closers;
}>;

/** The sandbox, open. */
export type OpenSandbox = Readonly<{
  url: string;
  /** How the payment service reaches the sandbox's Stripe. */
  stripe: Readonly<{ url: string; secretKey: string; webhookSecret: string }>;
  /** The sandbox's price feed. */
  feedUrl: string;
  /** From now on it reports to the payment service there, also what waited. @param paymentUrl - Its origin. */
  reportTo: (paymentUrl: string) => void;
}>;

/** Pages and forms; what is larger is nobody's. Bytes. */
const bodyBytesMax = 512 * 1_024;

/** Opens it; it is closed by `closers`. Throws when the port is taken. */
export function openSandbox({ config, folder, log, closers }: SandboxParts): OpenSandbox {
  const sandbox = openStripeSandbox({ path: folder.sandbox, clock: systemClock, random: systemRandom, log });
  closers.add("sandbox", sandbox.close);
  // Stored, so that a restarted payment service still knows it.
  const key = storedKey(folder.keys, "sandbox").toHex();
  const secretKey = `sk_test_${key.slice(0, 32)}`;
  const webhookSecret = `whsec_${key.slice(32)}`;
  let url = "";
  const { SANDBOX_PORT } = config;
  const place = { name: "SANDBOX_PORT", value: SANDBOX_PORT };
  claimPort(place, place, () => checkPortFree("127.0.0.1", SANDBOX_PORT));
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: config.SANDBOX_PORT,
    maxRequestBodySize: bodyBytesMax,
    development: false,
    fetch: createSandboxRoutes({
      sandbox,
      secretKey,
      // Payers read it beside the other addresses of this machine.
      pageUrl: () => url.replace("127.0.0.1", "localhost"),
      priceFeed: createSandboxPriceFeed(),
      log,
    }),
  });
  closers.add("sandbox's listener", () => server.stop(true));
  url = `http://127.0.0.1:${server.port}`;
  return {
    url,
    stripe: { url, secretKey, webhookSecret },
    feedUrl: url,
    reportTo: (paymentUrl) => sandbox.deliverTo({ url: `${paymentUrl}/v1/stripe-webhook`, secret: webhookSecret }),
  };
}
