/**
 * Status of an uploaded item, and its offsets in its bundle.
 * Source: docs/reference/upload.md#status.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { NestedItem } from "../../upload/nested-offsets.ts";
import type { UploadState, UploadStatus } from "../../upload/upload-rows.ts";
import { failureResponses, idSchema, json, record, ref, type Schema, textSchema } from "../reference/words.ts";
import { jsonResponse } from "../responses.ts";
import { describedAs, type PathDescription } from "../route-schema.ts";
import { byteSchema, pathParameters, winc } from "./upload-schemas.ts";

export type StatusRoutesOptions = Readonly<{
  /** Returns `undefined` for an item that was not uploaded here. */
  standing: (id: string) => Promise<UploadStatus | undefined>;
  /** Returns `undefined` for an item that is in no upload. */
  nested: (id: string) => Promise<NestedItem | undefined>;
}>;

const offsetFields = {
  rawContentLength: byteSchema("Of the whole item, header and payload."),
  payloadContentType: textSchema,
  payloadDataStart: byteSchema("Offset of the payload in the item."),
  payloadContentLength: byteSchema("Of the payload."),
  "startOffsetInRootBundle?": byteSchema("Offset of the item in its bundle's data; absent until it is bundled."),
};

/** The records of uploaded items, as components of the API reference. */
export const statusSchemas: Readonly<Record<string, Schema>> = {
  UploadStatus: record({
    status: { type: "string", enum: ["CONFIRMED", "FINALIZED", "FAILED"] },
    info: { type: "string", enum: ["new", "pending", "permanent", "failed"] },
    "bundleId?": { ...idSchema, description: "The newest transaction that carries it." },
    winc,
    "reason?": { ...textSchema, description: "Why it failed; its price is refunded." },
    ...offsetFields,
  }),
  UploadOffsets: record({
    ...offsetFields,
    "rootBundleId?": idSchema,
    "parentDataItemId?": {
      ...idSchema,
      description: "Of a nested item: the item that contains it.",
    },
    "startOffsetInParentDataItemPayload?": byteSchema("Offset of the item in the payload of its parent."),
  }),
};

/** The router names the parameter of all paths below `/tx` alike, so Elysia does not validate the id. */
const ofStatus: PathDescription = {
  path: "/tx/:id/status",
  tag: "Items",
  summary: "Status of an item",
  description: "`CONFIRMED` from the receipt on, `FINALIZED` when its bundle is permanent.",
  parameters: [pathParameters.id],
  responses: {
    ...failureResponses("upload_not_found", "database_unavailable"),
    200: json("The status.", ref("UploadStatus")),
  },
};

const ofOffsets: PathDescription = {
  path: "/tx/:id/offsets",
  tag: "Items",
  summary: "Offsets of an item in its bundle",
  parameters: [pathParameters.id],
  responses: {
    ...failureResponses("upload_not_found", "database_unavailable"),
    200: json("The offsets.", ref("UploadOffsets")),
  },
};

/** Caches may store a final status; others change within seconds. */
const ageSeconds: Readonly<Record<UploadState, number>> = {
  stored: 0,
  planned: 0,
  posted: 15,
  permanent: 86_400,
  failed: 15,
};

const words: Readonly<Record<UploadState, Readonly<{ status: string; info: string }>>> = {
  stored: { status: "CONFIRMED", info: "new" },
  planned: { status: "CONFIRMED", info: "pending" },
  posted: { status: "CONFIRMED", info: "pending" },
  permanent: { status: "FINALIZED", info: "permanent" },
  failed: { status: "FAILED", info: "failed" },
};

export function createStatusRoutes({ standing, nested }: StatusRoutesOptions): AnyElysia {
  const uploadOf = async (id: string) => (pathParameters.id.is(id) ? await standing(id) : undefined);
  const standingOf = async (id: string): Promise<UploadStatus> => {
    const found = await uploadOf(id);
    if (found === undefined) throw notFound(id);
    return found;
  };
  return new Elysia({ strictPath: true })
    .get(
      "/tx/:token/status",
      async ({ params }) => {
        const found = await standingOf(params.token);
        const { upload, transactionId } = found;
        const status = {
          ...words[upload.state],
          ...(transactionId === undefined ? {} : { bundleId: transactionId }),
          winc: upload.winc.toString(),
          ...(upload.failedReason === undefined ? {} : { reason: upload.failedReason }),
          ...offsetsOf(found),
        };
        return jsonResponse(status, 200, cacheOf(upload.state));
      },
      { detail: describedAs(ofStatus) },
    )
    .get(
      "/tx/:token/offsets",
      async ({ params }) => {
        const found = await uploadOf(params.token);
        if (found === undefined) {
          const within = await nested(params.token);
          if (within === undefined) throw notFound(params.token);
          return jsonResponse(nestedOffsetsOf(within), 200, cacheOf(stateOf(within)));
        }
        const { transactionId } = found;
        const root = transactionId === undefined ? {} : { rootBundleId: transactionId };
        return jsonResponse({ ...offsetsOf(found), ...root }, 200, cacheOf(found.upload.state));
      },
      { detail: describedAs(ofOffsets) },
    );
}

function offsetsOf({ upload }: UploadStatus): Readonly<Record<string, unknown>> {
  const { bytes, headerSize, contentType, place } = upload;
  return {
    rawContentLength: bytes.size,
    payloadContentType: contentType ?? "application/octet-stream",
    payloadDataStart: headerSize,
    payloadContentLength: bytes.size - headerSize,
    ...(place?.offset === undefined ? {} : { startOffsetInRootBundle: place.offset }),
  };
}

function nestedOffsetsOf(item: NestedItem): Readonly<Record<string, unknown>> {
  const { size, headerSize, startInRoot, rootId } = item;
  return {
    rawContentLength: size,
    payloadContentType: item.contentType ?? "application/octet-stream",
    payloadDataStart: headerSize,
    payloadContentLength: size - headerSize,
    ...(startInRoot === undefined ? {} : { startOffsetInRootBundle: startInRoot }),
    parentDataItemId: item.parentId,
    startOffsetInParentDataItemPayload: item.startInParent,
    ...(rootId === undefined ? {} : { rootBundleId: rootId }),
  };
}

function stateOf({ rootId, isStable }: NestedItem): UploadState {
  if (rootId === undefined) return "stored";
  return isStable ? "permanent" : "posted";
}

function notFound(id: string): Failure {
  return new Failure("upload_not_found", { id: id.slice(0, 100) });
}

function cacheOf(state: UploadState): Readonly<Record<string, string>> {
  const age = ageSeconds[state];
  return { "Cache-Control": age === 0 ? "no-store" : `public, max-age=${age}` };
}
