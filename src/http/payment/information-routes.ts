/**
 * Information about the payment service: its addresses, supported countries, health and metrics.
 * Source: docs/reference/payment.md#routes; docs/reference/gateway.md#names-and-aliases.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import type { Health } from "../../gateway/health.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { type Token, wordsOf } from "../../payment/addresses.ts";
import { supportedCountries } from "../../payment/cards/countries.ts";
import { createMetricsRoutes, serviceMetricsPaths } from "../metrics-routes.ts";
import { json, record, ref, type Schema, textSchema } from "../reference/words.ts";
import { jsonResponse } from "../responses.ts";
import { described } from "../route-schema.ts";
import { dateTime } from "./payment-schemas.ts";

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

/** Health and metrics change at any moment. */
const noStore = { "Cache-Control": "no-store" } as const;

/** The records of the service's information, as components of the API reference. */
export const informationSchemas = {
  Health: record({
    status: textSchema,
    uptime: { type: "number" },
    date: dateTime,
    reasons: { type: "array", items: textSchema },
  }),
  PaymentInfo: record({
    version: textSchema,
    gateway: textSchema,
    freeUploadLimitBytes: { type: "integer" },
    addresses: {
      type: "object",
      additionalProperties: textSchema,
      description: "Addresses that take payments, by every name of their token.",
    },
  }),
} as const satisfies Readonly<Record<string, Schema>>;

const tag = "Information";
const infoDetail = described({
  tag,
  summary: "Information about this service",
  responses: { 200: json("The record.", ref("PaymentInfo")) },
});

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
    .get("/", information, { detail: infoDetail })
    .get("/info", information, { detail: infoDetail })
    .get(
      "/countries",
      () => jsonResponse(supportedCountries, 200, { "Cache-Control": `public, max-age=${countriesAgeSeconds}` }),
      {
        detail: described({
          tag,
          summary: "Countries from which cards are accepted",
          responses: { 200: json("Their names.", { type: "array", items: textSchema }) },
        }),
      },
    )
    .get("/health", () => jsonResponse(health.record(), 200, noStore), {
      detail: described({
        tag,
        summary: "Health, with reasons",
        responses: { 200: json("The health.", ref("Health")) },
      }),
    })
    .use(createMetricsRoutes(metrics, serviceMetricsPaths));
}

/** Clients look a token up by the word that they know it by. */
function byEveryWord(addresses: ReadonlyMap<Token, string>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...addresses].flatMap(([token, address]) => wordsOf(token).map((word) => [word, address])),
  );
}
