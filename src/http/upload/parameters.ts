/**
 * The parameters of the upload service's routes, as they are judged and as the API reference shows them.
 *
 * The network of a payment is not judged here: which it is, is the operator's (`X402_NETWORK`). Headers are judged
 * where they are read (docs/decisions/080-api-reference.md).
 * Source: docs/reference/upload.md#routes.
 * @module
 */
import { idKind } from "../../arweave/id.ts";
import { signatureSchemes } from "../../arweave/signature.ts";
import { digitsReading, narrowed, type Reading, textKind } from "../../lib/kind.ts";
import { accountText, tokenText } from "../../payment/addresses.ts";
import { byteCountText } from "../../payment/amounts.ts";
import { chunkSizeMax, chunkSizeMin } from "../../upload/multipart/multipart-uploads.ts";
import { pathParameter, queryParameter } from "../parameter.ts";
import { sampleId } from "../reference/words.ts";

/** More than any item has: 15 digits. Bytes. */
const countMax = 999_999_999_999_999;

const signatureType: Reading<number> = {
  ...digitsReading(0, 99_999, 5),
  schema: { type: "integer", enum: signatureSchemes.map(({ type }) => type) },
};

/** Ids of uploads in parts are of these characters; their length is not judged, for an unknown id is answered 404. */
const uploadId = narrowed(
  textKind(),
  (text): text is string => /^[0-9A-Za-z_-]+$/.test(text),
  "Letters, digits, - and _.",
);

/** Parameters of paths. */
export const pathParameters = {
  token: pathParameter("token", tokenText, "arweave", "What the signer pays with elsewhere."),
  pricedToken: pathParameter("token", tokenText, "arweave", "A token's word."),
  size: pathParameter("size", byteCountText, "1048576", "Bytes."),
  tokenOrSize: pathParameter(
    "token",
    { schema: { oneOf: [tokenText.schema, byteCountText.schema] } },
    "arweave",
    "A token's word: of one GiB. Digits: of so many bytes.",
  ),
  id: pathParameter("id", idKind, sampleId, "Id of an item that was taken here."),
  uploadId: pathParameter("uploadId", uploadId, "upload-id", "As it was made."),
  offset: pathParameter("offset", digitsReading(0, countMax), "0", "Where in the item it begins, bytes."),
} as const;

/** Parameters of queries: what is asked of an item that comes in parts. */
export const queryParameters = {
  chunkSize: queryParameter("chunkSize", digitsReading(chunkSizeMin, chunkSizeMax), "Bytes a part."),
  totalBytes: queryParameter("totalBytes", digitsReading(1, countMax), "Bytes of the whole item, at most."),
  address: queryParameter("address", accountText, "Who has the credits that are given back."),
  signatureType: queryParameter(
    "signatureType",
    signatureType,
    "What kind of key the address is of, as items number them.",
  ),
} as const;
