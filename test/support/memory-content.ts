/**
 * Content in memory, with a folder for bodies that are served from files: the content layer's face, without sources.
 * @module
 */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Id, idFromBytes } from "../../src/arweave/id.ts";
import type { GatewayContentStore } from "../../src/content/content.ts";
import type { OpenContent } from "../../src/content/opened-content.ts";
import { Failure } from "../../src/failures.ts";
import { sha256 } from "../../src/lib/hash.ts";
import type { ByteSpan } from "../../src/lib/range.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";

/** One body, and what is known of it. */
export type MemoryItem = Readonly<{
  body: Uint8Array<ArrayBuffer>;
  contentType?: string;
  contentEncoding?: string;
  verified?: boolean;
  stable?: boolean;
  digest?: "known";
  /** Where the bytes are: in memory (as if the disk had been read), in a file, or at a source. */
  from?: "memory" | "file" | "source";
  /** Bytes before the body in its file, as of an item in its bundle. */
  fileOffset?: number;
  /** Its file was verified a moment ago: the response cache may send spans of it at once. */
  isHot?: boolean;
  /** Reading breaks off before this byte. */
  breaksAt?: number;
}>;

/** Content that tests put in. */
export type MemoryContent = Pick<GatewayContentStore, "open" | "openIndexed"> &
  Readonly<{
    close: () => Promise<void>;
    put: (name: string, item: MemoryItem) => Id;
    block: (id: Id) => void;
    fail: (id: Id, failure: Failure) => void;
    /** Spans read from sources, in order. */
    sourceReads: ByteSpan[];
    /** Reads that were begun and have not ended. */
    openReads: () => number;
    /** Bytes that were read in pieces. */
    bytesRead: () => number;
    opened: () => number;
  }>;

/** Bytes of a piece that `read` gives. */
const pieceBytes = 256 * 2 ** 10;

/** The id of a name in tests. */
export function idOf(name: string): Id {
  return idFromBytes(sha256(new TextEncoder().encode(name)));
}

/** Bytes in which every place looks different: a shifted or repeated piece shows. */
export function patternBytes(size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  const words = new Uint32Array(bytes.buffer, 0, size >> 2);
  for (let index = 0; index < words.length; index++) words[index] = Math.imul(index + 1, 2_654_435_761);
  return bytes;
}

/** Creates content without any body. */
export function createMemoryContent(): MemoryContent {
  const folder = mkdtempSync(join(tmpdir(), "cairn-content-"));
  const items = new Map<Id, MemoryItem>();
  const blocked = new Set<Id>();
  const failing = new Map<Id, Failure>();
  const sourceReads: ByteSpan[] = [];
  let opened = 0;
  let openReads = 0;
  let bytesRead = 0;

  const open = (id: Id, item: MemoryItem): OpenContent => {
    const { body } = item;
    const from = item.from ?? "memory";
    const fileFrom = ({ start }: ByteSpan) => ({ path: join(folder, id), start: (item.fileOffset ?? 0) + start });
    const bytes = ({ start, end }: ByteSpan) => body.subarray(start, end);
    const hot = { isClear: () => true, bytes, file: fileFrom };
    async function* read({ start, end }: ByteSpan) {
      if (from === "source") sourceReads.push({ start, end });
      openReads += 1;
      try {
        for (let at = start; at < end; at += pieceBytes) {
          await Bun.sleep(0);
          if (item.breaksAt !== undefined && at >= item.breaksAt) throw new Failure("source_failed", { at });
          const piece = body.subarray(at, Math.min(end, at + pieceBytes));
          bytesRead += piece.length;
          yield piece;
        }
      } finally {
        openReads -= 1;
      }
    }
    return {
      id,
      root: undefined,
      dataOffset: item.fileOffset ?? 0,
      size: body.byteLength,
      contentType: item.contentType,
      contentEncoding: item.contentEncoding,
      digest: item.digest === "known" ? sha256(body) : undefined,
      verified: item.verified ?? true,
      stable: item.stable ?? true,
      trusted: true,
      check: async () => {
        if (blocked.has(id)) throw new Failure("blocked", { id });
      },
      cached: () => from !== "source",
      fetched: () => from === "source",
      read,
      inspect: read,
      bytes: async (span) => {
        const pieces: Uint8Array[] = [];
        for await (const piece of read(span)) pieces.push(piece);
        return Buffer.concat(pieces);
      },
      file: async (span) => (from === "file" ? fileFrom(span) : undefined),
      ...(item.isHot ? { hot } : {}),
    };
  };

  const openItem = (id: Id): OpenContent => {
    opened += 1;
    const failure = failing.get(id);
    if (failure !== undefined) throw failure;
    if (blocked.has(id)) throw new Failure("blocked", { id });
    const item = items.get(id);
    if (item === undefined) throw new Failure("not_found", { id });
    return open(id, item);
  };

  return {
    put: (name, item) => {
      const id = idOf(name);
      items.set(id, item);
      if (item.from === "file")
        writeFileSync(join(folder, id), Buffer.concat([Buffer.alloc(item.fileOffset ?? 0), item.body]));
      return id;
    },
    block: (id) => {
      blocked.add(id);
    },
    fail: (id, failure) => {
      failing.set(id, failure);
    },
    sourceReads,
    openReads: () => openReads,
    bytesRead: () => bytesRead,
    opened: () => opened,
    open: async (id) => openItem(id),
    openIndexed: async (id) => {
      if (items.get(id)?.from === "source") throw new Failure("not_found", { id });
      return openItem(id);
    },
    close: async () => removeFolder(folder),
  };
}
