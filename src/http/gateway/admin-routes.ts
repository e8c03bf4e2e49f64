/**
 * Administration: what an operator asks of the gateway, behind a bearer key, under both spellings of its
 * prefix.
 *
 * Never on hosts of content, and without CORS and always with `no-store` (server.ts). A change by an
 * endpoint is durable before the response is sent.
 * Source: docs/reference/gateway.md#administration.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import type { Id } from "../../arweave/id.ts";
import { Failure } from "../../failures.ts";
import type { BlockListAdmin } from "../../gateway/administration/block-list-admin.ts";
import type { Exports } from "../../gateway/administration/exports.ts";
import type { Prune } from "../../gateway/administration/prune.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { BundleRange } from "../../store/index/bundle-passes.ts";
import type { AdminGuard } from "../admin-guard.ts";
import { type Fields, readFields } from "../body-fields.ts";
import { readBody } from "../request-body.ts";
import { contextOf } from "../request-context.ts";
import { limits } from "../request-limits.ts";
import { servicePrefixes } from "../reserved-paths.ts";
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
import { pathParameters } from "./parameters.ts";

/** What an operator may ask of indexing; fulfilled when it is written down. */
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

/** What the routes ask. */
export type AdminRoutesOptions = Readonly<{
  guard: AdminGuard;
  debug: () => JsonObject;
  queue: AdminQueue;
  /** The bundle status record; undefined for an id that is not a bundle of this gateway. */
  bundleStatus: (id: Id) => Readonly<Record<string, unknown>> | undefined;
  blockList: BlockListAdmin;
  exports: Pick<Exports, "start" | "status">;
  prune: Prune;
}>;

/** How long a pruning may keep its caller waiting for the first byte, in seconds; the longest there is. */
const pruneSilenceSeconds = 255;

/** A response to the owner of the key alone. */
type Result = (request: Request, params: Readonly<Record<string, string>>) => Promise<Response> | Response;

/** One endpoint, below `/svc/admin`. */
type Endpoint = Readonly<{ method: "GET" | "POST" | "PUT"; path: string; response: Result }>;

/** Creates the routes. */
export function createAdminRoutes(options: AdminRoutesOptions): AnyElysia {
  const endpoints = [...queueEndpoints(options), ...blockListEndpoints(options), ...upkeepEndpoints(options)];
  const routes = new Elysia({ strictPath: true });
  for (const prefix of servicePrefixes) {
    for (const { method, path, response } of endpoints) {
      routes.route(
        method,
        `${prefix}/admin${path}`,
        async ({ request, params }) => {
          await admit(request, options.guard);
          return await response(request, params);
        },
        { parse: "none" },
      );
    }
  }
  return routes;
}

async function admit(request: Request, guard: AdminGuard): Promise<void> {
  const { clientAddress } = contextOf(request);
  await guard.admit(request.headers.get("authorization"), clientAddress(), request.signal);
}

function queueEndpoints({ queue, bundleStatus }: AdminRoutesOptions): Endpoint[] {
  const status = (id: string | undefined): Response => {
    if (!pathParameters.bundleId.is(id)) throw new Failure("invalid_bundle_id", { id });
    const record = bundleStatus(id);
    if (record === undefined) throw new Failure("bundle_not_found", { id });
    return jsonResponse(record);
  };
  return [
    post("/queue-tx", async (request) => {
      await queue.transaction(adminBodies.transaction.read(await fieldsOf(request)).id);
      return said("TX queued");
    }),
    post("/queue-bundle", async (request) => {
      const { id, bypassFilter } = adminBodies.bundle.read(await fieldsOf(request));
      const outcome = await queue.bundle(id, bypassFilter);
      return said(outcome === "queued" ? "Bundle queued" : "Bundle skipped");
    }),
    post("/queue-bundles", async (request) => {
      await queue.bundleRange(readBundleRange(await fieldsOf(request)));
      return said("Bundles queued");
    }),
    post("/queue-data-item", async (request) => {
      await queue.dataItems(await readBody(request, limits.adminBytesMax), request.signal);
      return said("Data item(s) queued");
    }),
    get("/bundle-status/:id", (_request, { id }) => status(id)),
    // Without an id the response says what is missing, not that the path is unknown.
    get("/bundle-status", () => status(undefined)),
    get("/bundle-status/", () => status(undefined)),
  ];
}

function blockListEndpoints({ blockList }: AdminRoutesOptions): Endpoint[] {
  return [
    put("/block-data", async (request) => {
      const fields = await fieldsOf(request);
      await blockList.blockData(readBlockedData(fields), readNote(fields), request.signal);
      return done();
    }),
    put("/unblock-data", async (request) => {
      blockList.unblockData(readBlockedData(await fieldsOf(request)));
      return done();
    }),
    put("/block-name", async (request) => {
      const fields = await fieldsOf(request);
      blockList.blockName(readName(fields), readNote(fields));
      return done();
    }),
    put("/unblock-name", async (request) => {
      blockList.unblockName(readName(await fieldsOf(request)));
      return done();
    }),
    get("/blocks", (request) => {
      const { limit, after } = readPage(new URLSearchParams(contextOf(request).target.query));
      const { blocks, next } = blockList.list(limit, after);
      return jsonResponse({ blocks, next: next === undefined ? null : writeCursor(next) });
    }),
  ];
}

function upkeepEndpoints({ debug, exports, prune }: AdminRoutesOptions): Endpoint[] {
  return [
    get("/debug", () => jsonResponse(debug())),
    post("/export-parquet", async (request) => {
      await exports.start(readExportOptions(await fieldsOf(request).catch(rejectExport)));
      return said("Parquet export started");
    }),
    get("/export-parquet/status", () => jsonResponse(exports.status())),
    post("/prune-stable-data-items", async (request) => {
      const options = readPruneOptions(await fieldsOf(request));
      contextOf(request).extendIdleTimeout(pruneSilenceSeconds);
      await prune(options, request.signal);
      return said("Stable data items pruned successfully");
    }),
  ];
}

async function fieldsOf(request: Request): Promise<Fields> {
  return await readFields(request, limits.adminBytesMax);
}

/** Any fault of an export's body has an empty response. */
function rejectExport(error: unknown): never {
  throw error instanceof Failure && error.code === "malformed_json"
    ? new Failure("export_rejected", error.context, error)
    : error;
}

function get(path: string, response: Result): Endpoint {
  return { method: "GET", path, response };
}

function post(path: string, response: Result): Endpoint {
  return { method: "POST", path, response };
}

function put(path: string, response: Result): Endpoint {
  return { method: "PUT", path, response };
}

function said(message: string): Response {
  return jsonResponse({ message });
}

/** Done, and nothing to say. */
function done(): Response {
  return new Response(null, { status: 200 });
}
