/**
 * The social frame: `GET` and `POST /local/social/frame/{id}`, the transaction's record or its content, as the
 * reader accepts.
 * Source: docs/reference/gateway.md#social-frames.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { isId } from "../../arweave/id.ts";
import { Failure } from "../../failures.ts";
import type { Frames } from "../../gateway/frames.ts";
import { isServiceWorkerRequest } from "../../gateway/isolation.ts";
import { bareMediaType, readFetchMetadata } from "../header-values.ts";
import { failureResponses, type Responses, ref, sourceFault, text, textSchema } from "../reference/openapi-types.ts";
import { readBody, readJsonBody } from "../request-body.ts";
import { composingOf } from "../request-context.ts";
import { limits } from "../request-limits.ts";
import { described } from "../route-schema.ts";
import { chainResponse } from "./chain-routes.ts";
import { sandboxWithScripts } from "./content-headers.ts";
import type { ContentSender, Sending } from "./content-sender.ts";
import { pathParameters } from "./parameters.ts";

export type FrameRoutesOptions = Readonly<{ frames: Frames; sender: ContentSender }>;

/** Both spellings: the neutral word, and the one that deployed clients send. */
const paths = ["/local/social/frame/:id", "/local/farcaster/frame/:id"] as const;

/** Creates the routes. */
export function createFrameRoutes({ frames, sender }: FrameRoutesOptions): AnyElysia {
  const response = async (text: string, request: Request): Promise<Response> => {
    if (!pathParameters.framedId.is(text)) throw new Failure("invalid_id", { id: text });
    if (!isId(text)) throw new Failure("not_found", { id: text });
    if (wantsRecord(request.headers.get("accept"))) {
      // Caches that ignore Vary must not store it for ever: the address has content, too.
      const record = chainResponse({ ...(await frames.record(text, composingOf(request))), isFinal: false });
      record.headers.append("Vary", "Accept");
      return record;
    }
    if (isServiceWorkerRequest(readFetchMetadata(request.headers)))
      throw new Failure("service_worker_rejected", { id: text });
    const sending: Sending = {
      address: { kind: "content", id: text, path: "", raw: false, changing: false },
      // A frame is embedded in other pages: its scripts get a separate origin on every host.
      policy: { sandbox: sandboxWithScripts, variesByDestination: false },
      key: `@frame ${text}`,
      decorate: (headers) => headers.append("Vary", "Accept"),
    };
    return request.method === "GET"
      ? await sender.send(request, sending)
      : await sender.sendWhole(request, sending, 200);
  };

  const routes = new Elysia({ strictPath: true });
  for (const path of paths.flatMap((each) => [each, `${each}/`] as const)) {
    const isShown = path === paths[0];
    routes.get(path, ({ params, request }) => response(params.id, request), isShown ? { detail: getDetail } : {});
    routes.post(
      path,
      async ({ params, request }) => {
        await takeBody(request);
        return await response(params.id, request);
      },
      { parse: "none", ...(isShown ? { detail: postDetail } : {}) },
    );
  }
  return routes;
}

const frame = { tag: "Social frame", parameters: [pathParameters.framedId] } as const;

const frameResponses: Responses = {
  200: {
    description: "The record; the content where `Accept` names a type that is not JSON.",
    content: { "application/json": { schema: ref("Transaction") }, "*/*": { schema: textSchema } },
  },
  202: text("`Pending`: not in a block yet."),
  ...failureResponses("invalid_id", "not_found", "too_large", "blocked", "service_worker_rejected"),
  ...sourceFault,
};

const getDetail = described({ ...frame, summary: "Get a frame", responses: frameResponses });

const postDetail = described({
  ...frame,
  summary: "Post to a frame",
  body: { type: "application/json", schema: { type: "object" }, example: {}, required: false },
  responses: { ...frameResponses, ...failureResponses("invalid_id", "malformed_json") },
});

/** Reads and validates the body of a posted frame action. Its values are not used. */
async function takeBody(request: Request): Promise<void> {
  const type = bareMediaType(request.headers.get("content-type") ?? "");
  if (type !== "application/json" || request.headers.get("content-length") === "0")
    await readBody(request, limits.frameBytesMax);
  else await readJsonBody(request, limits.frameBytesMax);
}

/** Whether a reader takes the record: one that names no type, or names JSON. */
function wantsRecord(accept: string | null): boolean {
  const types = (accept ?? "")
    .split(",")
    .map(bareMediaType)
    .filter((type) => type !== "" && type !== "*/*");
  return types.length === 0 || types.some((type) => type === "application/json" || type.endsWith("+json"));
}
