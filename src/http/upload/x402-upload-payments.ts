/**
 * x402 payments of uploads: the 402 response, the response to a paid upload, and multipart uploads that are paid for
 * when they are created.
 * Source: docs/reference/upload.md#paying-with-the-request; docs/reference/payment.md#x402.
 * @module
 */
import { signatureLayout } from "../../arweave/signature.ts";
import { Failure, failures } from "../../failures.ts";
import type { UserAddress } from "../../payment/addresses.ts";
import type { X402, X402Settled } from "../../payment/x402/x402.ts";
import type { X402Payment } from "../../payment/x402/x402-payment-reader.ts";
import type { X402Resource } from "../../payment/x402/x402-requirement.ts";
import type { MultipartUpload } from "../../upload/multipart/multipart-rows.ts";
import type { X402Outcome, X402Uploads } from "../../upload/x402/x402-uploads.ts";
import type { PublicUrl } from "../public-url.ts";
import { failureResponse } from "../responses.ts";
import {
  noPaymentMessage,
  rejectedPayment,
  x402PaymentOf,
  x402RequiredResponse,
  x402SettledHeaders,
} from "../x402-responses.ts";
import { fromUpload } from "./upload-responses.ts";
import { byteCountMax, queryParameters } from "./upload-schemas.ts";

/** The size to pay for, and the resource of the 402 response. */
export type UploadBill = Readonly<{ size: number; resource: X402Resource }>;

/** @param url - Absolute URL of the resource. @param size - Of the complete item. Bytes. */
export function billFor(url: string, size: number, mimeType: string): UploadBill {
  return { size, resource: { url, description: `Turbo cost to upload ${size} bytes`, mimeType } };
}

type PaidUpload = Readonly<{
  x402: X402;
  bill: UploadBill;
  payment: X402Payment;
  signal: AbortSignal;
}>;

/** The 402 response with the price of an upload. @throws Failure as `X402Uploads.checkSize` does. */
export async function paymentRequiredResponse(
  { x402, checkSize }: Pick<X402Uploads, "x402" | "checkSize">,
  { size, resource }: UploadBill,
  signal: AbortSignal,
): Promise<Response> {
  checkSize(size);
  const quote = await x402.quote({ kind: "bytes", size: BigInt(size) }, signal);
  return x402RequiredResponse({ terms: x402.terms, quote, resource, error: noPaymentMessage });
}

/**
 * The response to an upload with a payment: a payment that did not settle is requested again; a rejection after
 * settlement also reports the settlement, because its payer has the credits.
 */
export async function respondPaid<Result>(
  paid: PaidUpload,
  work: () => Promise<X402Outcome<Result>>,
  write: (response: Result, settled: X402Settled | undefined) => Promise<Response>,
): Promise<Response> {
  try {
    const outcome = await work();
    if (outcome.kind === "rejected") return await rejectedResponse(paid, outcome);
    const response = await write(outcome.response, outcome.settled);
    return outcome.settled === undefined ? response : settledResponse(paid, outcome.settled, response);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "settlement_failed") throw error;
    return await unsettledResponse(paid, error);
  }
}

async function rejectedResponse(
  paid: PaidUpload,
  { error, settled }: Readonly<{ error: unknown; settled: X402Settled }>,
): Promise<Response> {
  if (error instanceof Failure && error.code === "settlement_failed") return await unsettledResponse(paid, error);
  return settledResponse(paid, settled, await responseOf(error));
}

/** The response to a rejected upload. */
async function responseOf(error: unknown): Promise<Response> {
  try {
    return await fromUpload(() => Promise.reject(error));
  } catch (failure) {
    if (!(failure instanceof Failure)) throw failure;
    return failureResponse(failure);
  }
}

async function unsettledResponse({ x402, bill, payment, signal }: PaidUpload, error: Failure): Promise<Response> {
  const { size, resource } = bill;
  const rejected = rejectedPayment(payment, error);
  const quote = await x402.quote({ kind: "bytes", size: BigInt(size) }, signal);
  const { message } = failures.settlement_failed;
  return x402RequiredResponse({ terms: x402.terms, quote, resource, error: message, rejected });
}

function settledResponse({ x402, payment }: PaidUpload, settled: X402Settled, response: Response): Response {
  for (const [name, value] of Object.entries(x402SettledHeaders(payment, x402.terms, settled)))
    response.headers.set(name, value);
  return response;
}

/** A multipart upload that is paid for when it is created. */
type PaidUploadRequest = Readonly<{ size: number; refundTo: UserAddress }>;

export type PaidUploadCreator = Readonly<{
  /** Whether an item needs no payment. @param size - Of the complete item. Bytes. */
  isFree: (size: number) => boolean;
  create: (
    request: Request,
    asked: PaidUploadRequest & Readonly<{ chunkSize: number | undefined; client: string }>,
    write: (upload: MultipartUpload) => Response,
  ) => Promise<Response>;
}>;

/**
 * Reads the size and the refund address of an upload that is paid for when it is created.
 *
 * @returns Undefined when none of the three parameters is set.
 * @throws Failure `upload_rejected` {reason} for a missing or an invalid parameter.
 */
export function readPaidUpload(query: Readonly<Record<string, string | undefined>>): PaidUploadRequest | undefined {
  const totalBytes = query[queryParameters.totalBytes.name];
  const address = query[queryParameters.address.name];
  const signatureType = query[queryParameters.signatureType.name];
  if (totalBytes === undefined && address === undefined && signatureType === undefined) return undefined;
  const size = queryParameters.totalBytes.read(totalBytes ?? "");
  if (size === undefined) throw invalidPaidUpload("totalBytes", totalBytes, `an integer from 1 to ${byteCountMax}`);
  const type = queryParameters.signatureType.read(signatureType ?? "");
  if (type === undefined || signatureLayout(type) === undefined)
    throw invalidPaidUpload("signatureType", signatureType, "a signature type of ANS-104");
  const refundTo = queryParameters.address.read(address ?? "");
  if (refundTo === undefined) throw invalidPaidUpload("address", address, "the address of an account");
  return { size, refundTo };
}

export function createPaidUploadCreator(uploads: X402Uploads, publicUrl: PublicUrl): PaidUploadCreator {
  const { x402, isFree } = uploads;
  const create: PaidUploadCreator["create"] = async (request, asked, write) => {
    const bill = billFor(`${publicUrl(request)}/v1/chunks`, asked.size, "application/json");
    const payment = x402PaymentOf(request);
    if (payment === undefined) return await paymentRequiredResponse(uploads, bill, request.signal);
    return await respondPaid(
      { x402, bill, payment, signal: request.signal },
      () => uploads.createChunked(asked, { payment, resource: bill.resource.url }, request.signal),
      async (upload) => write(upload),
    );
  };
  return { isFree, create };
}

function invalidPaidUpload(name: string, value: string | undefined, expected: string): Failure {
  const fault = value === undefined ? `missing ${name}` : `invalid ${name} '${value.slice(0, 100)}'`;
  return new Failure("upload_rejected", { reason: `Invalid payment for an upload: ${fault}: expected ${expected}` });
}
