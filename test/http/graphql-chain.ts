/**
 * A generated chain: the same rows go into a real index and into a list, so that responses of the index can be compared
 * with a filter over the list.
 * @module
 */
import { type Address, addressOf, type Id } from "../../src/arweave/id.ts";
import type { Tag } from "../../src/arweave/tags.ts";
import type {
  BlockRow,
  ItemRow,
  PageBlock,
  PageRow,
  PendingRow,
  TransactionRow,
} from "../../src/store/index/index-types.ts";
import { openIndexWriter } from "../../src/store/index/index-writer.ts";
import { type Place, pendingHeight } from "../../src/store/index/place.ts";
import { blockHashOf, idOf } from "../graphql/memory-index.ts";
import { comparePlaces } from "../support/places.ts";

/** The chain. */
export type MadeUpChain = Readonly<{
  /** Adds a block of that many transactions; some are bundles, whose items wait. */
  addBlock: (transactionCount: number) => void;
  /** Takes back that many blocks, and adds one more other ones. */
  reorganise: (depth: number, transactionCount: number) => void;
  /** Adds the items of the bundle that is due; false when none is. */
  unbundle: () => boolean;
  addPending: () => void;
  /** Lets pending rows go that came before the newest one. */
  expirePending: () => void;
  /** Rows of the index: one for each id, at its lowest place. */
  rows: () => readonly PageRow[];
  blocks: () => readonly PageBlock[];
  signatures: ReadonlyMap<string, string>;
  close: () => void;
}>;

/** Numbers below `count`, from a seed. */
export type Choose = (count: number) => number;

const owners = [1, 2, 3, 4].map((seed) => new Uint8Array(512).fill(seed));
const targets = [idOf("target 1"), idOf("target 2"), idOf("target 3")];
const types = ["text/html", "image/png", "application/json"];
const applications = ["Umlaut äöü", "漢字", 'Quote " \\', "plain"];
const contentFilters = { unbundleFilter: '{"always":true}', indexFilter: '{"always":true}' };

/** Addresses, recipients and tags of the chain's rows, for queries. */
export const known = {
  owners: owners.map((owner) => addressOf(owner)),
  recipients: targets,
  tags: [
    ...types.map((value) => ({ name: "Content-Type", value })),
    ...applications.map((value) => ({ name: "App-Name", value })),
  ],
} as const;

/** Opens a chain over a new index file. */
export function openMadeUpChain(path: string, choose: Choose): MadeUpChain {
  let now = 1_700_000_000_000;
  const writer = openIndexWriter(path, { clock: () => now });
  let serial = 0;
  let blocks: PageBlock[] = [];
  // Every row at every place of its id; what a reader sees is the lowest of each.
  let placed: PageRow[] = [];
  const waiting = new Map<string, readonly ItemRow[]>();
  const made: ItemRow[] = [];
  const signatures = new Map<string, string>();
  const name = (what: string) => idOf(`${what} ${serial++}`);
  const pick = <Value>(list: readonly Value[]): Value => {
    const value = list[choose(list.length)];
    if (value === undefined) throw new Error("the list is not empty");
    return value;
  };

  function tags(): Tag[] {
    const list = [
      { name: "Content-Type", value: pick(types) },
      { name: "App-Name", value: pick(applications) },
    ];
    if (choose(3) === 0) list.push({ name: "App-Name", value: pick(applications) });
    if (choose(2) === 0) list.push({ name: "Unique", value: String(serial++) });
    if (choose(8) === 0) list.length = 0;
    return list;
  }

  function owned(): Readonly<{ owner: Uint8Array; ownerAddress: Address; ownerKey: string }> {
    const owner = pick(owners);
    return { owner, ownerAddress: addressOf(owner), ownerKey: Buffer.from(owner).toString("base64url") };
  }

  /** Items of a bundle: some contain items, some are in another bundle, too. */
  function items(place: Place, parent: Readonly<{ offset: number | null; start: number }>, depth: number): ItemRow[] {
    const rows: ItemRow[] = [];
    let offset = parent.start;
    for (let count = 1 + choose(6); count > 0; count--) {
      const again = made.length > 0 && choose(8) === 0 ? pick(made) : undefined;
      const { owner, ownerAddress } = owned();
      const fresh = {
        id: name("item"),
        signatureType: pick([1, 2, 3, 4]),
        owner,
        ownerAddress,
        target: choose(3) === 0 ? pick(targets) : "",
        anchor: pick(["", "an anchor", idOf("anchor")]),
        tags: tags(),
        headerSize: 1_100 + choose(500),
        digest: new Uint8Array(32).fill(serial % 256),
      };
      const nested = again === undefined && depth < 2 && choose(6) === 0;
      const row: ItemRow = {
        ...(again ?? { ...fresh, size: 0 }),
        place: { ...place, offset },
        parentOffset: parent.offset,
      };
      const inner = nested ? items(place, { offset, start: offset + row.headerSize + 96 }, depth + 1) : [];
      const end = inner.reduce((last, item) => Math.max(last, item.place.offset + item.headerSize + item.size), 0);
      const size = again?.size ?? (nested ? end - offset - row.headerSize : choose(5_000));
      rows.push({ ...row, size }, ...inner);
      if (!nested && again === undefined) made.push({ ...row, size });
      offset += row.headerSize + size + choose(200);
    }
    return rows;
  }

  function transaction(txIndex: number, height: number): TransactionRow {
    const { ownerAddress, ownerKey } = owned();
    const id = name("transaction");
    signatures.set(id, `${id}signature`);
    return {
      txIndex,
      format: pick([1, 2] as const),
      id,
      lastTx: pick(["", blockHashOf("anchor"), idOf("anchor")]),
      owner: ownerKey,
      ownerAddress,
      signatureType: pick(["rsa", "rsa", "ecdsa"] as const),
      tags: tags(),
      target: choose(3) === 0 ? pick(targets) : "",
      quantity: BigInt(choose(1_000)) * 10_000_000_007n,
      reward: 10n ** BigInt(choose(20)),
      dataSize: choose(100_000),
      dataRoot: idOf(`data of ${height} ${txIndex}`),
      text: JSON.stringify({ format: 2, id, signature: `${id}signature` }),
    };
  }

  function pageRowOf(row: TransactionRow, block: PageBlock): PageRow {
    return {
      kind: "transaction",
      place: { height: block.height, txIndex: row.txIndex, offset: -1 },
      id: row.id,
      ownerAddress: row.ownerAddress,
      ownerKey: row.owner,
      target: row.target,
      anchor: row.lastTx,
      signatureType: row.signatureType === "rsa" ? -1 : -2,
      size: row.dataSize,
      headerSize: 0,
      tags: row.tags,
      quantity: row.quantity,
      reward: row.reward,
      format: row.format,
      parentId: undefined,
      block,
      ingestedAt: Math.floor(now / 1_000),
    };
  }

  function pageRowOfItem(row: ItemRow, parentId: Id, block: PageBlock): PageRow {
    return {
      kind: "item",
      place: row.place,
      id: row.id,
      ownerAddress: row.ownerAddress,
      ownerKey: Buffer.from(row.owner).toString("base64url"),
      target: row.target,
      anchor: row.anchor,
      signatureType: row.signatureType,
      size: row.size,
      headerSize: row.headerSize,
      tags: row.tags,
      quantity: 0n,
      reward: 0n,
      format: 2,
      parentId,
      block,
      ingestedAt: Math.floor(now / 1_000),
    };
  }

  function addBlock(transactionCount: number): void {
    now += 1_000 * (1 + choose(100));
    const height = blocks.length;
    const hash = blockHashOf(`block ${serial++}`);
    const block = {
      height,
      hash,
      timestamp: Math.floor(now / 1_000) - 5,
      previous: blocks.at(-1)?.hash ?? ("" as const),
    };
    const transactions = Array.from({ length: transactionCount }, (_, index) => transaction(index, height));
    const bundles = transactions.filter(() => choose(3) === 0).slice(0, 8);
    for (const { txIndex } of bundles)
      waiting.set(`${height}/${txIndex}`, items({ height, txIndex, offset: -1 }, { offset: null, start: 96 }, 0));
    writer.addBlock({
      block: { ...blockRowOf(block), txCount: transactionCount },
      transactions,
      missing: [],
      bundles: bundles.map(({ id, txIndex, dataSize }) => ({
        id,
        place: { height, txIndex, offset: -1 },
        parentOffset: null,
        headerSize: 0,
        size: dataSize,
        depth: 0,
        bypassFilter: false,
      })),
    });
    blocks.push(block);
    placed.push(...transactions.map((row) => pageRowOf(row, block)));
  }

  return {
    addBlock,
    reorganise: (depth, transactionCount) => {
      const from = Math.max(0, blocks.length - depth);
      writer.rollback(from);
      blocks = blocks.slice(0, from);
      placed = placed.filter(({ place }) => place.height < from || place.height === pendingHeight);
      for (const key of waiting.keys()) if (Number.parseInt(key, 10) >= from) waiting.delete(key);
      for (let count = 0; count <= depth; count++) addBlock(transactionCount);
    },
    unbundle: () => {
      const job = writer.takeBundle();
      if (job === undefined) return false;
      now += 1_000;
      const rows = waiting.get(`${job.place.height}/${job.place.txIndex}`) ?? [];
      waiting.delete(`${job.place.height}/${job.place.txIndex}`);
      const shuffled = rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      writer.addItems({ bundle: job.place, rows: shuffled, firstEntry: 0, nextEntry: rows.length, bundles: [] });
      writer.finishBundle(job.place, { ...contentFilters, itemCount: rows.length });
      const block = blocks[job.place.height];
      if (block === undefined) throw new Error("a due bundle is in a block");
      for (const row of rows) {
        const parent = rows.find(({ place }) => place.offset === row.parentOffset)?.id ?? job.id;
        placed.push(pageRowOfItem(row, parent, block));
      }
      return true;
    },
    addPending: () => {
      now += 1_000;
      const { owner, ownerAddress, ownerKey } = owned();
      // Sometimes one that is in a block already, or comes into one later.
      const again = made.length > 0 && choose(3) === 0 ? pick(made) : undefined;
      const isPlaced = placed.some(({ id }) => id === again?.id);
      const fresh = {
        id: name("pending"),
        owner,
        ownerAddress,
        target: "",
        tags: tags(),
        size: choose(9_000),
      };
      const row: PendingRow = {
        kind: "item",
        signatureType: 1,
        anchor: "",
        headerSize: 1_200,
        digest: null,
        verified: false,
        ...fresh,
        ...(again === undefined
          ? {}
          : { id: again.id, owner: again.owner, ownerAddress: again.ownerAddress, tags: again.tags }),
      };
      if ((writer.addPending([row]) === 1) === isPlaced)
        throw new Error("a row is pending only while it is in no block");
      if (isPlaced) return;
      placed.push({
        ...row,
        place: { height: pendingHeight, txIndex: 0, offset: 64 * ++serial },
        ownerKey: again === undefined ? ownerKey : Buffer.from(again.owner).toString("base64url"),
        quantity: 0n,
        reward: 0n,
        format: 2,
        parentId: undefined,
        block: undefined,
        ingestedAt: Math.floor(now / 1_000),
      });
    },
    expirePending: () => {
      const newest = Math.floor(now / 1_000) - 3;
      writer.expirePending(newest);
      placed = placed.filter(({ place, ingestedAt }) => place.height !== pendingHeight || ingestedAt >= newest);
    },
    rows: () => {
      const lowest = new Map<Id, PageRow>();
      for (const row of placed.toSorted((a, b) => comparePlaces(a.place, b.place)))
        if (!lowest.has(row.id)) lowest.set(row.id, row);
      return [...lowest.values()];
    },
    blocks: () => blocks,
    signatures,
    close: writer.close,
  };
}

function blockRowOf(block: PageBlock): BlockRow {
  return {
    ...block,
    txCount: 0,
    weaveSize: 0n,
    blockSize: 0n,
    text: JSON.stringify({ height: block.height }),
    checked: [],
    unchecked: [],
  };
}
