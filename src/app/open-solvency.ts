/**
 * Opens reports over the ledger in their thread, and the publication of roots of solvency.
 * @module
 */
import { winc } from "../arweave/winston.ts";
import { assert } from "../lib/assert.ts";
import { systemClock } from "../lib/clock.ts";
import { openBackgroundLoop } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import { withDeadline } from "../lib/stop.ts";
import { readAddress } from "../payment/addresses.ts";
import { createLedgerReports, type LedgerReports } from "../payment/operator/ledger-reports.ts";
import { createPublication } from "../payment/operator/solvency-publication.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import type { Intake } from "../upload/intake/item-intake.ts";
import type { AppContext } from "./base.ts";
import { storedKey, type UploadWallet } from "./keys.ts";
import { openReportThread } from "./threads.ts";

/** Opens the reports; `closers` close their thread. */
export function openLedgerReports({ config, folder, closers }: AppContext): LedgerReports {
  return createLedgerReports({
    thread: openReportThread(closers),
    ledger: { url: config.LEDGER_URL, path: folder.ledger },
    secret: () => storedKey(folder.keys, "solvency-salts"),
    clock: systemClock,
  });
}

type PublicationParts = Readonly<{
  ledger: LedgerDatabase;
  reports: LedgerReports;
  intake: Intake | undefined;
  wallet: UploadWallet;
  reader: Pick<IndexReader, "tip">;
  metrics: Metrics;
}>;

/** Interval of looks at the ledger, and the wait after a failed attempt. Milliseconds. */
const lookMs = 60_000;
/** Interval of looks before the chain is followed. Milliseconds. */
const notFollowingMs = 1_000;
/** The reports' thread may need minutes for a large ledger. Milliseconds. */
const attemptTimeoutMs = 15 * 60_000;

/**
 * Publishes a root of solvency for each period of SOLVENCY_PUBLISH_MS, signed by the wallet that posts bundles;
 * `closers` end it. The upload costs no credits: the operator pays for the bundle.
 *
 * @returns Reasons of bad health.
 */
export function startPublication(
  { config, log, closers }: AppContext,
  { ledger, reports, intake, wallet, reader, metrics }: PublicationParts,
): () => readonly string[] {
  if (intake === undefined || config.SOLVENCY_PUBLISH_MS === 0) return () => [];
  const payer = readAddress(wallet.wallet.address)?.address;
  assert(payer !== undefined, "the address of a wallet is an account");
  const publication = createPublication({
    ledger,
    everyMs: config.SOLVENCY_PUBLISH_MS,
    sign: (at, signal) => reports.signRoot(at, wallet.file, signal),
    upload: async (item, signal) => {
      const free = async () => ({ payer, winc: winc(0n), size: item.length });
      const terms = { paidBy: [], directive: "list-or-signer", prepay: free } as const;
      await intake.take({ ...terms, pieces: onePiece(item), size: item.length }, signal);
    },
    metrics,
    clock: systemClock,
    log,
  });
  const loop = openBackgroundLoop(
    "publication of solvency",
    async (signal) => {
      // Without a height no upload is accepted.
      if (reader.tip() === undefined) return notFollowingMs;
      await withDeadline(signal, attemptTimeoutMs, publication.step);
      return lookMs;
    },
    (error) => {
      log.warn("the root of solvency is not published", { error });
      return lookMs;
    },
  );
  closers.add("publication of solvency", loop.close);
  return publication.reasons;
}

async function* onePiece(item: Uint8Array): AsyncIterable<Uint8Array> {
  yield item;
}
