/**
 * The API reference as an OpenAPI document: of every route that is registered and described, made by the
 * swagger plugin.
 *
 * The plugin works on a sheet of its own, with the same methods and paths, because its page would load
 * scripts from elsewhere.
 * Source: specification 4A; contract.md §1; reference/graphql.md §4E.
 * @module
 */
import { swagger } from "@elysiajs/swagger";
import { type AnyElysia, Elysia } from "elysia";
import { version } from "../../version.ts";
import { limits } from "../limits.ts";
import type { RegisteredRoute } from "../routes.ts";
import { adminDescriptions } from "./admin-descriptions.ts";
import { chainDescriptions } from "./chain-descriptions.ts";
import { gatewayDescriptions } from "./gateway-descriptions.ts";
import { records } from "./records.ts";
import type { Answers, Description } from "./words.ts";

/** Every route that is described, whether or not it is registered. */
export const descriptions: readonly Description[] = [
  ...gatewayDescriptions,
  ...adminDescriptions,
  ...chainDescriptions,
];

/** Where the sheet has the document; a path that no route of ours has, because the plugin leaves its own out. */
const documentPath = "/document-of-the-plugin";

/** Makes the document of these routes, as JSON. */
export async function writeReference(routes: readonly RegisteredRoute[]): Promise<string> {
  const registered = new Set(
    routes.flatMap(({ method, path }) => methodsOf(method).map((each) => `${each} ${path}`)),
  );
  const sheet = new Elysia();
  for (const each of descriptions)
    if (registered.has(`${each.method} ${each.servedBy ?? each.path}`)) note(sheet, each);
  sheet.use(
    swagger({
      path: "/page-of-the-plugin",
      specPath: documentPath,
      excludeStaticFile: false,
      documentation: {
        info: { title: "Cairn gateway", version, description: introduction },
        servers: [{ url: "/" }],
        components: {
          schemas: JSON.parse(JSON.stringify(records)),
          securitySchemes: { key: { type: "http", scheme: "bearer", description: "ADMIN_API_KEY" } },
        },
      },
    }),
  );
  return await (await sheet.handle(new Request(`http://localhost${documentPath}`))).text();
}

/** The plugin reads the word for word `detail`; nobody asks the sheet's own routes. */
function note(sheet: AnyElysia, description: Description): void {
  const { method, path, tag, summary, parameters, body, answers } = description;
  const isGuarded = path.startsWith("/svc/admin/");
  const detail = {
    tags: [tag],
    summary,
    ...(description.description === undefined ? {} : { description: description.description }),
    ...(parameters === undefined ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: requestBodyOf(body) }),
    ...(isGuarded ? { security: [{ key: [] }] } : {}),
    responses: method === "HEAD" ? withoutBodies(answers) : answers,
  };
  sheet.route(method, path, () => "", { detail: JSON.parse(JSON.stringify(detail)) });
}

function requestBodyOf({ type, schema, example, required = true }: NonNullable<Description["body"]>) {
  return { required, content: { [type]: { schema, example } } };
}

function withoutBodies(answers: Answers): Answers {
  return Object.fromEntries(
    Object.entries(answers).map(([status, { description }]) => [status, { description }]),
  );
}

/** GET is answered to HEAD as well, and a route of every method to both and to POST. */
function methodsOf(method: string): readonly string[] {
  if (method === "GET") return ["GET", "HEAD"];
  return method === "ALL" ? ["GET", "HEAD", "POST"] : [method];
}

const kibibyte = 2 ** 10;

const limitRows: readonly (readonly [string, string])[] = [
  ["JSON of administration", sizeText(limits.adminBytesMax)],
  ["Headers of one `queue-data-item`", "10,000"],
  ["GraphQL request", sizeText(limits.graphqlBytesMax)],
  ["`POST /tx`", sizeText(limits.transactionBytesMax)],
  ["`POST /chunk`", `${limits.chunkBytesMax.toLocaleString("en")} bytes`],
  ["Frame response", sizeText(limits.frameBytesMax)],
  ["All headers of a request (431)", sizeText(limits.headerBytesMax)],
];

const introduction = `Content of a permanent chain, verified; the chain itself; queries over it.

Every path below \`/svc\` is also answered below \`/ar-io\`. Failures are a JSON string, but the chain's part answers
as a node does. Every \`GET\` is answered to \`HEAD\` with the same headers. A wrong method is answered 405 with
\`Allow\`; what waits may be asked again after \`Retry-After\`. Where the operator has set limits for clients, any
route may answer 429 with \`{"error": "Too Many Requests", "message": …}\`.

| Limit | At most |
|---|---|
${limitRows.map(([what, most]) => `| ${what} | ${most} |`).join("\n")}

A larger body is answered 413.`;

function sizeText(size: number): string {
  return size % kibibyte ** 2 === 0 ? `${size / kibibyte ** 2} MiB` : `${size / kibibyte} KiB`;
}
