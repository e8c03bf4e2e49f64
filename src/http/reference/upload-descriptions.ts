/**
 * What the API reference says of uploads: items, how far they are, what they cost, and the service's word on itself.
 * Source: docs/reference/upload.md#routes.
 * @module
 */
import { paidByMax } from "../../payment/credits/reservations.ts";
import { approvalSchema } from "../payment/credit-records.ts";
import { pathParameters } from "../upload/parameters.ts";
import {
  countSchema,
  type Description,
  idSchema,
  inHeader,
  json,
  type Parameter,
  type Responses,
  record,
  ref,
  refusals,
  type Schema,
  text,
  textSchema,
} from "./words.ts";

const winc: Schema = { type: "string", pattern: "^[0-9]+$", description: "Winc." };
const texts: Schema = { type: "array", items: textSchema };
const byte = (description: string): Schema => ({ ...countSchema, description });

const offsetFields = {
  rawContentLength: byte("Of the whole item, header and payload."),
  payloadContentType: textSchema,
  payloadDataStart: byte("Where the payload begins in the item."),
  payloadContentLength: byte("Of the payload."),
  "startOffsetInRootBundle?": byte("Where the item begins in its bundle's data; absent until it is bundled."),
};

/** What a receipt says. */
export const receiptFields = {
  id: idSchema,
  timestamp: { type: "integer", description: "When it was taken, Unix milliseconds." },
  winc,
  version: { type: "string", enum: ["0.2.0"] },
  deadlineHeight: byte("The height by which it is promised to be on the chain."),
  dataCaches: { ...texts, description: "Hosts that serve it at once." },
  fastFinalityIndexes: { ...texts, description: "Hosts whose queries find it at once." },
  public: { ...textSchema, description: "Modulus of the key that signed, base64url." },
  signature: {
    ...textSchema,
    description:
      "RSA-PSS with SHA-256, no salt, over the deep hash of `Bundlr`, version, id, deadlineHeight and timestamp, " +
      "each as text; base64url.",
  },
  owner: { ...idSchema, description: "SHA-256 of the owner's key." },
  "createdApproval?": ref("Approval"),
  "revokedApprovals?": { type: "array", items: ref("Approval") },
} as const satisfies Readonly<Record<string, Schema>>;

/** Records that the descriptions below refer to. */
export const uploadRecords: Readonly<Record<string, Schema>> = {
  Approval: approvalSchema,
  Receipt: record(
    receiptFields,
    "Given when bytes, row and payment are durable; the same to the byte however often the item comes.",
  ),
  InsufficientBalance: record({
    error: textSchema,
    message: textSchema,
    needed: winc,
    available: winc,
  }),
  UploadStatus: record({
    status: { type: "string", enum: ["CONFIRMED", "FINALIZED", "FAILED"] },
    info: { type: "string", enum: ["new", "pending", "permanent", "failed"] },
    "bundleId?": { ...idSchema, description: "The newest transaction that carries it." },
    winc,
    "reason?": { ...textSchema, description: "Why it failed; what it cost is paid back." },
    ...offsetFields,
  }),
  UploadOffsets: record({
    ...offsetFields,
    "rootBundleId?": idSchema,
    "parentDataItemId?": {
      ...idSchema,
      description: "Of an item that lies in an upload: the item that holds it.",
    },
    "startOffsetInParentDataItemPayload?": byte("Where the item begins in the payload of that one."),
  }),
  UploadInfo: record({
    version: textSchema,
    gateway: { ...textSchema, description: "Where items are read." },
    addresses: {
      type: "object",
      additionalProperties: textSchema,
      description: "Where payments go, by every word that names a token; empty where it is not taken.",
    },
    freeUploadLimitBytes: byte("The largest item that costs nothing."),
    uploadLimitBytes: byte("The largest item that is taken."),
  }),
  Health: record({
    status: textSchema,
    uptime: { type: "number" },
    date: { type: "string", format: "date-time" },
    reasons: texts,
  }),
};

/** Who pays besides the signer. */
export const payerHeaders: readonly Parameter[] = [
  inHeader(
    "x-paid-by",
    textSchema,
    `Addresses whose approvals pay, in this order, separated by commas; at most ${paidByMax}.`,
  ),
  inHeader(
    "x-payment-directive",
    { type: "string", default: "list-or-signer" },
    "`list-only`: the signer's own credits are not spent; whatever else: they are, after the others'.",
  ),
];

/** What may be said of an item that is not taken. */
export const itemRefusals: Responses = {
  ...refusals(
    "upload_rejected",
    "upload_forbidden",
    "blocked",
    "body_timeout",
    "item_too_large",
    "busy",
    "no_space",
    "disk_failed",
    "not_synced",
    "pricing_oracle_unavailable",
    "database_unavailable",
    "uploads_off",
  ),
  402: json("The credits do not suffice; nothing is charged or kept.", ref("InsufficientBalance")),
};

const item = {
  tag: "Items",
  description:
    "The body is an ANS-104 item as it is signed, of any signature type; its length need not be announced. It is " +
    "verified while it arrives, charged for when it is on the disk, and can be read and found when the receipt " +
    "leaves. The tags `x-approve-payment`, `x-amount` and `x-expires-seconds` let an address spend of the signer's " +
    "credits; `x-delete-payment-approval` takes that back.",
  body: {
    type: "application/octet-stream",
    schema: { type: "string", format: "binary" },
    example: "an item's bytes",
  },
  responses: {
    ...itemRefusals,
    200: json("The receipt, the first one of an item that was taken before.", ref("Receipt")),
  },
} as const;

const priceResponses: Responses = {
  ...refusals("token_not_supported", "invalid_byte_count", "pricing_oracle_unavailable"),
  200: text("Winc, in digits."),
};

/** Every route but those of parts. */
export const uploadDescriptions: readonly Description[] = [
  { ...item, method: "POST", path: "/tx", summary: "Upload an item", parameters: payerHeaders },
  {
    ...item,
    method: "POST",
    path: "/tx/:token",
    summary: "Upload an item, naming a token",
    parameters: [pathParameters.token, ...payerHeaders],
    responses: { ...item.responses, ...refusals("upload_rejected", "token_not_supported") },
  },
  {
    method: "GET",
    path: "/tx/:id/status",
    servedBy: "/tx/:token/status",
    tag: "Items",
    summary: "How far an item is on its way",
    description: "`CONFIRMED` from the receipt on, `FINALIZED` when its bundle is permanent.",
    parameters: [pathParameters.id],
    responses: {
      ...refusals("upload_not_found", "database_unavailable"),
      200: json("Its status.", ref("UploadStatus")),
    },
  },
  {
    method: "GET",
    path: "/tx/:id/offsets",
    servedBy: "/tx/:token/offsets",
    tag: "Items",
    summary: "Where an item stands in its bundle",
    parameters: [pathParameters.id],
    responses: {
      ...refusals("upload_not_found", "database_unavailable"),
      200: json("Its place.", ref("UploadOffsets")),
    },
  },
  {
    method: "GET",
    path: "/tx/:id/receipt",
    servedBy: "/tx/:token/receipt",
    tag: "Items",
    summary: "The receipt of an item again",
    description:
      "The first one, as the sender was given it, also for items that came in parts or were paid for by x402 (then " +
      "without the fields of the payment). Anybody may ask: a receipt says of an item what its status, its tags and " +
      "the balances of its approvals say, and authorizes nothing. An item that has failed has none: what it cost was " +
      "paid back. The hosts that it names are those by which the caller reaches the service.",
    parameters: [pathParameters.id],
    responses: {
      ...refusals("upload_not_found", "busy", "database_unavailable", "uploads_off"),
      200: json("The receipt.", ref("Receipt")),
    },
  },
  {
    method: "GET",
    path: "/price/:token",
    tag: "Prices",
    summary: "The price of one GiB, or of so many bytes",
    parameters: [pathParameters.tokenOrSize],
    responses: priceResponses,
  },
  {
    method: "GET",
    path: "/price/:token/:size",
    tag: "Prices",
    summary: "The price of so many bytes",
    description: "The same whatever it is paid with. It is of the whole item, header and payload.",
    parameters: [pathParameters.pricedToken, pathParameters.size],
    responses: priceResponses,
  },
  ...["/", "/info"].map(
    (path): Description => ({
      method: "GET",
      path,
      tag: "Service",
      summary: "What the service is",
      responses: { 200: json("Its version, its limits, and where payments go.", ref("UploadInfo")) },
    }),
  ),
  {
    method: "GET",
    path: "/health",
    tag: "Service",
    summary: "Whether all is well",
    responses: { 200: json("Reasons where it is not.", ref("Health")) },
  },
  {
    method: "GET",
    path: "/metrics",
    tag: "Service",
    summary: "Figures for Prometheus",
    responses: { 200: text("Prometheus' text format.") },
  },
];
