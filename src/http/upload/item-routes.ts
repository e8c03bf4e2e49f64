/**
 * `POST /tx` and `/tx/{token}`: a signed data item in, its receipt out.
 * Source: docs/reference/upload.md#posting-an-item.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { Token } from "../../payment/addresses.ts";
import type { Intake } from "../../upload/intake/item-intake.ts";
import { type Pace, piecesOf } from "../body-pieces.ts";
import { contextOf } from "../context.ts";
import { jsonResponse } from "../responses.ts";
import { pathParameters } from "./parameters.ts";
import { payersOf } from "./payers.ts";
import type { ReceiptWriter } from "./receipt-record.ts";
import { fromUpload } from "./refusals.ts";

/** What the routes ask. */
export type ItemRoutesOptions = Readonly<{
  /** Undefined: no wallet is set, and uploads are off. */
  intake: Intake | undefined;
  writeReceipt: ReceiptWriter;
  /** How slow a sender may be; the usual pace unless told. */
  pace?: Pace;
}>;

/** A receipt says what is true of one moment, and of one payer. */
const noStore = { "Cache-Control": "no-store" } as const;

/** Verifying, storing and signing may wait behind others. */
const silenceSeconds = 120;

/** Creates the routes. */
export function createItemRoutes({ intake, writeReceipt, pace }: ItemRoutesOptions): AnyElysia {
  const take = (request: Request, token?: Token): Promise<Response> =>
    fromUpload(async () => {
      if (intake === undefined) throw new Failure("uploads_off", {});
      refuseType(request);
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
    .post("/tx", ({ request }) => take(request), { parse: "none" })
    .post(
      "/tx/:token",
      ({ request, params }) => {
        const token = pathParameters.token.read(params.token);
        if (token === undefined) throw new Failure("token_not_supported", { token: params.token.slice(0, 100) });
        return take(request, token);
      },
      { parse: "none" },
    );
}

function refuseType(request: Request): void {
  const type = request.headers.get("content-type")?.split(";", 1)[0]?.trim().toLowerCase();
  if (type !== undefined && type !== "" && type !== "application/octet-stream")
    throw new Failure("upload_rejected", { reason: "Invalid Content Type", type: type.slice(0, 100) });
}

/** Absent with chunked transfer; the listener refuses what is no size. */
function announcedSize(request: Request): number | undefined {
  const text = request.headers.get("content-length");
  return text === null ? undefined : Number(text);
}
