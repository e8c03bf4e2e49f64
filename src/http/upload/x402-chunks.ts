/**
 * Making uploads in parts that are paid for when they are made.
 * Source: docs/reference/upload.md#paying-with-the-request.
 * @module
 */
import { signatureLayout } from "../../arweave/signature.ts";
import { Failure } from "../../failures.ts";
import type { UserAddress } from "../../payment/addresses.ts";
import type { MultipartUpload } from "../../upload/multipart/multipart-rows.ts";
import type { X402Uploads } from "../../upload/x402/x402-uploads.ts";
import type { PublicUrl } from "../public-url.ts";
import { x402PaymentOf } from "../x402-responses.ts";
import { queryParameters } from "./upload-schemas.ts";
import { askForPayment, billFor, respondPaid } from "./x402-payments.ts";

/** What is asked for when an upload is to be paid for at once. */
export type PaidChunks = Readonly<{ size: number; refundTo: UserAddress }>;

/** Makes uploads that are paid for. */
export type CreatePaidChunks = Readonly<{
  /** Whether an item costs nothing: then nobody is asked to pay. @param size - Of the whole item. Bytes. */
  isFree: (size: number) => boolean;
  create: (
    request: Request,
    asked: PaidChunks & Readonly<{ chunkSize: number | undefined; client: string }>,
    write: (upload: MultipartUpload) => Response,
  ) => Promise<Response>;
}>;

/**
 * Reads what is to be paid for.
 *
 * @returns Undefined when nothing is.
 * @throws Failure `upload_rejected` {reason} for a part of it, or what makes no sense.
 */
export function readPaidChunks(query: Readonly<Record<string, string | undefined>>): PaidChunks | undefined {
  const totalBytes = query[queryParameters.totalBytes.name];
  const address = query[queryParameters.address.name];
  const signatureType = query[queryParameters.signatureType.name];
  if (totalBytes === undefined && address === undefined && signatureType === undefined) return undefined;
  const size = queryParameters.totalBytes.read(totalBytes ?? "");
  if (size === undefined) throw rejection("totalBytes is no size");
  const type = queryParameters.signatureType.read(signatureType ?? "");
  if (type === undefined) throw rejection("signatureType is none");
  if (signatureLayout(type) === undefined) throw rejection("signatureType is not known");
  const refundTo = queryParameters.address.read(address ?? "");
  if (refundTo === undefined) throw rejection("address is none");
  return { size, refundTo };
}

/** Creates the maker. */
export function createPaidChunks(uploads: X402Uploads, publicUrl: PublicUrl): CreatePaidChunks {
  const { x402, isFree } = uploads;
  const create: CreatePaidChunks["create"] = async (request, asked, write) => {
    const bill = billFor(`${publicUrl(request)}/v1/chunks`, asked.size, "application/json");
    const payment = x402PaymentOf(request);
    if (payment === undefined) return await askForPayment(uploads, bill, request.signal);
    return await respondPaid(
      { x402, bill, payment, signal: request.signal },
      () => uploads.createChunked(asked, { payment, resource: bill.resource.url }, request.signal),
      async (upload) => write(upload),
    );
  };
  return { isFree, create };
}

function rejection(why: string): Failure {
  return new Failure("upload_rejected", { reason: `Invalid payment for an upload: ${why}` });
}
