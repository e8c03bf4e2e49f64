/**
 * Specification part 4A and the gateway's part of part 7 as tables: what the tests of the walk and of the API reference
 * go by.
 * @module
 */

/** Offsets, which the specification calls integers. */
const offset = "^(0|[1-9][0-9]{0,18})$";
/** An address, as the specification has it or with its checksum, which a node takes too. */
const address = "^[A-Za-z0-9_-]{1,86}(:[A-Za-z0-9_-]{6})?$";

/** Every row of part 4A: method, path, and what its parameters look like. */
export const endpoints: readonly (readonly [method: string, path: string, pattern?: string])[] = [
  ["GET", "/svc/admin/debug"],
  ["POST", "/svc/admin/queue-tx"],
  ["POST", "/svc/admin/queue-bundle"],
  ["POST", "/svc/admin/queue-data-item"],
  ["GET", "/svc/admin/bundle-status/{id}", "^[0-9a-zA-Z_-]{43}$"],
  ["PUT", "/svc/admin/block-data"],
  ["PUT", "/svc/admin/block-name"],
  ["PUT", "/svc/admin/unblock-name"],
  ["POST", "/svc/admin/export-parquet"],
  ["GET", "/svc/admin/export-parquet/status"],
  ["POST", "/svc/admin/prune-stable-data-items"],
  ["GET", "/"],
  ["GET", "/svc/healthcheck"],
  ["GET", "/svc/info"],
  ["GET", "/svc/peers"],
  ["GET", "/svc/__gateway_metrics"],
  ["GET", "/info"],
  ["GET", "/peers"],
  ["GET", "/height"],
  ["GET", "/tx_anchor"],
  ["GET", "/current_block"],
  ["GET", "/block/current"],
  ["GET", "/block/height/{height}", "^[0-9]+$"],
  ["GET", "/block/hash/{hash}", "^[0-9a-zA-Z_-]{64}$"],
  ["GET", "/{txId}", "^[0-9a-zA-Z_-]{43}$"],
  ["HEAD", "/{txId}", "^[0-9a-zA-Z_-]{43}$"],
  ["GET", "/raw/{txId}", "^[0-9a-zA-Z_-]{43}$"],
  ["HEAD", "/raw/{txId}", "^[0-9a-zA-Z_-]{43}$"],
  ["GET", "/tx/pending"],
  ["GET", "/tx/{id}", "^[0-9a-zA-Z_-]{43}$"],
  ["GET", "/tx/{id}/offset", "^[0-9a-zA-Z_-]{43}$"],
  ["GET", "/tx/{id}/status", "^[0-9a-zA-Z_-]{43}$"],
  ["GET", "/chunk/{offset}", offset],
  ["HEAD", "/chunk/{offset}", offset],
  ["GET", "/wallet/{address}/balance", address],
  ["GET", "/wallet/{address}/last_tx", address],
  ["GET", "/price/{size}", "^[0-9]+$"],
  // The specification has the word in place of the address.
  ["GET", "/price/{size}/{target}", "^[0-9]+$"],
  ["POST", "/graphql"],
  ["GET", "/local/social/frame/{id}", "^[0-9a-zA-Z_-]{43}$"],
  ["POST", "/local/social/frame/{id}", "^[0-9a-zA-Z_-]{43}$"],
];

const internal = ["Unauthorized", "Internal Server Error"];

/** The messages of part 7 that belong to the gateway, by endpoint; the responses of GraphQL are records. */
export const messages: readonly (readonly [endpoint: string, messages: readonly string[]])[] = [
  ["POST /svc/admin/queue-tx", ["Must provide 'id'", ...internal]],
  ["POST /svc/admin/queue-bundle", ["Must provide 'id'", ...internal]],
  ["POST /svc/admin/queue-data-item", ["Must provide array of data item headers", ...internal]],
  ["GET /svc/admin/bundle-status/{id}", ["Must provide a valid bundle id", "Bundle not found", ...internal]],
  ["POST /svc/admin/export-parquet", ["", ...internal]],
  ["GET /svc/admin/export-parquet/status", internal],
  ["POST /svc/admin/prune-stable-data-items", ["Invalid indexedAtThreshold - must be a positive integer", ...internal]],
];
