/**
 * Starts the simulated Stripe in another process, and kills it.
 * @module
 */
import { resolve } from "node:path";
import type { DeliveryFaults, DeliveryTarget } from "../../../src/dev/sandbox/stripe-events.ts";

/** How it is started. */
export type StripeProcessOptions = Readonly<{
  /** What it remembers. */
  path: string;
  /** 0 takes a free one. */
  port: number;
  seed: number;
  faults: DeliveryFaults;
  secretKey: string;
}>;

/** The process. */
export type StripeProcess = Readonly<{
  url: string;
  port: number;
  deliverTo: (target: DeliveryTarget) => void;
  /** Ends it at once, wherever it is. */
  kill: () => Promise<void>;
}>;

const child = resolve(import.meta.dir, "stripe-child.ts");

/** Starts it and waits until it listens. */
export async function startStripe(options: StripeProcessOptions): Promise<StripeProcess> {
  const started = Bun.spawn([process.execPath, child, JSON.stringify(options)], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await started.stdout.getReader().read();
  const { url } = JSON.parse(new TextDecoder().decode(value));
  return {
    url,
    port: Number(new URL(url).port),
    deliverTo: (target) => {
      started.stdin.write(`${JSON.stringify(target)}\n`);
      void started.stdin.flush();
    },
    kill: async () => {
      started.kill("SIGKILL");
      await started.exited;
    },
  };
}
