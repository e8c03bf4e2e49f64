/**
 * `GET /svc/resolver/{name}`: the id of a name.
 * Source: docs/reference/gateway.md#names-of-the-registry.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { Names, ResolvedName } from "../../gateway/names/names.ts";
import { failureResponses, inPath, json, ref, sourceFault, text, textSchema } from "../reference/openapi-types.ts";
import { servicePrefixes } from "../reserved-paths.ts";
import { jsonResponse } from "../responses.ts";
import { described } from "../route-schema.ts";
import { hopsOf } from "./content-sender.ts";
import { nameCacheControl, nameHeaders } from "./name-headers.ts";
import { overLimitResponse } from "./named-content.ts";

/** Creates the routes, under both spellings of the service prefix. */
export function createNameRoutes(names: Names): AnyElysia {
  const routes = new Elysia({ strictPath: true });
  for (const prefix of servicePrefixes)
    routes.get(
      `${prefix}/resolver/:name`,
      async ({ params, request }) => {
        const meaning = await names.resolve(params.name, hopsOf(request), request.signal);
        if (meaning.kind === "absent") throw new Failure("not_found", { name: params.name });
        if (meaning.kind === "over limit") return overLimitResponse({});
        return responseOf(meaning.resolved);
      },
      // The reference shows one of the two prefixes.
      prefix === "/svc" ? { detail: resolverDetail } : {},
    );
  return routes;
}

const resolverDetail = described({
  tag: "Names",
  summary: "Resolve a name",
  parameters: [inPath("name", textSchema, "an-example", "The name, with its undername before a `_`.")],
  responses: {
    200: json("The record.", ref("NameRecord")),
    402: text("The name has more undernames than were bought; in these words."),
    ...failureResponses("not_found", "blocked"),
    ...sourceFault,
  },
});

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
