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
import { type DescribedOperation, operationsIn, pathParametersOf } from "../route-schema.ts";
import type { RegisteredRoute } from "../route-table.ts";
import type { Responses, Schema } from "./openapi-types.ts";

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
export type Operation = DescribedOperation & Readonly<{ method: string; path: string }>;

/** The operations of those routes that describe themselves. */
export function operationsOf(routes: readonly RegisteredRoute[]): readonly Operation[] {
  return routes.flatMap(({ method, path, hooks: { detail, params } = {} }) => {
    if (path === "") return [];
    return operationsIn(detail).map((operation) => {
      const parameters = [...pathParametersOf(params), ...(operation.parameters ?? [])];
      return { method, path, ...operation, ...(parameters.length === 0 ? {} : { parameters }) };
    });
  });
}
