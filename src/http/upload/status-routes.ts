/**
 * How far an item is on its way, and where it stands in its bundle.
 * Source: docs/reference/upload.md#status.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { NestedItem } from "../../upload/nested-offsets.ts";
import type { UploadState, UploadStatus } from "../../upload/upload-rows.ts";
import { jsonResponse } from "../responses.ts";
import { pathParameters } from "./parameters.ts";

/** What the routes ask. */
export type StatusRoutesOptions = Readonly<{
  /** `undefined` for an item that was never taken here. */
  standing: (id: string) => Promise<UploadStatus | undefined>;
  /** `undefined` for an item that lies in no upload. */
  nested: (id: string) => Promise<NestedItem | undefined>;
}>;

/** What is final may be kept, what is not changes within seconds. */
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

/** Creates the routes. */
export function createStatusRoutes({ standing, nested }: StatusRoutesOptions): AnyElysia {
  const uploadOf = async (id: string) => (pathParameters.id.is(id) ? await standing(id) : undefined);
  const standingOf = async (id: string): Promise<UploadStatus> => {
    const found = await uploadOf(id);
    if (found === undefined) throw notFound(id);
    return found;
  };
  return new Elysia({ strictPath: true })
    .get("/tx/:token/status", async ({ params }) => {
      const found = await standingOf(params.token);
      const { upload, transactionId } = found;
      const record = {
        ...words[upload.state],
        ...(transactionId === undefined ? {} : { bundleId: transactionId }),
        winc: upload.winc.toString(),
        ...(upload.failedReason === undefined ? {} : { reason: upload.failedReason }),
        ...offsetsOf(found),
      };
      return jsonResponse(record, 200, cacheOf(upload.state));
    })
    .get("/tx/:token/offsets", async ({ params }) => {
      const found = await uploadOf(params.token);
      if (found === undefined) {
        const within = await nested(params.token);
        if (within === undefined) throw notFound(params.token);
        return jsonResponse(nestedOffsetsOf(within), 200, cacheOf(stateOf(within)));
      }
      const { transactionId } = found;
      const root = transactionId === undefined ? {} : { rootBundleId: transactionId };
      return jsonResponse({ ...offsetsOf(found), ...root }, 200, cacheOf(found.upload.state));
    });
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
