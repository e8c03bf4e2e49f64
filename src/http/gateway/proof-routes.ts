/**
 * `GET` and `HEAD` of `/svc/proof/{id}`: everything by which a reader can check content alone.
 * Source: docs/reference/gateway.md#proofs; docs/proof.md.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { isId } from "../../arweave/id.ts";
import { type Proof, proofFields, proofTextSizeMax } from "../../arweave/proof.ts";
import { Failure } from "../../failures.ts";
import type { Proofs } from "../../gateway/proofs.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { sha256 } from "../../lib/hash.ts";
import { writeJson } from "../../lib/json.ts";
import { matchesTag } from "../conditional-requests.ts";
import { empty, failureResponses, json, ref, sourceFault } from "../reference/openapi-types.ts";
import { composingOf, contextOf } from "../request-context.ts";
import { servicePrefixes } from "../reserved-paths.ts";
import { jsonTextResponse } from "../responses.ts";
import { described } from "../route-schema.ts";
import { entityTagHeader, pathParameters, queryParameters, rangeHeader } from "./parameters.ts";

/** How long sources may keep a reader waiting, in seconds. */
const sourceSilenceSeconds = 120;

/**
 * A block that may be forked away takes its proof with it; stable content may still be blocked later. A proof lacks the
 * place of its transaction in a block before 2.0, and while other data of the block cannot be read.
 */
const cacheControl = {
  stable: "public, max-age=7200",
  withoutPlace: "public, max-age=300",
  other: "public, max-age=10",
} as const;

/** Creates the routes, under both spellings of the service prefix. */
export function createProofRoutes(proofs: Proofs): AnyElysia {
  const response = async (text: string, request: Request): Promise<Response> => {
    if (!pathParameters.provenId.is(text)) throw new Failure("invalid_id", { text });
    if (!isId(text)) throw new Failure("not_found", { text });
    const context = contextOf(request);
    context.extendIdleTimeout(sourceSilenceSeconds);
    const proof = await proofs.of(text, rangeOf(request, context.target.query), composingOf(request));
    const body = new TextEncoder().encode(writeJson(proofFields(proof)));
    if (body.length > proofTextSizeMax) throw new Failure("proof_too_large", { id: text, size: body.length });
    const headers = {
      ETag: `"${encodeBase64url(sha256(body))}"`,
      "Cache-Control": cacheControlOf(proof),
      Vary: "Range",
    };
    if (matchesTag(request.headers.get("if-none-match"), headers.ETag))
      return new Response(null, { status: 304, headers });
    return jsonTextResponse(body, 200, headers);
  };

  const routes = new Elysia({ strictPath: true });
  for (const prefix of servicePrefixes) {
    // The reference shows one of the two prefixes.
    const detail = prefix === "/svc" ? { detail: proofDetail } : {};
    routes.get(`${prefix}/proof/:id`, ({ params, request }) => response(params.id, request), detail);
  }
  return routes;
}

function cacheControlOf({ stable, transaction }: Proof): string {
  if (!stable) return cacheControl.other;
  const hasPlace = transaction?.place !== undefined || transaction?.dataSize === 0;
  return hasPlace ? cacheControl.stable : cacheControl.withoutPlace;
}

const proofDetail = described({
  tag: "Content",
  summary: "Everything by which content can be checked without trust",
  parameters: [pathParameters.provenId, rangeHeader, queryParameters.provenRange, entityTagHeader],
  responses: {
    200: json("The proof.", ref("Proof")),
    304: empty("The client has it."),
    ...failureResponses("invalid_id", "malformed_input"),
    ...failureResponses("not_found", "proof_too_large", "range_not_satisfiable", "blocked"),
    ...sourceFault,
  },
});

/** The bytes of the content that are to be proven: `?range=` first, because not every client may set Range. */
function rangeOf(request: Request, query: string): string | null {
  const asked = new URLSearchParams(query).get("range");
  if (asked === null) return request.headers.get("range");
  if (!queryParameters.provenRange.is(asked)) throw new Failure("malformed_input", { range: asked });
  return asked.startsWith("bytes=") ? asked : `bytes=${asked}`;
}
