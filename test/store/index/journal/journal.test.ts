/**
 * The journal: its changes, applied in order, give what the index lists, through forks, restarts and kills.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { openIndexReader } from "../../../../src/store/index/index-reader.ts";
import { allColumns, type IndexReader } from "../../../../src/store/index/index-types.ts";
import { type IndexWriter, openIndexWriter } from "../../../../src/store/index/index-writer.ts";
import type { RowChange, RowPlace } from "../../../../src/store/index/journal/change-record.ts";
import {
  type JournalSizes,
  journalSizesDefault,
  type NumberedChange,
  renameJournal,
} from "../../../../src/store/index/journal/journal.ts";
import { pendingHeight } from "../../../../src/store/index/place.ts";
import { copyDatabase } from "../../../../src/store/sqlite.ts";
import { createRandom } from "../../../support/random.ts";
import { seedOr, seedsOr } from "../../../support/seed.ts";
import { temporaryFolder } from "../../folder.ts";
import { growingChain } from "../growing-chain.ts";
import { createFixture } from "../index-fixture.ts";
import { bundleOf, idOf, itemOf, ownerOf, pendingOf, tagOf } from "../rows-of.ts";

const random = createRandom(seedOr(41));
const owner = ownerOf(random);
const pending = "pending";

/** What a reader of the journal knows: each listed id with its block and bundle, and the blocks. */
type View = { number: number; readonly rows: Map<string, string>; readonly blocks: Map<number, string> };

function emptyView(): View {
  return { number: 0, rows: new Map(), blocks: new Map() };
}

/** Reads every change after the view's number and applies it. */
function follow(view: View, reader: Pick<IndexReader, "journal">): readonly NumberedChange[] {
  const seen: NumberedChange[] = [];
  for (;;) {
    const some = reader.journal.after(view.number);
    if (some === undefined) throw new Error(`the journal has no changes after ${view.number}`);
    if (some.length === 0) return seen;
    for (const each of some) apply(view, each);
    seen.push(...some);
  }
}

function apply(view: View, { number, change }: NumberedChange): void {
  expect(number).toBe(view.number + 1);
  view.number = number;
  if (change.kind === "reset") throw new Error("the test has fewer changes than a reset");
  if (isRowChange(change)) applyRow(view.rows, change);
  else if (change.kind === "block") view.blocks.set(change.height, change.hash);
  else {
    expect(view.blocks.get(change.height)).toBe(change.hash);
    view.blocks.delete(change.height);
  }
}

function applyRow(rows: View["rows"], change: RowChange): void {
  const { kind, id, place, from, isPending } = change;
  const before = rows.get(id);
  if (kind === "forked") expect(before).toBe(textOfPlace(place));
  if (kind === "dropped") expect(before).toBe(pending);
  if (kind === "mined") {
    if (from !== undefined) expect(before).toBe(textOfPlace(from));
    else expect([undefined, pending]).toContain(before);
    rows.set(id, textOfPlace(place));
  } else if (isPending) rows.set(id, pending);
  else rows.delete(id);
}

/** Where a row is, as a text: its block, and its bundle. */
function textOfPlace(place: Pick<RowPlace, "block" | "bundledIn"> | undefined): string {
  const { height, hash, previous, timestamp } = place?.block ?? {};
  return JSON.stringify([height, hash, previous, timestamp, place?.bundledIn]);
}

/** What the index lists, by a full scan. */
function listed(reader: IndexReader): Pick<View, "rows" | "blocks"> {
  const rows = new Map<string, string>();
  const page = reader.page({ order: "asc", limit: 1_000_000, columns: allColumns });
  for (const { id, place, block, parentId } of page.rows)
    rows.set(id, place.height === pendingHeight ? pending : textOfPlace({ block, bundledIn: parentId }));
  const blocks = reader.blocks({ order: "asc", limit: 1_000_000 }).rows;
  return { rows, blocks: new Map(blocks.map(({ height, hash }) => [height, hash])) };
}

function expectSame(view: View, reader: IndexReader): void {
  const sorted = (map: ReadonlyMap<unknown, unknown>) => [...map].map(String).sort();
  const { rows, blocks } = listed(reader);
  expect(sorted(view.rows)).toEqual(sorted(rows));
  expect(sorted(view.blocks)).toEqual(sorted(blocks));
}

type Open = Disposable & {
  readonly path: string;
  readonly writer: IndexWriter;
  readonly reader: IndexReader;
  nowMs: number;
  /** Changes since the last call, as short texts. */
  readonly changes: () => string[];
};

function openIndex(sizes: Partial<JournalSizes> = {}): Open {
  const folder = temporaryFolder();
  const path = `${folder.path}/index.sqlite`;
  const file = { nowMs: 1_700_000_000_000 };
  const journalSizes = { ...journalSizesDefault, ...sizes };
  const writer = openIndexWriter(path, { clock: () => file.nowMs, journalSizes });
  const reader = openIndexReader(path);
  let number = 0;
  return Object.assign(file, {
    ...{ path, writer, reader },
    changes: () => {
      const seen: string[] = [];
      for (let some = reader.journal.after(number); some?.length !== 0; some = reader.journal.after(number)) {
        if (some === undefined) throw new Error("the test follows the journal");
        for (const { number: at, change } of some) {
          number = at;
          seen.push(textOf(change));
        }
      }
      return seen;
    },
    [Symbol.dispose]: () => {
      reader.close();
      writer.close();
      folder[Symbol.dispose]();
    },
  });
}

function isRowChange(change: NumberedChange["change"]): change is RowChange {
  return "id" in change;
}

function textOf(change: NumberedChange["change"]): string {
  if (change.kind === "reset") return "reset";
  if (!isRowChange(change)) return `${change.kind} ${change.height}`;
  const { kind, id, place, isPending } = change;
  return [kind, id, place?.height, isPending && kind === "forked" ? "pending" : undefined]
    .filter((part) => part !== undefined)
    .join(" ");
}

describe("the journal", () => {
  test.each(seedsOr([1, 2, 3, 4]))("with seed %d its changes give what the index lists", (seed) => {
    using folder = temporaryFolder();
    const path = `${folder.path}/index.sqlite`;
    const opened: { reader?: IndexReader; writer?: IndexWriter } = {};
    const given = createRandom(seed);
    const fixture = createFixture(
      given,
      (clock) => {
        opened.writer = openIndexWriter(path, { clock });
        opened.reader = openIndexReader(path);
        return { writer: opened.writer, reader: opened.reader };
      },
      false,
    );
    const { reader, writer } = opened;
    if (reader === undefined || writer === undefined) throw new Error("the fixture opens its index");
    const view = emptyView();
    for (let step = 0; step < 300; step += 1) {
      fixture.step();
      if (given.chance(0.2)) follow(view, reader);
      if (step % 50 === 49) {
        follow(view, reader);
        expectSame(view, reader);
      }
    }
    reader.close();
    writer.close();
  });

  test("a record has what filters need, also after the row is gone", () => {
    using index = openIndex();
    const chain = growingChain(index.writer, random, owner);
    const tags = [tagOf("App-Name", "x"), tagOf("Any", "ü\u0000")];
    chain.add();
    const { transactions, block } = chain.add({ transactions: [{ tags, target: owner.address, dataSize: 2 ** 40 }] });
    chain.rollback(11);
    const rows = index.reader.journal.after(0) ?? [];
    const all = [...rows];
    for (let more = index.reader.journal.after(all.length); more !== undefined && more.length > 0; ) {
      all.push(...more);
      more = index.reader.journal.after(all.length);
    }
    const row = {
      id: transactions[0]?.id,
      isItem: false,
      ownerAddress: owner.address,
      target: owner.address,
      tags,
      size: 2 ** 40,
      isPending: false,
    };
    const { hash, previous, timestamp } = block;
    const at = { height: 11, hash, previous, timestamp };
    const place = { height: 11, block: at, bundledIn: undefined };
    expect(all.map(({ change }) => change).slice(1)).toEqual([
      { kind: "block", ...at },
      { kind: "mined", ...row, place, from: undefined },
      { kind: "block_forked", ...at },
      { kind: "forked", ...row, place, from: undefined },
    ] as NumberedChange["change"][]);
  });

  test("a mined transaction whose pending row is still there is one change, and pending again after a fork", () => {
    using index = openIndex();
    const chain = growingChain(index.writer, random, owner);
    chain.add();
    const row = pendingOf(random, owner, { kind: "transaction" });
    index.writer.addPending([row]);
    index.changes();
    chain.add({ transactions: [{ id: row.id }] });
    expect(index.changes()).toEqual(["block 11", `mined ${row.id} 11`]);
    index.writer.removePending([idOf(random)]);
    chain.rollback(11);
    expect(index.changes()).toEqual(["block_forked 11", `forked ${row.id} 11 pending`]);
    chain.add({ transactions: [{ id: row.id }] });
    index.writer.removePending([row.id]); // the duplicate goes; the mined row stays
    expect(index.changes()).toEqual(["block 11", `mined ${row.id} 11`]);
    chain.rollback(11);
    expect(index.changes()).toEqual(["block_forked 11", `forked ${row.id} 11`]);
  });

  test("a pending transaction that states more bytes than a record can have is recorded with the most", () => {
    using index = openIndex();
    const sizes = [70, 2 ** 48 - 1, 2 ** 48, Number.MAX_SAFE_INTEGER];
    const rows = sizes.map((size) => pendingOf(random, owner, { kind: "transaction", size }));
    index.writer.addPending(rows);
    expect(rows.map(({ id }) => index.reader.locate(id)?.size)).toEqual(sizes);
    const changes = index.reader.journal.after(0) ?? [];
    const written = changes.flatMap(({ change }) => (isRowChange(change) ? change.size : []));
    expect(written).toEqual([70, 2 ** 48 - 1, 2 ** 48 - 1, 2 ** 48 - 1]);
  });

  test("an announced row that is replaced by a verified one is one change", () => {
    using index = openIndex();
    const announced = pendingOf(random, owner, { verified: false });
    index.writer.addPending([announced]);
    expect(index.changes()).toEqual([`pending ${announced.id}`]);
    index.writer.addPending([{ ...announced, verified: true }]);
    expect(index.changes()).toEqual([`pending ${announced.id}`]);
    index.nowMs += 3_600_000;
    index.writer.expirePending(Math.floor(index.nowMs / 1_000));
    index.writer.removePending([announced.id]);
    expect(index.changes()).toEqual([`dropped ${announced.id}`]);
  });

  test("an item that is found at a lower place moves, and moves back", () => {
    using index = openIndex();
    const chain = growingChain(index.writer, random, owner);
    const place = (height: number) => ({ height, txIndex: 0, offset: -1 });
    const bundles = (height: number, rows: readonly { id: Parameters<typeof bundleOf>[1] }[]) =>
      rows.map(({ id }) => bundleOf(place(height), id, 10 ** 6));
    for (let count = 0; count < 3; count += 1) chain.add({ transactions: [{ dataSize: 10 ** 6 }], bundles });
    index.changes();
    const id = idOf(random);
    const add = (height: number) =>
      index.writer.addItems({
        bundle: place(height),
        rows: [itemOf(random, owner, { id, place: { ...place(height), offset: 640 } })],
        firstEntry: 0,
        nextEntry: 0,
        bundles: [],
      });
    add(12);
    add(12); // a repeated step
    add(11);
    add(10);
    expect(index.changes()).toEqual([`mined ${id} 12`, `mined ${id} 11`, `mined ${id} 10`]);
    chain.rollback(11);
    expect(index.changes().filter((text) => text.includes(id))).toEqual([]);
  });

  test("a rollback in several transactions adds the changes of each", () => {
    using index = openIndex();
    const chain = growingChain(index.writer, random, owner);
    const ids: string[] = [];
    // A transaction of a rollback removes about 20,000 rows.
    for (let count = 0; count < 48; count += 1) {
      const { transactions } = chain.add({ transactions: Array.from({ length: 500 }, () => ({})) });
      ids.push(...transactions.map(({ id }) => id));
      index.nowMs += 10_000;
    }
    index.changes();
    chain.rollback(10);
    const changes = index.changes();
    expect(changes.filter((text) => text.startsWith("block_forked"))).toEqual(
      Array.from({ length: 48 }, (_, at) => `block_forked ${57 - at}`),
    );
    const forked = changes.filter((text) => text.startsWith("forked ")).map((text) => text.split(" ")[1] ?? "");
    expect(forked.toSorted()).toEqual(ids.toSorted());
  });

  test("a large import is one reset, and so is what exceeds the rate, until it pauses", () => {
    using index = openIndex({ burst: 10, perSecond: 1 });
    const chain = growingChain(index.writer, random, owner);
    const imported = chain.next({ transactions: [{}, {}] });
    index.writer.addImported([imported], []);
    expect(index.changes()).toEqual(["reset"]);
    for (let count = 0; count < 4; count += 1)
      index.writer.addPending(Array.from({ length: 6 }, () => pendingOf(random, owner)));
    const texts = index.changes();
    expect(texts.filter((text) => text === "reset")).toHaveLength(1);
    expect(texts.at(-1)).toBe("reset");
    index.nowMs += 60_000;
    const row = pendingOf(random, owner);
    index.writer.addPending([row]);
    expect(index.changes()).toEqual([`pending ${row.id}`]);
  });

  test("a partition of another gateway is a reset when its items are listed, and none without", () => {
    using index = openIndex();
    const partition = { first: 0, last: 9, lastBlock: null };
    index.writer.addStoredPartition({ ...partition, foreignItems: 0 });
    expect(index.changes()).toEqual([]);
    index.writer.addStoredPartition({ ...partition, first: 10, last: 19, foreignItems: 7 });
    expect(index.changes()).toEqual(["reset"]);
  });

  test("a reset has a new number each time: who saw one sees the next", () => {
    using index = openIndex({ stepMax: 1 });
    const more = () => index.writer.addPending([pendingOf(random, owner), pendingOf(random, owner)]);
    more();
    const first = index.reader.journal.newest();
    more();
    expect(index.reader.journal.newest()).toBe(first + 1);
    expect(index.reader.journal.after(first)).toEqual([{ number: first + 1, change: { kind: "reset" } }]);
    expect(index.reader.journal.after(0)).toBeUndefined();
  });

  test("it is bounded: a number below the oldest change, or above the newest, is unknown", () => {
    using index = openIndex({ changesMax: 20 });
    const ids = Array.from({ length: 100 }, () => {
      const row = pendingOf(random, owner);
      index.writer.addPending([row]);
      return row.id;
    });
    const { journal } = index.reader;
    expect(journal.newest()).toBe(100);
    expect(journal.after(50)).toBeUndefined();
    expect(journal.after(101)).toBeUndefined();
    expect(journal.after(100)).toEqual([]);
    expect(journal.after(90)?.map(({ change }) => textOf(change))).toEqual([`pending ${ids[90]}`]);
  });

  test("it continues after a restart, and an index of its own has a name of its own", () => {
    using index = openIndex();
    using other = openIndex();
    index.writer.addPending([pendingOf(random, owner)]);
    const name = index.reader.journal.name();
    index.writer.close();
    const again = openIndexWriter(index.path, { clock: () => index.nowMs });
    const row = pendingOf(random, owner);
    again.addPending([row]);
    expect(index.reader.journal.after(1)?.map(({ number, change }) => `${number} ${textOf(change)}`)).toEqual([
      `2 pending ${row.id}`,
    ]);
    expect(index.reader.journal.name()).toBe(name);
    expect(other.reader.journal.name()).not.toBe(name);
    again.close();
  });

  test("of a copy that continues by itself gets a name of its own, and keeps its changes", async () => {
    using index = openIndex();
    using folder = temporaryFolder();
    const copy = `${folder.path}/index.sqlite`;
    const row = pendingOf(random, owner);
    index.writer.addPending([row]);
    await copyDatabase(index.path, copy);
    renameJournal(copy);
    const reader = openIndexReader(copy);
    try {
      expect(reader.journal.name()).toMatch(/^[0-9a-f]{12}$/);
      expect(reader.journal.name()).not.toBe(index.reader.journal.name());
      expect(reader.journal.after(0)?.map(({ change }) => textOf(change))).toEqual([`pending ${row.id}`]);
    } finally {
      reader.close();
    }
  });

  test("a reader that waits for the next change never sees a gap, whenever the writer adds it", async () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/index.sqlite`;
    openIndexWriter(path, { clock: Date.now }).close();
    const child = Bun.spawn(["bun", `${import.meta.dir}/../kill-child.ts`, path, "7"], {
      stdout: "ignore",
      stderr: "inherit",
    });
    const reader = openIndexReader(path);
    try {
      let number = 0;
      while (number < 10_000) {
        const some = reader.journal.after(number);
        if (some === undefined) throw new Error(`the journal has no changes after ${number}`);
        number = some.at(-1)?.number ?? number;
      }
    } finally {
      child.kill("SIGKILL");
      await child.exited;
      reader.close();
    }
  }, 120_000);

  test("a writer that is killed leaves neither a gap nor a repeat", async () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/index.sqlite`;
    openIndexWriter(path, { clock: Date.now }).close();
    const view = emptyView();
    for (let round = 0; round < 5; round += 1) {
      const child = Bun.spawn(["bun", `${import.meta.dir}/../kill-child.ts`, path, String(round)], {
        stdout: "pipe",
        stderr: "inherit",
      });
      const reader = openIndexReader(path);
      let lines = 0;
      for await (const piece of child.stdout) {
        lines += new TextDecoder().decode(piece).split("\n").length - 1;
        if (round % 2 === 0) follow(view, reader); // beside the writer
        if (lines > 20 + round * 3) child.kill("SIGKILL");
      }
      await child.exited;
      follow(view, reader);
      expectSame(view, reader);
      reader.close();
    }
    expect(view.number).toBeGreaterThan(1_000);
  }, 120_000);
});
