/**
 * The outbox: order and number of its deliveries, also across restarts.
 * @module
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { openOutbox } from "../../src/store/outbox.ts";
import { temporaryFolder } from "./folder.ts";

const delivery = (name: string) => ({ event: "e", body: name });
const item = (key: string) => ({ kind: "item", key }) as const;

test("deliveries are stored for each target in order, and survive a restart", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "outbox.sqlite");
  const before = openOutbox(path, ["a", "b"], () => 5_000);
  before.announce([item("x"), { kind: "block", key: "7" }], 7);
  expect(before.announced(10).map(({ kind, key }) => [kind, key])).toEqual([
    ["item", "x"],
    ["block", "7"],
  ]);
  before.choose(2, [delivery("one"), delivery("two")]);
  expect(before.announced(10)).toEqual([]);
  before.remove(before.first("a")?.number ?? 0);
  before.rejected(before.first("b")?.number ?? 0);
  before.close();

  const after = openOutbox(path, ["a", "b"], () => 5_000);
  expect(after.first("a")).toMatchObject({ body: "two", createdAt: 5, rejections: 0 });
  expect(after.first("b")).toMatchObject({ body: "one", createdAt: 5, rejections: 1 });
  expect(after.height()).toBe(7);
  after.rollback(5);
  expect(after.height()).toBe(4);
  after.close();
});

test("deliveries to a target that is no longer configured are removed", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "outbox.sqlite");
  const before = openOutbox(path, ["a", "b"], Date.now);
  before.choose(0, [delivery("one")]);
  before.close();
  const after = openOutbox(path, ["b"], Date.now);
  expect([after.first("a"), after.first("b")?.body]).toEqual([undefined, "one"]);
  after.close();
});

test("when there are too many announcements or deliveries, the oldest are dropped and counted", () => {
  using folder = temporaryFolder();
  const outbox = openOutbox(join(folder.path, "o.sqlite"), ["a"], Date.now, {
    deliveriesMax: 3,
    announcedMax: 2,
  });
  expect(outbox.announce([item("1"), item("2")])).toBe(0);
  expect(outbox.announce([item("3")])).toBe(1);
  expect(outbox.announced(9).map(({ key }) => key)).toEqual(["2", "3"]);
  expect(outbox.choose(9, [delivery("1"), delivery("2"), delivery("3")])).toBe(0);
  expect(outbox.choose(9, [delivery("4"), delivery("5")])).toBe(2);
  expect([outbox.first("a")?.body, outbox.counts()]).toEqual(["3", { deliveries: 3, announced: 0 }]);
  outbox.close();
});

test("expired deliveries are dropped, those of the last second stay", () => {
  using folder = temporaryFolder();
  let now = 0;
  const outbox = openOutbox(join(folder.path, "o.sqlite"), ["a"], () => now);
  outbox.choose(0, [delivery("old")]);
  now = 60_000;
  outbox.choose(0, [delivery("new")]);
  now = 100_000;
  expect([outbox.expire(100), outbox.expire(99), outbox.first("a")?.body]).toEqual([0, 1, "new"]);
  outbox.close();
});

test("numbers are never reused, so that the id of a delivery is unique", () => {
  using folder = temporaryFolder();
  const outbox = openOutbox(join(folder.path, "o.sqlite"), ["a"], Date.now);
  outbox.choose(0, [delivery("one")]);
  const first = outbox.first("a")?.number ?? 0;
  outbox.remove(first);
  outbox.choose(0, [delivery("two")]);
  expect(outbox.first("a")?.number).toBeGreaterThan(first);
  outbox.close();
});

test("a queued transaction is announced once, and not again with its first block, but with a later one", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "outbox.sqlite");
  const queued = { kind: "queued transaction", key: "t" } as const;
  const ofBlock = (key: string) => ({ kind: "block transaction", key }) as const;
  const before = openOutbox(path, ["a"], Date.now);
  before.announce([queued]);
  before.announce([queued]);
  before.close();
  const after = openOutbox(path, ["a"], Date.now);
  after.announce([queued]);
  after.announce([{ kind: "block", key: "9" }, ofBlock("s"), ofBlock("t")], 9);
  after.announce([{ kind: "block", key: "9" }, ofBlock("t")], 9);
  expect(after.announced(9).map(({ kind, key }) => `${kind} ${key}`)).toEqual([
    "queued transaction t",
    "block 9",
    "block transaction s",
    "block 9",
    "block transaction t",
  ]);
  after.close();
});
