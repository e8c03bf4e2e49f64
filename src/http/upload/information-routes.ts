/**
 * What the upload service says of itself.
 * Source: docs/reference/upload.md#routes; docs/reference/gateway.md#names-and-aliases.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import type { Health } from "../../gateway/health.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { type Token, wordsOf } from "../../payment/addresses.ts";
import { createMetricsRoutes, serviceMetricsPaths } from "../metrics-routes.ts";
import type { PublicUrl } from "../public-url.ts";
import { jsonResponse } from "../responses.ts";

/** What the routes ask. */
export type InformationRoutesOptions = Readonly<{
  release: string;
  /** Where the gateway is, as this caller reaches it. */
  gatewayUrl: PublicUrl;
  /** Where payments in each token go; tokens that are not taken are absent. */
  addresses: ReadonlyMap<Token, string>;
  freeBytesMax: number;
  itemBytesMax: number;
  health: Pick<Health, "record">;
  /** Undefined: they are served elsewhere. */
  metrics: Metrics | undefined;
}>;

/** Tokens of the specification's record: named also where nothing is taken. */
const named: readonly Token[] = ["native", "ethereum", "solana", "matic"];

/** Health and figures are of the moment. */
const noStore = { "Cache-Control": "no-store" } as const;

/** Creates the routes. */
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
    .get("/", information)
    .get("/info", information)
    .get("/health", () => jsonResponse(health.record(), 200, noStore))
    .use(createMetricsRoutes(metrics, serviceMetricsPaths));
}

/** Clients look a token up by the word that they know it by. */
function addressesByWord(addresses: ReadonlyMap<Token, string>): Readonly<Record<string, string>> {
  const all = new Set<Token>([...named, ...addresses.keys()]);
  return Object.fromEntries(
    [...all].flatMap((token) => wordsOf(token).map((word) => [word, addresses.get(token) ?? ""])),
  );
}
