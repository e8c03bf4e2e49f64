/**
 * The API reference of the upload service: its routes, and what holds for all of them.
 * Source: docs/reference/upload.md.
 * @module
 */
import type { Reference } from "./document.ts";
import { uploadDescriptions, uploadRecords } from "./upload-descriptions.ts";
import { uploadPartsDescriptions, uploadPartsRecords } from "./upload-parts-descriptions.ts";
import { uploadX402Descriptions, uploadX402Records } from "./upload-x402-descriptions.ts";

const introduction = `Signed data items in, receipts out: what is taken is readable at once, and on the chain soon.

Every path is also answered below \`/v1\`. Failures are a JSON string; where credits are missing, an object that says
how much is needed and how much there is.`;

export const uploadReference: Reference = {
  title: "Cairn upload service",
  introduction,
  descriptions: [...uploadDescriptions, ...uploadPartsDescriptions, ...uploadX402Descriptions],
  records: { ...uploadRecords, ...uploadPartsRecords, ...uploadX402Records },
  securitySchemes: {},
};
