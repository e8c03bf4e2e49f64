/**
 * The payment service put together: the ledger, what is paid with, and the routes.
 * @module
 */
import { createHealth } from "../gateway/health.ts";
import { createApprovalRoutes } from "../http/payment/approval-routes.ts";
import { createBalanceRoutes } from "../http/payment/balance-routes.ts";
import { createHistoryRoutes } from "../http/payment/history-routes.ts";
import { createInformationRoutes } from "../http/payment/information-routes.ts";
import type { PublicUrl } from "../http/public-url.ts";
import { paymentReference } from "../http/reference/payment-reference.ts";
import type { Service } from "../http/service.ts";
import { systemClock } from "../lib/clock.ts";
import { type Credits, createCredits } from "../payment/credits.ts";
import { freeAllowance } from "../payment/free-allowance.ts";
import { createWalletTokens } from "../payment/json-web-token.ts";
import { readPayments } from "../payment/payment-history.ts";
import { createWalletAccess } from "../payment/wallet-access.ts";
import type { LedgerDatabase } from "../store/ledger/database.ts";
import { openLedger } from "../store/ledger/open.ts";
import { createTransferIds } from "../store/ledger/transfer-ids.ts";
import { version } from "../version.ts";
import { keptKey } from "./kept-key.ts";
import type { Base, BaseParts } from "./open-base.ts";
import { systemRandom } from "./random.ts";

/** What the payment service is opened with. */
export type PaymentParts = BaseParts &
  Readonly<{
    base: Base;
    /** Where a caller reaches the gateway. */
    gatewayUrl: PublicUrl;
  }>;

/** The payment service, open. */
export type OpenPayment = Readonly<{ service: Service; ledger: LedgerDatabase; credits: Credits }>;

/** Opens it; everything is closed by `closers`. Rejects when the ledger cannot be had. */
export async function openPayment(parts: PaymentParts): Promise<OpenPayment> {
  const { config, folder, base, closers } = parts;
  const ledger = await openLedger({ url: config.LEDGER_URL, path: folder.ledger });
  closers.add("ledger", ledger.close);
  const makeId = createTransferIds(systemClock, systemRandom);
  const credits = createCredits({ database: ledger, clock: systemClock, makeId });
  const tokens = createWalletTokens(tokenSecret(parts), systemClock);
  const access = createWalletAccess({ database: ledger, tokens, clock: systemClock });
  const health = createHealth({ clock: systemClock, checks: [], notes: [], readiness: [] });
  const service: Service = {
    reference: paymentReference,
    routes: [
      () =>
        createInformationRoutes({
          release: version,
          gatewayUrl: parts.gatewayUrl,
          addresses: new Map(),
          freeUploadBytes: config.FREE_UPLOAD_BYTES,
          health,
          metrics: base.metrics,
        }),
      () => createBalanceRoutes({ credits, access, free: () => freeAllowance(config.FREE_UPLOAD_BYTES) }),
      () => createApprovalRoutes({ credits }),
      () =>
        createHistoryRoutes({
          access,
          payments: (address, page) => ledger.read((tx) => readPayments(tx, address, page)),
        }),
    ],
  };
  return { service, ledger, credits };
}

/** Wallets keep their tokens over a restart. */
function tokenSecret({ config, folder }: PaymentParts): Uint8Array {
  if (config.JWT_SECRET !== undefined) return new TextEncoder().encode(config.JWT_SECRET);
  return keptKey(folder.keys, "wallet-tokens");
}
