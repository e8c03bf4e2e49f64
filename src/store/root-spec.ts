/**
 * Identifies the data of a root transaction wherever its bytes are stored, read or fetched.
 * @module
 */
import type { Id } from "../arweave/id.ts";

/** Data of one root transaction. */
export type RootSpec = Readonly<{
  id: Id; // the root transaction
  dataRoot: string; // base64url of 32 bytes, or "" for format 1 without one: the file is then named by the id
  size: number; // bytes of data
  weaveStart?: bigint; // absolute offset of the first byte of data; absent when unknown
}>;
