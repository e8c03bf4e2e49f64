/**
 * Where data is in a block: order, padding, and the proofs of it.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { BlockShape } from "../../src/arweave/block.ts";
import { idFromBytes } from "../../src/arweave/id.ts";
import { chunkSize, dataRootOf, validatePath } from "../../src/arweave/merkle.ts";
import { buildTxTree, ceilToGrid, layoutTransactions, type PlacedTransaction } from "../../src/arweave/tx-root.ts";
import { decodeBase64url, encodeBase64url } from "../../src/lib/base64url.ts";

const full = BigInt(chunkSize);

function transactionOf(first: number, format: 1 | 2, dataSize: number): PlacedTransaction {
  const hasRoot = format === 1 || dataSize > 0;
  const root = new Uint8Array(32).fill(first);
  return {
    id: idFromBytes(new Uint8Array(32).fill(first)),
    format,
    dataSize,
    dataRoot: encodeBase64url(hasRoot ? root : new Uint8Array(0)),
  };
}

const three = [transactionOf(0xff, 1, 10), transactionOf(0x02, 2, chunkSize + 1), transactionOf(0x01, 2, 7)];

describe("buildTxTree", () => {
  test("data is ordered by format, then by the id's bytes, whatever the list's order", () => {
    const orders = [three, [...three].reverse(), [three[1], three[2], three[0]].filter((part) => part !== undefined)];
    for (const order of orders) {
      const { places, size } = buildTxTree(order, "plain");
      expect(places.map(({ id, start, end }) => [id, start, end] as unknown[])).toEqual([
        [three[0]?.id, 0n, 10n],
        [three[2]?.id, 10n, 17n],
        [three[1]?.id, 17n, 17n + full + 1n],
      ]);
      expect(size).toBe(18n + full);
    }
  });

  test("bytes count, not characters: an id of 0xff… comes last though its text begins with an underscore", () => {
    const pair = [transactionOf(0xff, 2, 1), transactionOf(0x69, 2, 1)]; // "____" and "aWlp"
    expect(buildTxTree(pair, "plain").places.map(({ id }) => id[0])).toEqual(["a", "_"]);
  });

  test("padded: each transaction starts on the grid, and its end leaves the padding out", () => {
    const { places, size } = buildTxTree(three, "padded");
    expect(places.map(({ start, end }) => [start, end])).toEqual([
      [0n, 10n],
      [full, full + 7n],
      [2n * full, 3n * full + 1n],
    ]);
    expect(size).toBe(4n * full);
  });

  test("no transactions, no root", () => {
    expect(buildTxTree([], "padded")).toMatchObject({ root: new Uint8Array(0), size: 0n, places: [] });
  });

  test("a format 1 transaction without data has a leaf, and so has one of format 2; the root differs without them", () => {
    const emptyRoot = encodeBase64url(dataRootOf(new Uint8Array(0), "plain"));
    const some = [transactionOf(9, 2, 5)];
    const roots = [
      some,
      [...some, { ...transactionOf(1, 1, 0), dataRoot: emptyRoot }],
      [...some, transactionOf(1, 2, 0)],
    ].map((list) => encodeBase64url(buildTxTree(list, "padded").root));
    expect(new Set(roots).size).toBe(3);
  });

  test("every path proves its transaction's data root at its place, in both layouts", () => {
    const sizes = fc.array(fc.constantFrom(0, 1, 7, chunkSize - 1, chunkSize, chunkSize + 1, 3 * chunkSize), {
      minLength: 1,
      maxLength: 30,
    });
    fc.assert(
      fc.property(sizes, fc.constantFrom("plain" as const, "padded" as const), (list, layout) => {
        const transactions = list.map((size, index) => transactionOf(index + 1, index % 2 === 0 ? 2 : 1, size));
        const tree = buildTxTree(transactions, layout);
        for (const { id, start, end, path } of tree.places.filter((place) => place.end > place.start)) {
          for (const target of [start, end - 1n]) {
            const found = validatePath({
              root: tree.root,
              path: path(),
              target,
              size: tree.size,
              ruleset: "basic",
            });
            const root = transactions.find((transaction) => transaction.id === id)?.dataRoot ?? "";
            expect(found).toEqual({ hash: decodeBase64url(root) ?? new Uint8Array(0), start, end });
          }
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe("layoutTransactions", () => {
  const blockOf = (layout: "plain" | "padded", list: readonly PlacedTransaction[], shape: BlockShape = "2.9") => {
    const { root, size } = buildTxTree(list, layout);
    return {
      txRoot: encodeBase64url(root),
      weaveSize: 1_000_000_000_000_000_000_000n + size,
      blockSize: size,
      shape,
    };
  };

  test.each(["plain", "padded"] as const)(
    "the %s layout is found by its root, and offsets are the weave's",
    (layout) => {
      const found = layoutTransactions(blockOf(layout, three), three);
      expect(found).toMatchObject({ kind: "placed", layout, isProven: true });
      expect(found.kind === "placed" && found.places[1]?.start).toBe(
        1_000_000_000_000_000_000_000n + (layout === "plain" ? 10n : full),
      );
    },
  );

  const root = "tx_root is not that of the block's transactions";
  const size = "block_size is not the size of the block's transactions";
  const rows: [name: string, block: ReturnType<typeof blockOf>, list: PlacedTransaction[], reason: string][] = [
    ["a transaction is missing", blockOf("padded", three), three.slice(1), root],
    ["a transaction is another size", blockOf("padded", three), [transactionOf(0xff, 1, 11), ...three.slice(1)], root],
    [
      "a transaction is another format",
      blockOf("padded", three),
      [transactionOf(0xff, 2, 10), ...three.slice(1)],
      root,
    ],
    ["the block's size is another", { ...blockOf("padded", three), blockSize: 4n * full - 1n }, three, size],
    ["there is no root but there are transactions", { ...blockOf("plain", three), txRoot: "" }, three, root],
    [
      "the block is larger than the weave",
      { ...blockOf("plain", three), weaveSize: 5n },
      three,
      "block_size is above weave_size",
    ],
    ["an empty block has a size", { txRoot: "", weaveSize: 9n, blockSize: 9n, shape: "2.9" as const }, [], size],
  ];
  test.each(rows)("rejected when %s", (_name, block, list, reason) => {
    expect(layoutTransactions(block, list)).toEqual({ kind: "rejected", reason });
  });

  test("before 2.0 nothing proves the layout; it is unknown where sizes disagree", () => {
    const old = { ...blockOf("plain", three, "1.0"), txRoot: "" };
    expect(layoutTransactions(old, three)).toMatchObject({
      kind: "placed",
      layout: "plain",
      isProven: false,
    });
    expect(layoutTransactions({ ...old, weaveSize: 0n, blockSize: 0n }, three)).toEqual({ kind: "unplaced" });
  });
});

describe("ceilToGrid", () => {
  const rows: [bigint, bigint][] = [
    [0n, 0n],
    [1n, full],
    [full, full],
    [full + 1n, 2n * full],
    [2n ** 80n + 1n, 2n ** 80n + full],
  ];
  test.each(rows)("%p goes up to %p", (offset, expected) => {
    expect(ceilToGrid(offset)).toBe(expected);
  });
});
