/**
 * Indexes of given manifests.
 * @module
 */
import { type BuildIndexResult, createIndexBuilder } from "../../../src/store/manifests/manifest-index-build.ts";
import type { IndexKey, ManifestIndexes } from "../../../src/store/manifests/manifest-indexes.ts";

const pieceBytes = 2 ** 20;

/** Builds an index from a complete manifest. */
export function buildInto(
  indexes: Pick<ManifestIndexes, "place" | "add">,
  key: IndexKey,
  bytes: Uint8Array,
  builtAt = Date.now(),
): BuildIndexResult {
  const { buildIndex } = createIndexBuilder();
  const shared = new SharedArrayBuffer(pieceBytes);
  const salt = crypto.getRandomValues(new Uint8Array(16));
  const begin = { id: key.id, size: bytes.length, salt, builtAt, ...indexes.place(key) };
  let response: BuildIndexResult = { kind: "more" };
  for (let at = 0; response.kind === "more" && at <= bytes.length; at += pieceBytes) {
    const piece = bytes.subarray(at, at + pieceBytes);
    new Uint8Array(shared).set(piece);
    const isLast = at + pieceBytes >= bytes.length;
    response = buildIndex({
      session: "one",
      shared,
      size: piece.length,
      isLast,
      ...(at === 0 ? { begin } : {}),
    });
  }
  if (response.kind === "built") indexes.add(key, response.bytes);
  return response;
}
