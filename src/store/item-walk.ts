/**
 * The walk over a data item that lies in a file: from its first byte to its last, once, in steps.
 * Source: reference/upload.md §3.
 * @module
 */
import { closeSync, openSync, readSync } from "node:fs";
import { type ItemHeader, readItemHeader, verifyItem } from "../arweave/data-item.ts";
import { createItemHash, type ItemHash } from "../arweave/item-hash.ts";

/** How far a walk is. */
export type WalkStep =
  | Readonly<{ kind: "more" }>
  /** All of it was seen, and its signature holds. @property digest - SHA-256 of the payload. */
  | Readonly<{ kind: "valid"; header: ItemHeader; digest: Uint8Array }>
  /** It is no data item; one lower-case sentence. */
  | Readonly<{ kind: "invalid"; reason: string }>;

/** A walk. What the system says is thrown; after that, and after its end, it is closed. */
export type ItemWalk = Readonly<{
  /** Walks over some bytes more. */
  step: () => WalkStep;
  close: () => void;
}>;

/** Bytes of one step: a few tens of milliseconds of hashing. */
const stepBytes = 32 * 2 ** 20;

/** Bytes of one read: they are still in the processor's cache when they are hashed. */
const readBytes = 256 * 1_024;

/** No header is longer: type, signature, owner, target, anchor, counts and tags. */
const headerBytesMax = 32 * 1_024;

/**
 * Opens a walk.
 *
 * @param size - Of the item; bytes of the file beyond it are not looked at.
 */
export function openItemWalk(path: string, size: number): ItemWalk {
  const file = openSync(path, "r");
  const buffer = new Uint8Array(readBytes);
  let state: Readonly<{ header: ItemHeader; hash: ItemHash }> | undefined;
  let at = 0;
  let isOpen = true;

  function close(): void {
    if (isOpen) closeSync(file);
    isOpen = false;
  }

  /** Reads so many bytes, or as many as there are. */
  function read(position: number, count: number): Uint8Array {
    let done = 0;
    while (done < count) {
      const some = readSync(file, buffer, done, count - done, position + done);
      if (some === 0) break;
      done += some;
    }
    return buffer.subarray(0, done);
  }

  function begin(): WalkStep {
    const bytes = read(0, Math.min(size, headerBytesMax)).slice();
    const found = readItemHeader(bytes, "strict", size);
    if (found.kind === "invalid") return found;
    if (found.kind === "need") return invalid("the item is cut short");
    state = { header: found.header, hash: createItemHash(found.header, size - found.header.headerSize) };
    at = found.header.headerSize;
    return { kind: "more" };
  }

  function goOn(header: ItemHeader, hash: ItemHash): WalkStep {
    const end = Math.min(size, at + stepBytes);
    while (at < end) {
      const bytes = read(at, Math.min(readBytes, end - at));
      if (bytes.length === 0) return invalid("the item is cut short");
      hash.update(bytes);
      at += bytes.length;
    }
    if (at < size) return { kind: "more" };
    const { message, digest } = hash.finish();
    const verdict = verifyItem(header, message);
    return verdict.valid ? { kind: "valid", header, digest } : invalid(verdict.reason);
  }

  return {
    close,
    step: () => {
      try {
        const step = state === undefined ? begin() : goOn(state.header, state.hash);
        if (step.kind !== "more") close();
        return step;
      } catch (error) {
        close();
        throw error;
      }
    },
  };
}

function invalid(reason: string): WalkStep {
  return { kind: "invalid", reason };
}
