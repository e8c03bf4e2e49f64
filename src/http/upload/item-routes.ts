/**
 * `POST /tx` and `/tx/{token}`: a signed data item in, its receipt out.
 * Source: docs/reference/upload.md#posting-an-item.
 * @module
 */
import { type AnyElysia, Elysia, t } from "elysia";
import { Failure } from "../../failures.ts";
import { type Token, tokenText } from "../../payment/addresses.ts";
import type { Intake } from "../../upload/intake/item-intake.ts";
import { failureResponses, json, ref } from "../reference/words.ts";
import { type Pace, piecesOf } from "../request-body.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse } from "../responses.ts";
import { described, parsedText, type RouteDescription } from "../route-schema.ts";
import { payersOf } from "./payers.ts";
import type { ReceiptWriter } from "./receipt-record.ts";
import { fromUpload } from "./refusals.ts";
import { itemRefusals, payerHeaders } from "./upload-schemas.ts";

export type ItemRoutesOptions = Readonly<{
  /** Undefined when uploads are off: no wallet is set. */
  intake: Intake | undefined;
  writeReceipt: ReceiptWriter;
  /** Lowest pace of a sender. */
  pace?: Pace;
}>;

/** A receipt is for one payer. */
const noStore = { "Cache-Control": "no-store" } as const;

/** Verification, storage and signing can wait in queues. */
const silenceSeconds = 120;

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
    ...itemRefusals,
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
      contextOf(request).allowSilence(silenceSeconds);
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
