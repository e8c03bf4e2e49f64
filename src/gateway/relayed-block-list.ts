/**
 * Block-list checks of relayed data: by id before the request to a node, and by hash before the response is sent.
 * Source: docs/reference/gateway.md#block-list.
 * @module
 */
import type { ServedChunk } from "../arweave/chunk.ts";
import type { Id } from "../arweave/id.ts";
import { Failure } from "../failures.ts";
import { decodeBase64url, encodeBase64url } from "../lib/base64url.ts";
import { sha256 } from "../lib/hash.ts";
import type { BlockList } from "../store/block-list.ts";
import { cutData } from "../store/index/chain/header-texts.ts";
import type { RelayResponse } from "./relay.ts";

/** The queries on the block list that relayed data needs. */
export type RelayBlockList = Pick<
  BlockList,
  "isBlockedId" | "isBlockedDigest" | "isBlockedWithin" | "isBlockedUnder" | "hasBlockedDigests"
>;

/** Checks data of nodes. Each function throws Failure `blocked`. */
export type RelayGuard = Readonly<{
  checkId: (id: Id) => void;
  /** @param response - The data as base64url. */
  checkData: (id: Id, response: RelayResponse) => void;
  /** @param response - A transaction's JSON, which may contain its data. */
  checkRecord: (id: Id, response: RelayResponse) => void;
  checkChunk: (chunk: ServedChunk) => void;
}>;

export function createRelayGuard(blockList: RelayBlockList): RelayGuard {
  const checkBytes = (bytes: Uint8Array): void => {
    if (bytes.byteLength > 0 && blockList.hasBlockedDigests() && blockList.isBlockedDigest(sha256(bytes)))
      throw new Failure("blocked", { size: bytes.byteLength });
  };
  const holdsBlocked = (id: Id) => blockList.isBlockedWithin(id, 0, Number.MAX_SAFE_INTEGER);
  return {
    checkId: (id) => {
      if (blockList.isBlockedId(id)) throw new Failure("blocked", { id });
    },
    checkData: (id, { status, body }) => {
      if (status !== 200) return;
      if (holdsBlocked(id)) throw new Failure("blocked", { id, within: true });
      if (blockList.hasBlockedDigests()) checkBytes(decodeBase64url(textOf(body).trim()) ?? body);
    },
    checkRecord: (id, { status, body }) => {
      const isWithin = holdsBlocked(id);
      if (status !== 200 || !(isWithin || blockList.hasBlockedDigests())) return;
      const { data } = cutData(textOf(body));
      if (isWithin && data.byteLength > 0) throw new Failure("blocked", { id, within: true });
      checkBytes(data);
    },
    checkChunk: ({ chunk, dataPath, txPath }) => {
      checkBytes(chunk); // it may be all of the data
      const end = noteOf(dataPath);
      const dataRoot = encodeBase64url(txPath.subarray(-leafSize, -noteSize));
      if (end !== undefined && blockList.isBlockedUnder(dataRoot, end - chunk.byteLength, end))
        throw new Failure("blocked", { dataRoot, end });
    },
  };
}

/** The last part of a path: a hash, and the end offset of its data. */
const noteSize = 32;
const leafSize = 32 + noteSize;

/** End of a chunk in its data by its path; undefined when the path is invalid. */
function noteOf(path: Uint8Array): number | undefined {
  const hex = path.subarray(-noteSize).toHex();
  const end = hex === "" ? Number.NaN : Number(BigInt(`0x${hex}`));
  return Number.isSafeInteger(end) ? end : undefined;
}

function textOf(body: Uint8Array): string {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1");
}
