/**
 * The API reference as an OpenAPI document, derived by the swagger plugin from the routes that are served.
 *
 * The plugin works on an application of its own, with the methods, paths and descriptions of those routes, because the
 * plugin's page would load scripts from other hosts.
 * Source: docs/decisions/080-api-reference.md.
 * @module
 */
import { Elysia } from "elysia";
import { assert } from "../../lib/assert.ts";
import { version } from "../../version.ts";
import { pathParametersOf } from "../route-schema.ts";
import type { RegisteredRoute } from "../route-table.ts";
import type { Parameter, Responses, Schema } from "./openapi-types.ts";

/** The parts of a document that no route declares. */
export type Reference = Readonly<{
  title: string;
  introduction: string;
  /** Schemas that descriptions refer to by name. */
  records: Readonly<Record<string, Schema>>;
  /** How a request is guarded, by name. */
  securitySchemes: Readonly<Record<string, Readonly<{ type: "http"; scheme: "bearer"; description: string }>>>;
}>;

/** Path of the document in the plugin's application; no route of ours, because the plugin leaves its own out. */
const documentPath = "/document-of-the-plugin";

/** Writes the document as JSON. @param server - Address of the service, which `servers` names. */
export type ReferenceDocument = (server: string) => string;

/** Placeholder of the address in the document that the plugin makes. */
const serverMark = "https://server.invalid";

/** Makes the document of these routes. */
export async function writeReference(
  reference: Reference,
  routes: readonly RegisteredRoute[],
): Promise<ReferenceDocument> {
  const { title, introduction, records, securitySchemes } = reference;
  // Imported here, because the start of the program does not need it.
  const { swagger } = await import("@elysiajs/swagger");
  const document = new Elysia();
  for (const { method, path, responses, ...operation } of operationsOf(routes)) {
    const detail = { ...operation, responses: method === "HEAD" ? withoutBodies(responses) : responses };
    // The plugin reads `detail`; the handlers of this application are never called.
    document.route(method, path, () => "", { detail: JSON.parse(JSON.stringify(detail)) });
  }
  document.use(
    swagger({
      path: "/page-of-the-plugin",
      specPath: documentPath,
      excludeStaticFile: false,
      documentation: {
        info: { title, version, description: introduction, license: { name: "Apache-2.0" } },
        // Reading needs no key; what does says so itself.
        security: [],
        servers: [{ url: serverMark }],
        components: { schemas: JSON.parse(JSON.stringify(records)), securitySchemes },
      },
    }),
  );
  const text = await (await document.handle(new Request(`http://localhost${documentPath}`))).text();
  const [before, after, ...more] = text.split(JSON.stringify(serverMark));
  assert(before !== undefined && after !== undefined && more.length === 0, "the document names its server once");
  return (server) => `${before}${JSON.stringify(server)}${after}`;
}

function withoutBodies(replies: Responses): Responses {
  return Object.fromEntries(Object.entries(replies).map(([status, { content: _, ...reply }]) => [status, reply]));
}

/** One operation of the document. */
export type Operation = Readonly<{
  method: string;
  path: string;
  summary: string;
  tags: readonly string[];
  description?: string;
  parameters?: readonly Parameter[];
  requestBody?: Readonly<{ content: Readonly<Record<string, Readonly<{ schema: Schema; example?: unknown }>>> }>;
  responses: Responses;
}>;

/** The operations of those routes that describe themselves. */
export function operationsOf(routes: readonly RegisteredRoute[]): readonly Operation[] {
  return routes.flatMap(({ method, path, hooks: { detail, params } = {} }) => {
    if (path === "") return [];
    return descriptionsOf(detail).map((description) => {
      const parameters = [...pathParametersOf(params), ...(description.parameters ?? [])];
      return { method, path, ...description, ...(parameters.length === 0 ? {} : { parameters }) };
    });
  });
}

/** An operation as a route has it, with its own path where it has one. */
type Described = Omit<Operation, "method" | "path"> & Readonly<{ method?: string; path?: string }>;

function descriptionsOf(detail: unknown): readonly Described[] {
  if (typeof detail !== "object" || detail === null) return [];
  if ("operations" in detail && Array.isArray(detail.operations)) return detail.operations.flatMap(descriptionsOf);
  return isDescribed(detail) ? [detail] : [];
}

function isDescribed(detail: object): detail is Described {
  return "summary" in detail && "responses" in detail;
}
