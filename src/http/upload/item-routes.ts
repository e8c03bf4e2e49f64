/**
 * Items over HTTP: upload (`POST /tx` and `/tx/{token}`), receipt, status, and offsets in the bundle.
 *
 * `GET /tx/{id}/receipt` is public. A receipt discloses only what other routes do: the item's id and owner, its time
 * and price (its status), and the approvals that its tags gave or revoked (balances). It authorizes nothing.
 * Source: docs/reference/upload.md#posting-an-item; docs/reference/upload.md#status.
 * @module
 */
import { type AnyElysia, Elysia, t } from "elysia";
import { Failure } from "../../failures.ts";
import type { Semaphore } from "../../lib/semaphore.ts";
import { type Token, tokenText } from "../../payment/addresses.ts";
import type { Taken } from "../../upload/intake/charge-item.ts";
import type { Intake } from "../../upload/intake/item-intake.ts";
import type { NestedItem } from "../../upload/nested-offsets.ts";
import type { UploadState, UploadStatus } from "../../upload/upload-rows.ts";
import { failureResponses, idSchema, json, record, ref, type Schema, textSchema } from "../reference/openapi-types.ts";
import { type Pace, piecesOf } from "../request-body.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse, noStore } from "../responses.ts";
import { described, describedAs, type PathDescription, parsedText, type RouteDescription } from "../route-schema.ts";
import { payersOf } from "./upload-headers.ts";
import { fromUpload, type ReceiptWriter } from "./upload-responses.ts";
import { byteSchema, itemRejections, pathParameters, payerHeaders, winc } from "./upload-schemas.ts";

type ItemRoutesOptions = Readonly<{
  /** Undefined when uploads are off: no wallet is set. */
  intake: Intake | undefined;
  writeReceipt: ReceiptWriter;
  /** Lowest pace of a sender. */
  pace?: Pace;
}>;

/** Idle timeout: verification, storage and signing can wait in queues. */
const idleSeconds = 120;

const tokenParameter = parsedText(
  { description: "The token of the signer.", example: "arweave" },
  {
    schema: tokenText.schema,
    parse: tokenText.read,
    invalid: (text) => new Failure("token_not_supported", { token: text.slice(0, 100) }),
  },
);

const ofItem: RouteDescription = {
  tag: "Items",
  summary: "Upload an item",
  description:
    "The body is a signed ANS-104 item of any signature type; a Content-Length is optional. The item is verified " +
    "while it arrives, charged for when it is on the disk, and can be read and found when the receipt is sent. The " +
    "tags `x-approve-payment`, `x-amount` and `x-expires-seconds` let an address spend the signer's credits; " +
    "`x-delete-payment-approval` revokes that.",
  parameters: payerHeaders,
  body: {
    type: "application/octet-stream",
    schema: { type: "string", format: "binary" },
    example: "an item's bytes",
  },
  responses: {
    ...itemRejections,
    200: json("The receipt; of an item that was uploaded before, the first one.", ref("Receipt")),
  },
};

const ofItemWithToken: RouteDescription = {
  ...ofItem,
  summary: "Upload an item, with the name of a token",
  responses: { ...ofItem.responses, ...failureResponses("upload_rejected", "token_not_supported") },
};

export function createItemRoutes({ intake, writeReceipt, pace }: ItemRoutesOptions): AnyElysia {
  const take = (request: Request, token?: Token): Promise<Response> =>
    fromUpload(async () => {
      if (intake === undefined) throw new Failure("uploads_off", {});
      rejectType(request);
      contextOf(request).extendIdleTimeout(idleSeconds);
      const arrival = {
        pieces: piecesOf(request, pace),
        size: announcedSize(request),
        token,
        ...payersOf(request),
      };
      const taken = await intake.take(arrival, request.signal);
      return jsonResponse(await writeReceipt(taken, request), 200, noStore);
    });
  return new Elysia({ strictPath: true })
    .post("/tx", ({ request }) => take(request), { parse: "none", detail: described(ofItem) })
    .post("/tx/:token", ({ request, params }) => take(request, params.token), {
      parse: "none",
      params: t.Object({ token: tokenParameter }),
      detail: described(ofItemWithToken),
    });
}

function rejectType(request: Request): void {
  const type = request.headers.get("content-type")?.split(";", 1)[0]?.trim().toLowerCase();
  if (type !== undefined && type !== "" && type !== "application/octet-stream")
    throw new Failure("upload_rejected", { reason: "Invalid Content Type", type: type.slice(0, 100) });
}

/** Absent with chunked transfer; the listener rejects an invalid size. */
function announcedSize(request: Request): number | undefined {
  const text = request.headers.get("content-length");
  return text === null ? undefined : Number(text);
}

type ReceiptRoutesOptions = Readonly<{
  /** Returns `undefined` for an item that was not uploaded here. Undefined itself when no wallet is set. */
  find: ((id: string) => Promise<Taken | undefined>) | undefined;
  writeReceipt: ReceiptWriter;
  /** Bounds concurrent signatures: receipts of new uploads must not wait behind repeated ones. */
  semaphore: Semaphore;
}>;

/** Concurrent repeated receipts, and requests that may wait. */
export const receiptSemaphore = { atWorkMax: 2, waitingMax: 100 } as const;

/** Idle timeout: signing can wait in a queue. */
const receiptIdleSeconds = 60;

const ofReceipt: PathDescription = {
  path: "/tx/:id/receipt",
  tag: "Items",
  summary: "The receipt of an item again",
  description:
    "The first receipt, also of items that were uploaded in parts or paid for by x402 (then without the fields of " +
    "the payment). The route is public: a receipt discloses of an item only its status, its tags and the balances of " +
    "its approvals, and authorizes nothing. A failed item, which is refunded, has none. The receipt names the hosts " +
    "by which the client reaches the service.",
  parameters: [pathParameters.id],
  responses: {
    ...failureResponses("upload_not_found", "busy", "database_unavailable", "uploads_off"),
    200: json("The receipt.", ref("Receipt")),
  },
};

export function createReceiptRoutes({ find, writeReceipt, semaphore }: ReceiptRoutesOptions): AnyElysia {
  return new Elysia({ strictPath: true }).get(
    "/tx/:token/receipt",
    async ({ request, params }) => {
      const id = params.token; // the router names the parameter of all paths below `/tx` alike
      if (find === undefined) throw new Failure("uploads_off", {});
      const taken = pathParameters.id.is(id) ? await find(id) : undefined;
      // A failed item is refunded, so its receipt no longer holds.
      if (taken === undefined || taken.upload.state === "failed")
        throw new Failure("upload_not_found", { id: id.slice(0, 100) });
      contextOf(request).extendIdleTimeout(receiptIdleSeconds);
      const permit = semaphore.take(request.signal);
      if (permit === undefined) throw new Failure("busy", { reason: "too many concurrent receipts" });
      const release = await permit;
      try {
        return jsonResponse(await writeReceipt(taken, request), 200, noStore);
      } finally {
        release();
      }
    },
    { detail: describedAs(ofReceipt) },
  );
}

type StatusRoutesOptions = Readonly<{
  /** Returns `undefined` for an item that was not uploaded here. */
  findStatus: (id: string) => Promise<UploadStatus | undefined>;
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

const unknownItem = failureResponses("upload_not_found", "database_unavailable");

/** The router names the parameter of all paths below `/tx` alike, so Elysia does not validate the id. */
const ofStatus: PathDescription = {
  path: "/tx/:id/status",
  tag: "Items",
  summary: "Status of an item",
  description: "`CONFIRMED` from the receipt on, `FINALIZED` when its bundle is permanent.",
  parameters: [pathParameters.id],
  responses: {
    ...unknownItem,
    200: json("The status.", ref("UploadStatus")),
  },
};

const ofOffsets: PathDescription = {
  path: "/tx/:id/offsets",
  tag: "Items",
  summary: "Offsets of an item in its bundle",
  parameters: [pathParameters.id],
  responses: {
    ...unknownItem,
    ...failureResponses("source_timeout"),
    200: json("The offsets.", ref("UploadOffsets")),
  },
};

/** Caches may store a final status (final but for a reset of the development chain); others change within seconds. */
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

export function createStatusRoutes({ findStatus, nested }: StatusRoutesOptions): AnyElysia {
  const uploadOf = async (id: string) => (pathParameters.id.is(id) ? await findStatus(id) : undefined);
  const statusOf = async (id: string): Promise<UploadStatus> => {
    const found = await uploadOf(id);
    if (found === undefined) throw notFound(id);
    return found;
  };
  return new Elysia({ strictPath: true })
    .get(
      "/tx/:token/status",
      async ({ params }) => {
        const found = await statusOf(params.token);
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
