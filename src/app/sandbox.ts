/**
 * Opens the sandbox of `cairn dev`, which replaces Stripe and the price feed on this machine without a network.
 *
 * The sandbox is a server: the payment service reaches it over a socket, and it sends its webhooks to the listener of
 * the payment service.
 * @module
 */
import { createSandboxPriceFeed } from "../dev/sandbox/price-feed.ts";
import { openStripeSandbox } from "../dev/sandbox/stripe.ts";
import { createSandboxRoutes } from "../dev/sandbox-routes/sandbox-routes.ts";
import { checkPortFree } from "../http/listener.ts";
import { systemClock } from "../lib/clock.ts";
import type { AppContext } from "./base.ts";
import { storedKey } from "./keys.ts";
import { claimPort } from "./listeners.ts";
import { systemRandom } from "./random.ts";

export type OpenSandbox = Readonly<{
  url: string;
  /** The account of the payment service at the simulated Stripe. */
  stripe: Readonly<{ url: string; secretKey: string; webhookSecret: string }>;
  feedUrl: string;
  /** Sets the origin of the payment service, and delivers the waiting webhooks. */
  reportTo: (paymentUrl: string) => void;
}>;

/** Largest request body; forms are far smaller. Bytes. */
const bodyBytesMax = 512 * 1_024;

/** Opens the sandbox; `closers` close it. @throws Misuse when the port is unavailable. */
export function openSandbox({ config, folder, log, closers }: AppContext): OpenSandbox {
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
      // The other addresses that users see have this name too.
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
