/**
 * `POST /x402/upload/signed` and `/x402/upload/unsigned`, also as `/x402/data-item/…`: an item, or bytes that the
 * service signs as an item, with the payment for it.
 * Source: docs/reference/upload.md#paying-with-the-request.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { ignoreRejection } from "../../lib/stop.ts";
import type { X402, X402Settled } from "../../payment/x402/x402.ts";
import type { X402Payment } from "../../payment/x402/x402-payment-reader.ts";
import type { Taken } from "../../upload/intake/charge-item.ts";
import type { Intake } from "../../upload/intake/item-intake.ts";
import { listOrSigner, type X402Uploads } from "../../upload/x402/x402-uploads.ts";
import { addressBlock } from "../client-address.ts";
import type { PublicUrl } from "../public-url.ts";
import {
  failureResponses,
  inHeader,
  inPath,
  json,
  type Responses,
  record,
  ref,
  type Schema,
  textSchema,
} from "../reference/openapi-types.ts";
import { piecesOf } from "../request-body.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse, noStore } from "../responses.ts";
import { described, type RouteDescription } from "../route-schema.ts";
import { x402PaymentOf } from "../x402-responses.ts";
import { dataTagsOf, readCount } from "./upload-headers.ts";
import { fromUpload, type ReceiptWriter, receiptFields } from "./upload-responses.ts";
import { itemRejections, paymentFault, paymentHeaders, paymentRequired } from "./upload-schemas.ts";
import { billFor, paymentRequiredResponse, respondPaid, type UploadBill } from "./x402-upload-payments.ts";

export type X402UploadRoutesOptions = Readonly<{
  /** Undefined when x402 or uploads are off. */
  uploads: X402Uploads | undefined;
  intake: Pick<Intake, "take"> | undefined;
  writeReceipt: ReceiptWriter;
  publicUrl: PublicUrl;
}>;

/** Idle timeout: settlement, the disk and signatures can each be slow. */
const idleSeconds = 255;

/** The record of a paid upload, as a component of the API reference. */
export const paidReceiptSchemas: Readonly<Record<string, Schema>> = {
  PaidReceipt: record(
    {
      ...receiptFields,
      "x402PaymentTxId?": { ...textSchema, description: "The transaction that paid." },
      "mUSDCPaid?": { ...textSchema, description: "Smallest unit of the asset." },
      "payer?": textSchema,
      "receipt?": ref("Receipt"),
      "x402Payment?": record({
        paymentId: textSchema,
        transactionHash: textSchema,
        network: textSchema,
        mode: { type: "string", enum: ["payg"] },
      }),
    },
    "The fields of the payment are absent when the item was stored already or is free. Only items that the service " +
      "signed have the last three.",
  ),
};

const settledFirst =
  "The payment is settled before anything is stored. After a later rejection the payer keeps the credits, and the " +
  "response still has the header of the settled payment. The same payment for the same upload gets the same " +
  "response; an interrupted request is continued.";
const network = inPath("network", textSchema, "base", "The network of the payment, by either version's name.");
const tagsHeader = inHeader("x-data-item-tags", textSchema, "JSON list of objects with name and value.");

const responses: Responses = {
  ...itemRejections,
  ...failureResponses("upload_rejected", "length_required", "item_too_large"),
  ...paymentFault,
  402: paymentRequired,
  403: failureResponses("invalid_signature", "upload_forbidden")[403] ?? paymentRequired,
  200: json("The receipt.", ref("PaidReceipt")),
};

const ofSigned: RouteDescription = {
  tag: "Paid by x402",
  responses,
  summary: "Upload an item with its payment",
  description: `An item that is stored already costs nothing. ${settledFirst}`,
  parameters: paymentHeaders,
  body: {
    type: "application/octet-stream",
    schema: { type: "string", format: "binary" },
    example: "an item's bytes",
  },
};

const ofUnsigned: RouteDescription = {
  tag: "Paid by x402",
  responses,
  summary: "Upload bytes with their payment; the service signs the item",
  description:
    "The item has the tags Content-Type, those of the header, Data-Item-Authority and X402-Payer-Address, and is " +
    `signed by a key of the service that has no other use. ${settledFirst} A request of more than 64 KiB is not ` +
    "continued, because the bytes cannot be compared; the payer keeps the credits.",
  parameters: [tagsHeader, ...paymentHeaders],
  body: { type: "*/*", schema: { type: "string", format: "binary" }, example: "any bytes" },
};

const onNetwork = (description: RouteDescription): RouteDescription => ({
  ...description,
  parameters: [network, ...(description.parameters ?? [])],
});

export function createX402UploadRoutes(options: X402UploadRoutesOptions): AnyElysia {
  const signed = (request: Request, network?: string) => fromUpload(() => takeSigned(options, request, network));
  const unsigned = (request: Request, network?: string) => fromUpload(() => takeUnsigned(options, request, network));
  const hooks = (description: RouteDescription) => ({ parse: "none", detail: described(description) }) as const;
  return new Elysia({ strictPath: true })
    .post("/x402/upload/signed", ({ request }) => signed(request), hooks(ofSigned))
    .post("/x402/upload/unsigned", ({ request }) => unsigned(request), hooks(ofUnsigned))
    .post("/x402/data-item/signed", ({ request }) => signed(request), hooks(ofSigned))
    .post("/x402/data-item/unsigned", ({ request }) => unsigned(request), hooks(ofUnsigned))
    .post(
      "/x402/data-item/signed/:network",
      ({ request, params }) => signed(request, params.network),
      hooks(onNetwork(ofSigned)),
    )
    .post(
      "/x402/data-item/unsigned/:network",
      ({ request, params }) => unsigned(request, params.network),
      hooks(onNetwork(ofUnsigned)),
    );
}

async function takeSigned(
  options: X402UploadRoutesOptions,
  request: Request,
  network: string | undefined,
): Promise<Response> {
  const { intake, writeReceipt } = options;
  const uploads = readyFor(options, request, network);
  if (intake === undefined) throw new Failure("uploads_off", {});
  const size = lengthOf(request);
  const bill = billFor(`${options.publicUrl(request)}/v1/x402/upload/signed`, size, "application/json");
  const payment = x402PaymentOf(request);
  if (payment === undefined) {
    if (!uploads.isFree(size)) return await paymentRequiredResponse(uploads, bill, request.signal);
    const arrival = { pieces: piecesOf(request), size, ...listOrSigner };
    return jsonResponse(await writeReceipt(await intake.take(arrival, request.signal), request), 200, noStore);
  }
  const { x402 } = uploads;
  return await respondPaid(
    { x402, bill, payment, signal: request.signal },
    () => uploads.takeSigned({ pieces: piecesOf(request), size }, sentOf(bill, payment), request.signal),
    async (taken, settled) => {
      const receipt = await writeReceipt(taken, request);
      return jsonResponse({ ...receipt, ...paidFields(settled) }, 200, noStore);
    },
  );
}

async function takeUnsigned(
  options: X402UploadRoutesOptions,
  request: Request,
  network: string | undefined,
): Promise<Response> {
  const uploads = readyFor(options, request, network);
  const { x402 } = uploads;
  const size = lengthOf(request);
  const tags = dataTagsOf(request);
  const payment = x402PaymentOf(request);
  const itemSize = uploads.paidSize({ tags, size });
  const isFree = payment === undefined && uploads.isFree(uploads.freeSize({ tags, size }));
  const bill = billFor(
    `${options.publicUrl(request)}/v1/x402/upload/unsigned`,
    itemSize,
    request.headers.get("content-type") ?? "",
  );
  if (payment === undefined && !isFree) return await paymentRequiredResponse(uploads, bill, request.signal);
  const pieces = piecesOf(request);
  const upload = { pieces, size, tags, client: addressBlock(contextOf(request).clientAddress()) };
  try {
    if (payment === undefined)
      return await freeResponse(options, request, await uploads.takeFree(upload, request.signal));
    return await respondPaid(
      { x402, bill, payment, signal: request.signal },
      () => uploads.takeUnsigned(upload, sentOf(bill, payment), request.signal),
      (taken, settled) =>
        settled === undefined
          ? freeResponse(options, request, taken)
          : paidResponse(options, request, taken, { x402, payment, settled }),
    );
  } finally {
    // A pending read ends by itself; the response does not wait for it.
    ignoreRejection(pieces.return(undefined));
  }
}

/** The receipt, as fields and as `receipt`: clients of two services read either. */
async function freeResponse(
  { writeReceipt }: X402UploadRoutesOptions,
  request: Request,
  taken: Taken,
): Promise<Response> {
  const receipt = await writeReceipt(taken, request);
  return jsonResponse({ ...receipt, receipt }, 200, noStore);
}

type Paid = Readonly<{ x402: X402; payment: X402Payment; settled: X402Settled }>;

async function paidResponse(
  { writeReceipt }: X402UploadRoutesOptions,
  request: Request,
  taken: Taken,
  { x402, payment, settled }: Paid,
): Promise<Response> {
  const receipt = await writeReceipt(taken, request);
  const { network } = x402.terms;
  const record = {
    ...receipt,
    ...paidFields(settled),
    payer: settled.payer,
    receipt,
    x402Payment: {
      paymentId: payment.authorization.nonce,
      transactionHash: settled.transaction,
      network: payment.version === 1 ? network.nameV1 : network.name,
      mode: "payg",
    },
  };
  return jsonResponse(record, 200, noStore);
}

/** Absent when the item was stored already and nothing was paid for it now. */
function paidFields(settled: X402Settled | undefined): Readonly<Record<string, string>> {
  if (settled === undefined) return {};
  return { x402PaymentTxId: settled.transaction, mUSDCPaid: settled.paid.toString() };
}

function readyFor({ uploads }: X402UploadRoutesOptions, request: Request, network: string | undefined): X402Uploads {
  if (uploads === undefined) throw new Failure("payment_method_off", { method: "x402" });
  const { name, nameV1 } = uploads.x402.terms.network;
  if (network !== undefined && network !== name && network !== nameV1)
    throw new Failure("upload_rejected", { reason: `Network ${network.slice(0, 40)} is not enabled` });
  contextOf(request).extendIdleTimeout(idleSeconds);
  return uploads;
}

function lengthOf(request: Request): number {
  const length = readCount(request.headers.get("content-length"));
  if (length !== undefined) return length;
  const reason = "Missing Content Length. Content Length is required for raw data post.";
  throw new Failure("length_required", { reason });
}

function sentOf({ resource }: UploadBill, payment: X402Payment) {
  return { payment, resource: resource.url };
}
