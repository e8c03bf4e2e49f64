/**
 * Administration: what an operator asks of the gateway, behind a bearer key, under both spellings of its
 * prefix.
 *
 * Never on hosts of content, and without CORS and always with `no-store` (server.ts). A change by an
 * endpoint is durable before the response is sent.
 * Source: docs/reference/gateway.md#administration.
 * @module
 */
import type { AnyElysia } from "elysia";
import { addressOf, type Id, idFromBytes } from "../../arweave/id.ts";
import { Failure } from "../../failures.ts";
import { announcementsSchema } from "../../gateway/administration/announcements.ts";
import type { BlockListAdmin } from "../../gateway/administration/block-list-admin.ts";
import type { Exports } from "../../gateway/administration/exports.ts";
import type { Prune } from "../../gateway/administration/prune.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { sha256 } from "../../lib/hash.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { MetricsHistory } from "../../lib/metrics-history.ts";
import type { BundleRange } from "../../store/index/bundles/bundle-passes.ts";
import {
  type AdminDescription,
  type AdminEndpoint,
  adminFields,
  get,
  mountAdminEndpoints,
  post,
  put,
} from "../admin-endpoints.ts";
import type { AdminGuard } from "../admin-guard.ts";
import { empty, failureResponses, inQuery, json, ref, sampleId, textSchema } from "../reference/openapi-types.ts";
import { readBody } from "../request-body.ts";
import { contextOf } from "../request-context.ts";
import { limits } from "../request-limits.ts";
import { jsonResponse } from "../responses.ts";
import {
  adminBodies,
  readBlockedData,
  readBundleRange,
  readExportOptions,
  readName,
  readNote,
  readPage,
  readPruneOptions,
  writeCursor,
} from "./admin-bodies.ts";
import { pathParameters, queryParameters } from "./parameters.ts";

const message = { 200: json("What was done.", ref("Message")) };
const noContent = { 200: empty("Done, and written down; the body is empty.") };

const sampleBytes = new Uint8Array(64).fill(1);

/** The valid header of an item that does not exist. */
const sampleHeader = {
  id: idFromBytes(sha256(sampleBytes)),
  owner: encodeBase64url(sampleBytes),
  owner_address: addressOf(sampleBytes),
  signature: encodeBase64url(sampleBytes),
  data_size: 0,
  target: "",
  anchor: "",
  tags: [{ name: encodeBase64url(sampleBytes), value: encodeBase64url(sampleBytes) }],
};

/** The endpoints in the API reference. */
const descriptions = {
  queueTransaction: {
    summary: "Index a transaction with priority",
    body: adminBodies.transaction,
    example: { id: sampleId },
    responses: message,
  },
  queueBundle: {
    summary: "Unbundle a bundle, whatever the filters say",
    description:
      "`Bundle skipped` where `bypassFilter` is false and the unbundle filter does not choose the bundle, and " +
      "for a bundle that was unbundled to its end with these filters. A bundle that is being unbundled with " +
      "filters is unbundled again without them.",
    body: adminBodies.bundle,
    example: { id: sampleId },
    responses: message,
  },
  queueBundles: {
    summary: "Evaluate the bundles of a range of heights again",
    description:
      "Bundles that were skipped, failed or were indexed in part are evaluated by the filters in force, newest " +
      "first, in the background; with `bypassFilter`, whatever the filters say. The debug record " +
      "shows how far it is.",
    body: adminBodies.bundleRange,
    example: { startHeight: 0, endHeight: 1 },
    responses: message,
  },
  queueDataItem: {
    summary: "Index data items by their headers",
    body: { schema: announcementsSchema, failures: ["missing_item_headers"] },
    example: [sampleHeader],
    responses: message,
  },
  bundleStatus: {
    summary: "How far a bundle has come",
    parameters: [pathParameters.bundleId],
    responses: {
      200: json("The bundle.", ref("BundleStatus")),
      ...failureResponses("invalid_bundle_id", "bundle_not_found"),
    },
  },
  blockData: {
    summary: "Block content",
    description: "By id, or by `hash`: the SHA-256 of the content. Notes and source are for operators.",
    body: adminBodies.blockedData,
    example: { id: sampleId, notes: "an example" },
    responses: noContent,
  },
  unblockData: {
    summary: "Unblock content",
    body: adminBodies.sparedData,
    example: { id: sampleId },
    responses: noContent,
  },
  blockName: {
    summary: "Block a name",
    body: adminBodies.blockedName,
    example: { name: "an-example", notes: "an example" },
    responses: noContent,
  },
  unblockName: {
    summary: "Unblock a name",
    body: adminBodies.sparedName,
    example: { name: "an-example" },
    responses: noContent,
  },
  blocks: {
    summary: "List the blocked content",
    parameters: [queryParameters.pageLimit, inQuery("after", textSchema, "`next` of the page before.")],
    responses: { 200: json("A page.", ref("BlockList")), ...failureResponses("malformed_input") },
  },
  debug: {
    summary: "State of the gateway, with warnings and errors",
    responses: { 200: json("The state.", ref("Debug")) },
  },
  export: {
    summary: "Export heights, in the background",
    body: adminBodies.export,
    example: { outputDir: "an-example", startHeight: 0, endHeight: 1, maxFileRows: 1_000 },
    responses: { ...message, ...failureResponses("export_running") },
  },
  exportStatus: {
    summary: "How far the export has come",
    responses: { 200: json("The export.", ref("ExportStatus")) },
  },
  status: {
    summary: "Status of the program: chain, requests, queues, disk, sources, uploads, ledger, wallet, latest errors",
    description:
      "For the console. Amounts of credits and winston are decimal texts, times Unix milliseconds. `uploads` and " +
      "`ledger` are null where the service is off.",
    responses: { 200: json("The status.", ref("OperatorStatus")) },
  },
  history: {
    summary: "History of metrics: the last hour every 10 s, the last day every 5 min",
    description: "In memory, since the start. A sample without a value is null.",
    responses: { 200: json("The history.", ref("MetricsHistory")) },
  },
  retryBundle: {
    summary: "Make the next step of an unfinished bundle of uploads due now",
    body: adminBodies.retriedBundle,
    example: { id: "an-example" },
    responses: { ...message, ...failureResponses("bundle_not_found") },
  },
  prune: {
    summary: "Remove the rows of stable data items that were indexed before a moment; their content is still served",
    body: adminBodies.pruning,
    example: { indexedAtThreshold: 0 },
    responses: message,
  },
} as const satisfies Readonly<Record<string, AdminDescription>>;

/** Requests of an operator to the indexing. Each promise resolves when the request is stored. */
export type AdminQueue = Readonly<{
  /** Rejects with Failure `too_many_requests`. */
  transaction: (id: Id) => Promise<void>;
  /** Rejects with Failure `too_many_requests`. */
  bundle: (id: Id, bypassFilter: boolean) => Promise<"queued" | "skipped">;
  /** Evaluates bundles again, in the background. Rejects with Failure `too_many_requests`. */
  bundleRange: (range: BundleRange) => Promise<void>;
  /**
   * @param body - JSON. Rejects with Failure `missing_item_headers`, `malformed_json`, `too_large`,
   * `too_many_requests`.
   */
  dataItems: (body: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<void>;
}>;

export type AdminRoutesOptions = Readonly<{
  guard: AdminGuard;
  debug: () => JsonObject;
  queue: AdminQueue;
  /** The bundle status record; undefined for an id that is not a bundle of this gateway. */
  bundleStatus: (id: Id) => Readonly<Record<string, unknown>> | undefined;
  blockList: BlockListAdmin;
  exports: Pick<Exports, "start" | "status">;
  prune: Prune;
  monitored: Monitored;
  /** Endpoints of the payment service; absent in a gateway without it. */
  credits?: readonly AdminEndpoint[] | undefined;
}>;

/** The values that the console shows, and its retry of a bundle. */
export type Monitored = Readonly<{
  status: () => Promise<JsonObject>;
  history: MetricsHistory["record"];
  /** @returns Whether there is such an unfinished bundle. */
  retryBundle: (id: string) => Promise<boolean>;
}>;

/** How long a pruning may keep its caller waiting for the first byte, in seconds; the longest there is. */
const pruneSilenceSeconds = 255;

/** Creates the routes. */
export function createAdminRoutes(options: AdminRoutesOptions): AnyElysia {
  const endpoints = [
    ...queueEndpoints(options),
    ...blockListEndpoints(options),
    ...upkeepEndpoints(options),
    ...monitoringEndpoints(options),
    ...(options.credits ?? []),
  ];
  return mountAdminEndpoints(options.guard, endpoints);
}

function queueEndpoints({ queue, bundleStatus }: AdminRoutesOptions): AdminEndpoint[] {
  const status = (id: string | undefined): Response => {
    if (!pathParameters.bundleId.is(id)) throw new Failure("invalid_bundle_id", { id });
    const record = bundleStatus(id);
    if (record === undefined) throw new Failure("bundle_not_found", { id });
    return jsonResponse(record);
  };
  return [
    post("/queue-tx", descriptions.queueTransaction, async (request) => {
      await queue.transaction(adminBodies.transaction.read(await adminFields(request)).id);
      return said("TX queued");
    }),
    post("/queue-bundle", descriptions.queueBundle, async (request) => {
      const { id, bypassFilter } = adminBodies.bundle.read(await adminFields(request));
      const outcome = await queue.bundle(id, bypassFilter);
      return said(outcome === "queued" ? "Bundle queued" : "Bundle skipped");
    }),
    post("/queue-bundles", descriptions.queueBundles, async (request) => {
      await queue.bundleRange(readBundleRange(await adminFields(request)));
      return said("Bundles queued");
    }),
    post("/queue-data-item", descriptions.queueDataItem, async (request) => {
      await queue.dataItems(await readBody(request, limits.adminBytesMax), request.signal);
      return said("Data item(s) queued");
    }),
    get("/bundle-status/:id", descriptions.bundleStatus, (_request, { id }) => status(id)),
    // Without an id the response says what is missing, not that the path is unknown.
    get("/bundle-status", undefined, () => status(undefined)),
    get("/bundle-status/", undefined, () => status(undefined)),
  ];
}

function blockListEndpoints({ blockList }: AdminRoutesOptions): AdminEndpoint[] {
  return [
    put("/block-data", descriptions.blockData, async (request) => {
      const fields = await adminFields(request);
      await blockList.blockData(readBlockedData(fields), readNote(fields), request.signal);
      return done();
    }),
    put("/unblock-data", descriptions.unblockData, async (request) => {
      blockList.unblockData(readBlockedData(await adminFields(request)));
      return done();
    }),
    put("/block-name", descriptions.blockName, async (request) => {
      const fields = await adminFields(request);
      blockList.blockName(readName(fields), readNote(fields));
      return done();
    }),
    put("/unblock-name", descriptions.unblockName, async (request) => {
      blockList.unblockName(readName(await adminFields(request)));
      return done();
    }),
    get("/blocks", descriptions.blocks, (request) => {
      const { limit, after } = readPage(new URLSearchParams(contextOf(request).target.query));
      const { blocks, next } = blockList.list(limit, after);
      return jsonResponse({ blocks, next: next === undefined ? null : writeCursor(next) });
    }),
  ];
}

function upkeepEndpoints({ debug, exports, prune }: AdminRoutesOptions): AdminEndpoint[] {
  return [
    get("/debug", descriptions.debug, () => jsonResponse(debug())),
    post("/export-parquet", descriptions.export, async (request) => {
      await exports.start(readExportOptions(await adminFields(request).catch(rejectExport)));
      return said("Parquet export started");
    }),
    get("/export-parquet/status", descriptions.exportStatus, () => jsonResponse(exports.status())),
    post("/prune-stable-data-items", descriptions.prune, async (request) => {
      const options = readPruneOptions(await adminFields(request));
      contextOf(request).extendIdleTimeout(pruneSilenceSeconds);
      await prune(options, request.signal);
      return said("Stable data items pruned successfully");
    }),
  ];
}

function monitoringEndpoints({ monitored }: AdminRoutesOptions): AdminEndpoint[] {
  return [
    get("/status", descriptions.status, async () => jsonResponse(await monitored.status())),
    get("/metrics-history", descriptions.history, () => jsonResponse(monitored.history())),
    post("/retry-bundle", descriptions.retryBundle, async (request) => {
      const { id } = adminBodies.retriedBundle.read(await adminFields(request));
      if (!(await monitored.retryBundle(id))) throw new Failure("bundle_not_found", { id });
      return said("Bundle retried");
    }),
  ];
}

/** Any fault of an export's body has an empty response. */
function rejectExport(error: unknown): never {
  throw error instanceof Failure && error.code === "malformed_json"
    ? new Failure("export_rejected", error.context, error)
    : error;
}

function said(message: string): Response {
  return jsonResponse({ message });
}

/** Done, and nothing to say. */
function done(): Response {
  return new Response(null, { status: 200 });
}
