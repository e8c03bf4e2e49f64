/**
 * Which root transaction's data is meant, wherever its bytes are kept, read or fetched.
 * @module
 */
import type { Id } from "../arweave/id.ts";

/** Data of one root transaction, by which its file is named and its bytes are checked. */
export type RootSpec = Readonly<{
  id: Id; // the root transaction
  dataRoot: string; // base64url of 32 bytes, or "" where none exists (format 1): the file is then named by id
  size: number; // bytes of data
  weaveStart?: bigint; // absolute offset of the data's first byte; absent where it is not known
}>;
