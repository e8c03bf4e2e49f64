/**
 * The walk over a data item that lies in a file: from its first byte to its last, once, in steps.
 * Source: docs/reference/formats.md#data-items.
 * @module
 */
import { createItemHash, type ItemHash, type ItemHeader, readItemHeader, verifyItem } from "../../arweave/data-item.ts";
import { type Signing, signingOfItem } from "../../arweave/signing.ts";
import { concatBytes } from "../../lib/bytes.ts";
import { openFileSteps } from "../file-sessions.ts";

/** How far a walk is. */
export type WalkStep =
  | Readonly<{ kind: "more" }>
  /** All of it was seen, and its signature holds. @property digest - SHA-256 of the payload. */
  | Readonly<{ kind: "valid"; header: ItemHeader; digest: Uint8Array; signing: Signing }>
  /** It is no data item; one lower-case sentence. */
  | Readonly<{ kind: "invalid"; reason: string }>;

/** A walk. What the system says is thrown. Whoever opened it closes it. */
export type ItemWalk = Readonly<{
  /** Walks over some bytes more. */
  step: () => WalkStep;
  close: () => void;
}>;

/**
 * Opens a walk.
 *
 * @param size - Of the item; bytes of the file beyond it are not looked at.
 */
export function openItemWalk(path: string, size: number): ItemWalk {
  const file = openFileSteps(path, 0, size);
  /** What came of the header so far; empty once it is read. */
  let begun: Uint8Array = new Uint8Array(0);
  let state: Readonly<{ header: ItemHeader; hash: ItemHash }> | undefined;
  let refused: WalkStep | undefined;

  function take(bytes: Uint8Array): void {
    if (state !== undefined) {
      state.hash.update(bytes);
      return;
    }
    begun = concatBytes([begun, bytes]);
    const read = readItemHeader(begun, "strict", size);
    if (read.kind === "invalid") refused ??= read;
    if (read.kind !== "header") return;
    const { header } = read;
    state = { header, hash: createItemHash(header, size - header.headerSize) };
    state.hash.update(begun.subarray(header.headerSize));
    begun = new Uint8Array(0);
  }

  return {
    close: file.close,
    step: () => {
      const reached = file.step((bytes) => {
        if (refused === undefined) take(bytes);
      });
      if (refused !== undefined) return refused;
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
