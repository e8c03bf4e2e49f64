/**
 * Live events: each subscriber gets exactly the changes that pass its filter, in order, wherever it left and resumed.
 * @module
 */
import { describe, expect, test } from "bun:test";
import type { EventFilter, RowFilter } from "../../../src/gateway/events/event-filter.ts";
import { testOf } from "../../../src/gateway/events/event-filter.ts";
import { type EventHubOptions, type EventSink, openEventHub } from "../../../src/gateway/events/event-hub.ts";
import { namedEvents } from "../../../src/gateway/events/event-text.ts";
import { subscriptionFormat } from "../../../src/http/graphql/subscription-response.ts";
import { openIndexReader } from "../../../src/store/index/index-reader.ts";
import { allColumns, type IndexReader } from "../../../src/store/index/index-types.ts";
import { openIndexWriter } from "../../../src/store/index/index-writer.ts";
import type { JournalReads, NumberedChange } from "../../../src/store/index/journal/journal.ts";
import { readCursor } from "../../../src/store/index/journal/journal-cursor.ts";
import { pendingHeight } from "../../../src/store/index/place.ts";
import { temporaryFolder } from "../../store/folder.ts";
import { indexFile } from "../../store/index/index-file.ts";
import { createFixture } from "../../store/index/index-fixture.ts";
import { ownerOf, pendingOf, tagOf } from "../../store/index/rows-of.ts";
import { createEventReader } from "../../support/event-reader.ts";
import { createRandom } from "../../support/random.ts";
import { createRecordingLog } from "../../support/recording-log.ts";
import { seedOr, seedsOr } from "../../support/seed.ts";
import { until } from "../../support/until.ts";

const everything: EventFilter = { rows: {}, blocks: {} };
const random = createRandom(seedOr(51));
const owner = ownerOf(random);

function openHub(journal: JournalReads, options: Partial<EventHubOptions> = {}) {
  const { log, lines } = createRecordingLog(Date.now);
  const bounds = { gatherMs: 0, resetPauseMs: 0, ...options.bounds };
  const hub = openEventHub({ journal, subscribersMax: 100, log, ...options, bounds });
  return { hub, lines };
}

/** A subscriber that reads at once, or does not read. */
function reading(reads = true) {
  const parsed = createEventReader();
  const state = { waiting: 0, ended: false };
  const sink: EventSink = {
    waiting: () => state.waiting,
    send: (bytes) => {
      if (!reads) state.waiting += bytes.length;
      parsed.add(new TextDecoder().decode(bytes));
    },
    end: (bytes) => {
      state.ended = true;
      parsed.add(new TextDecoder().decode(bytes));
    },
  };
  return { ...parsed, sink, state };
}

/** Every change of a journal. */
function allOf(journal: JournalReads): NumberedChange[] {
  const all: NumberedChange[] = [];
  for (
    let some = journal.after(0);
    some !== undefined && some.length > 0;
    some = journal.after(all.at(-1)?.number ?? 0)
  )
    all.push(...some);
  return all;
}

const shortOf = ({ number, change }: NumberedChange): string =>
  `${number} ${change.kind} ${"id" in change ? change.id : ""}`;

describe("N8: live events", () => {
  test.each(seedsOr([1, 2, 3]))(
    "with seed %d no subscriber misses or repeats a change over any number of resumptions",
    async (seed) => {
      using folder = temporaryFolder();
      const path = `${folder.path}/index.sqlite`;
      const given = createRandom(seed);
      const opened: { reader?: IndexReader; close?: () => unknown } = {};
      const fixture = createFixture(given, (clock) => {
        const writer = openIndexWriter(path, { clock });
        const reader = openIndexReader(path);
        const close = () => [reader, writer].map((each) => each.close());
        Object.assign(opened, { reader, close });
        return { writer, reader };
      });
      const { reader } = opened;
      if (reader === undefined) throw new Error("the fixture opens its index");
      const { journal } = reader;
      const tag = (values: string[], op: "EQ" | "NEQ") => ({ name: "Type", values, op });
      const filters: EventFilter[] = [
        everything,
        { rows: undefined, blocks: {} },
        { rows: { kind: "item" }, blocks: undefined },
        { rows: { tags: [tag(["a", "b"], "EQ")] }, blocks: undefined },
        { rows: { tags: [tag(["b", "a"], "EQ")] }, blocks: undefined },
        { rows: { tags: [tag(["a"], "NEQ")], kind: "transaction" }, blocks: {} },
        { rows: { ids: ["A".repeat(43) as never] }, blocks: undefined },
        { rows: { block: { min: 102, max: 104 } }, blocks: { min: 103 } },
      ];
      let { hub } = openHub(journal);
      const clients = filters.map((filter) => ({ filter, seen: [] as string[], lastId: `${journal.name()}-0` }));
      const present = new Map<(typeof clients)[number], { reader: ReturnType<typeof reading>; leave: () => void }>();
      const leave = (client: (typeof clients)[number]) => {
        const there = present.get(client);
        if (there === undefined) return;
        there.leave();
        present.delete(client);
        client.seen.push(
          ...there.reader.events
            .filter(({ event }) => event !== "closed")
            .map(
              ({ id, event, data }) => `${id.split("-")[1]} ${event} ${event.startsWith("block") ? "" : data["id"]}`,
            ),
        );
        client.lastId = there.reader.lastId();
      };
      const enter = (client: (typeof clients)[number]) => {
        const connected = reading();
        const after = readCursor(client.lastId);
        const subscription = hub.subscribe(
          { filter: client.filter, format: namedEvents, after, client: String(given.below(50)) },
          connected.sink,
        );
        if (subscription !== undefined) present.set(client, { reader: connected, leave: subscription.leave });
      };
      for (let step = 0; step < 200; step += 1) {
        fixture.step();
        hub.wake();
        const client = given.pick(clients);
        if (given.chance(0.3)) (present.has(client) ? leave : enter)(client);
        if (given.chance(0.3)) await Bun.sleep(0);
        if (given.chance(0.02)) {
          await hub.close();
          for (const each of clients) leave(each);
          hub = openHub(journal).hub;
        }
      }
      for (const client of clients) if (!present.has(client)) enter(client);
      const all = allOf(journal);
      for (const client of clients) {
        const { matches } = testOf(client.filter);
        const wanted = all.filter(({ change }) => matches(change)).map(shortOf);
        const left = wanted.length - client.seen.length;
        await until(() => (present.get(client)?.reader.events.length ?? 0) >= left);
        leave(client);
        expect(client.seen).toEqual(wanted);
      }
      await hub.close();
      opened.close?.();
    },
  );

  test.each(seedsOr([1, 2, 3]))(
    "with seed %d the rows that a filter's events leave are those that a query with the filter lists",
    (seed) => {
      using folder = temporaryFolder();
      const path = `${folder.path}/index.sqlite`;
      const given = createRandom(seed);
      const fixture = createFixture(
        given,
        (clock) => ({ writer: openIndexWriter(path, { clock }), reader: openIndexReader(path) }),
        false,
      );
      for (let step = 0; step < 120; step += 1) fixture.step();
      const reader = openIndexReader(path);
      const listed = (filter: RowFilter) => {
        const { rows } = reader.page({ ...filter, order: "asc", limit: 1_000_000, columns: allColumns });
        return rows.map(({ id }) => id).toSorted();
      };
      const all = reader.page({ order: "asc", limit: 1_000_000, columns: allColumns }).rows;
      const bundles = [...new Set(all.flatMap(({ parentId }) => parentId ?? []))];
      const heights = [...new Set(all.map(({ place }) => place.height))].filter((height) => height < pendingHeight);
      expect([bundles.length > 3, heights.length > 3]).toEqual([true, true]);
      const filters: RowFilter[] = [
        ...bundles.map((id) => ({ bundledIn: [id] })),
        ...heights.map((height) => ({ block: { min: height, max: height } })),
        { block: { min: heights.at(1) ?? 0 }, bundledIn: bundles.slice(1) },
        { block: { max: heights.at(-2) ?? 0 } },
        { bundledIn: null },
      ];
      const changes = allOf(reader.journal);
      for (const filter of filters) {
        const { matches } = testOf({ rows: filter, blocks: undefined });
        const rows = new Set<string>();
        for (const { change } of changes) {
          if (!("id" in change) || !matches(change)) continue;
          // A client compares where the row is with its filter: an event may say that the row left.
          const { isPending, kind, place, id } = change;
          const isListed = isPending || kind === "mined";
          const now = { ...change, from: undefined, place: kind === "mined" ? place : undefined };
          if (isListed && matches(now)) rows.add(id);
          else rows.delete(id);
        }
        expect([...rows].toSorted()).toEqual(listed(filter));
      }
      reader.close();
    },
  );

  test("tests each filter once for a change, and makes its bytes once, for any number of subscribers", async () => {
    using index = indexFile();
    const { hub } = openHub(index.reader.journal);
    const pieces = new Set<Uint8Array>();
    let sent = 0;
    for (let count = 0; count < 50; count += 1) {
      const sink = {
        waiting: () => 0,
        send: (bytes: Uint8Array) => {
          if (!new TextDecoder().decode(bytes).includes("event: pending")) return;
          pieces.add(bytes);
          sent += 1;
        },
        end: () => undefined,
      };
      const tags = [{ name: "n", values: count % 2 === 0 ? ["x", "y"] : ["y", "x"], op: "EQ" as const }];
      hub.subscribe(
        { filter: { rows: { tags }, blocks: undefined }, format: namedEvents, after: undefined, client: String(count) },
        sink,
      );
    }
    index.writer.addPending([pendingOf(random, owner, { tags: [tagOf("n", "x")] }), pendingOf(random, owner)]);
    hub.wake();
    await until(() => sent === 50);
    expect(pieces.size).toBe(1);
    await hub.close();
  });

  test("makes the bytes of an event once for all subscriptions of a selection, whatever their filters", async () => {
    using index = indexFile();
    const { hub } = openHub(index.reader.journal);
    const pieces = new Map<string, Set<Uint8Array>>();
    let sent = 0;
    const field = (name: string) => ({ key: name, name, inner: [] });
    const selections = {
      kind: { key: "rows", fields: [field("kind")] },
      id: { key: "rows", fields: [{ key: "node", name: "node", inner: [field("id")] }] },
    };
    for (const [name, selection] of Object.entries(selections))
      for (let count = 0; count < 20; count += 1) {
        const seen = pieces.get(name) ?? new Set();
        pieces.set(name, seen);
        const send = (bytes: Uint8Array) => {
          if (!new TextDecoder().decode(bytes).includes("event: next")) return;
          seen.add(bytes);
          sent += 1;
        };
        const sink = { waiting: () => 0, send, end: () => undefined };
        const format = subscriptionFormat({ topic: "transactions", selection });
        const filter = { rows: { owners: [owner.address] }, blocks: undefined };
        hub.subscribe({ filter, format, after: undefined, client: `${name}${count}` }, sink);
      }
    const row = pendingOf(random, owner);
    index.writer.addPending([row]);
    hub.wake();
    await until(() => sent === 40);
    const texts = [...pieces.values()].map((seen) => [...seen].map((bytes) => new TextDecoder().decode(bytes)));
    const id = `${index.reader.journal.name()}-1`;
    expect(texts).toEqual([
      [`id: ${id}\nevent: next\ndata: {"data":{"rows":{"kind":"PENDING"}}}\n\n`],
      [`id: ${id}\nevent: next\ndata: {"data":{"rows":{"node":{"id":"${row.id}"}}}}\n\n`],
    ]);
    await hub.close();
  });

  test("a subscriber that does not read is cut with a reason and a line of the log; others go on", async () => {
    using index = indexFile();
    const { hub, lines } = openHub(index.reader.journal, { bounds: { waitingMax: 2_000 } });
    const [slow, quick] = [reading(false), reading()];
    hub.subscribe({ filter: everything, format: namedEvents, after: undefined, client: "a" }, slow.sink);
    hub.subscribe({ filter: everything, format: namedEvents, after: undefined, client: "b" }, quick.sink);
    for (let count = 1; count <= 20; count += 1) {
      index.writer.addPending([pendingOf(random, owner)]);
      hub.wake();
      await until(() => quick.events.length === count);
    }
    expect(slow.state.ended).toBe(true);
    expect(slow.events.at(-1)).toMatchObject({ event: "closed", data: { reason: "The client reads too slowly." } });
    expect(slow.events.length).toBeLessThan(20);
    expect(lines.filter(({ msg, message }) => String(msg ?? message).includes("too slowly"))).toHaveLength(1);
    expect([hub.count(), hub.cuts()]).toEqual([1, 1]);
    await hub.close();
    expect(quick.events.at(-1)).toMatchObject({ event: "closed", data: { reason: "The gateway is stopping." } });
  });

  test("a subscriber that resumes and does not read is cut, too", async () => {
    using index = indexFile();
    for (let count = 0; count < 10; count += 1) index.writer.addPending([pendingOf(random, owner)]);
    const { hub } = openHub(index.reader.journal, { bounds: { drainMs: 0 } });
    const slow = reading(false);
    const after = { journal: index.reader.journal.name(), number: 0 };
    hub.subscribe({ filter: everything, format: namedEvents, after, client: "a" }, slow.sink);
    await until(() => slow.state.ended);
    expect(hub.count()).toBe(0);
    await hub.close();
  });

  test("a subscriber that joins while a record is sent gets all of its changes", async () => {
    using index = indexFile();
    const { journal } = index.reader;
    const { hub } = openHub(journal);
    const before = { journal: journal.name(), number: journal.newest() };
    const late = reading();
    let pieces = 0;
    const joinInTheMiddle: EventSink = {
      waiting: () => 0,
      send: () => {
        pieces += 1;
        if (pieces !== 3) return; // after the opening and the first hundred changes
        const filter: EventFilter = { rows: {}, blocks: undefined };
        hub.subscribe({ filter, format: namedEvents, after: before, client: "b" }, late.sink);
        for (const endsAt = performance.now() + 10; performance.now() < endsAt; ); // then the hub lets others run
      },
      end: () => undefined,
    };
    hub.subscribe({ filter: everything, format: namedEvents, after: undefined, client: "a" }, joinInTheMiddle);
    const rows = Array.from({ length: 250 }, () => pendingOf(random, owner));
    index.writer.addPending(rows);
    hub.wake();
    await until(() => late.events.at(-1)?.data["id"] === rows.at(-1)?.id);
    expect(late.events.map(({ data }) => data["id"])).toEqual(rows.map(({ id }) => id));
    await hub.close();
  });

  test("a cursor that is too old, above the newest, or of another index gets one reset, and goes on from now", async () => {
    using index = indexFile();
    const { journal } = index.reader;
    const first = pendingOf(random, owner);
    index.writer.addPending([first]);
    const { hub } = openHub(journal);
    for (const after of [
      { journal: journal.name(), number: 99 },
      { journal: "0".repeat(12), number: 0 },
    ]) {
      const client = reading();
      hub.subscribe(
        { filter: { rows: undefined, blocks: undefined }, format: namedEvents, after, client: "a" },
        client.sink,
      );
      await until(() => client.events.length === 1);
      expect(client.events[0]).toMatchObject({ event: "reset", id: `${journal.name()}-${journal.newest()}` });
    }
    await hub.close();
  });

  test("subscribers are bounded, and one address has a tenth of them", async () => {
    using index = indexFile();
    const { hub } = openHub(index.reader.journal, { subscribersMax: 20 });
    const enter = (client: string) =>
      hub.subscribe({ filter: everything, format: namedEvents, after: undefined, client }, reading().sink) !==
      undefined;
    expect([enter("a"), enter("a"), enter("a")]).toEqual([true, true, false]);
    for (let count = 0; count < 18; count += 1) expect(enter(`b${count}`)).toBe(true);
    expect(enter("c")).toBe(false);
    await hub.close();
    expect(enter("d")).toBe(false);
  });

  test("heartbeats carry the position, so that a rare filter does not age", async () => {
    using index = indexFile();
    const { hub } = openHub(index.reader.journal, { bounds: { heartbeatMs: 5 } });
    const client = reading();
    const filter: EventFilter = { rows: { kind: "item", ids: ["A".repeat(43) as never] }, blocks: undefined };
    hub.subscribe({ filter, format: namedEvents, after: undefined, client: "a" }, client.sink);
    index.writer.addPending([pendingOf(random, owner)]);
    hub.wake();
    await until(() => client.lastId() === `${index.reader.journal.name()}-1`);
    expect(client.comments).toContain("heartbeat");
    expect(client.events).toEqual([]);
    await hub.close();
  });
});
