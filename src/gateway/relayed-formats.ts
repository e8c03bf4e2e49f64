/**
 * Formats of the nodes' small responses; other texts are not relayed. Whether a response is true cannot be verified
 * here (docs/reference/relayed-routes.md).
 * Source: ArweaveTeam/arweave, ar_http_iface_middleware.
 * @module
 */
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, readJson } from "../lib/json.ts";
import type { RelayCheck } from "./relay.ts";

const id = /^[A-Za-z0-9_-]{43}$/;
const blockHash = /^[A-Za-z0-9_-]{64}$/;
const digits = /^\d{1,40}$/;
const peer = /^[0-9A-Za-z.:[\]-]{1,300}$/;

/** Checks by resource. */
export const relayedShapes = {
  status: ofObject(
    (record) =>
      isCount(record["block_height"]) &&
      isText(record["block_indep_hash"], blockHash) &&
      isCount(record["number_of_confirmations"]),
  ),
  offset: ofObject((record) => isText(record["offset"], digits) && isText(record["size"], digits)),
  ids: ofList(id),
  peers: ofList(peer),
  anchor: ofText(/^([A-Za-z0-9_-]{43}|[A-Za-z0-9_-]{64})$/),
  amount: ofText(digits),
  idOrNothing: ofText(/^([A-Za-z0-9_-]{43})?$/),
} as const satisfies Record<string, RelayCheck>;

function ofObject(isRight: (record: JsonObject) => boolean): RelayCheck {
  return (body) => {
    const value = readJson(textOf(body));
    return isJsonObject(value) && isRight(value) ? undefined : "the record has another shape";
  };
}

function ofList(pattern: RegExp): RelayCheck {
  return (body) => {
    const value = readJson(textOf(body));
    const isRight = isJsonArray(value) && value.every((each) => isText(each, pattern));
    return isRight ? undefined : "the list has another shape";
  };
}

function ofText(pattern: RegExp): RelayCheck {
  return (body) =>
    body.byteLength <= textBytesMax && pattern.test(textOf(body).trim()) ? undefined : "the text has another shape";
}

/** The longest text has 64 characters, and perhaps an end of line. */
const textBytesMax = 100;

function isText(value: JsonValue | undefined, pattern: RegExp): boolean {
  return typeof value === "string" && pattern.test(value);
}

/** A whole number, also as digits. */
function isCount(value: JsonValue | undefined): boolean {
  return (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) || isText(value, digits);
}

function textOf(body: Uint8Array): string {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString();
}
