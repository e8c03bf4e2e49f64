/**
 * Live events and GraphQL subscriptions: the processor time of a thousand subscribers of one filter and selection
 * against one subscriber, in the thread that reads the journal; without sockets.
 * @module
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addressOf, type Id, idFromBytes } from "../../src/arweave/id.ts";
import type { EventFilter } from "../../src/gateway/events/event-filter.ts";
import { openEventHub } from "../../src/gateway/events/event-hub.ts";
import { type EventFormat, namedEvents } from "../../src/gateway/events/event-text.ts";
import { subscriptionFormat } from "../../src/http/graphql/subscription-response.ts";
import { assert } from "../../src/lib/assert.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import type { PendingRow } from "../../src/store/index/index-types.ts";
import { type IndexWriter, openIndexWriter } from "../../src/store/index/index-writer.ts";
import { type Bench, type BenchRow, type BenchSize, median } from "../harness.ts";

const sizes: Readonly<Record<BenchSize, { rows: number; rounds: number; subscribers: number }>> = {
  small: { rows: 500, rounds: 1, subscribers: 20 },
  large: { rows: 10_000, rounds: 3, subscribers: 1_000 },
};

const rowsPerWrite = 500;
const owner = crypto.getRandomValues(new Uint8Array(65));

const rare: EventFilter["rows"] = { tags: [{ name: "Rare", values: ["x"], op: "EQ" }] };

const leaf = (name: string) => ({ key: name, name, inner: [] });
const tagFields = [leaf("name"), leaf("value")];
const nodeFields = [leaf("id"), { key: "tags", name: "tags", inner: tagFields }];
const selection = { key: "transactions", fields: [leaf("kind"), { key: "node", name: "node", inner: nodeFields }] };

type Case = Readonly<{ name: string; rows: EventFilter["rows"]; format: () => EventFormat }>;

/** Each subscription makes a format of its own, as each request does. */
const cases: readonly Case[] = [
  { name: "live events", rows: {}, format: () => namedEvents },
  { name: "live events, one row in a hundred", rows: rare, format: () => namedEvents },
  { name: "GraphQL", rows: {}, format: () => subscriptionFormat({ topic: "transactions", selection }) },
  {
    name: "GraphQL, one row in a hundred",
    rows: rare,
    format: () => subscriptionFormat({ topic: "transactions", selection }),
  },
];

/** Processor time of events, by the number of subscribers. */
export const eventsBench: Bench = {
  name: "events",
  measure: async (size) => {
    const { rows, rounds, subscribers } = sizes[size];
    const table: BenchRow[] = [];
    for (const each of cases) {
      const pairs: { many: number; one: number }[] = [];
      for (let round = 0; round < rounds; round += 1) {
        const one = await secondsOf(rows, 1, each);
        pairs.push({ one, many: await secondsOf(rows, subscribers, each) });
      }
      const show = (values: readonly number[]) => `${((median(values) * 1e6) / rows).toFixed(1)} µs CPU a change`;
      table.push({
        name: `${each.name}, ${subscribers.toLocaleString("en")} subscribers of one filter`,
        metric: show(pairs.map(({ many }) => many)),
        reference: `one subscriber ${show(pairs.map(({ one }) => one))}`,
        ratio: median(pairs.map(({ many, one }) => many / one)),
        target: "≤ 2 ×",
      });
    }
    return table;
  },
};

/** Processor time until all subscribers have their events. Seconds. */
async function secondsOf(rows: number, subscribers: number, { rows: filter, format }: Case): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "cairn-bench-events-"));
  const path = join(folder, "index.sqlite");
  const writer = openIndexWriter(path, { clock: Date.now });
  const reader = openIndexReader(path);
  const bounds = { gatherMs: 0 };
  const hub = openEventHub({ journal: reader.journal, subscribersMax: subscribers * 10, log: silentLog, bounds });
  const { promise: isComplete, resolve } = Promise.withResolvers<void>();
  let last: Id | undefined;
  try {
    for (let count = 0; count < subscribers; count += 1) {
      const isFirst = count === 0;
      const send = (bytes: Uint8Array) => {
        if (isFirst && last !== undefined && Buffer.from(bytes).includes(last)) resolve();
      };
      const sink = { waiting: () => 0, send, end: () => undefined };
      hub.subscribe(
        { filter: { rows: filter, blocks: undefined }, format: format(), after: undefined, client: String(count) },
        sink,
      );
    }
    for (let at = 0; at < rows; at += rowsPerWrite) last = addRows(writer);
    const before = process.cpuUsage();
    hub.wake();
    await isComplete;
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e6;
  } finally {
    await hub.close();
    reader.close();
    writer.close();
    removeFolder(folder);
  }
}

/** Adds items in no block; one in a hundred has the rare tag, the last one too. @returns Its id. */
function addRows(writer: IndexWriter): Id {
  const rows = Array.from({ length: rowsPerWrite }, (_, index) => pendingRow(index % 100 === 99));
  writer.addPending(rows);
  const id = rows.at(-1)?.id;
  assert(id !== undefined, "a write has rows");
  return id;
}

function pendingRow(isRare: boolean): PendingRow {
  const tags = ["App-Name", "Content-Type", "Unix-Time", "Entity-Type"].map((name) => ({ name, value: "1700000000" }));
  return {
    kind: "item",
    id: idFromBytes(crypto.getRandomValues(new Uint8Array(32))),
    signatureType: 3,
    owner,
    ownerAddress: addressOf(owner),
    target: "",
    anchor: "",
    tags: isRare ? [...tags, { name: "Rare", value: "x" }] : tags,
    headerSize: 130,
    size: 1_000,
    digest: null,
    verified: true,
  };
}
