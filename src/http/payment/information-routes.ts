/**
 * What the payment service says of itself: addresses that it is paid at, countries, health, figures.
 * Source: docs/reference/payment.md#routes; docs/reference/gateway.md#names-and-aliases.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import type { Health } from "../../gateway/health.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { type Token, wordsOf } from "../../payment/addresses.ts";
import { supportedCountries } from "../../payment/cards/countries.ts";
import { createMetricsRoutes, serviceMetricsPaths } from "../metrics-routes.ts";
import { jsonResponse } from "../responses.ts";

/** What the routes ask. */
export type InformationRoutesOptions = Readonly<{
  release: string;
  /** Where the gateway is, as this caller reaches it. */
  gatewayUrl: (request: Request) => string;
  /** Where payments in each token go; tokens that are not taken are absent. */
  addresses: ReadonlyMap<Token, string>;
  /** The largest item that is uploaded free of charge, bytes. */
  freeUploadBytes: number;
  health: Pick<Health, "record">;
  /** Undefined: they are served elsewhere. */
  metrics: Metrics | undefined;
}>;

const countriesAgeSeconds = 3_600;

/** Health and figures are of the moment. */
const noStore = { "Cache-Control": "no-store" } as const;

/** Creates the routes. */
export function createInformationRoutes(options: InformationRoutesOptions): AnyElysia {
  const { release, gatewayUrl, freeUploadBytes, health, metrics } = options;
  const addresses = byEveryWord(options.addresses);
  const information = ({ request }: Readonly<{ request: Request }>) =>
    jsonResponse({
      version: release,
      gateway: gatewayUrl(request),
      freeUploadLimitBytes: freeUploadBytes,
      addresses,
    });
  return new Elysia({ strictPath: true })
    .get("", information) // "/v1" has no slash at its end
    .get("/", information)
    .get("/info", information)
    .get("/countries", () =>
      jsonResponse(supportedCountries, 200, { "Cache-Control": `public, max-age=${countriesAgeSeconds}` }),
    )
    .get("/health", () => jsonResponse(health.record(), 200, noStore))
    .use(createMetricsRoutes(metrics, serviceMetricsPaths));
}

/** Clients look a token up by the word that they know it by. */
function byEveryWord(addresses: ReadonlyMap<Token, string>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...addresses].flatMap(([token, address]) => wordsOf(token).map((word) => [word, address])),
  );
}
