/**
 * The expected failures: one row each, with HTTP status and message.
 *
 * A `Failure` is caused by the client or by an external system; any other thrown error is a defect.
 * Source: docs/reference/gateway.md#errors.
 * @module
 */

/** The response to a client for one expected failure. */
export type FailureRow = Readonly<{
  status: number;
  /** The body, as a JSON string; the specification fixes its text. "" is an empty body. */
  message: string;
  /** Seconds of `Retry-After`; present when a retry may succeed. */
  retryAfterSeconds?: number;
  /** The authentication scheme for `WWW-Authenticate`. */
  challenge?: string;
  /** `context.reason` is appended to the message after `: `; with an empty message, it is the message. */
  explained?: true;
}>;

export const failures = {
  invalid_id: { status: 400, message: "Invalid ID" },
  invalid_offset: { status: 400, message: "Invalid offset" },
  malformed_json: { status: 400, message: "Malformed JSON body" },
  malformed_path: { status: 400, message: "Malformed path" },
  malformed_host: { status: 400, message: "Malformed Host" },
  headers_too_large: { status: 431, message: "Request Header Fields Too Large" },
  malformed_input: { status: 400, message: "Malformed input" },
  missing_id: { status: 400, message: "Must provide 'id'" },
  missing_id_or_hash: { status: 400, message: "Must provide 'id' or 'hash'" },
  missing_name: { status: 400, message: "Must provide 'name'" },
  missing_item_headers: { status: 400, message: "Must provide array of data item headers" },
  invalid_bypass_filter: { status: 400, message: "'bypassFilter' must be a boolean" },
  invalid_bundle_id: { status: 400, message: "Must provide a valid bundle id" },
  invalid_threshold: {
    status: 400,
    message: "Invalid indexedAtThreshold - must be a positive integer",
  },
  invalid_start_height: { status: 400, message: "Invalid startHeight - must be a positive integer" },
  invalid_end_height: {
    status: 400,
    message: "Invalid endHeight - must be a positive integer greater than or equal to startHeight",
  },
  export_rejected: { status: 400, message: "" },
  missing_tx_id: { status: 400, message: "Missing tx_id in request body" },
  token_not_supported: { status: 400, message: "Token not supported" },
  invalid_quantity: { status: 400, message: "Invalid quantity parameter" },
  invalid_paying_address: { status: 400, message: "Invalid paying address!" },
  invalid_byte_count: { status: 400, message: "Invalid byte count" },
  top_up_amount_invalid: { status: 400, message: "Payment Amount is Invalid!", explained: true },
  price_amount_invalid: { status: 400, message: "Payment Amount is Invalid", explained: true },
  payment_rejected: { status: 400, message: "", explained: true },
  upload_rejected: { status: 400, message: "", explained: true },
  unauthorized: { status: 401, message: "Unauthorized", challenge: "Bearer" },
  undername_limit: {
    status: 402,
    message: "ArNS undername limit exceeded. Purchase additional undernames to continue.",
  },
  insufficient_balance: { status: 402, message: "Insufficient balance" },
  settlement_failed: { status: 402, message: "Payment settlement failed" },
  invalid_signature: { status: 403, message: "Invalid signature or missing required headers" },
  upload_forbidden: { status: 403, message: "Forbidden" },
  sender_excluded: { status: 403, message: "", explained: true },
  gifting_by_email_off: { status: 403, message: "Gifting by email is disabled!" },
  invalid_destination: { status: 403, message: "Destination address is not a valid native address!" },
  user_not_found: { status: 404, message: "User Not Found" },
  transaction_not_found: { status: 404, message: "Transaction ID not found!" },
  invalid_currency: { status: 404, message: "Invalid currency" },
  not_found: { status: 404, message: "Not Found" },
  /** The manifest itself is served at `/raw`; its paths are not resolved. */
  manifest_too_large: { status: 404, message: "Not Found", explained: true },
  bundle_not_found: { status: 404, message: "Bundle not found" },
  method_not_allowed: { status: 405, message: "Method Not Allowed" },
  export_running: { status: 409, message: "Export already running" },
  length_required: { status: 411, message: "", explained: true },
  body_timeout: { status: 408, message: "Request Timeout" },
  precondition_failed: { status: 412, message: "Precondition Failed" },
  too_large: { status: 413, message: "Payload too large" },
  item_too_large: { status: 413, message: "", explained: true },
  proof_too_large: { status: 413, message: "Proof too large: ask for a Range of at most 16777216 bytes" },
  range_not_satisfiable: { status: 416, message: "Range not satisfiable" },
  too_many_requests: { status: 429, message: "Too Many Requests", retryAfterSeconds: 1 },
  blocked: { status: 451, message: "Blocked by this gateway's content policy" },
  service_worker_rejected: { status: 403, message: "Service workers are not allowed on a shared origin" },
  internal: { status: 500, message: "Internal Server Error" },
  source_failed: { status: 502, message: "No source could provide valid data", retryAfterSeconds: 5 },
  busy: { status: 503, message: "Service busy", retryAfterSeconds: 5 },
  not_synced: { status: 503, message: "Chain state not available yet", retryAfterSeconds: 5 },
  worker_failed: { status: 500, message: "Internal Server Error" },
  fiat_oracle_unavailable: { status: 503, message: "Fiat Oracle Unavailable", retryAfterSeconds: 5 },
  pricing_oracle_unavailable: { status: 503, message: "Pricing Oracle Unavailable", retryAfterSeconds: 5 },
  transaction_fault: {
    status: 503,
    message: "Error while processing transaction!",
    retryAfterSeconds: 5,
  },
  settlement_unknown: { status: 503, message: "Payment settlement failed", retryAfterSeconds: 5 },
  approvals_unavailable: { status: 503, message: "Internal server error", retryAfterSeconds: 5 },
  database_unavailable: { status: 503, message: "Cloud Database Unavailable", retryAfterSeconds: 5 },
  uploads_off: { status: 503, message: "Uploads are switched off: no wallet is set" },
  no_space: { status: 503, message: "No space for uploads", retryAfterSeconds: 60 },
  disk_failed: { status: 503, message: "Storage of uploads failed", retryAfterSeconds: 60 },
  multipart_not_found: { status: 404, message: "", explained: true },
  upload_not_found: { status: 404, message: "TX doesn't exist" },
  payment_session_failed: {
    status: 503,
    message: "Error creating stripe payment session!",
    retryAfterSeconds: 5,
  },
  fiat_off: { status: 503, message: "Fiat (Stripe) payments are disabled" },
  payment_method_off: { status: 503, message: "This payment method is switched off" },
  source_timeout: { status: 504, message: "Sources did not respond in time", retryAfterSeconds: 5 },
} as const satisfies Record<string, FailureRow>;

/** The stable name of a failure, for code and logs. */
export type FailureCode = keyof typeof failures;

/** An expected failure. `context` is logged; clients see `context.reason` only of rows that are `explained`. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: FailureCode;
  readonly context: Readonly<Record<string, unknown>>;

  constructor(code: FailureCode, context: Readonly<Record<string, unknown>> = {}, cause?: unknown) {
    super(failures[code].message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.context = context;
  }
}

/**
 * Describes an error: its message, the context of a failure, and the same of its causes.
 *
 * @returns One line, for status pages and logs; never for a client.
 */
export function explainError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const context =
    error instanceof Failure && Object.keys(error.context).length > 0
      ? ` ${JSON.stringify(error.context, bigintAsText)}`
      : "";
  const cause = error.cause === undefined ? "" : ` (${explainError(error.cause)})`;
  return `${error.message}${context}${cause}`;
}

/** Offsets in the weave exceed what JSON's numbers hold. */
function bigintAsText(_name: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}
