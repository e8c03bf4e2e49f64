/**
 * The upload service put together: what takes items in, what brings them to the chain, and the routes.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { createHealth } from "../gateway/health.ts";
import type { PublicUrl } from "../http/public-url.ts";
import { uploadReference } from "../http/reference/upload-reference.ts";
import type { Service } from "../http/service.ts";
import { createUploadInformationRoutes } from "../http/upload/information-routes.ts";
import { createItemRoutes } from "../http/upload/item-routes.ts";
import { createUploadPriceRoutes } from "../http/upload/price-routes.ts";
import { createStatusRoutes } from "../http/upload/status-routes.ts";
import { systemClock } from "../lib/clock.ts";
import { refundReservation } from "../payment/refunds.ts";
import { createTransferIds, type MakeId } from "../store/ledger/transfer-ids.ts";
import { openPipeline, type Pipeline } from "../upload/pipeline.ts";
import { bundleBytesMax, bundleItemsMax } from "../upload/plan.ts";
import { findStanding } from "../upload/standing.ts";
import { version } from "../version.ts";
import type { Base, BaseParts } from "./open-base.ts";
import { openBundleChain } from "./open-bundle-chain.ts";
import { openIntake } from "./open-intake.ts";
import type { OpenPayment } from "./open-payment.ts";
import { openUploadThreads, type UploadThreads } from "./open-threads.ts";
import { systemRandom } from "./random.ts";
import type { UploadWallet } from "./upload-wallet.ts";

/** What the upload service is opened with. */
export type UploadParts = BaseParts &
  Readonly<{
    base: Base;
    payment: OpenPayment;
    /** Undefined: uploads are off. */
    wallet: UploadWallet | undefined;
    /** Where a caller reaches the gateway, and this service. */
    gatewayUrl: PublicUrl;
    publicUrl: PublicUrl;
  }>;

/** Has a bundle indexed, whatever the gateway's filters say. */
export type WantBundle = (id: Id) => Promise<void>;

/** The upload service, open. */
export type OpenUpload = Readonly<{
  service: Service;
  /** Begins to bring items to the chain; the gateway's index, which reads them back, must be at work. */
  start: (wantBundle: WantBundle) => void;
}>;

/** A bundle that so many looks did not see on the chain, or not whole, is sent again. */
const againLooks = 20;

/** Opens it; everything is closed by `closers`. Rejects when the ledger cannot be read. */
export async function openUpload(parts: UploadParts): Promise<OpenUpload> {
  const { config, base, payment, wallet, gatewayUrl, closers } = parts;
  const { ledger, prices } = payment;
  const threads = openUploadThreads(config, closers);
  const makeId = createTransferIds(systemClock, systemRandom);
  const running: { pipeline?: Pipeline } = {};
  const onItem = () => running.pipeline?.wake();
  const { intake, room, writeReceipt } = await openIntake({ ...parts, threads, makeId, onItem });
  const health = createHealth({
    clock: systemClock,
    checks: [room.reasons, () => running.pipeline?.reasons() ?? []],
    notes: [() => (wallet === undefined ? ["Uploads are off: WALLET_FILE is not set."] : [])],
    readiness: [],
  });
  const service: Service = {
    reference: uploadReference,
    routes: [
      () =>
        createUploadInformationRoutes({
          ...{ release: version, gatewayUrl, health },
          addresses: payment.addresses,
          freeBytesMax: config.FREE_UPLOAD_BYTES,
          itemBytesMax: config.UPLOAD_BYTES_MAX,
          metrics: base.metrics,
        }),
      () => createUploadPriceRoutes({ prices }),
      () => createStatusRoutes({ standing: (id) => ledger.read((tx) => findStanding(tx, id)) }),
      () => createItemRoutes({ intake, writeReceipt }),
    ],
  };
  const start = (wantBundle: WantBundle) => {
    if (wallet !== undefined)
      running.pipeline = startPipeline({ ...parts, wallet, threads, makeId, wantBundle });
  };
  return { service, start };
}

type PipelineSetup = UploadParts &
  Readonly<{ wallet: UploadWallet; threads: UploadThreads; makeId: MakeId; wantBundle: WantBundle }>;

function startPipeline(parts: PipelineSetup): Pipeline {
  const { config, folder, base, payment, wallet, threads, makeId, wantBundle, log, closers } = parts;
  const { nodes } = base.sources;
  const pipeline = openPipeline({
    ...{ ledger: payment.ledger, makeId, clock: systemClock, log },
    folder: folder.uploads,
    walletFile: wallet.file,
    threads: threads.bundles,
    chain: openBundleChain({ nodes, reader: base.reader, address: wallet.wallet.address, wantBundle }),
    refund: refundReservation,
    rules: {
      plan: { itemsMax: bundleItemsMax, bytesMax: bundleBytesMax, waitMs: config.UPLOAD_BUNDLE_WAIT_MS },
      confirmations: config.UPLOAD_CONFIRMATIONS,
      lookMs: config.UPLOAD_LOOK_MS,
      againMs: againLooks * config.UPLOAD_LOOK_MS,
    },
  });
  closers.add("bundles", pipeline.close);
  return pipeline;
}
