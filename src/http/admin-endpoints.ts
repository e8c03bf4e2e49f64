/**
 * Endpoints of the admin API: guarded by the key, below both spellings of its prefix, described in the API reference.
 * Source: docs/reference/gateway.md#administration.
 * @module
 */
import { type AnyElysia, type DocumentDecoration, Elysia } from "elysia";
import type { AdminGuard } from "./admin-guard.ts";
import { type Body, type Fields, readFields } from "./body-fields.ts";
import type { Parameter } from "./parameter.ts";
import { failureResponses, type Responses } from "./reference/openapi-types.ts";
import { contextOf } from "./request-context.ts";
import { limits } from "./request-limits.ts";
import { servicePrefixes } from "./reserved-paths.ts";
import { described } from "./route-schema.ts";

/** A response to the owner of the key alone. */
type Result = (request: Request, params: Readonly<Record<string, string>>) => Promise<Response> | Response;

/** One endpoint, below `/svc/admin`. The API reference shows those with a description. */
export type AdminEndpoint = Readonly<{
  method: "GET" | "POST" | "PUT";
  path: string;
  description?: AdminDescription;
  response: Result;
}>;

/** The description of an endpoint; the failures of its body follow from the body. */
export type AdminDescription = Readonly<{
  summary: string;
  description?: string;
  parameters?: readonly Parameter[];
  body?: Pick<Body<unknown>, "schema" | "failures">;
  /** A valid body. */
  example?: unknown;
  responses: Responses;
}>;

/** Creates the routes of endpoints. */
export function mountAdminEndpoints(guard: AdminGuard, endpoints: readonly AdminEndpoint[]): AnyElysia {
  const routes = new Elysia({ strictPath: true });
  for (const prefix of servicePrefixes) {
    for (const { method, path, description, response } of endpoints) {
      // The reference shows one of the two prefixes.
      const detail = prefix === "/svc" && description !== undefined ? { detail: detailOf(description) } : {};
      routes.route(
        method,
        `${prefix}/admin${path}`,
        async ({ request, params }) => {
          await admit(request, guard);
          return await response(request, params);
        },
        { parse: "none", ...detail },
      );
    }
  }
  return routes;
}

function detailOf({ body, example, responses, ...rest }: AdminDescription): DocumentDecoration {
  const guarded = failureResponses("unauthorized", "too_many_requests", "internal");
  const unreadable = body === undefined ? {} : failureResponses("malformed_json", "too_large", ...body.failures);
  const shown = body === undefined ? {} : { body: { type: "application/json", schema: body.schema, example } };
  return described({
    ...rest,
    tag: "Administration",
    isGuarded: true,
    ...shown,
    responses: { ...guarded, ...responses, ...unreadable },
  });
}

async function admit(request: Request, guard: AdminGuard): Promise<void> {
  const { clientAddress } = contextOf(request);
  await guard.admit(request.headers.get("authorization"), clientAddress(), request.signal);
}

/** Reads the fields of a body. */
export async function adminFields(request: Request): Promise<Fields> {
  return await readFields(request, limits.adminBytesMax);
}

export function get(path: string, description: AdminDescription | undefined, response: Result): AdminEndpoint {
  return { method: "GET", path, response, ...(description === undefined ? {} : { description }) };
}

export function post(path: string, description: AdminDescription, response: Result): AdminEndpoint {
  return { method: "POST", path, description, response };
}

export function put(path: string, description: AdminDescription, response: Result): AdminEndpoint {
  return { method: "PUT", path, description, response };
}
