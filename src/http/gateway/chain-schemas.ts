/**
 * Schemas and descriptions that the routes of the chain share.
 * Source: docs/reference/node-api.md#routes.
 * @module
 */
import type { Parameter } from "../parameter.ts";
import {
  failureResponses,
  type Responses,
  type Result,
  ref,
  sourceFault,
  textSchema,
} from "../reference/openapi-types.ts";
import type { RouteDescription } from "../route-schema.ts";

/** A response in the words of a node: bare text, or an object. */
function nodeError(description: string): Result {
  return {
    description,
    content: { "text/plain": { schema: textSchema }, "application/json": { schema: ref("NodeError") } },
  };
}

/** Responses to a request that has to ask a node. */
const nodeErrors: Responses = {
  400: nodeError("The request is invalid, in the words of a node."),
  404: nodeError("`Not Found.`, `Block not found.`"),
  ...sourceFault,
};

/** A read of the chain. */
export function chainRead(
  tag: string,
  summary: string,
  found: Result,
  parameters: readonly Parameter[] = [],
): RouteDescription {
  const isFixed = parameters.length === 0;
  return {
    tag,
    summary,
    responses: { 200: found, ...(isFixed ? sourceFault : nodeErrors) },
    ...(isFixed ? {} : { parameters }),
  };
}

/** A post to the chain. */
export function chainPost(tag: string, summary: string, record: string, example: unknown): RouteDescription {
  return {
    tag,
    summary,
    description:
      "Sent to several nodes; the response is that of most of them. `X-Reject-Reason` has the reason of a rejection, " +
      "where nodes give one; clients that accept only JSON get it as `reasons`.",
    body: { type: "application/json", schema: ref(record), example },
    responses: {
      200: nodeError("Nodes accepted it."),
      208: nodeError("Nodes have it already."),
      400: nodeError("Nodes rejected it."),
      ...failureResponses("too_large"),
      429: nodeError("Nodes limit requests."),
      ...sourceFault,
    },
  };
}
