/**
 * Responses about the chain in the format of a node.
 * Source: docs/reference/node-api.md#conventions.
 * @module
 */
import type { RelayResponse } from "./relay.ts";

export type ChainResponse = Readonly<{
  status: number;
  /** Whether the body is JSON or plain text. */
  form: "json" | "text";
  body: string | Uint8Array<ArrayBuffer> | Blob;
  /** Whether the response never changes and may be cached by anyone. */
  isFinal: boolean;
  /** Why nodes reject a post, for `X-Reject-Reason`. */
  rejectReason?: string;
}>;

/** Error texts of a node. */
export const nodeTexts = {
  invalidHash: textResponseOf(400, "Invalid hash."),
  invalidAddress: textResponseOf(400, "Invalid address."),
  invalidOffsetId: jsonOf('{"error":"invalid_address"}', 400),
  invalidHeight: textResponseOf(400, "Invalid height."),
  blockNotFound: textResponseOf(404, "Block not found."),
  notFound: textResponseOf(404, "Not Found."),
  pending: textResponseOf(202, "Pending"),
  invalidField: jsonOf('{"error":"invalid_field"}', 400),
  sizeNotInteger: jsonOf('{"error":"size_must_be_an_integer"}', 400),
  dataTooBig: jsonOf('{"error":"tx_data_too_big"}', 400),
} as const;

export function jsonOf(body: ChainResponse["body"], status = 200, isFinal = false): ChainResponse {
  return { status, form: "json", body, isFinal };
}

export function textResponseOf(status: number, body: ChainResponse["body"], isFinal = false): ChainResponse {
  return { status, form: "text", body, isFinal };
}

/** A node's response. Nodes send no media type, so JSON is detected by the first character. */
export function relayed({ status, body, rejectReason }: RelayResponse): ChainResponse {
  const first = String.fromCharCode(body[0] ?? 0x20);
  const form = first === "{" || first === "[" ? "json" : "text";
  return { status, form, body, isFinal: false, ...(rejectReason !== undefined && { rejectReason }) };
}
