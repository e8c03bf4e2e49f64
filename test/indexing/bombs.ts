/**
 * Bundles that are made to overwhelm who opens them, written to files piece by piece.
 * @module
 */
import { closeSync, openSync, writeSync } from "node:fs";
import { writeBundle, writeBundleHeader } from "../../src/arweave/bundle.ts";
import { createDataItem, createItemSigning } from "../../src/arweave/data-item.ts";
import { type Id, idOfSignature } from "../../src/arweave/id.ts";
import { bundleTags, ed25519Signer, makeItem } from "./samples.ts";

const entryBytes = 64;
const headerBytes = (entries: number) => 32 + entries * entryBytes;
const idIn = (item: Uint8Array): Id => idOfSignature(item.subarray(2, 66));

/** A bundle of `width` bundles of `width` items each, all different and all valid. @returns Its size in bytes. */
export function writeFan(path: string, width: number): number {
  const file = openSync(path, "w");
  const entries: { id: Id; size: number }[] = [];
  let at = headerBytes(width);
  for (let outer = 0; outer < width; outer += 1) {
    const items = Array.from({ length: width }, (_, inner) =>
      createDataItem({ data: `${outer}/${inner}` }, ed25519Signer),
    );
    const nested = createDataItem({ data: writeBundle(items), tags: [...bundleTags] }, ed25519Signer);
    entries.push({ id: idIn(nested), size: nested.length });
    writeSync(file, nested, 0, nested.length, at);
    at += nested.length;
  }
  const header = writeBundleHeader(entries);
  writeSync(file, header, 0, header.length, 0);
  closeSync(file);
  return at;
}

/**
 * A bundle in a bundle, `depth` times, and an item beside the outermost.
 *
 * @param signed - So many levels, the outermost ones, are validly signed. The others have one signature, which is invalid
 *   of theirs, and so one id: each contains itself.
 * @returns The whole.
 */
export function chainOf(depth: number, signed: number): Uint8Array {
  const core = makeItem("the core");
  const template = createDataItem({ data: "", tags: [...bundleTags] }, ed25519Signer);
  const beside = makeItem("beside");
  const levelBytes = template.length + headerBytes(1);
  const outer = core.length + depth * levelBytes;
  const whole = new Uint8Array(headerBytes(2) + outer + beside.length);
  const end = headerBytes(2) + outer;
  whole.set(beside, end);
  whole.set(core, end - core.length);
  let inner = { id: idIn(core), size: core.length };
  for (let level = 1; level <= depth; level += 1) {
    const at = end - inner.size - levelBytes;
    whole.set(writeBundleHeader([inner]), at + template.length);
    const payload = whole.subarray(at + template.length, end);
    const header = level > depth - signed ? signedHeader(payload) : template;
    whole.set(header, at);
    inner = { id: idIn(header), size: inner.size + levelBytes };
  }
  whole.set(writeBundleHeader([inner, { id: idIn(beside), size: beside.length }]), 0);
  return whole;
}

function signedHeader(payload: Uint8Array): Uint8Array {
  const signing = createItemSigning({ tags: [...bundleTags] }, payload.length, ed25519Signer);
  signing.update(payload);
  return signing.finish().header;
}
