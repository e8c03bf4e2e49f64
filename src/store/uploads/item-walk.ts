/**
 * Verifies a data item in a file: reads it once, in order and in steps.
 * Source: docs/reference/formats.md#data-items.
 * @module
 */
import { createItemHash, type ItemHash, type ItemHeader, readItemHeader, verifyItem } from "../../arweave/data-item.ts";
import { type Signing, signingOfItem } from "../../arweave/signing.ts";
import { concatBytes } from "../../lib/bytes.ts";
import { openFileSteps } from "../file-sessions.ts";
import type { PendingRow } from "../index/index-types.ts";

/** Progress of a walk. */
type WalkStep =
  | Readonly<{ kind: "more" }>
  /** The complete item is valid. @property digest - SHA-256 of the payload. */
  | Readonly<{ kind: "valid"; header: ItemHeader; digest: Uint8Array; signing: Signing }>
  /** Not a valid data item; `reason` is one lower-case sentence. */
  | Readonly<{ kind: "invalid"; reason: string }>;

/** A walk. Throws system errors. The caller closes it. */
export type ItemWalk = Readonly<{
  /** Reads the next bytes. */
  step: () => WalkStep;
  close: () => void;
}>;

/** Opens a walk. @param size - Size of the item; later bytes of the file are not read. */
export function openItemWalk(path: string, size: number): ItemWalk {
  const file = openFileSteps(path, 0, size);
  /** Bytes of an incomplete header; empty once the header is parsed. */
  let head: Uint8Array = new Uint8Array(0);
  let state: Readonly<{ header: ItemHeader; hash: ItemHash }> | undefined;
  let rejected: WalkStep | undefined;

  function take(bytes: Uint8Array): void {
    if (state !== undefined) {
      state.hash.update(bytes);
      return;
    }
    head = concatBytes([head, bytes]);
    const read = readItemHeader(head, "strict", size);
    if (read.kind === "invalid") rejected ??= read;
    if (read.kind !== "header") return;
    const { header } = read;
    state = { header, hash: createItemHash(header, size - header.headerSize) };
    state.hash.update(head.subarray(header.headerSize));
    head = new Uint8Array(0);
  }

  return {
    close: file.close,
    step: () => {
      const reached = file.step((bytes) => {
        if (rejected === undefined) take(bytes);
      });
      if (rejected !== undefined) return rejected;
      if (reached === "more") return { kind: "more" };
      if (reached === "short" || state === undefined) return invalid("the item is cut short");
      const { message, digest } = state.hash.finish();
      const verdict = verifyItem(state.header, message);
      if (!verdict.valid) return invalid(verdict.reason);
      const { header } = state;
      return { kind: "valid", header, digest, signing: signingOfItem(header, message) };
    },
  };
}

function invalid(reason: string): WalkStep {
  return { kind: "invalid", reason };
}

/** The row of a verified item. Copies the fields: a view would transfer its complete buffer to the other thread. */
export function pendingRowOf(header: ItemHeader, itemSize: number, digest: Uint8Array): PendingRow {
  const { id, signatureType, signature, owner, ownerAddress, target, anchor, tags, headerSize } = header;
  return {
    kind: "item",
    id,
    signatureType,
    owner: owner.slice(),
    ownerAddress,
    target,
    anchor,
    tags,
    headerSize,
    size: itemSize - headerSize,
    digest: digest.slice(),
    verified: true,
    signature: signature.slice(),
  };
}
