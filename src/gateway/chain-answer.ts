/**
 * Answers about the chain as a node words them.
 * Source: docs/reference/node-api.md#conventions.
 * @module
 */
import type { RelayAnswer } from "./relay.ts";

/** An answer in a node's words. */
export type ChainAnswer = Readonly<{
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
  invalidHash: textAnswerOf(400, "Invalid hash."),
  invalidAddress: textAnswerOf(400, "Invalid address."),
  invalidOffsetId: jsonOf('{"error":"invalid_address"}', 400),
  invalidHeight: textAnswerOf(400, "Invalid height."),
  blockNotFound: textAnswerOf(404, "Block not found."),
  notFound: textAnswerOf(404, "Not Found."),
  pending: textAnswerOf(202, "Pending"),
  invalidField: jsonOf('{"error":"invalid_field"}', 400),
  sizeNotInteger: jsonOf('{"error":"size_must_be_an_integer"}', 400),
  dataTooBig: jsonOf('{"error":"tx_data_too_big"}', 400),
} as const;

/** An answer of JSON text. */
export function jsonOf(body: ChainAnswer["body"], status = 200, isFinal = false): ChainAnswer {
  return { status, form: "json", body, isFinal };
}

/** An answer of bare text. */
export function textAnswerOf(status: number, body: ChainAnswer["body"], isFinal = false): ChainAnswer {
  return { status, form: "text", body, isFinal };
}

/** What a node answered; a node names no media type, so JSON is told by its first character. */
export function relayed({ status, body, rejectReason }: RelayAnswer): ChainAnswer {
  const first = String.fromCharCode(body[0] ?? 0x20);
  const form = first === "{" || first === "[" ? "json" : "text";
  return { status, form, body, isFinal: false, ...(rejectReason !== undefined && { rejectReason }) };
}
