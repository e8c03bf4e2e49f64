/**
 * Damaged data items, bundles, manifests and filters: readers respond or reject, throw nothing but `Failure`, and
 * keep nothing. `MUTATIONS` inputs for each (100,000 unless set), from the printed seed.
 * @module
 */
import { describe, expect, test } from "bun:test";
import {
  bundleCountSize,
  firstEntry,
  readBundleCount,
  readBundleEntries,
  writeBundle,
} from "../../src/arweave/bundle.ts";
import { checkItem, createDataItem, readItemHeader } from "../../src/arweave/data-item.ts";
import { canonical, readFilter } from "../../src/arweave/filter.ts";
import { idFromBytes } from "../../src/arweave/id.ts";
import { readManifest, resolvePath } from "../../src/arweave/manifest.ts";
import { readAvroTags, tagLimits, writeAvroTags } from "../../src/arweave/tags.ts";
import { Failure } from "../../src/failures.ts";
import { createChance, mutateBytes, mutateText, mutationCount, mutationSeed } from "../support/mutate.ts";
import { signers, testKey } from "../support/signers.ts";

/** What a million inputs may leave behind: nothing but the runtime's own growth. */
const memoryGrowthMax = 64 * 1_048_576;
const timeoutMs = 60_000 + mutationCount / 4;

const tags = [
  { name: "Content-Type", value: "text/plain" },
  { name: "App-Name", value: "Cairn" },
];
const id = idFromBytes(testKey(1));
const fields = { tags, target: id, anchor: idFromBytes(testKey(2)), data: "some payload" };
const items = signers.flatMap((signer) => [createDataItem(fields, signer), createDataItem({ data: "" }, signer)]);

console.log(`mutations: ${mutationCount} of each`);

describe("B1, B3, M1: damaged inputs", () => {
  test(
    "tag sections are read within their bytes and limits",
    () => {
      const sections = [tags, Array(128).fill(tags[0]), [{ name: "a", value: "b" }]].map(writeAvroTags);
      hold(sections, mutateBytes, (section) => {
        for (const rules of ["strict", "lenient"] as const) {
          for (const declared of [0, 1, 2, 128]) {
            const read = readAvroTags(section, declared, rules);
            if (typeof read !== "string") expect(read.length).toBeLessThanOrEqual(tagLimits[rules].tags);
          }
        }
      });
    },
    timeoutMs,
  );

  test(
    "item headers are read, or need more, or are rejected",
    () => {
      hold(items, mutateBytes, (item) => {
        for (const rules of ["strict", "lenient"] as const) {
          const known = readItemHeader(item, rules, item.length);
          expect(known.kind).not.toBe("need");
          const read = readItemHeader(item, rules);
          if (read.kind === "header") expect(read.header.headerSize).toBeLessThanOrEqual(item.length);
          if (read.kind === "need") expect(read.bytes).toBeLessThanOrEqual(1_055_000);
        }
      });
    },
    timeoutMs,
  );

  test(
    "an item that is still valid says what was signed",
    () => {
      // Everything behind the signature is signed: type, owner, target, anchor, tags and payload.
      const signed = new Set(items.map(signedPart));
      let stillValid = 0;
      hold(items, mutateBytes, (item) => {
        if (checkItem(item, "strict").kind === "invalid") return;
        stillValid += 1;
        expect(signed.has(signedPart(item))).toBe(true);
      });
      console.log(`${stillValid} damaged items are the sound ones again`);
    },
    timeoutMs,
  );

  test(
    "bundle headers never lead outside of the bundle",
    () => {
      const bundles = [writeBundle([]), writeBundle(items.slice(2, 4)), writeBundle(items.slice(2, 7))];
      hold(bundles, mutateBytes, (bundle) => {
        const head = readBundleCount(bundle, bundle.length);
        if (head.kind === "invalid") return;
        expect(head.headerSize).toBeLessThanOrEqual(bundle.length);
        const header = bundle.subarray(bundleCountSize, head.headerSize);
        const { entries, next } = readBundleEntries(header, firstEntry(head.count), head.count, bundle.length);
        for (const { offset, size } of entries) expect(offset + size).toBeLessThanOrEqual(bundle.length);
        expect(next.offset).toBeLessThanOrEqual(bundle.length);
      });
    },
    timeoutMs,
  );

  test(
    "manifests are read or rejected with a Failure",
    () => {
      const paths = { "index.html": { id }, "a/b": { id } };
      const site = {
        manifest: "arweave/paths",
        version: "0.2.0",
        index: { path: "a/b" },
        fallback: { id },
        paths,
      };
      const texts = [site, { ...site, version: "0.1.0" }, { ...site, index: { id } }].map((made) =>
        JSON.stringify(made),
      );
      hold(texts, mutateText, (text) => {
        const manifest = orFailure(() => readManifest(new TextEncoder().encode(text)));
        if (manifest !== undefined) for (const path of ["", "a/b", "x"]) resolvePath(manifest, path);
      });
    },
    timeoutMs,
  );

  test(
    "filters are read or rejected with a Failure, and keep their meaning in their canonical spelling",
    () => {
      const texts = [
        '{"and":[{"tags":[{"name":"a","value":"b"},{"name":"c"}]},{"not":{"isNestedBundle":true}}]}',
        '{"hashPartition":{"partitionCount":5,"partitionKey":"owner_address","targetPartitions":[0,4]}}',
        '{"or":[{"attributes":{"owner_address":"x","data_size":5}},{"never":true},{"always":true}]}',
      ];
      hold(texts, mutateText, (text) => {
        const filter = orFailure(() => readFilter(text));
        if (filter !== undefined) expect(canonical(readFilter(canonical(filter)))).toBe(canonical(filter));
      });
    },
    timeoutMs,
  );
});

/** Runs a check over damaged samples; a fault names the input, and what is stored after a collection is bounded. */
function hold<Sample extends string | Uint8Array>(
  samples: readonly Sample[],
  mutate: (samples: readonly Sample[], chance: ReturnType<typeof createChance>) => Sample,
  check: (input: Sample) => void,
): void {
  const chance = createChance(mutationSeed);
  let before = 0;
  for (let count = 0; count < mutationCount; count += 1) {
    const input = mutate(samples, chance);
    try {
      check(input);
    } catch (cause) {
      const shown = typeof input === "string" ? input : input.toHex();
      throw new Error(`input ${count} of seed ${mutationSeed}: ${shown}`, { cause });
    }
    if (count % 25_000 !== 1_000) continue;
    Bun.gc(true);
    before ||= process.memoryUsage().rss;
    expect(process.memoryUsage().rss - before).toBeLessThanOrEqual(memoryGrowthMax);
  }
}

function orFailure<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (failure) {
    if (!(failure instanceof Failure)) throw failure;
    return undefined;
  }
}

/** An item without its signature, as text. */
function signedPart(item: Uint8Array): string {
  const read = readItemHeader(item, "strict", item.length);
  if (read.kind !== "header") return "";
  return item.subarray(0, 2).toHex() + item.subarray(read.header.ownerOffset).toHex();
}
