/**
 * What the program puts on the chain, as published libraries see it: arbundles reads and verifies the bundle and every
 * item of it, arweave-js fetches its data.
 * @module
 */
import { expect } from "bun:test";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { clientLibraries, testWith } from "../support/helpers.ts";
import { createRandom } from "../support/random.ts";
import { signers } from "../support/signers.ts";
import { eventually } from "../support/until.ts";
import { openUploadStack, sendItem, statusOf } from "../support/upload-stack.ts";

testWith(
  clientLibraries,
  "arbundles verifies an uploaded bundle, and arweave-js sees its data",
  async () => {
    const { Bundle } = await import("@dha-team/arbundles");
    const { default: Arweave } = await import("arweave");
    const stack = await openUploadStack({
      chain: { mining: "auto" },
      environment: { UPLOAD_BUNDLE_WAIT_MS: "1500", UPLOAD_CONFIRMATIONS: "1" },
    });
    try {
      const random = createRandom(9);
      const sent = new Map<string, Uint8Array>();
      // The library verifies all types but 101.
      for (const signer of signers.filter(({ scheme }) => scheme.type !== 101))
        for (const size of [0, 300_000]) {
          const bytes = createDataItem(
            { data: random.bytes(size), tags: [{ name: "N", value: `${signer.scheme.type}-${size}` }] },
            signer,
          );
          sent.set((await sendItem(stack.uploads, bytes)).id, bytes);
        }
      const bundles = new Set<string>();
      for (const id of sent.keys()) {
        const status = await eventually(
          () => statusOf(stack.uploads, id),
          ({ info }) => info === "permanent",
          30_000,
        );
        bundles.add(status.bundleId ?? "");
      }
      const seen = new Map<string, Buffer>();
      const { hostname, port } = new URL(stack.content);
      const arweave = Arweave.init({
        host: hostname === "localhost" ? "127.0.0.1" : hostname,
        port: Number(port),
        protocol: "http",
      });
      for (const bundleId of bundles) {
        const transaction = await arweave.transactions.get(bundleId);
        expect(await arweave.transactions.verify(transaction)).toBe(true);
        const data = Buffer.from(await arweave.transactions.getData(bundleId, { decode: true }));
        const bundle = new Bundle(data);
        expect(await bundle.verify()).toBe(true);
        expect(await new Bundle(damaged(data)).verify()).toBe(false);
        for (const item of bundle.items) {
          expect(await item.isValid()).toBe(true);
          seen.set(item.id, Buffer.from(item.getRaw()));
        }
      }
      console.log(`${bundles.size} bundle(s), ${seen.size} items of ${sent.size}`);
      expect([...seen.keys()].sort()).toEqual([...sent.keys()].sort());
      for (const [id, bytes] of sent) expect(Buffer.compare(seen.get(id) ?? Buffer.alloc(0), bytes)).toBe(0);
    } finally {
      await stack.close();
    }
  },
  120_000,
);

/** One bit of the last item is another one: a check that lets it pass shows nothing. */
function damaged(bundle: Uint8Array): Buffer {
  const bytes = Buffer.from(bundle);
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
  return bytes;
}
