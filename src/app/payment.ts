/**
 * The payment service put together: the ledger, what is paid with, and the routes.
 * @module
 */
import type { Wallet } from "../arweave/wallet.ts";
import { createHealth, type HealthCheck } from "../gateway/health.ts";
import { createApprovalRoutes } from "../http/payment/approval-routes.ts";
import { createBalanceRoutes } from "../http/payment/balance-routes.ts";
import { createHistoryRoutes } from "../http/payment/history-routes.ts";
import { createInformationRoutes } from "../http/payment/information-routes.ts";
import { createPriceRoutes } from "../http/payment/price-routes.ts";
import { createPromoGuard } from "../http/payment/promo-guard.ts";
import { createReportGuard } from "../http/payment/report-guard.ts";
import { createTokenRoutes } from "../http/payment/token-routes.ts";
import { createX402Routes } from "../http/payment/x402-routes.ts";
import type { PublicUrl } from "../http/public-url.ts";
import { paymentReference } from "../http/reference/payment-reference.ts";
import type { Service } from "../http/service.ts";
import { systemClock } from "../lib/clock.ts";
import { createWalletTokens } from "../payment/access/json-web-token.ts";
import { createWalletAccess } from "../payment/access/wallet-access.ts";
import type { Token } from "../payment/addresses.ts";
import { type Credits, createCredits } from "../payment/credits/credits.ts";
import { openExpiry } from "../payment/credits/expiry.ts";
import { freeAllowance, type Prices } from "../payment/prices/price-types.ts";
import { pendingPaymentsOf } from "../payment/tokens/token-payment-store.ts";
import { readPayments } from "../payment/top-ups/payment-history.ts";
import type { X402 } from "../payment/x402/x402.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { openLedger } from "../store/ledger/open-ledger.ts";
import { createTransferIds } from "../store/ledger/transfers.ts";
import { version } from "../version.ts";
import type { Base, BaseParts } from "./base.ts";
import { openCards } from "./cards.ts";
import { openPrices } from "./prices.ts";
import { systemRandom } from "./random.ts";
import type { OpenSandbox } from "./sandbox.ts";
import { storedKey } from "./stored-key.ts";
import { openTokens } from "./tokens.ts";
import { openX402 } from "./x402.ts";

/** What the payment service is opened with. */
export type PaymentParts = BaseParts &
  Readonly<{
    base: Base;
    /** Where a caller reaches the gateway, and this service. */
    gatewayUrl: PublicUrl;
    publicUrl: PublicUrl;
    /** Native payments go to it where no other address is set. */
    wallet?: Readonly<{ wallet: Pick<Wallet, "address"> }> | undefined;
    /** Under `dev`: what stands for Stripe and for the price feed. */
    sandbox?: Pick<OpenSandbox, "stripe" | "feedUrl"> | undefined;
    /** Says which databases were found damaged since the start. */
    damage?: HealthCheck;
  }>;

/** The payment service, open. */
export type OpenPayment = Readonly<{
  service: Service;
  ledger: LedgerDatabase;
  credits: Credits;
  prices: Prices;
  /** Whether what storage costs can be told. */
  isNetworkPriceKnown: () => boolean;
  /** Where payments in each token go. */
  addresses: ReadonlyMap<Token, string>;
  /** Undefined: x402 is off. */
  x402: X402 | undefined;
}>;

/** Between two looks for abandoned reservations: far below the time that they are held. */
const expiryEveryMs = 30_000;

/** Opens it; everything is closed by `closers`. Rejects when the ledger cannot be had. */
export async function openPayment(parts: PaymentParts): Promise<OpenPayment> {
  const { config, folder, base, sandbox, closers } = parts;
  const ledger = await openLedger({ url: config.LEDGER_URL, path: folder.ledger });
  closers.add("ledger", ledger.close);
  const makeId = createTransferIds(systemClock, systemRandom);
  const credits = createCredits({ database: ledger, clock: systemClock, makeId });
  closers.add("expiry", openExpiry({ credits, everyMs: expiryEveryMs, log: parts.log }).close);
  const tokens = createWalletTokens(tokenSecret(parts), systemClock);
  const access = createWalletAccess({ database: ledger, tokens, clock: systemClock });
  const priced = openPrices({
    ...parts,
    ledger,
    nodes: base.sources.nodes,
    feedUrl: sandbox?.feedUrl,
    metrics: base.metrics,
  });
  const { prices } = priced;
  const promoGuard = createPromoGuard(systemClock, Math.floor(systemRandom() * 2 ** 32));
  const reportGuard = createReportGuard(systemClock, Math.floor(systemRandom() * 2 ** 32));
  const cards = openCards({
    ...parts,
    ledger,
    makeId,
    prices,
    promoGuard,
    countPromo: priced.promos.count,
    sandbox: sandbox?.stripe,
  });
  const tokenPayments = openTokens({ ...parts, ledger, makeId, prices, rules: priced.rules });
  const x402Payments = openX402({ ...parts, ledger, makeId, prices, rules: priced.rules });
  const checks = [
    parts.damage ?? (() => []),
    ledger.faults,
    priced.check,
    cards.check,
    tokenPayments.check,
    x402Payments.check,
  ];
  const health = createHealth({ clock: systemClock, checks, notes: [], readiness: [] });
  const service: Service = {
    reference: paymentReference,
    publicUrl: config.PAYMENT_PUBLIC_URL,
    routes: [
      () =>
        createInformationRoutes({
          release: version,
          gatewayUrl: parts.gatewayUrl,
          addresses: tokenPayments.addresses,
          freeUploadBytes: config.FREE_UPLOAD_BYTES,
          health,
          metrics: config.METRICS_ON_ADMIN_LISTEN ? undefined : base.metrics,
        }),
      () => createPriceRoutes({ prices, promoGuard }),
      ...cards.routes,
      () => createTokenRoutes({ ...tokenPayments, reportGuard }),
      () => createX402Routes({ x402: x402Payments.x402, publicUrl: parts.publicUrl }),
      () => createBalanceRoutes({ credits, access, free: () => freeAllowance(config.FREE_UPLOAD_BYTES) }),
      () => createApprovalRoutes({ credits }),
      () =>
        createHistoryRoutes({
          access,
          payments: (address, page) => ledger.read((tx) => readPayments(tx, address, page)),
          pending: (address, limit) => ledger.read((tx) => pendingPaymentsOf(tx, address, limit)),
        }),
    ],
  };
  const { addresses } = tokenPayments;
  const { isNetworkPriceKnown } = priced;
  return { service, ledger, credits, prices, isNetworkPriceKnown, addresses, x402: x402Payments.x402 };
}

/** Wallets keep their tokens over a restart. */
function tokenSecret({ config, folder }: PaymentParts): Uint8Array {
  if (config.JWT_SECRET !== undefined) return new TextEncoder().encode(config.JWT_SECRET);
  return storedKey(folder.keys, "wallet-tokens");
}
