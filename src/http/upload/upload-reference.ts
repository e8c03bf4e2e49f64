/**
 * The parts of the upload service's API reference that are not of one route.
 * Source: docs/reference/upload.md.
 * @module
 */
import { approvalSchema } from "../payment/payment-records.ts";
import { x402Schemas } from "../payment/x402-top-up-routes.ts";
import type { Reference } from "../reference/document.ts";
import { record, textSchema } from "../reference/openapi-types.ts";
import { healthSchema, uploadInfoSchema } from "../service-information.ts";
import { statusSchemas } from "./item-routes.ts";
import { multipartSchemas } from "./multipart-routes.ts";
import { receiptFields } from "./upload-responses.ts";
import { winc } from "./upload-schemas.ts";
import { paidReceiptSchemas } from "./x402-upload-routes.ts";

const introduction = `Signed data items in, receipts out: an uploaded item is readable at once, and on the chain soon.

Every path also exists below \`/v1\`. Failures are a JSON string; of insufficient credits, an object with
the needed and the available amount.`;

const { X402Required, X402Requirement } = x402Schemas;

export const uploadReference: Reference = {
  title: "Cairn upload service",
  introduction,
  records: {
    Approval: approvalSchema,
    Health: healthSchema,
    Receipt: record(
      receiptFields,
      "Sent when bytes, row and payment are durable; the same bytes each time the item is uploaded.",
    ),
    InsufficientBalance: record({
      error: textSchema,
      message: textSchema,
      needed: winc,
      available: winc,
    }),

    ...statusSchemas,
    UploadInfo: uploadInfoSchema,
    ...multipartSchemas,
    X402Required,
    X402Requirement,
    ...paidReceiptSchemas,
  },
  securitySchemes: {},
};
