/**
 * Answers about the chain as a node words them.
 * Source: docs/reference/node-api.md#conventions.
 * @module
 */
import type { RelayResponse } from "./relay.ts";

/** An answer in a node's words. */
export type ChainResponse = Readonly<{
  status: number;
  /** What the body is: JSON, or bare text. */
  form: "json" | "text";
  body: string | Uint8Array<ArrayBuffer> | Blob;
  /** Whether it can never change: then anyone may keep it. */
  isFinal: boolean;
  /** Why nodes refuse what was posted, for `X-Reject-Reason`. */
  rejectReason?: string;
}>;

/** What a node says in other cases than success. */
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

/** An answer of JSON text. */
export function jsonOf(body: ChainResponse["body"], status = 200, isFinal = false): ChainResponse {
  return { status, form: "json", body, isFinal };
}

/** An answer of bare text. */
export function textResponseOf(status: number, body: ChainResponse["body"], isFinal = false): ChainResponse {
  return { status, form: "text", body, isFinal };
}

/** What a node answered; a node names no media type, so JSON is told by its first character. */
export function relayed({ status, body, rejectReason }: RelayResponse): ChainResponse {
  const first = String.fromCharCode(body[0] ?? 0x20);
  const form = first === "{" || first === "[" ? "json" : "text";
  return { status, form, body, isFinal: false, ...(rejectReason !== undefined && { rejectReason }) };
}
