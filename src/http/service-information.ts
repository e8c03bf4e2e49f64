/**
 * Information about the payment and the upload service: addresses that accept payments, limits, supported countries,
 * health and metrics.
 * Source: docs/reference/payment.md#routes; docs/reference/upload.md#routes;
 *   docs/reference/gateway.md#names-and-aliases.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import type { Health } from "../gateway/health.ts";
import type { Metrics } from "../lib/metrics.ts";
import { type Token, wordsOf } from "../payment/addresses.ts";
import { supportedCountries } from "../payment/cards/card-provider.ts";
import { createMetricsRoutes, serviceMetricsPaths } from "./metrics-routes.ts";
import type { PublicUrl } from "./public-url.ts";
import { countSchema, json, record, ref, type Schema, textSchema } from "./reference/openapi-types.ts";
import { jsonResponse, noStore } from "./responses.ts";
import { described } from "./route-schema.ts";

type InformationOptions = Readonly<{
  release: string;
  /** Address of the gateway as the client reaches it. */
  gatewayUrl: PublicUrl;
  /** Addresses that accept payments; tokens that are not accepted are absent. */
  addresses: ReadonlyMap<Token, string>;
  /** The largest item that is uploaded free of charge. Bytes. */
  freeBytesMax: number;
  health: Pick<Health, "record">;
  /** Undefined when another listener serves them. */
  metrics: Metrics | undefined;
}>;

type UploadInformationOptions = InformationOptions & Readonly<{ itemBytesMax: number }>;

const countriesAgeSeconds = 3_600;

/** Tokens of the specification's upload record, listed even when they are not accepted. */
const uploadTokens: readonly Token[] = ["native", "ethereum", "solana", "matic"];

export const healthSchema: Schema = record({
  status: textSchema,
  uptime: { type: "number" },
  date: { type: "string", format: "date-time" },
  reasons: { type: "array", items: textSchema },
});

export const paymentInfoSchema: Schema = record({
  version: textSchema,
  gateway: textSchema,
  freeUploadLimitBytes: { type: "integer" },
  addresses: {
    type: "object",
    additionalProperties: textSchema,
    description: "Addresses that take payments, by every name of their token.",
  },
});

export const uploadInfoSchema: Schema = record({
  version: textSchema,
  gateway: { ...textSchema, description: "Address at which items are read." },
  addresses: {
    type: "object",
    additionalProperties: textSchema,
    description: "Addresses that take payments, by every name of their token; empty for a token that is not accepted.",
  },
  freeUploadLimitBytes: { ...countSchema, description: "The largest item that is uploaded free of charge." },
  uploadLimitBytes: { ...countSchema, description: "The largest item that is accepted." },
});

export function createPaymentInformationRoutes(options: InformationOptions): AnyElysia {
  const { release, gatewayUrl, freeBytesMax } = options;
  const addresses = addressesByWord(options.addresses, [...options.addresses.keys()]);
  const tag = "Information";
  const information = (request: Request) => ({
    version: release,
    gateway: gatewayUrl(request),
    freeUploadLimitBytes: freeBytesMax,
    addresses,
  });
  const detail = described({
    tag,
    summary: "Countries from which cards are accepted",
    responses: { 200: json("Their names.", { type: "array", items: textSchema }) },
  });
  const headers = { "Cache-Control": `public, max-age=${countriesAgeSeconds}` };
  return createInformationRoutes(options, information, tag, json("The record.", ref("PaymentInfo"))).get(
    "/countries",
    () => jsonResponse(supportedCountries, 200, headers),
    { detail },
  );
}

export function createUploadInformationRoutes(options: UploadInformationOptions): AnyElysia {
  const { release, gatewayUrl, freeBytesMax, itemBytesMax } = options;
  const addresses = addressesByWord(options.addresses, [...new Set([...uploadTokens, ...options.addresses.keys()])]);
  const information = (request: Request) => ({
    version: release,
    gateway: gatewayUrl(request),
    addresses,
    freeUploadLimitBytes: freeBytesMax,
    uploadLimitBytes: itemBytesMax,
  });
  const response = json("Its version, limits and payment addresses.", ref("UploadInfo"));
  return createInformationRoutes(options, information, "Service", response);
}

function createInformationRoutes(
  { health, metrics }: InformationOptions,
  information: (request: Request) => Readonly<Record<string, unknown>>,
  tag: string,
  response: ReturnType<typeof json>,
): AnyElysia {
  const respond = ({ request }: Readonly<{ request: Request }>) => jsonResponse(information(request));
  const detail = described({ tag, summary: "Information about this service", responses: { 200: response } });
  return new Elysia({ strictPath: true })
    .get("", respond) // "/v1" has no slash at its end
    .get("/", respond, { detail })
    .get("/info", respond, { detail })
    .get("/health", () => jsonResponse(health.record(), 200, noStore), {
      detail: described({
        tag,
        summary: "Health, with reasons",
        responses: { 200: json("The health.", ref("Health")) },
      }),
    })
    .use(createMetricsRoutes(metrics, serviceMetricsPaths));
}

/** Addresses by every name of their token; "" for a token without one. */
function addressesByWord(
  addresses: ReadonlyMap<Token, string>,
  tokens: readonly Token[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    tokens.flatMap((token) => wordsOf(token).map((word) => [word, addresses.get(token) ?? ""])),
  );
}
