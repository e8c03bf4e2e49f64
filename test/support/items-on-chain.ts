/**
 * The items of all bundles that a development chain has mined, as its data says.
 * @module
 */
import { bundleCountSize, firstEntry, readBundleCount, readBundleEntries } from "../../src/arweave/bundle.ts";
import type { Devnet } from "../../src/dev/devnet/devnet.ts";

const formatTag = Buffer.from("Bundle-Format").toString("base64url");

/** An item as its bundle has it. */
export type BundledItem = Readonly<{ id: string; bytes: Uint8Array }>;

/** Ids in the order of the chain; one that is in two bundles comes twice. Bundles without their data are left out. */
export function itemsOnChain(devnet: Devnet): string[] {
  return bundledOnChain(devnet).map(({ id }) => id);
}

/** The same with their bytes. */
export function bundledOnChain(devnet: Devnet): BundledItem[] {
  const found: BundledItem[] = [];
  for (let height = 0; height <= devnet.height(); height += 1) {
    const block: { txs: string[] } = JSON.parse(devnet.blockAt(height)?.text ?? '{"txs":[]}');
    for (const id of block.txs) found.push(...itemsOf(devnet, id));
  }
  return found;
}

function itemsOf(devnet: Devnet, id: string): BundledItem[] {
  const finding = devnet.transaction(id);
  if (finding.kind !== "mined" || !finding.transaction.text.includes(formatTag)) return [];
  const chunks = devnet.chunksOf(finding.transaction);
  if (chunks === undefined) return [];
  const data = Buffer.concat([...chunks].map(({ chunk }) => chunk));
  const read = readBundleCount(data, data.length);
  if (read.kind !== "count") return [];
  const header = data.subarray(bundleCountSize);
  const { entries } = readBundleEntries(header, firstEntry(read.count), read.count, data.length);
  return entries.map((entry) => ({
    id: entry.id,
    bytes: data.subarray(entry.offset, entry.offset + entry.size),
  }));
}
