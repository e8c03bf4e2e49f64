/**
 * `GET /svc/resolver/{name}`: the id of a name.
 * Source: docs/reference/gateway.md#names-of-the-registry.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { Names, ResolvedName } from "../../gateway/names/names.ts";
import { servicePrefixes } from "../reserved-paths.ts";
import { jsonResponse } from "../responses.ts";
import { hopsOf } from "./content-sender.ts";
import { nameCacheControl, nameHeaders } from "./name-headers.ts";
import { overLimitResponse } from "./named-content.ts";

/** Creates the routes, under both spellings of the service prefix. */
export function createNameRoutes(names: Names): AnyElysia {
  const routes = new Elysia({ strictPath: true });
  for (const prefix of servicePrefixes)
    routes.get(`${prefix}/resolver/:name`, async ({ params, request }) => {
      const meaning = await names.resolve(params.name, hopsOf(request), request.signal);
      if (meaning.kind === "absent") throw new Failure("not_found", { name: params.name });
      if (meaning.kind === "over limit") return overLimitResponse({});
      return responseOf(meaning.resolved);
    });
  return routes;
}

/** The limit is shown and not enforced: the response is the record, not content. */
function responseOf(resolved: ResolvedName): Response {
  const { record, resolvedAt } = resolved;
  const { id, ttlSeconds, processId, index, limit } = record;
  const body = { txId: id, ttlSeconds, processId, resolvedAt, index, limit };
  return jsonResponse(body, 200, {
    ...nameHeaders(resolved),
    "Cache-Control": nameCacheControl(resolved),
  });
}
