/**
 * `GET /svc/invalid-items/{id}`: the entries of a bundle that are not valid data items, each with its reason.
 * Source: docs/reference/gateway.md#invalid-items.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { isId } from "../../arweave/id.ts";
import { Failure } from "../../failures.ts";
import type { IndexReader } from "../../store/index/index-types.ts";
import { failureResponses, json, ref } from "../reference/openapi-types.ts";
import { contextOf } from "../request-context.ts";
import { servicePrefixes } from "../reserved-paths.ts";
import { jsonResponse } from "../responses.ts";
import { described } from "../route-schema.ts";
import { pathParameters, queryParameters } from "./parameters.ts";

/** Entries of a page unless the request has `limit`. */
const pageDefault = 100;

/** The bundle may be unbundled at any time, or forked away. */
const noStore = { "Cache-Control": "no-store" } as const;

/** Creates the routes, under both spellings of the service prefix. */
export function createInvalidItemRoutes(reader: Pick<IndexReader, "invalidItems">): AnyElysia {
  const response = (text: string, request: Request): Response => {
    if (!isId(text)) throw new Failure("invalid_id", { text });
    const { after, limit } = readPage(new URLSearchParams(contextOf(request).target.query));
    // One more than the page tells whether another page follows.
    const found = reader.invalidItems(text, after + 1, limit + 1);
    if (found === undefined) throw new Failure("not_found", { text });
    const items = found.items.slice(0, limit);
    const record = {
      id: text,
      itemCount: found.itemCount,
      invalidCount: found.invalidCount,
      items: items.map(({ entry, id, offset, reason }) => ({ index: entry, id, offset, reason })),
      next: found.items.length > limit ? String(items.at(-1)?.entry) : null,
    };
    return jsonResponse(record, 200, noStore);
  };

  const routes = new Elysia({ strictPath: true });
  for (const prefix of servicePrefixes) {
    // The reference shows one of the two prefixes.
    const detail = prefix === "/svc" ? { detail: invalidItemsDetail } : {};
    routes.get(`${prefix}/invalid-items/:id`, ({ params, request }) => response(params.id, request), detail);
  }
  return routes;
}

const invalidItemsDetail = described({
  tag: "Content",
  summary: "The entries of a bundle that are not valid data items, with reasons",
  parameters: [pathParameters.bundleId, queryParameters.pageLimit, queryParameters.afterEntry],
  responses: {
    200: json("A page of the entries.", ref("InvalidItems")),
    ...failureResponses("invalid_id", "malformed_input"),
    ...failureResponses("not_found"),
  },
});

function readPage(query: URLSearchParams): Readonly<{ after: number; limit: number }> {
  const limit = query.get("limit") ?? String(pageDefault);
  if (!queryParameters.pageLimit.is(limit)) throw new Failure("malformed_input", { limit });
  const after = query.get("after");
  if (after !== null && !queryParameters.afterEntry.is(after)) throw new Failure("malformed_input", { after });
  return { limit: Number(limit), after: after === null ? -1 : Number(after) };
}
