/**
 * Live events: reads the journal of changes once for all subscribers, and gives each its events in order.
 *
 * Subscribers with equal filters and formats are one group. For each group, a change is tested once; the bytes of its
 * event are made once for all groups of a format. A subscriber that resumes reads the journal by itself up to its
 * group, and then joins it.
 *
 * The queue of each subscriber is bounded, and all queues together; a slow subscriber is disconnected with a reason.
 * The subscribers of a group share the bytes of an event, so they are in memory once.
 * Source: docs/reference/gateway.md#events.
 * @module
 */
import { setImmediate as nextIteration } from "node:timers/promises";
import { concatBytes } from "../../lib/bytes.ts";
import type { Log } from "../../lib/log.ts";
import { openBackgroundLoop } from "../../lib/loop.ts";
import { createSemaphore, type Semaphore } from "../../lib/semaphore.ts";
import { sleep } from "../../lib/stop.ts";
import type { JournalReads, NumberedChange } from "../../store/index/journal/journal.ts";
import type { Cursor } from "../../store/index/journal/journal-cursor.ts";
import { type EventFilter, type EventTest, testOf } from "./event-filter.ts";
import { type closeReasons, type EventFormat, heartbeatText, openingText } from "./event-text.ts";

/** The receiver of one subscriber's bytes. */
export type EventSink = Readonly<{
  /** Bytes that were sent to it and not read yet. */
  waiting: () => number;
  send: (bytes: Uint8Array) => void;
  /** Drops what waits, and ends with these bytes. */
  end: (last: Uint8Array) => void;
}>;

export type EventHubOptions = Readonly<{
  journal: JournalReads;
  /** Limit of subscribers; an address may have a tenth of them. */
  subscribersMax: number;
  log: Log;
  bounds?: Partial<EventBounds>;
}>;

/** Bounds of the hub. Bytes and milliseconds. */
export type EventBounds = Readonly<{
  /** Bytes that may wait for one subscriber beyond one piece, and for all together. */
  waitingMax: number;
  waitingAllMax: number;
  /** Changes within this time are read at once. */
  gatherMs: number;
  /** A reset says that everything must be read again, so the next one comes after a pause. */
  resetPauseMs: number;
  heartbeatMs: number;
  /** A subscriber that resumes must read each piece within this time. */
  drainMs: number;
}>;

export const eventBoundsDefault: EventBounds = {
  waitingMax: 512 * 2 ** 10,
  waitingAllMax: 64 * 2 ** 20,
  gatherMs: 20,
  resetPauseMs: 1_000,
  heartbeatMs: 15_000,
  drainMs: 30_000,
};

/** A subscription that began. */
export type Subscription = Readonly<{
  /** Ends it; has no effect on one that has ended. */
  leave: () => void;
}>;

export type EventHub = Readonly<{
  /**
   * Begins a subscription: the events after a cursor, or from now on.
   *
   * @returns Undefined when there are too many subscribers.
   */
  subscribe: (request: EventRequest, sink: EventSink) => Subscription | undefined;
  /** The index was written: there may be changes. */
  wake: () => void;
  /** Subscribers, for metrics. */
  count: () => number;
  /** Subscribers that were cut, for metrics. */
  cuts: () => number;
  close: () => Promise<void>;
}>;

export type EventRequest = Readonly<{
  filter: EventFilter;
  format: EventFormat;
  after: Cursor | undefined;
  /** The client's address. */
  client: string;
}>;

/** The filter and the format that the subscribers of a group share. */
type Stream = Readonly<{ key: string; test: EventTest; format: EventFormat }>;

type Subscriber = Readonly<{ sink: EventSink; client: string; stream: Stream; life: AbortController }>;

/** Subscribers of one stream, all at one number. */
type Group = { readonly stream: Stream; number: number; readonly members: Set<Subscriber> };

/** An address may have this part of all subscribers. */
const clientShare = 10;
/** Changes of one piece, which is one `send` to each subscriber. */
const pieceChanges = 100;
/** Without a call of `wake`, the journal is looked at this often. Milliseconds. */
const restMs = 30_000;
/** A round lets requests be served after this time. Milliseconds. */
const turnMs = 5;
/** Time between two looks at a subscriber that resumes and has not read yet. Milliseconds. */
const drainPauseMs = 20;

/** Opens the hub; it reads the journal only while there are subscribers. */
export function openEventHub(options: EventHubOptions): EventHub {
  const { journal, log, subscribersMax } = options;
  const bounds = { ...eventBoundsDefault, ...options.bounds };
  const subscribers = createSubscribers(subscribersMax);
  const state: HubState = { name: journal.name(), number: journal.newest(), groups: new Map(), waitingAll: 0, cuts: 0 };
  const parts: HubParts = { journal, log, bounds, subscribers, state };
  const steps = createSemaphore(1, subscribersMax);
  let isClosed = false;

  const loop = openBackgroundLoop(
    "events",
    async (signal) => {
      if (subscribers.count() === 0) return restMs;
      await sleep(bounds.gatherMs, signal);
      return await sendNew(parts, signal);
    },
    (error) => {
      log.error("live events could not be read", { error });
      return restMs;
    },
  );
  const heartbeat = setInterval(() => beat(parts), bounds.heartbeatMs);
  heartbeat.unref();

  return {
    subscribe: ({ filter, format, after, client }, sink) => {
      if (isClosed) return undefined;
      const subscriber = { sink, client, stream: streamOf(filter, format), life: new AbortController() };
      if (subscribers.count() === 0) state.number = journal.newest();
      if (!subscribers.add(subscriber)) return undefined;
      sink.send(openingText(after ?? cursorAt(state, targetOf(state, subscriber))));
      if (after === undefined) join(parts, subscriber);
      else void resume(parts, subscriber, after, steps);
      loop.wake();
      return { leave: () => leave(parts, subscriber) };
    },
    wake: () => {
      if (subscribers.count() > 0) loop.wake();
    },
    count: subscribers.count,
    cuts: () => state.cuts,
    close: async () => {
      isClosed = true;
      clearInterval(heartbeat);
      for (const subscriber of subscribers.all()) end(parts, subscriber, "stopping");
      await loop.close();
    },
  };
}

type HubState = {
  /** Name of the journal. */
  readonly name: string;
  /** Number of the last change that every group has. */
  number: number;
  readonly groups: Map<string, Group>;
  /** Bytes that waited for all subscribers at the last look, each group's once. */
  waitingAll: number;
  cuts: number;
};

type HubParts = Readonly<{
  journal: JournalReads;
  log: Log;
  bounds: EventBounds;
  subscribers: Subscribers;
  state: HubState;
}>;

type Subscribers = Readonly<{
  /** False when there are too many. */
  add: (subscriber: Subscriber) => boolean;
  /** False when it is gone already. */
  remove: (subscriber: Subscriber) => boolean;
  all: () => readonly Subscriber[];
  count: () => number;
}>;

function createSubscribers(max: number): Subscribers {
  const all = new Set<Subscriber>();
  const byClient = new Map<string, number>();
  const clientMax = Math.ceil(max / clientShare);
  return {
    add: (subscriber) => {
      const own = byClient.get(subscriber.client) ?? 0;
      if (all.size >= max || own >= clientMax) return false;
      all.add(subscriber);
      byClient.set(subscriber.client, own + 1);
      return true;
    },
    remove: (subscriber) => {
      if (!all.delete(subscriber)) return false;
      const left = (byClient.get(subscriber.client) ?? 1) - 1;
      if (left === 0) byClient.delete(subscriber.client);
      else byClient.set(subscriber.client, left);
      return true;
    },
    all: () => [...all],
    count: () => all.size,
  };
}

function streamOf(filter: EventFilter, format: EventFormat): Stream {
  const test = testOf(filter);
  return { key: JSON.stringify([test.key, format.key]), test, format };
}

function cursorAt({ name }: HubState, number: number): Cursor {
  return { journal: name, number };
}

/** Adds a subscriber to its group, whose number it has. */
function join({ state }: HubParts, subscriber: Subscriber): void {
  const { stream } = subscriber;
  const group = state.groups.get(stream.key) ?? { stream, number: state.number, members: new Set() };
  state.groups.set(stream.key, group);
  group.members.add(subscriber);
}

function leave({ state, subscribers }: HubParts, subscriber: Subscriber): void {
  if (!subscribers.remove(subscriber)) return;
  subscriber.life.abort();
  const group = state.groups.get(subscriber.stream.key);
  group?.members.delete(subscriber);
  if (group?.members.size === 0) state.groups.delete(group.stream.key);
}

function end(parts: HubParts, subscriber: Subscriber, reason: keyof typeof closeReasons): void {
  leave(parts, subscriber);
  subscriber.sink.end(subscriber.stream.format.closed(reason));
}

/** Sends a piece, or cuts a subscriber for which too much waits. A piece may be larger than the bound. */
function send(parts: HubParts, subscriber: Subscriber, piece: Uint8Array): void {
  const { bounds, state } = parts;
  const waiting = subscriber.sink.waiting();
  const isFull = waiting + piece.length > bounds.waitingMax || state.waitingAll > bounds.waitingAllMax;
  if (waiting === 0 || !isFull) {
    subscriber.sink.send(piece);
    return;
  }
  cut(parts, subscriber);
}

function cut(parts: HubParts, subscriber: Subscriber): void {
  const { client, sink } = subscriber;
  parts.state.cuts += 1;
  parts.log.info("a subscriber of live events was cut: it reads too slowly", { client, waiting: sink.waiting() });
  end(parts, subscriber, "slow");
}

/** Sends the changes that are new to all groups. @returns The wait until the next round, milliseconds. */
async function sendNew(parts: HubParts, signal: AbortSignal): Promise<number> {
  const { journal, state, bounds } = parts;
  for (;;) {
    if (state.groups.size === 0) state.number = journal.newest(); // subscribers that resume read by themselves
    const changes = journal.after(state.number);
    if (changes === undefined) {
      skipTo(parts, journal.newest());
      continue;
    }
    const last = changes.at(-1);
    if (last === undefined) return restMs;
    state.waitingAll = waitingOf(state.groups.values());
    await sendRecord(parts, changes);
    if (last.change.kind === "reset") await sleep(bounds.resetPauseMs, signal);
    await nextIteration();
    signal.throwIfAborted();
  }
}

/** The bytes that wait: pieces are shared by a group, so the slowest member has all of them. */
function waitingOf(groups: Iterable<Group>): number {
  let sum = 0;
  for (const { members } of groups) {
    let most = 0;
    for (const { sink } of members) most = Math.max(most, sink.waiting());
    sum += most;
  }
  return sum;
}

/** Sends one record to each group, in pieces. Groups that begin meanwhile are visited too. */
async function sendRecord(parts: HubParts, changes: readonly NumberedChange[]): Promise<void> {
  const { state } = parts;
  const texts = createTexts(state.name);
  let turnEnds = performance.now() + turnMs;
  for (let start = 0; start < changes.length; start += pieceChanges) {
    const some = changes.slice(start, start + pieceChanges);
    for (const group of state.groups.values()) {
      sendPiece(parts, group, some, texts(group.stream.format));
      if (performance.now() < turnEnds) continue;
      await nextIteration();
      turnEnds = performance.now() + turnMs;
    }
    // A group that begins during the next piece needs no earlier change.
    state.number = some.at(-1)?.number ?? state.number;
  }
}

type TextOf = (each: NumberedChange) => Uint8Array;

/** Sends the changes that are new to a group and pass its filter. */
function sendPiece(parts: HubParts, group: Group, changes: readonly NumberedChange[], textOf: TextOf): void {
  const { number, stream } = group;
  const last = changes.at(-1)?.number ?? 0;
  if (number >= last) return;
  const chosen = changes.filter((each) => each.number > number && stream.test.matches(each.change));
  group.number = last;
  if (chosen.length === 0) return;
  const piece = concatBytes(chosen.map(textOf));
  for (const member of group.members) send(parts, member, piece);
}

/** Makes the text of each change once in each format. */
function createTexts(journal: string): (format: EventFormat) => TextOf {
  const formats = new Map<string, TextOf>();
  return (format) => formats.getOrInsertComputed(format.key, () => createFormatTexts(journal, format));
}

function createFormatTexts(journal: string, format: EventFormat): TextOf {
  const texts = new Map<number, Uint8Array>();
  return ({ number, change }) =>
    texts.getOrInsertComputed(number, () => {
      const cursor = { journal, number };
      return change.kind === "reset" ? format.reset("bulk", cursor) : format.change(change, cursor);
    });
}

/** Changes are missing, because the journal was pruned before they were read: all groups go on at a number. */
function skipTo(parts: HubParts, number: number): void {
  const { state } = parts;
  for (const group of state.groups.values()) {
    const text = group.stream.format.reset("bulk", cursorAt(state, number));
    group.number = number;
    for (const member of group.members) send(parts, member, text);
  }
  state.number = number;
}

/**
 * Reads the journal for one subscriber up to its group, and adds it there. Steps of all subscribers that resume are
 * made one after the other.
 */
async function resume(parts: HubParts, subscriber: Subscriber, after: Cursor, steps: Semaphore): Promise<void> {
  const { log, state } = parts;
  const { signal } = subscriber.life;
  let number = after.journal === state.name ? after.number : Number.POSITIVE_INFINITY;
  /** @returns Whether the subscriber is in its group. */
  const step = async (): Promise<boolean> => {
    const release = await steps.take(signal);
    try {
      number = resumeStep(parts, subscriber, number);
      if (number === targetOf(state, subscriber)) {
        join(parts, subscriber);
        return true;
      }
      await sleep(0, signal); // requests are served between two steps; a group may be behind a cursor for the moment
    } finally {
      release?.();
    }
    await untilDrained(parts, subscriber);
    return false;
  };
  try {
    while (!(await step()));
  } catch (error) {
    if (signal.aborted) return;
    log.error("a subscriber of live events could not resume", { error });
    end(parts, subscriber, "failed");
  }
}

/** The number that a subscriber needs to join its group. */
function targetOf({ groups, number }: HubState, { stream }: Subscriber): number {
  return groups.get(stream.key)?.number ?? number;
}

/** Sends one record of the journal to a subscriber. @returns The number that it has then. */
function resumeStep({ journal, state }: HubParts, subscriber: Subscriber, number: number): number {
  const { sink, stream } = subscriber;
  const target = targetOf(state, subscriber);
  const changes = number > journal.newest() ? undefined : journal.after(number);
  if (changes === undefined) {
    sink.send(stream.format.reset("journal", cursorAt(state, target)));
    return target;
  }
  if (number >= target) return number;
  const some = changes.filter((each) => each.number <= target);
  const chosen = some.filter(({ change }) => stream.test.matches(change));
  if (chosen.length > 0) sink.send(concatBytes(chosen.map(createFormatTexts(state.name, stream.format))));
  return some.at(-1)?.number ?? target;
}

/** Waits until a subscriber has read what was sent, or cuts it. */
async function untilDrained(parts: HubParts, subscriber: Subscriber): Promise<void> {
  const { sink, life } = subscriber;
  const endsAt = performance.now() + parts.bounds.drainMs;
  while (sink.waiting() > 0) {
    await sleep(drainPauseMs, life.signal);
    if (performance.now() >= endsAt) cut(parts, subscriber);
  }
}

/** Tells each client where it is, so that it resumes from there although no event passed its filter. */
function beat({ state }: HubParts): void {
  for (const { number, members } of state.groups.values()) {
    const text = heartbeatText(cursorAt(state, number));
    for (const { sink } of members) if (sink.waiting() === 0) sink.send(text);
  }
}
