/**
 * The streams of a mixed load on a whole program: reads, queries, uploads, uploads in parts, payments, observation.
 *
 * Every stream repeats one step with a pause, so that the load is bounded.
 * @module
 */
import { createSolanaSigner } from "../../src/arweave/signers/ed25519.ts";
import { encodeBase58 } from "../../src/lib/base-encodings.ts";
import type { DevLine } from "../../test/support/program.ts";
import { createRandom, type Random } from "../../test/support/random.ts";
import { createLoadClient, jsonOf, type LoadClient, type LoadCounts } from "./soak-client.ts";
import { createKnownItems, createUploadSteps } from "./soak-items.ts";
import { createChainReads, createContentReads, createObservation } from "./soak-reads.ts";

/** A running load. */
export type RunningLoad = Readonly<{
  counts: () => LoadCounts;
  /** Begins no further step until `resume`. */
  pause: () => void;
  resume: () => void;
  stop: () => Promise<void>;
}>;

/** Starts the streams. @param pace - Read for each pause; 0.5 makes it twice as long. */
export function startLoad(line: DevLine, seed: number, pace: () => number): RunningLoad {
  const random = createRandom(seed);
  const signer = createSolanaSigner(new Uint8Array(32).map(() => random.below(256)));
  const stopping = new AbortController();
  const client = createLoadClient(stopping.signal);
  const known = createKnownItems(random);
  const chain = createChainReads(client, line.gateway, random);
  const uploads = createUploadSteps(client, { url: line.upload, random, signer, known });
  const payments = createPayments(client, line.payment, encodeBase58(signer.owner), random);
  let isPaused = false;

  /** Repeats a step until the load is stopped. */
  async function repeat(name: string, pauseMs: number, step: () => Promise<void>): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await step();
      } catch (error) {
        const kind = error instanceof Error ? error.name : "error";
        if (!stopping.signal.aborted) client.wrong(`${name}: ${kind}`, String(error));
      }
      do if (!stopping.signal.aborted) await Bun.sleep(pauseMs / pace());
      while (isPaused && !stopping.signal.aborted);
    }
  }

  const funded = payments.fund(stopping.signal).catch((error) => client.wrong("fund", String(error)));
  const whenFunded = (step: () => Promise<void>) => () => funded.then(step);
  const read = createContentReads(client, line.gateway, random, known);
  const streams = [
    ...Array.from({ length: 4 }, () => repeat("read", 15, read)),
    repeat("chain", 200, chain.readChain),
    repeat("graphql", 100, chain.query),
    ...Array.from({ length: 2 }, () => repeat("upload", 250, whenFunded(uploads.upload))),
    repeat("parts", 20_000, whenFunded(uploads.uploadInParts)),
    repeat("price", 1_000, payments.price),
    repeat("observe", 5_000, createObservation(client, line)),
  ];
  return {
    counts: client.counts,
    pause: () => {
      isPaused = true;
    },
    resume: () => {
      isPaused = false;
    },
    stop: async () => {
      stopping.abort(new DOMException("the load ends", "AbortError"));
      await Promise.all(streams);
    },
  };
}

/** The steps of payments. @param url - Of the payment service. @param account - Address that buys and has credits. */
function createPayments({ ask }: LoadClient, url: string, account: string, random: Random) {
  /** Buys credits by card, as a payer in a browser does. */
  const pay = async () => {
    const opened = await ask("top-up", `${url}/v1/top-up/checkout-session/${account}/usd/10000?token=solana`);
    if (opened === undefined) return;
    const body = new URLSearchParams({ cardNumber: "4242424242424242" });
    await ask("card", jsonOf(opened).paymentSession.url, { method: "POST", body }, [303]);
  };
  const balance = () => ask("balance", `${url}/v1/balance?address=${account}`, {}, [200, 404]);
  return {
    /** Buys the first credits; ends when the account has them. */
    fund: async (stopping: AbortSignal): Promise<void> => {
      await pay();
      while (!stopping.aborted && (await balance())?.response.status !== 200) await Bun.sleep(100);
    },
    price: async (): Promise<void> => {
      await ask("price", `${url}/v1/price/bytes/${1 + random.below(1e9)}`);
      await ask("rates", `${url}/v1/rates`);
      await balance();
      if (random.below(4) === 0) await pay();
    },
  };
}
