/**
 * The kinds of values that the gateway's requests carry.
 * Source: docs/reference/formats.md#identifiers.
 * @module
 */
import { type BlockHash, isBlockHash } from "../../arweave/id.ts";
import { refined, stringSchema, type ValueSchema } from "../../lib/value-schema.ts";
import { isContentHash } from "../../store/block-list.ts";

/** SHA-256 of content. */
export const hashFormat: ValueSchema<string> = refined(
  stringSchema(),
  (text): text is string => isContentHash(text),
  "32 bytes in canonical base64url.",
);

export const blockHashFormat: ValueSchema<BlockHash> = refined(
  stringSchema({ pattern: "^[0-9a-zA-Z_-]{64}$" }),
  isBlockHash,
  "48 bytes in base64url.",
);

/** Heights have at most this many digits; 2^53 has 16. */
export const heightFormat = stringSchema({ pattern: "^[0-9]+$", maxLength: 15 });

/** Sizes have at most this many digits; a node takes 2^64. */
export const sizeFormat = stringSchema({ pattern: "^[0-9]+$", maxLength: 20 });

/** Names of a transaction's fields. */
export const fieldFormat = stringSchema({ pattern: "^[a-z_]{1,32}$" });

/** An address, with its optional checksum; a node says which it is. */
export const addressFormat = stringSchema({ pattern: "^[A-Za-z0-9_-]{1,86}(:[A-Za-z0-9_-]{6})?$" });

/** One range, as in a header but without its unit, which may be there. */
export const rangeFormat = stringSchema({ pattern: "^(?:bytes=)?([0-9]{1,16}-[0-9]{0,16}|-[0-9]{1,16})$" });
