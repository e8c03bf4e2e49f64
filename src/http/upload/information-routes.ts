/**
 * Information about the upload service: its addresses, limits, health and metrics.
 * Source: docs/reference/upload.md#routes; docs/reference/gateway.md#names-and-aliases.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import type { Health } from "../../gateway/health.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { type Token, wordsOf } from "../../payment/addresses.ts";
import { createMetricsRoutes, serviceMetricsPaths } from "../metrics-routes.ts";
import type { PublicUrl } from "../public-url.ts";
import { json, record, ref, type Schema, textSchema } from "../reference/words.ts";
import { jsonResponse } from "../responses.ts";
import { described } from "../route-schema.ts";
import { byteSchema } from "./upload-schemas.ts";

export type InformationRoutesOptions = Readonly<{
  release: string;
  /** Address of the gateway as the client reaches it. */
  gatewayUrl: PublicUrl;
  /** Addresses that take payments; tokens that are not accepted are absent. */
  addresses: ReadonlyMap<Token, string>;
  freeBytesMax: number;
  itemBytesMax: number;
  health: Pick<Health, "record">;
  /** Undefined when another listener serves them. */
  metrics: Metrics | undefined;
}>;

/** Tokens of the specification's record, listed even when they are not accepted. */
const named: readonly Token[] = ["native", "ethereum", "solana", "matic"];

/** Health and metrics change at any moment. */
const noStore = { "Cache-Control": "no-store" } as const;

/** The record of the service, as a component of the API reference. */
export const uploadInfoSchemas: Readonly<Record<string, Schema>> = {
  UploadInfo: record({
    version: textSchema,
    gateway: { ...textSchema, description: "Address at which items are read." },
    addresses: {
      type: "object",
      additionalProperties: textSchema,
      description:
        "Addresses that take payments, by every name of their token; empty for a token that is not accepted.",
    },
    freeUploadLimitBytes: byteSchema("The largest item that is uploaded free of charge."),
    uploadLimitBytes: byteSchema("The largest item that is accepted."),
  }),
};

const tag = "Service";
const infoDetail = described({
  tag,
  summary: "Information about this service",
  responses: { 200: json("Its version, limits and payment addresses.", ref("UploadInfo")) },
});

export function createUploadInformationRoutes(options: InformationRoutesOptions): AnyElysia {
  const { release, gatewayUrl, addresses, freeBytesMax, itemBytesMax, health, metrics } = options;
  const everyAddress = addressesByWord(addresses);
  const information = ({ request }: Readonly<{ request: Request }>) =>
    jsonResponse({
      version: release,
      gateway: gatewayUrl(request),
      addresses: everyAddress,
      freeUploadLimitBytes: freeBytesMax,
      uploadLimitBytes: itemBytesMax,
    });
  return new Elysia({ strictPath: true })
    .get("", information) // "/v1" has no slash at its end
    .get("/", information, { detail: infoDetail })
    .get("/info", information, { detail: infoDetail })
    .get("/health", () => jsonResponse(health.record(), 200, noStore), {
      detail: described({
        tag,
        summary: "Health, with reasons",
        responses: { 200: json("The health.", ref("Health")) },
      }),
    })
    .use(createMetricsRoutes(metrics, serviceMetricsPaths));
}

/** Clients look up a token by any of its names. */
function addressesByWord(addresses: ReadonlyMap<Token, string>): Readonly<Record<string, string>> {
  const all = new Set<Token>([...named, ...addresses.keys()]);
  return Object.fromEntries(
    [...all].flatMap((token) => wordsOf(token).map((word) => [word, addresses.get(token) ?? ""])),
  );
}
