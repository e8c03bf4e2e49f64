/**
 * A long history on a development chain: bundles of ed25519 items with varied tags, owners, recipients and anchors,
 * nested bundles, and items that are in several bundles.
 * @module
 */
import { readFileSync } from "node:fs";
import { writeBundle } from "../../../src/arweave/bundle.ts";
import { addressOf, type Id } from "../../../src/arweave/id.ts";
import { createEd25519Signer } from "../../../src/arweave/signers/ed25519.ts";
import type { Tag } from "../../../src/arweave/tags.ts";
import { readWallet } from "../../../src/arweave/wallet.ts";
import { openNode } from "../../../src/chain/node.ts";
import { postData } from "../../../src/dev/sample/sample-site.ts";
import { encodeBase64url } from "../../../src/lib/base64url.ts";
import { sha256 } from "../../../src/lib/hash.ts";
import { bundleTags, type MadeItem, signItem } from "../../content/bundles.ts";
import type { DevLine } from "../../support/program.ts";
import { createRandom, type Random } from "../../support/random.ts";

const { signal } = new AbortController();

/** Items that both ends of a chain have: those of the last blocks are not final. */
const recentShare = 0.03;

/** Depth of a final block (docs/reference/columnar.md#heights). */
const finalDepth = 18;

/** What the chain has. */
export type LongChain = Readonly<{
  /** Distinct items. */
  items: number;
  /** Items whose bundle is not final. */
  recentItems: number;
  /** Final items that are in two bundles or more. */
  repeatedItems: number;
  /** Heights of the bundles, both inclusive. */
  first: number;
  last: number;
  /** A root bundle, the largest one, and a nested bundle. */
  bundles: readonly string[];
  /** Ids of items from all heights, in random order, with their payloads. */
  sample: readonly Pick<MadeItem, "id" | "payload">[];
  owner: string;
  recipient: string;
}>;

/** Posts bundles of as many items, and mines them. The items of one seed are always the same. */
export async function postLongChain(line: DevLine, seed: number, items: number): Promise<LongChain> {
  const random = createRandom(seed);
  const make = createItems(random, seed);
  const node = openNode(line.node);
  const wallet = readWallet(
    JSON.parse(readFileSync(line.wallets.find(({ name }) => name === "rsa")?.file ?? "", "utf8")),
  );
  const mine = async (blocks = 1): Promise<number> => {
    const mined = await fetch(`${line.node}/mine/${blocks}`, { method: "POST" });
    return ((await mined.json()) as { height: number }).height;
  };
  const recentItems = Math.ceil(items * recentShare);
  const largest = Math.max(10, Math.ceil(items / 30));
  const sample: MadeItem[] = [];
  let [made, biggest] = [0, 0];
  let root = "";
  const post = async (until: number): Promise<number> => {
    let height = 0;
    while (made < until) {
      const bundle = make.bundle(Math.min(1 + random.below(largest), until - made));
      made += bundle.count;
      const tags = [...bundleTags, { name: "App-Name", value: appNames[0] }];
      const id = await postData(node, wallet, { data: writeBundle(bundle.parts), tags }, signal);
      sample.push(random.pick(bundle.items));
      if (bundle.count > biggest) [biggest, root] = [bundle.count, id];
      if (random.chance(0.7) || made === until) height = await mine();
      if (random.chance(0.1)) height = await mine(1 + random.below(3));
    }
    return height;
  };
  const first = (await mine()) + 1;
  await post(items - recentItems);
  const finalIds = new Set(make.before.map(({ id }) => id));
  await mine(finalDepth);
  const last = await post(items);
  const repeatedItems = make.repeated.intersection(finalIds).size;
  const bundles = [root, ...make.nested.slice(0, 1)];
  return { items, recentItems, repeatedItems, first, last, bundles, sample, ...make.common };
}

export const appNames = ["Zeta", "Notes", "Photos", "Каталог", "empty"] as const;

const contentTypes = ["text/plain", "image/png", "application/json", "text/html; charset=utf-8"];

/** The tag that one of 400 items has. */
export const rareTag: Tag = { name: "Session", value: "rare" };

type Part = Readonly<{ items: readonly MadeItem[]; parts: readonly Uint8Array[]; count: number }>;

/** Makes items. Most have a few owners and applications; few have a target, an anchor, long or repeated tags. */
function createItems(random: Random, seed: number) {
  const keyOf = (kind: string, index: number) => sha256(Buffer.from(`${kind} ${index} of ${seed}`));
  const signers = Array.from({ length: 60 }, (_, index) => createEd25519Signer(keyOf("signer", index)));
  const targets = Array.from({ length: 25 }, (_, index) => encodeBase64url(keyOf("target", index)));
  const skewed = <Value>(list: readonly Value[]): Value => list[Math.floor(random.next() ** 3 * list.length)] as Value;
  const nested: string[] = [];
  const before: MadeItem[] = [];
  const repeated = new Set<Id>();
  let number = 0;

  const tagsOf = (): Tag[] => {
    number += 1;
    const tags: Tag[] = [
      { name: "App-Name", value: skewed(appNames) },
      { name: "Number", value: `${number}` },
    ];
    if (random.chance(0.8)) tags.push({ name: "Content-Type", value: skewed(contentTypes) });
    if (random.chance(1 / 400)) tags.push(rareTag);
    if (random.chance(0.1))
      tags.push({ name: "Topic", value: `t${random.below(50)}` }, { name: "Topic", value: "all" });
    if (random.chance(0.01)) tags.push({ name: "Long", value: "é".repeat(1 + random.below(600)) });
    return tags;
  };
  const item = (): MadeItem => {
    const target = random.chance(0.1) ? { target: skewed(targets) } : {};
    const anchor = random.chance(0.2) ? { anchor: encodeBase64url(random.bytes(32)) } : {};
    return signItem(random.bytes(8 + random.below(120)), tagsOf(), skewed(signers), { ...target, ...anchor });
  };
  const nest = (count: number): Part => {
    const inner = Array.from({ length: count }, item);
    const data = writeBundle(inner.map(({ bytes }) => bytes));
    const outer = signItem(data, [...bundleTags, ...tagsOf()], skewed(signers));
    nested.push(outer.id);
    return { items: inner, parts: [outer.bytes], count: count + 1 };
  };
  const bundle = (count: number): Part => {
    const items: MadeItem[] = [];
    const parts: Uint8Array[] = [];
    for (let left = count; left > 0; ) {
      const isNested = left > 3 && random.chance(0.01);
      const made = isNested ? nest(2 + random.below(Math.min(40, left - 2))) : single(item());
      items.push(...made.items);
      parts.push(...made.parts);
      left -= made.count;
    }
    // An item of an earlier bundle, which the index lists at its first place only.
    if (before.length > 0 && random.chance(0.3)) {
      const { id, bytes } = random.pick(before);
      repeated.add(id);
      parts.push(bytes);
    }
    before.push(random.pick(items));
    return { items, parts, count };
  };
  const owner = addressOf(signers[0]?.owner ?? new Uint8Array());
  return { bundle, nested, before, repeated, common: { owner, recipient: targets[0] ?? "" } };
}

function single(made: MadeItem): Part {
  return { items: [made], parts: [made.bytes], count: 1 };
}
