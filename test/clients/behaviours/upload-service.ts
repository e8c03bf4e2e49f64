/**
 * Behaviours of the upload service's router tests: items, receipts, status, uploads in parts, prices.
 * @module
 */
import { expect } from "bun:test";
import { alike, message, sent, type Table, unlike } from "./rows.ts";

const unknownId = `${"G".repeat(42)}A`;
const receiptShape = {
  version: "0.2.0",
  winc: expect.stringMatching(/^\d+$/),
  timestamp: expect.any(Number),
  deadlineHeight: expect.any(Number),
  dataCaches: expect.any(Array),
  fastFinalityIndexes: expect.any(Array),
  public: expect.stringMatching(/^[\w-]{683}$/),
  signature: expect.stringMatching(/^[\w-]{683}$/),
  owner: expect.stringMatching(/^[\w-]{43}$/),
};

/** The rows. */
export const uploadService: Table = {
  suite: "upload service",
  rows: [
    ...alike(
      "upload",
      [
        "its information",
        "U1",
        "/info",
        {
          status: 200,
          has: {
            version: expect.any(String),
            addresses: { arweave: expect.stringMatching(/^[\w-]{43}$/) },
            freeUploadLimitBytes: 2000,
          },
        },
      ],
      ["its information at the root", "U1", "/", { status: 200, has: { addresses: expect.any(Object) } }],
      ["its information below the prefix", "U1", "/v1/info", { status: 200, has: { addresses: expect.any(Object) } }],
      [
        "an item, once more: its first receipt",
        "U2",
        ({ uploadedBytes }) => sent("/v1/tx", uploadedBytes),
        ({ receipt }) => ({ status: 200, json: receipt }),
      ],
      [
        "an item by a token's route",
        "U2",
        ({ uploadedBytes }) => sent("/v1/tx/solana", uploadedBytes, { "content-type": "application/octet-stream" }),
        ({ receipt }) => ({ status: 200, json: receipt }),
      ],
      [
        "an item without the prefix",
        "U2",
        ({ uploadedBytes }) => sent("/tx", uploadedBytes),
        ({ uploaded }) => ({ status: 200, has: { id: uploaded, ...receiptShape } }),
      ],
      [
        "the status of an item",
        "U3",
        ({ uploaded }) => `/v1/tx/${uploaded}/status`,
        {
          status: 200,
          has: { status: "CONFIRMED", winc: "0", payloadContentLength: 9, payloadContentType: "text/plain" },
        },
      ],
      [
        "where an item's payload is",
        "U3",
        ({ uploaded }) => `/v1/tx/${uploaded}/offsets`,
        { status: 200, has: { payloadContentLength: 9, payloadDataStart: expect.any(Number) } },
      ],
      ["the status of an unknown item", "U3", `/v1/tx/${unknownId}/status`, message(404, "TX doesn't exist")],
      ["where an unknown item is", "U3", `/v1/tx/${unknownId}/offsets`, message(404, "TX doesn't exist")],
      [
        "another media type",
        "U2",
        ({ uploadedBytes }) => sent("/v1/tx", uploadedBytes, { "content-type": "text/plain" }),
        { status: 400, json: expect.stringMatching(/^Invalid Content Type/) },
      ],
      [
        "an item whose signature does not hold",
        "U2",
        ({ forgedItem }) => sent("/v1/tx", forgedItem),
        { status: 400, json: expect.stringMatching(/^Invalid Data Item!/) },
      ],
      [
        "an item of a signer without credits",
        "U4",
        ({ unpaidItem }) => sent("/v1/tx", unpaidItem),
        {
          status: 402,
          has: { error: "Insufficient balance", needed: expect.stringMatching(/^[1-9]\d*$/), available: "0" },
        },
      ],
      [
        "an upload in parts to be begun",
        "U5",
        "/v1/chunks/arweave/-1/-1?chunkSize=5242880",
        { status: 200, has: { id: expect.any(String), min: 5242880, max: 524288000, chunkSize: 5242880 } },
      ],
      [
        "parts that are too small",
        "U5",
        "/v1/chunks/arweave/-1/-1?chunkSize=1",
        { status: 400, has: { error: "Invalid chunk size", min: 5242880, max: 524288000 } },
      ],
      [
        "an unknown upload in parts",
        "U5",
        "/v1/chunks/arweave/no-such-upload/status",
        { status: 404, json: "Multi-part upload with ID no-such-upload not found!" },
      ],
      [
        "a part of an unknown upload",
        "U5",
        () => sent("/v1/chunks/arweave/no-such-upload/0", new Uint8Array(10)),
        { status: 404, json: "Multi-part upload with ID no-such-upload not found!" },
      ],
      [
        "an approval without an amount",
        "U6",
        ({ signedItem, stranger }) => sent("/v1/tx", signedItem([{ name: "x-approve-payment", value: stranger }])),
        message(400, "Approval x-amount tag missing a winc value!"),
      ],
      [
        "an approval of an invalid address",
        "U6",
        ({ signedItem }) =>
          sent(
            "/v1/tx",
            signedItem([
              { name: "x-approve-payment", value: "unnamed" },
              { name: "x-amount", value: "1" },
            ]),
          ),
        message(400, "Unable to create delegated payment approval : Invalid approved address"),
      ],
      [
        "an approval of more than there is",
        "U6",
        ({ signedItem }) =>
          sent(
            "/v1/tx",
            signedItem([
              { name: "x-approve-payment", value: "Y".repeat(43) },
              { name: "x-amount", value: "9".repeat(16) },
            ]),
          ),
        {
          status: 400,
          json: expect.stringMatching(
            /^Unable to create delegated payment approval : Insufficient balance for '[1-9A-HJ-NP-Za-km-z]+'$/,
          ),
        },
      ],
      [
        "a revocation of what was not approved",
        "U6",
        ({ signedItem }) => sent("/v1/tx", signedItem([{ name: "x-delete-payment-approval", value: "Y".repeat(43) }])),
        {
          status: 400,
          json: expect.stringMatching(
            /^Unable to revoke delegated payment approval : No valid approvals found for approved address 'Y{43}' and paying address '/,
          ),
        },
      ],
      [
        "the state of an item that waits for its bundle",
        "U3",
        ({ uploaded }) => `/v1/tx/${uploaded}/status`,
        { status: 200, has: { info: expect.stringMatching(/^(new|pending)$/) } },
      ],
    ),
    ...unlike(
      "upload",
      [
        "health, a record of what is wrong",
        "U1",
        "/health",
        {
          status: 200,
          has: { status: expect.stringMatching(/^(ok|unhealthy)$/), reasons: expect.any(Array) },
        },
      ],
      ["the price of bytes, which is notified", "U7", "/price/arweave/1024", { status: 200, text: /^[1-9]\d*$/ }],
      ["a byte count that is invalid", "U7", "/price/arweave/many", message(400, "Invalid byte count")],
      ["an empty body", "U2", () => sent("/v1/tx", new Uint8Array(0)), { status: 400, json: expect.any(String) }],
      [
        "a body cut short, above what is stored in memory",
        "U2",
        ({ unpaidItem }) => sent("/v1/tx", unpaidItem.subarray(0, 60)),
        { status: 400, json: expect.any(String) },
      ],
      [
        "a receipt again",
        "U8",
        ({ uploaded }) => `/v1/tx/${uploaded}/receipt`,
        ({ receipt }) => ({ status: 200, json: receipt }),
      ],
      ["a balance that was a constant", "U7", ({ address }) => `/account/balance/${address}`, { status: 404 }],
    ),
  ],
};
