/**
 * Pages by place: a complete block in small steps, every single filter, and candidates with colliding keys.
 * @module
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { Id } from "../../../../src/arweave/id.ts";
import { allColumns, noColumns, type PagePlan, type PageRow } from "../../../../src/store/index/index-types.ts";
import { createRandom } from "../../../support/random.ts";
import { growingChain } from "../growing-chain.ts";
import { type IndexFile, indexFile } from "../index-file.ts";
import { bundleOf, idOf, itemOf, ownerOf, pendingOf, tagOf } from "../rows-of.ts";

const random = createRandom(3);
const owners = [ownerOf(random), ownerOf(random)] as const;
const columns = allColumns;

function walk(file: IndexFile, plan: Omit<PagePlan, "columns">): PageRow[] {
  const rows: PageRow[] = [];
  for (;;) {
    const after = rows.at(-1)?.place;
    const page = file.reader.page({ ...plan, columns, ...(after === undefined ? {} : { after }) });
    rows.push(...page.rows);
    if (!page.hasNextPage) return rows;
    expect(page.rows.length).toBe(plan.limit);
  }
}

describe("page", () => {
  test.each(["asc", "desc"] as const)(
    "a block of 1,000 transactions in pages of 7, %s, returns each once, in order",
    (order) => {
      using file = indexFile();
      const chain = growingChain(file.writer, random, owners[0]);
      chain.add({ transactions: [{}] });
      const transactions = Array.from({ length: 1_000 }, (_, index) => ({
        tags: [tagOf("Parity", String(index % 2))],
      }));
      const { transactions: rows } = chain.add({ transactions });
      chain.add({ transactions: [{}] });
      const inOrder = (ids: readonly Id[]): readonly Id[] => (order === "asc" ? ids : ids.toReversed());
      const block = { min: 11, max: 11 };
      expect(walk(file, { order, limit: 7, block }).map(({ id }) => id)).toEqual([
        ...inOrder(rows.map(({ id }) => id)),
      ]);
      const odd = walk(file, { order, limit: 7, tags: [{ name: "Parity", values: ["1"], op: "EQ" }] });
      expect(odd.map(({ id }) => id)).toEqual([
        ...inOrder(rows.filter((_, index) => index % 2 === 1).map(({ id }) => id)),
      ]);
      expect(walk(file, { order, limit: 7 }).length).toBe(1_002);
    },
  );

  test("columns are read only when selected", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owners[0]);
    const { block: first } = chain.add();
    const { block, transactions } = chain.add({
      transactions: [
        {
          tags: [tagOf("a", "b"), tagOf("a", "b")],
          lastTx: "anchor text",
          quantity: 5n,
          target: owners[1].address,
        },
      ],
    });
    const id = transactions[0]?.id ?? idOf(random);
    const plan = { order: "asc", limit: 1 } as const;
    expect(file.reader.page({ ...plan, columns }).rows).toEqual([
      {
        kind: "transaction",
        place: { height: 11, txIndex: 0, offset: -1 },
        id,
        ownerAddress: owners[0].address,
        ownerKey: Buffer.from(owners[0].key).toString("base64url"),
        target: owners[1].address,
        anchor: "anchor text",
        signatureType: -1,
        size: 0,
        headerSize: 0,
        tags: [tagOf("a", "b"), tagOf("a", "b")],
        quantity: 5n,
        reward: 100n,
        format: 2,
        parentId: undefined,
        block: { height: 11, hash: block.hash, timestamp: block.timestamp, previous: first.hash },
        ingestedAt: 1_700_000_000,
      },
    ]);
    const none = noColumns;
    expect(file.reader.page({ ...plan, columns: none }).rows[0]).toMatchObject({
      tags: [],
      ownerKey: "",
      block: undefined,
    });
  });

  test.each([
    ["no filter", {}, "abcdefp"],
    ["empty lists", { ids: [], owners: [], recipients: [], tags: [], bundledIn: [] }, "abcdefp"],
    ["one owner", { owners: [owners[1].address] }, "bdp"],
    ["two owners", { owners: [owners[1].address, owners[0].address] }, "abcdefp"],
    ["a recipient", { recipients: [owners[0].address] }, "ac"],
    ["a recipient that can be none", { recipients: ["x"] }, ""],
    ["a tag", { tags: [{ name: "t", values: ["1"], op: "EQ" }] }, "abcp"],
    ["a tag of two values", { tags: [{ name: "t", values: ["1", "2"], op: "EQ" }] }, "abcdp"],
    ["a tag of no value", { tags: [{ name: "t", values: [], op: "EQ" }] }, ""],
    ["not a tag", { tags: [{ name: "t", values: ["1"], op: "NEQ" }] }, "def"],
    ["not a tag of no value", { tags: [{ name: "t", values: [], op: "NEQ" }] }, "abcdefp"],
    [
      "a tag and not another",
      {
        tags: [
          { name: "t", values: ["1"], op: "EQ" },
          { name: "u", values: ["x"], op: "NEQ" },
        ],
      },
      "bcp",
    ],
    [
      "two tags",
      {
        tags: [
          { name: "t", values: ["1"], op: "EQ" },
          { name: "u", values: ["x", "y"], op: "EQ" },
        ],
      },
      "ab",
    ],
    ["a tag in another case", { tags: [{ name: "T", values: ["1"], op: "EQ" }] }, ""],
    ["transactions only", { bundledIn: null }, "abp"],
    ["transactions with a tag", { bundledIn: null, tags: [{ name: "t", values: ["1"], op: "EQ" }] }, "abp"],
    ["a height", { block: { min: 11, max: 11 } }, "bcdef"],
    ["from a height on, pending rows left out", { block: { min: 11 } }, "bcdef"],
    ["up to a height", { block: { max: 10 } }, "a"],
    ["heights the wrong way round", { block: { min: 12, max: 10 } }, ""],
    ["heights beyond all", { block: { min: 10 ** 9 } }, ""],
    ["a time", { ingestedAt: { min: 1_700_000_005, max: 1_700_000_005 } }, "cdef"],
    ["up to a time", { ingestedAt: { max: 1_700_000_004 } }, "ab"],
  ] as const)("%s", (_what, filters, expected) => {
    using file = indexFile({ windows: { min: 1, max: 2 } });
    const names = build(file);
    const plan = { ...(filters as Partial<PagePlan>), limit: 2 };
    const found = walk(file, { ...plan, order: "asc" }).map(({ id }) => names.get(id));
    expect(found.join("")).toBe(expected);
    const backwards = walk(file, { ...plan, order: "desc" }).map(({ id }) => names.get(id));
    expect(backwards.toReversed().join("")).toBe(expected);
    const count = { ...plan, order: "asc", columns } as const;
    expect(file.reader.count(count, 100)).toBe(expected.length);
    expect(file.reader.count(count, 1)).toBe(expected.length > 1 ? undefined : expected.length);
  });

  test("the children of a bundle, at each level, and of several at once", () => {
    using file = indexFile({ windows: { min: 1, max: 2 } });
    const names = build(file);
    const idOfName = (name: string): Id => [...names].find(([, known]) => known === name)?.[0] ?? idOf(random);
    const children = (...bundles: string[]): string =>
      walk(file, { bundledIn: bundles.map(idOfName), order: "asc", limit: 2 })
        .map(({ id }) => names.get(id))
        .join("");
    expect([children("b"), children("d"), children("b", "d"), children("a"), children("p"), children("?")]).toEqual([
      "cdf",
      "e",
      "cdef",
      "",
      "",
      "",
    ]);
  });

  test("a row with a colliding key is not a result", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owners[0]);
    const { transactions } = chain.add({ transactions: [{ tags: [tagOf("n", "wanted")] }, {}, {}] });
    // The effect of a collision of keys: other rows under the key of the tag.
    const db = new Database(file.path);
    db.run("INSERT OR IGNORE INTO postings SELECT p.key, i.n FROM postings p, items i WHERE p.n = ?", [10n << 41n]);
    db.close();
    const plans: Partial<PagePlan>[] = [
      { tags: [{ name: "n", values: ["wanted"], op: "EQ" }] },
      { ids: [transactions[0]?.id ?? idOf(random)] },
    ];
    for (const plan of plans) {
      const page = file.reader.page({ ...plan, order: "desc", limit: 1, columns });
      expect(page.rows.map(({ id }) => id)).toEqual([transactions[0]?.id ?? idOf(random)]);
      expect(page.hasNextPage).toBe(false);
    }
    expect(file.reader.locate(transactions[1]?.id ?? idOf(random))?.id).toBe(transactions[1]?.id ?? idOf(random));
    expect(file.faults().length).toBeGreaterThan(0);
  });

  test("rows with megabytes of tags, of which few are read at once, are each found once", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owners[0]);
    const long = "x".repeat(400_000);
    const transactions = Array.from({ length: 90 }, (_, index) => ({
      tags: [tagOf("Kind", index % 30 === 0 ? "rare" : "usual"), tagOf("Long", long)],
    }));
    const { transactions: rows } = chain.add({ transactions });
    const rare = rows.filter((_, index) => index % 30 === 0).map(({ id }) => id);
    const tags = [{ name: "Kind", values: ["usual"], op: "NEQ" }] as const;
    // The first read has 61 rows, and the next ones 20.
    const { rows: found, hasNextPage } = file.reader.page({ order: "asc", limit: 60, columns, tags });
    expect([found.map(({ id }) => id), hasNextPage]).toEqual([rare, false]);
    expect(walk(file, { order: "desc", limit: 1, tags }).map(({ id }) => id)).toEqual(rare.toReversed());
  });

  test("a query can be ended between two steps", () => {
    using file = indexFile({ windows: { min: 1, max: 1 } });
    build(file);
    let steps = 0;
    const plan: PagePlan = {
      tags: [{ name: "t", values: ["2"], op: "EQ" }],
      owners: [owners[1].address],
      order: "asc",
      limit: 10,
      columns,
      checkpoint: () => {
        steps += 1;
        if (steps === 2) throw new Error("too late");
      },
    };
    expect(() => file.reader.page(plan)).toThrow("too late");
    // The reader still works.
    expect(file.reader.page({ order: "asc", limit: 10, columns }).rows.length).toBe(7);
  });
});

describe("blocks", () => {
  test("by height, by hash, in both orders, with one row of look-ahead", () => {
    using file = indexFile();
    const chain = growingChain(file.writer, random, owners[0]);
    const hashes = Array.from({ length: 5 }, () => chain.add().block.hash);
    const heights = (page: ReturnType<typeof file.reader.blocks>): (number | boolean)[] => [
      ...page.rows.map(({ height }) => height),
      page.hasNextPage,
    ];
    const { blocks } = file.reader;
    expect(heights(blocks({ order: "desc", limit: 2 }))).toEqual([14, 13, true]);
    expect(heights(blocks({ order: "desc", limit: 3, afterHeight: 13 }))).toEqual([12, 11, 10, false]);
    expect(heights(blocks({ order: "asc", limit: 9, height: { min: 11, max: 12 } }))).toEqual([11, 12, false]);
    const some = [hashes[3], hashes[0], hashes[3]].filter((hash) => hash !== undefined);
    expect(heights(blocks({ order: "asc", limit: 1, hashes: some }))).toEqual([10, true]);
    expect(heights(blocks({ order: "asc", limit: 1, hashes: some, afterHeight: 10 }))).toEqual([13, false]);
  });
});

/** Rows a to f and p: a in block 10; b is a bundle in block 11 with c, d and f in it and e in d; p is pending. */
function build(file: IndexFile): Map<Id, string> {
  const chain = growingChain(file.writer, random, owners[0]);
  const [one, two] = [tagOf("t", "1"), tagOf("t", "2")];
  const first = chain.add({
    transactions: [{ tags: [one, tagOf("u", "x")], target: owners[0].address }],
  }).transactions[0];
  const root = { height: 11, txIndex: 0, offset: -1 };
  const second = chain.add({
    transactions: [
      {
        dataSize: 9_999,
        tags: [one, tagOf("u", "y")],
        ownerAddress: owners[1].address,
        owner: Buffer.from(owners[1].key).toString("base64url"),
      },
    ],
    bundles: (_height, rows) => rows.map(({ id }) => bundleOf(root, id, 9_999)),
  }).transactions[0];
  file.nowMs += 5_000;
  const item = (offset: number, given: Partial<Parameters<typeof itemOf>[2]>, by = owners[0]) =>
    itemOf(random, by, { ...given, place: { ...root, offset } });
  const c = item(300, { tags: [one], target: owners[0].address });
  const d = item(600, { tags: [two], size: 1_000 }, owners[1]);
  const e = item(900, { parentOffset: 600 });
  const f = item(3_000, {});
  file.writer.addItems({ bundle: root, rows: [f, e, d, c], firstEntry: 0, nextEntry: 4, bundles: [] });
  file.nowMs += 5_000;
  const p = pendingOf(random, owners[1], { kind: "transaction", tags: [one] });
  file.writer.addPending([p]);
  const ids = [first?.id, second?.id, c.id, d.id, e.id, f.id, p.id];
  return new Map(ids.map((id, index) => [id ?? idOf(random), "abcdefp"[index] ?? ""]));
}
