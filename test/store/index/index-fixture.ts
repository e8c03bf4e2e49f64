/**
 * A chain that randomly grows, forks and is unbundled, written to an index and to the model.
 * @module
 */
import type { Address, BlockHash, Id } from "../../../src/arweave/id.ts";
import type { Tag } from "../../../src/arweave/tags.ts";
import {
  allColumns,
  type IndexReader,
  type ItemRow,
  type PagePlan,
  type TagPlan,
  type TransactionRow,
} from "../../../src/store/index/index-types.ts";
import type { IndexWriter } from "../../../src/store/index/index-writer.ts";
import type { Place } from "../../../src/store/index/place.ts";
import type { Random } from "../../support/random.ts";
import type { ModelRow } from "./model.ts";
import {
  blockOf,
  bundleOf,
  hashOf,
  idOf,
  isPendingPlace,
  itemOf,
  type Owner,
  ownerOf,
  pendingOf,
  someFilters,
  tagOf,
  transactionOf,
} from "./rows-of.ts";

/** The fixture, and its clock, with which the writer must be opened. */
export type Fixture = Readonly<{
  now: () => number;
  rows: () => readonly ModelRow[];
  /** Applies a random change. */
  step: () => void;
  addBlock: (transactionCount: number) => void;
  /** A random query, of values that occur and of some that do not. */
  plan: () => PagePlan;
}>;

type OpenBundle = { place: Place; items: ItemRow[]; entry: number };
type State = {
  rows: ModelRow[];
  nowMs: number;
  blocks: { height: number; hash: BlockHash }[];
  bundles: OpenBundle[];
  pendingIds: Id[];
};

const tagNames = ["App-Name", "Type", "Content-Type", "Unix-Time"];
const tagValues = ["a", "b", "c", "application/json", "image/png", "1700000000"];

/** Makes a fixture for an empty index. @param prunes - Whether steps prune items. */
export function createFixture(
  random: Random,
  open: (clock: () => number) => Readonly<{ writer: IndexWriter; reader: IndexReader }>,
  prunes = true,
): Fixture {
  const state: State = { rows: [], nowMs: 1_700_000_000_000, blocks: [], bundles: [], pendingIds: [] };
  const { writer, reader } = open(() => state.nowMs);
  const owners = Array.from({ length: 5 }, () => ownerOf(random));
  const parts: Parts = { random, state, writer, reader, owners };
  const addBlock = (count: number): void => addBlockOf(parts, count);

  return {
    now: () => state.nowMs,
    rows: () => state.rows,
    addBlock,
    step: () => {
      state.nowMs += 1_000 * random.below(20);
      const dice = random.below(100);
      if (dice < 40) addBlock(random.below(12));
      else if (dice < 75) unbundle(parts);
      else if (dice < 85) addPending(parts);
      else if (dice < 88) rollback(parts);
      else if (dice < 98) removePending(parts);
      else if (prunes) prune(parts);
    },
    plan: () =>
      planOf(random, {
        rows: state.rows,
        owners: owners.map(({ address }) => address),
        tagNames,
        tagValues,
        height: () => 95 + random.below(state.blocks.length + 10),
        seconds: () => Math.floor(state.nowMs / 1_000) - random.below(2_000),
      }),
  };
}

type Parts = Readonly<{
  random: Random;
  state: State;
  writer: IndexWriter;
  reader: IndexReader;
  owners: readonly Owner[];
}>;

function tagsOf(random: Random): Tag[] {
  return Array.from({ length: random.below(5) }, () =>
    tagOf(tagNames[Math.min(random.below(4), random.below(4))] ?? "", tagValues[random.below(tagValues.length)] ?? ""),
  );
}

function addBlockOf({ random, state, writer, owners }: Parts, count: number): void {
  const tip = state.blocks.at(-1);
  const height = tip === undefined ? 100 : tip.height + 1;
  const hash = hashOf(random);
  const minable = state.rows.filter((row) => isPendingPlace(row.place) && row.kind === "transaction");
  const transactions = Array.from({ length: count }, (_, txIndex): TransactionRow => {
    const mined = random.chance(0.2) ? minable.pop() : undefined;
    return transactionOf(random, random.pick(owners), {
      txIndex,
      ...(mined === undefined ? {} : { id: mined.id }),
      tags: tagsOf(random),
      target: random.chance(0.3) ? random.pick(owners).address : "",
      dataSize: random.chance(0.3) ? 1_000_000 : 0,
    });
  });
  const placeOf = (txIndex: number): Place => ({ height, txIndex, offset: -1 });
  const bundled = transactions.filter((row) => row.dataSize > 0);
  writer.addBlock({
    block: blockOf(random, { height, hash, previous: tip?.hash ?? "", txCount: count }),
    transactions,
    missing: [],
    bundles: bundled.map((row) => bundleOf(placeOf(row.txIndex), row.id, row.dataSize)),
  });
  state.blocks.push({ height, hash });
  const ingestedAt = Math.floor(state.nowMs / 1_000);
  for (const { txIndex, id, ownerAddress, target, tags, dataSize } of transactions) {
    const place = placeOf(txIndex);
    const row = { kind: "transaction", place, id, ownerAddress, target, tags, size: dataSize } as const;
    state.rows.push({ ...row, parentOffset: null, ingestedAt });
  }
  for (const row of bundled)
    state.bundles.push({
      place: placeOf(row.txIndex),
      items: itemsOf(random, owners, placeOf(row.txIndex), state),
      entry: 0,
    });
}

/** The items of a bundle in place order: some are bundles, some repeat a known id. */
function itemsOf(random: Random, owners: readonly Owner[], root: Place, state: State): ItemRow[] {
  const items: ItemRow[] = [];
  const known = state.rows.filter((row) => row.kind === "item");
  const fill = (start: number, count: number, parentOffset: number | null): number => {
    let offset = start + 32 + 64 * count;
    for (let index = 0; index < count; index += 1) {
      const nested = parentOffset === null && random.chance(0.1) ? 1 + random.below(6) : 0;
      const repeated = random.chance(0.08) && known.length > 0 ? random.pick(known).id : undefined;
      const at = items.length;
      const row = itemOf(random, random.pick(owners), {
        place: { ...root, offset },
        parentOffset,
        id: repeated ?? idOf(random),
        tags: tagsOf(random),
        target: random.chance(0.2) ? random.pick(owners).address : "",
        size: random.below(200),
      });
      items.push(row);
      const end = nested > 0 ? fill(offset + 130, nested, offset) : offset + 130 + row.size;
      items[at] = { ...row, size: end - offset - 130 };
      offset = end;
    }
    return offset;
  };
  fill(0, 1 + random.below(150), null);
  return items;
}

/** Adds some of a bundle's items, occasionally items that were added before. */
function unbundle({ random, state, writer }: Parts): void {
  if (state.bundles.length === 0) return;
  const bundle = random.pick(state.bundles);
  const start = random.chance(0.1) ? 0 : bundle.entry;
  const end = Math.min(bundle.items.length, bundle.entry + 1 + random.below(150));
  const rows = bundle.items.slice(start, end);
  writer.addItems({ bundle: bundle.place, rows, firstEntry: bundle.entry, nextEntry: end, bundles: [] });
  bundle.entry = end;
  const there = new Set(state.rows.map(({ place }) => `${place.height}/${place.txIndex}/${place.offset}`));
  for (const { place, id, ownerAddress, target, tags, size, parentOffset } of rows) {
    if (there.has(`${place.height}/${place.txIndex}/${place.offset}`)) continue;
    const row = { kind: "item", place, id, ownerAddress, target, tags, size, parentOffset } as const;
    state.rows.push({ ...row, ingestedAt: Math.floor(state.nowMs / 1_000) });
  }
  if (end < bundle.items.length) return;
  writer.finishBundle(bundle.place, { ...someFilters, itemCount: bundle.items.length });
  state.bundles = state.bundles.filter((other) => other !== bundle);
}

function rollback({ random, state, writer }: Parts): void {
  const tip = state.blocks.at(-1);
  if (tip === undefined) return;
  const from = Math.max(101, tip.height + 1 - random.below(random.chance(0.2) ? 30 : 4));
  writer.rollback(from);
  state.blocks = state.blocks.filter(({ height }) => height < from);
  state.bundles = state.bundles.filter(({ place }) => place.height < from);
  state.rows = state.rows.filter(({ place }) => place.height < from || isPendingPlace(place));
}

function addPending({ random, state, writer, reader, owners }: Parts): void {
  const rows = Array.from({ length: 1 + random.below(4) }, () =>
    pendingOf(random, random.pick(owners), {
      kind: random.chance(0.5) ? "item" : "transaction",
      ...(random.chance(0.1) && state.rows.length > 0 ? { id: random.pick(state.rows).id } : {}),
      tags: tagsOf(random),
    }),
  );
  writer.addPending(rows);
  // Of several rows with one id, the last one counts.
  for (const { kind, id, ownerAddress, target, tags, size } of new Map(rows.map((row) => [row.id, row])).values()) {
    const known = state.rows.filter((row) => row.id === id);
    // A transaction is verified here, an item is only announced: it is replaced.
    const isReplaced = kind === "transaction" && known.every((row) => row.kind === "item" && isPendingPlace(row.place));
    if (known.length > 0 && !isReplaced) continue;
    state.rows = state.rows.filter((row) => !known.includes(row));
    const place = reader.placeOf(id);
    if (place === undefined || !isPendingPlace(place)) throw new Error("a pending row that was added is found");
    const row = { kind, place, id, ownerAddress, target, tags, size, parentOffset: null };
    state.rows.push({ ...row, ingestedAt: Math.floor(state.nowMs / 1_000) });
    state.pendingIds.push(id);
  }
}

function removePending({ random, state, writer }: Parts): void {
  if (random.chance(0.3)) {
    const before = Math.floor(state.nowMs / 1_000) - 60;
    writer.expirePending(before);
    // All pending items of this fixture are announced ones.
    state.rows = state.rows.filter((row) => !(isPendingPlace(row.place) && row.ingestedAt < before));
    return;
  }
  const ids = state.pendingIds.filter(() => random.chance(0.3));
  writer.removePending(ids);
  state.rows = state.rows.filter((row) => !(isPendingPlace(row.place) && ids.includes(row.id)));
}

function prune({ random, state, writer }: Parts): void {
  const tip = state.blocks.at(-1);
  if (tip === undefined) return;
  const endHeight = tip.height - random.below(10);
  const ingestedBeforeSeconds = Math.floor(state.nowMs / 1_000) - random.below(600);
  writer.pruneItems({ ingestedBeforeSeconds, startHeight: 0, endHeight });
  state.rows = state.rows.filter(
    (row) =>
      row.kind === "transaction" ||
      isPendingPlace(row.place) ||
      row.place.height > endHeight ||
      row.ingestedAt >= ingestedBeforeSeconds,
  );
}

/** What the values of random queries are picked from. */
export type PlanValues = Readonly<{
  rows: readonly ModelRow[];
  owners: readonly Address[];
  tagNames: readonly string[];
  tagValues: readonly string[];
  /** Returns a height or a time in Unix seconds, of rows or near to them. */
  height: () => number;
  seconds: () => number;
}>;

/** A random query, of values that occur and of some that do not. */
export function planOf(random: Random, values: PlanValues): PagePlan {
  const { rows, owners, tagNames: names, height, seconds } = values;
  const some = <Value>(make: () => Value): Value[] => Array.from({ length: 1 + random.below(3) }, make);
  const tag = (): TagPlan => ({
    name: random.pick(names),
    values: random.chance(0.03) ? [] : some(() => random.pick([...values.tagValues, "absent"])),
    op: random.chance(0.2) ? "NEQ" : "EQ",
  });
  const id = (): Id => (rows.length === 0 || random.chance(0.2) ? idOf(random) : random.pick(rows).id);
  return {
    ...(random.chance(0.15) ? { ids: Array.from({ length: random.below(30) }, id) } : {}),
    ...(random.chance(0.25) ? { owners: some(() => random.pick(owners)) } : {}),
    ...(random.chance(0.15) ? { recipients: [...some(() => random.pick(owners)), "no address"] } : {}),
    ...(random.chance(0.6) ? { tags: some(tag) } : {}),
    ...(random.chance(0.2) ? { bundledIn: random.chance(0.4) ? null : some(() => parentOf(random, rows)) } : {}),
    ...(random.chance(0.25) ? { block: { min: height(), ...(random.chance(0.5) ? { max: height() } : {}) } } : {}),
    ...(random.chance(0.15) ? { ingestedAt: { min: seconds(), max: seconds() + 900 } } : {}),
    order: random.chance(0.5) ? "asc" : "desc",
    limit: 1 + random.below(random.chance(0.2) ? 400 : 40),
    columns: allColumns,
  };
}

/** An id that has children, with a raised probability. */
function parentOf(random: Random, rows: readonly ModelRow[]): Id {
  const bundles = rows.filter((row) => row.size > 1_000);
  return random.chance(0.1) || bundles.length === 0 ? idOf(random) : random.pick(bundles).id;
}
