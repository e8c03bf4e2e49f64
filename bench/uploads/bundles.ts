/**
 * Bundles: CPU time to bring uploaded items to the chain (plan, prepare, sign, send each chunk to a node), against one
 * hash of their bytes. The node runs in another process, which is not counted.
 * @module
 */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { checkItem, createDataItem } from "../../src/arweave/data-item.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import { winc } from "../../src/arweave/winston.ts";
import { assert } from "../../src/lib/assert.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openLedger } from "../../src/store/ledger/open-ledger.ts";
import { itemFolder, makeItemFolders, openSegments } from "../../src/store/uploads/item-files.ts";
import { accountOf } from "../../src/upload/intake/charge-item.ts";
import { insertUpload, type Upload } from "../../src/upload/upload-rows.ts";
import { openTestDevnet, rsaJwk, serve } from "../../test/dev/devnet/support.ts";
import { testKey } from "../../test/support/signers.ts";
import { type Bench, type BenchRow, type BenchSize, median } from "../harness.ts";

/** CPU time of the steps of one bundle, and the total time. */
export type BundleSteps = Readonly<{
  planMs: number;
  prepareMs: number;
  postMs: number;
  seedMs: number;
  seconds: number;
}>;

/** Files in the folder under measurement. */
export const files = { ledger: "ledger.sqlite", wallet: "wallet.json" } as const;

export const storeName = "00000000-0000-4000-8000-00000000be9c";

type Sizes = Readonly<{ items: number; loneBytes: number; rounds: number }>;

const sizes: Readonly<Record<BenchSize, Sizes>> = {
  small: { items: 30, loneBytes: 2 * 2 ** 20, rounds: 1 },
  large: { items: 10_000, loneBytes: 256 * 2 ** 20, rounds: 3 },
};

const payloadBytes = 10 * 2 ** 10;

/** Items whose files and rows are written together. */
const itemsAtOnce = 500;

const signer = createEd25519Signer(testKey(51));

/** Many small items, and one large item. */
export const bundlesBench: Bench = {
  name: "bundles",
  measure: async (size) => {
    const { items, loneBytes, rounds } = sizes[size];
    const many = `${items} items of 10 KiB`;
    const one = `one item of ${(loneBytes / 2 ** 20).toFixed(0)} MiB`;
    return [
      await measureBundle(many, rounds, (seed) => makeItems(items, payloadBytes, seed)),
      await measureBundle(one, rounds, (seed) => makeItems(1, loneBytes, seed)),
    ];
  },
};

async function measureBundle(
  name: string,
  rounds: number,
  make: (seed: number) => Iterable<readonly Uint8Array[]>,
): Promise<BenchRow> {
  const measured: { cpuMs: number; hashMs: number; steps: BundleSteps }[] = [];
  for (let round = 0; round < rounds; round += 1) measured.push(await measureRound(make(round)));
  const of = (pick: (steps: BundleSteps) => number) => median(measured.map(({ steps }) => pick(steps)));
  const steps = [
    `plan ${of(({ planMs }) => planMs).toFixed(0)}`,
    `prepare ${of(({ prepareMs }) => prepareMs).toFixed(0)}`,
    `sign and post ${of(({ postMs }) => postMs).toFixed(0)}`,
    `seed ${of(({ seedMs }) => seedMs).toFixed(0)}`,
  ];
  const cpuMs = median(measured.map((each) => each.cpuMs));
  return {
    name: `a bundle of ${name} prepared and seeded, CPU`,
    metric: `${cpuMs.toFixed(0)} ms (${steps.join(", ")}), in ${of(({ seconds }) => seconds).toFixed(1)} s`,
    reference: `SHA-256 of its bytes once ${median(measured.map(({ hashMs }) => hashMs)).toFixed(0)} ms`,
    ratio: median(measured.map((each) => each.cpuMs / each.hashMs)),
  };
}

async function measureRound(batches: Iterable<readonly Uint8Array[]>) {
  const folder = mkdtempSync(join(tmpdir(), "cairn-bench-bundles-"));
  const devnet = await openTestDevnet({ clock: Date.now });
  const node = serve(devnet);
  try {
    const hashMs = await writeUploads(folder, batches);
    const program = resolve(import.meta.dir, "bundles-served.ts");
    const child = Bun.spawn([process.execPath, program, folder, `http://127.0.0.1:${node.port}`], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const steps: BundleSteps = JSON.parse(await new Response(child.stdout).text());
    return { cpuMs: steps.planMs + steps.prepareMs + steps.postMs + steps.seedMs, hashMs, steps };
  } finally {
    await node.close();
    devnet.close();
    removeFolder(folder);
  }
}

/** Items as after an upload: small items in segments, large items in their own files, and a row for each. */
async function writeUploads(folder: string, batches: Iterable<readonly Uint8Array[]>): Promise<number> {
  makeItemFolders(folder);
  mkdirSync(join(folder, "bundles"), { recursive: true });
  writeFileSync(join(folder, files.wallet), JSON.stringify(rsaJwk));
  const ledger = await openLedger({ url: undefined, path: join(folder, files.ledger) });
  const segments = openSegments(folder, () => crypto.randomUUID());
  const account = accountOf(signer.scheme.type, signer.owner);
  const place = (items: readonly Uint8Array[]): readonly Upload["bytes"][] => {
    const [first] = items;
    if (first !== undefined && first.length > 2 ** 20) {
      const file = `${itemFolder}/${crypto.randomUUID()}`;
      writeFileSync(join(folder, file), first);
      return [{ file, offset: 0, size: first.length }];
    }
    const { file, offsets } = segments.append(items);
    return items.map(({ length }, index) => ({ file, offset: offsets[index] ?? 0, size: length }));
  };
  let hashMs = 0;
  for (const items of batches) {
    hashMs += hashCpuMs(items);
    const places = place(items);
    await ledger.write(async (tx) => {
      for (const [index, bytes] of items.entries()) {
        const checked = checkItem(bytes, "strict");
        const at = places[index];
        assert(checked.kind === "item" && at !== undefined, "a valid item has a place");
        const { id, headerSize, signatureType, ownerAddress } = checked.header;
        await insertUpload(tx, {
          id,
          store: storeName,
          bytes: at,
          headerSize,
          signatureType,
          signingId: undefined,
          ownerAddress,
          signer: account,
          contentType: "text/plain",
          contentEncoding: undefined,
          digest: checked.digest,
          winc: winc(0n),
          reservationId: undefined,
          receivedAt: Date.now(),
          deadlineHeight: 200,
        });
      }
    });
  }
  await ledger.close();
  return hashMs;
}

/** CPU time of one hash of the bytes in this process. */
function hashCpuMs(items: readonly Uint8Array[]): number {
  const before = process.cpuUsage();
  const hash = new Bun.SHA256();
  for (const bytes of items) hash.update(bytes);
  hash.digest();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

function* makeItems(count: number, bytes: number, seed: number): Generator<Uint8Array[]> {
  for (let first = 0; first < count; first += itemsAtOnce)
    yield Array.from({ length: Math.min(itemsAtOnce, count - first) }, (_, index) => {
      const data = new Uint8Array(bytes);
      // Hashed and written like real uploads.
      for (let at = 0; at < bytes; at += 65_536) crypto.getRandomValues(data.subarray(at, at + 65_536));
      const tags = [{ name: "Number", value: `${seed} ${first + index}` }];
      return createDataItem({ data, tags }, signer);
    });
}
