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

const row = (status: number, message: string, extra: Omit<FailureRow, "status" | "message"> = {}): FailureRow => ({
  status,
  message,
  ...extra,
});

const soon = { retryAfterSeconds: 5 } as const;
const explained = { explained: true } as const;

export const failures = {
  invalid_id: row(400, "Invalid ID"),
  invalid_offset: row(400, "Invalid offset"),
  malformed_json: row(400, "Malformed JSON body"),
  malformed_path: row(400, "Malformed path"),
  malformed_host: row(400, "Malformed Host"),
  headers_too_large: row(431, "Request Header Fields Too Large"),
  malformed_input: row(400, "Malformed input"),
  invalid_subscription: row(400, "Invalid subscription", explained),
  missing_id: row(400, "Must provide 'id'"),
  missing_id_or_hash: row(400, "Must provide 'id' or 'hash'"),
  missing_name: row(400, "Must provide 'name'"),
  missing_item_headers: row(400, "Must provide array of data item headers"),
  invalid_bypass_filter: row(400, "'bypassFilter' must be a boolean"),
  invalid_bundle_id: row(400, "Must provide a valid bundle id"),
  invalid_threshold: row(400, "Invalid indexedAtThreshold - must be a positive integer"),
  invalid_start_height: row(400, "Invalid startHeight - must be a positive integer"),
  invalid_end_height: row(400, "Invalid endHeight - must be a positive integer greater than or equal to startHeight"),
  export_rejected: row(400, ""),
  missing_tx_id: row(400, "Missing tx_id in request body"),
  token_not_supported: row(400, "Token not supported"),
  invalid_quantity: row(400, "Invalid quantity parameter"),
  invalid_paying_address: row(400, "Invalid paying address!"),
  invalid_byte_count: row(400, "Invalid byte count"),
  top_up_amount_invalid: row(400, "Payment Amount is Invalid!", explained),
  price_amount_invalid: row(400, "Payment Amount is Invalid", explained),
  payment_rejected: row(400, "", explained),
  upload_rejected: row(400, "", explained),
  unauthorized: row(401, "Unauthorized", { challenge: "Bearer" }),
  undername_limit: row(402, "ArNS undername limit exceeded. Purchase additional undernames to continue."),
  insufficient_balance: row(402, "Insufficient balance"),
  settlement_failed: row(402, "Payment settlement failed"),
  invalid_signature: row(403, "Invalid signature or missing required headers"),
  upload_forbidden: row(403, "Forbidden"),
  sender_excluded: row(403, "", explained),
  gifting_by_email_off: row(403, "Gifting by email is disabled!"),
  invalid_destination: row(403, "Destination address is not a valid native address!"),
  user_not_found: row(404, "User Not Found"),
  transaction_not_found: row(404, "Transaction ID not found!"),
  invalid_currency: row(404, "Invalid currency"),
  not_found: row(404, "Not Found"),
  /** The manifest itself is served at `/raw`; its paths are not resolved. */
  manifest_too_large: row(404, "Not Found", explained),
  payment_not_found: row(404, "Payment not found"),
  bundle_not_found: row(404, "Bundle not found"),
  method_not_allowed: row(405, "Method Not Allowed"),
  export_running: row(409, "Export already running"),
  idempotency_conflict: row(409, "The idempotency key was used for another request"),
  length_required: row(411, "", explained),
  body_timeout: row(408, "Request Timeout"),
  precondition_failed: row(412, "Precondition Failed"),
  too_large: row(413, "Payload too large"),
  item_too_large: row(413, "", explained),
  proof_too_large: row(413, "Proof too large: ask for a Range of at most 16777216 bytes"),
  range_not_satisfiable: row(416, "Range not satisfiable"),
  too_many_requests: row(429, "Too Many Requests", { retryAfterSeconds: 1 }),
  blocked: row(451, "Blocked by this gateway's content policy"),
  service_worker_rejected: row(403, "Service workers are not allowed on a shared origin"),
  internal: row(500, "Internal Server Error"),
  source_failed: row(502, "No source could provide valid data", soon),
  busy: row(503, "Service busy", soon),
  not_synced: row(503, "Chain state not available yet", soon),
  worker_failed: row(500, "Internal Server Error"),
  columnar_store_unavailable: row(503, "Columnar store unavailable", { ...soon, ...explained }),
  fiat_oracle_unavailable: row(503, "Fiat Oracle Unavailable", soon),
  pricing_oracle_unavailable: row(503, "Pricing Oracle Unavailable", soon),
  transaction_fault: row(503, "Error while processing transaction!", soon),
  settlement_unknown: row(503, "Payment settlement failed", soon),
  approvals_unavailable: row(503, "Internal server error", soon),
  database_unavailable: row(503, "Cloud Database Unavailable", soon),
  uploads_off: row(503, "Uploads are switched off: no wallet is set"),
  no_space: row(503, "No space for uploads", { retryAfterSeconds: 60 }),
  disk_failed: row(503, "Storage of uploads failed", { retryAfterSeconds: 60 }),
  multipart_not_found: row(404, "", explained),
  upload_not_found: row(404, "TX doesn't exist"),
  payment_session_failed: row(503, "Error creating stripe payment session!", soon),
  fiat_off: row(503, "Fiat (Stripe) payments are disabled"),
  payment_method_off: row(503, "This payment method is switched off"),
  source_timeout: row(504, "Sources did not respond in time", soon),
};

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

/** A payment that is rejected. @param reason - Sent to the client verbatim. */
export function rejected(reason: string): Failure {
  return new Failure("payment_rejected", { reason });
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
