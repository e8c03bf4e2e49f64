/**
 * Thread entry: makes bundles. Reads the items once to hash them, signs the transaction, and later reads them once
 * more to hand the chunks out with their proofs.
 *
 * The hashes of the chunks are kept in a file beside the items, so that no proof needs the bytes of another chunk.
 * Source: reference/upload.md §2, §3; reference/chain.md §1 (POST /chunk).
 * @module
 */
import { closeSync, mkdirSync, openSync, readFileSync, readSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { writeBundleHeader } from "../src/arweave/bundle.ts";
import { chunkSpans, createDataRoot } from "../src/arweave/data-root.ts";
import type { Id } from "../src/arweave/id.ts";
import { buildTree, type MerkleTree } from "../src/arweave/merkle.ts";
import { signTransaction } from "../src/arweave/transaction-sign.ts";
import { readWallet } from "../src/arweave/wallet.ts";
import { Failure } from "../src/failures.ts";
import { assert } from "../src/lib/assert.ts";
import { encodeBase64url } from "../src/lib/base64url.ts";
import { equalBytes, utf8Bytes } from "../src/lib/bytes.ts";
import { isJsonObject, readJson, writeJson } from "../src/lib/json.ts";
import type {
  BundleChunksAnswer,
  BundleChunksJob,
  BundleItem,
  PrepareBundleAnswer,
  PrepareBundleJob,
} from "../src/store/bundle-jobs.ts";

/** Bytes that are read at once. */
const readBytes = 2 ** 20;
const hashSize = 32;

/** The tree of the bundle that is being seeded; making it costs 10 ms for 2 GiB. */
let lastTree: Readonly<{ bundleId: string; tree: MerkleTree }> | undefined;

/** Hashes a bundle, checks its items against their digests on the way, and signs the transaction that carries it. */
export function prepareBundle(job: PrepareBundleJob): PrepareBundleAnswer {
  const { folder, bundleId, items, walletFile, anchor, reward, tags } = job;
  const header = writeBundleHeader(items.map(({ id, size }) => ({ id: id as Id, size })));
  const dataSize = items.reduce((sum, { size }) => sum + size, header.length);
  const root = createDataRoot(dataSize, "halved");
  root.update(header);
  const poisoned = items.flatMap((item) => {
    const reason = walkItem(folder, item, root.update);
    return reason === undefined ? [] : [{ id: item.id, reason }];
  });
  // An item that is cut short leaves the root without an end; there is no transaction then.
  if (poisoned.length > 0) return { kind: "poisoned", items: poisoned };
  const tree = root.finish();
  keepHashes(folder, bundleId, tree);
  const stated = { dataSize, dataRoot: tree.root };
  const jwk = readJson(readFileSync(walletFile, "utf8"));
  if (!isJsonObject(jwk)) throw new Failure("malformed_input", { reason: "the wallet's file is no key" });
  const signed = signTransaction({ format: 2, lastTx: anchor, reward, tags, stated }, readWallet(jwk));
  return { kind: "prepared", transactionId: signed.id, text: signed.text };
}

/** Makes the bodies of `POST /chunk` for a run of chunks. */
export function bundleChunks(job: BundleChunksJob): BundleChunksAnswer {
  const { folder, bundleId, items, dataSize, first, count } = job;
  const header = writeBundleHeader(items.map(({ id, size }) => ({ id: id as Id, size })));
  const tree = treeOf(folder, bundleId, dataSize);
  const dataRoot = encodeBase64url(tree.root);
  const bodies = chunkSpans(dataSize, "halved")
    .slice(first, first + count)
    .map(({ start, end }, index) => {
      const chunk = bytesOf(folder, header, items, start, end);
      return utf8Bytes(
        writeJson({
          data_root: dataRoot,
          data_size: String(dataSize),
          data_path: encodeBase64url(tree.path(first + index)),
          offset: String(start),
          chunk: encodeBase64url(chunk),
        }),
      );
    });
  return { bodies };
}

/** Answers, and so shows that the thread starts and works. */
export function ping(): "ok" {
  return "ok";
}

/** Walks an item's bytes. @returns Why it is not what it was. */
function walkItem(
  folder: string,
  { file, offset, size, headerSize, digest }: BundleItem,
  take: (piece: Uint8Array) => void,
): string | undefined {
  const hasher = new Bun.CryptoHasher("sha256");
  try {
    for (let at = 0; at < size; ) {
      const piece = readAt(join(folder, file), offset + at, Math.min(readBytes, size - at));
      take(piece);
      if (at + piece.length > headerSize) hasher.update(piece.subarray(Math.max(0, headerSize - at)));
      at += piece.length;
    }
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error) && !(error instanceof Failure)) throw error;
    return error instanceof Failure ? String(error.facts["reason"]) : error.message;
  }
  return equalBytes(new Uint8Array(hasher.digest()), digest)
    ? undefined
    : "its bytes have changed on the disk";
}

/** The bytes of a span of a bundle: of its header, then of its items. */
function bytesOf(
  folder: string,
  header: Uint8Array,
  items: readonly BundleItem[],
  start: number,
  end: number,
): Uint8Array {
  const bytes = new Uint8Array(end - start);
  bytes.set(header.subarray(start, end));
  let itemStart = header.length;
  for (const { file, offset, size } of items) {
    const from = Math.max(start, itemStart);
    const to = Math.min(end, itemStart + size);
    if (from < to) bytes.set(readAt(join(folder, file), offset + from - itemStart, to - from), from - start);
    itemStart += size;
    if (itemStart >= end) break;
  }
  return bytes;
}

function readAt(path: string, position: number, size: number): Uint8Array {
  const file = openSync(path, "r");
  try {
    const bytes = new Uint8Array(size);
    let done = 0;
    while (done < size) {
      const read = readSync(file, bytes, done, size - done, position + done);
      if (read === 0) throw new Failure("malformed_input", { reason: "its file is cut short" });
      done += read;
    }
    return bytes;
  } finally {
    closeSync(file);
  }
}

function hashesFile(folder: string, bundleId: string): string {
  return join(folder, "bundles", bundleId);
}

/** A path ends with its leaf's hash and where it ends, so the tree itself tells the hashes. */
function keepHashes(folder: string, bundleId: string, tree: MerkleTree): void {
  const hashes = new Uint8Array(tree.leafCount * hashSize);
  for (let index = 0; index < tree.leafCount; index += 1) {
    const path = tree.path(index);
    hashes.set(path.subarray(path.length - 2 * hashSize, path.length - hashSize), index * hashSize);
  }
  const path = hashesFile(folder, bundleId);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.part`, hashes, { mode: 0o600, flush: true });
  renameSync(`${path}.part`, path);
}

function treeOf(folder: string, bundleId: string, dataSize: number): MerkleTree {
  if (lastTree?.bundleId === bundleId) return lastTree.tree;
  const hashes = new Uint8Array(readFileSync(hashesFile(folder, bundleId)));
  const spans = chunkSpans(dataSize, "halved");
  assert(hashes.length === spans.length * hashSize, "a bundle has as many hashes as chunks");
  const leaves = spans.map(({ end }, index) => ({
    hash: hashes.subarray(index * hashSize, (index + 1) * hashSize),
    end,
  }));
  lastTree = { bundleId, tree: buildTree(leaves) };
  return lastTree.tree;
}
