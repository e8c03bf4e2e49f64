/**
 * Parameters of the gateway's routes: their validation and their description in the API reference.
 * Source: docs/reference/formats.md#identifiers.
 * @module
 */
import { idFormat, idShape } from "../../arweave/id.ts";
import { digitsSchema } from "../../lib/value-schema.ts";
import { pathParameter, queryParameter } from "../parameter.ts";
import { inHeader, patterns, sampleBlockHash, sampleId, textSchema } from "../reference/openapi-types.ts";
import {
  addressFormat,
  blockHashFormat,
  fieldFormat,
  heightFormat,
  rangeFormat,
  sizeFormat,
} from "./parameter-formats.ts";

/** Entries on one page of the block list. */
const pageMax = 10_000;

/** Far above the entries that are read of a bundle. */
const entryMax = 2 ** 31 - 1;

const ofContent = "Id of a transaction or a data item.";

/** Parameters of paths. */
export const pathParameters = {
  contentId: pathParameter("txId", idShape, sampleId, ofContent),
  provenId: pathParameter("id", idShape, sampleId, ofContent),
  framedId: pathParameter("id", idShape, sampleId, "Id of the transaction."),
  transactionId: pathParameter("id", idFormat, sampleId, "Id of the transaction."),
  field: pathParameter("field", fieldFormat, "owner", "`data`, `tags`, or another field of a transaction."),
  bundleId: pathParameter("id", idFormat, sampleId, "Id of the bundle."),
  height: pathParameter("height", heightFormat, "0", "Height, from 0."),
  blockHash: pathParameter("hash", blockHashFormat, sampleBlockHash, "Its `indep_hash`."),
  address: pathParameter("address", addressFormat, sampleId, "Address of the wallet."),
  size: pathParameter("size", sizeFormat, "1000", "Bytes."),
  target: pathParameter("target", addressFormat, "target", "Address that is paid, or the word `target`."),
} as const;

/** Parameters of queries. */
export const queryParameters = {
  provenRange: queryParameter("range", rangeFormat, "One range, as in `0-99`, for clients that cannot set the header."),
  afterEntry: queryParameter("after", digitsSchema(0, entryMax), "The `next` of the page before."),
  pageLimit: queryParameter("limit", digitsSchema(1, pageMax), "Entries of the page."),
} as const;

/** Headers of requests for content. */
export const rangeHeader = inHeader(
  "Range",
  { type: "string", pattern: patterns.range },
  "One range of bytes, or several.",
);
export const entityTagHeader = inHeader("If-None-Match", textSchema, "Entity tag of content that the client has.");
