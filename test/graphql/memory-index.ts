/**
 * The index as plain arrays: what the queries mean, written as filters over all rows, and seeded rows to filter.
 * @module
 */
import { createHash } from "node:crypto";
import { type Address, type BlockHash, blockHashFromBytes, type Id, idFromBytes } from "../../src/arweave/id.ts";
import type { Tag } from "../../src/arweave/tags.ts";
import type { QueryIndex } from "../../src/graphql/root-fields.ts";
import type { SignatureSource } from "../../src/graphql/signature-source.ts";
import type { PageBlock, PageColumns, PagePlan, PageRow, TagPlan } from "../../src/store/index/index-types.ts";
import { encodedRow } from "../../src/store/index/pages/encoded-row.ts";
import type { EncodedRow } from "../../src/store/index/pages/encoded-types.ts";
import { type Place, pendingHeight } from "../../src/store/index/place.ts";
import { comparePlaces } from "../support/places.ts";

/** Whether a row is in the response to a plan, its position aside. */
export function matches(row: PageRow, plan: Omit<PagePlan, "order" | "limit" | "columns">): boolean {
  const has = <Value>(list: readonly Value[] | undefined, value: Value) => list?.includes(value) ?? true;
  const within = (bounds: PagePlan["block"], value: number) =>
    value >= (bounds?.min ?? -Infinity) && value <= (bounds?.max ?? Infinity);
  const isPending = row.place.height === pendingHeight;
  return (
    has(plan.ids, row.id) &&
    has(plan.owners, row.ownerAddress) &&
    has(plan.recipients, row.target) &&
    (plan.tags ?? []).every((filter) => matchesTag(row.tags, filter)) &&
    (plan.bundledIn === null
      ? row.kind === "transaction"
      : plan.bundledIn === undefined || (row.parentId !== undefined && plan.bundledIn.includes(row.parentId))) &&
    (plan.block === undefined || (!isPending && within(plan.block, row.place.height))) &&
    within(plan.ingestedAt, row.ingestedAt)
  );
}

function matchesTag(tags: readonly Tag[], { name, values, op }: TagPlan): boolean {
  const isThere = tags.some((tag) => tag.name === name && values.includes(tag.value));
  return op === "EQ" ? isThere : !isThere;
}

/** An index that looks at every row. Returns only the requested `columns`, so that a missing column is noticed. */
export function createMemoryIndex(rows: readonly PageRow[], blocks: readonly PageBlock[]) {
  const pageOf = (plan: PagePlan) => {
    plan.checkpoint?.();
    const direction = plan.order === "asc" ? 1 : -1;
    const found = rows
      .filter((row) => matches(row, plan))
      .filter(({ place }) => plan.after === undefined || comparePlaces(place, plan.after) * direction > 0)
      .toSorted((a, b) => comparePlaces(a.place, b.place) * direction);
    return {
      rows: found.slice(0, plan.limit).map((row) => ({
        ...row,
        tags: plan.columns.tags ? row.tags : [],
        ownerKey: plan.columns.ownerKey ? row.ownerKey : "",
        parentId: plan.columns.parent ? row.parentId : undefined,
        block: plan.columns.block ? row.block : undefined,
      })),
      hasNextPage: found.length > plan.limit,
    };
  };
  return {
    page: pageOf,
    encodedPage: (plan: PagePlan) => {
      const { rows: found, hasNextPage } = pageOf(plan);
      return { rows: found.map(encodedRow), hasNextPage };
    },
    encodedRow: (id: Id, columns: PageColumns) =>
      pageOf({ ids: [id], order: "asc", limit: 1, columns }).rows.map(encodedRow)[0],
    count: (plan, max) => {
      const count = rows.filter((row) => matches(row, plan)).length;
      return count > max ? undefined : count;
    },
    snapshot: (work) => work(),
    block: (key) => blocks.find(({ hash, height }) => key === hash || key === height),
    blocks: (plan) => {
      const direction = plan.order === "asc" ? 1 : -1;
      const found = blocks
        .filter(({ hash }) => plan.hashes?.includes(hash) ?? true)
        .filter(({ height }) => height >= (plan.height?.min ?? 0) && height <= (plan.height?.max ?? Infinity))
        .filter(({ height }) => plan.afterHeight === undefined || (height - plan.afterHeight) * direction > 0)
        .toSorted((a, b) => (a.height - b.height) * direction);
      return { rows: found.slice(0, plan.limit), hasNextPage: found.length > plan.limit };
    },
    counts: () => ({ ...noCounts, transactions: rows.length, blocks: blocks.length }),
  } satisfies QueryIndex & Record<string, unknown>;
}

/** A source that has no signature. */
export const noSignatures: SignatureSource = { find: () => undefined, of: () => undefined };

/** A source of signatures by id. */
export function signaturesOf(byId: ReadonlyMap<string, string>): SignatureSource {
  const found = new WeakSet<EncodedRow>();
  return {
    find: (rows) => {
      for (const row of rows) found.add(row);
    },
    of: (row) => (found.has(row) ? byId.get(idFromBytes(row.stored.id)) : undefined),
  };
}

/** The statistics of an empty index. */
export const noHeights = {
  blocks: 0,
  blockTransactions: 0,
  transactions: 0,
  items: 0,
  minHeight: null,
  maxHeight: null,
  minItemHeight: null,
  maxItemHeight: null,
};

const noCounts: ReturnType<QueryIndex["counts"]> = {
  owners: 0,
  transactions: 0,
  items: 0,
  nestedItems: 0,
  storedItems: 0,
  pendingTransactions: 0,
  pendingItems: 0,
  duplicates: 0,
  blocks: 0,
  missingTransactions: 0,
  bundles: 0,
  bundlesQueued: 0,
  bundlesFailed: 0,
  bundleItems: 0,
  matchedItems: 0,
  stable: noHeights,
  recent: noHeights,
};

/** 32 bytes that follow from a text, as an id. */
export function idOf(text: string): Id {
  return idFromBytes(createHash("sha256").update(text).digest());
}

/** 32 bytes that follow from a text, as an address. */
export function addressOf(text: string): Address {
  return idOf(text) as string as Address;
}

/** 48 bytes that follow from a text, as a block hash. */
export function blockHashOf(text: string): BlockHash {
  return blockHashFromBytes(createHash("sha384").update(text).digest());
}

/** Block `height` of the made-up chain. */
export function blockOf(height: number): PageBlock {
  return {
    height,
    hash: blockHashOf(`block ${height}`),
    timestamp: 1_600_000_000 + height * 120,
    previous: height === 0 ? "" : blockHashOf(`block ${height - 1}`),
  };
}

/** A row at a place; what is not given follows from the place. */
export function rowAt(place: Place, given: Partial<PageRow> = {}): PageRow {
  const name = `${place.height}/${place.txIndex}/${place.offset}`;
  const isTransaction = place.offset === -1;
  return {
    kind: isTransaction ? "transaction" : "item",
    place,
    id: idOf(name),
    ownerAddress: addressOf(`owner ${place.txIndex % 3}`),
    ownerKey: Buffer.from(`key of owner ${place.txIndex % 3}`).toString("base64url"),
    target: place.txIndex % 2 === 0 ? "" : addressOf(`target ${place.txIndex % 5}`),
    anchor: isTransaction ? blockHashOf(`anchor ${name}`) : "",
    signatureType: isTransaction ? -1 : 3,
    size: place.height * 1_000 + place.txIndex,
    headerSize: isTransaction ? 0 : 1_044,
    tags: [],
    quantity: isTransaction ? 12_345_678_901_234n : 0n,
    reward: isTransaction ? 7n : 0n,
    format: 2,
    parentId: isTransaction ? undefined : idOf(`${place.height}/${place.txIndex}/-1`),
    block: place.height === pendingHeight ? undefined : blockOf(place.height),
    ingestedAt: 1_700_000_000 + place.height,
    ...given,
  };
}
