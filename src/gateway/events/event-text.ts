/**
 * Events as text: server-sent events with a line of JSON.
 *
 * Source: WHATWG HTML §9.2 (server-sent events); docs/reference/gateway.md#events.
 * @module
 */
import { utf8Bytes } from "../../lib/bytes.ts";
import type { BlockChange, Change, RowChange } from "../../store/index/journal/change-record.ts";
import { type Cursor, cursorText } from "../../store/index/journal/journal-cursor.ts";
import { isRowChange } from "./event-filter.ts";

/** How the events of some subscribers are written. The opening and the heartbeats are the same for all. */
export type EventFormat = Readonly<{
  /** The same text for formats that write the same bytes. */
  key: string;
  change: (change: Exclude<Change, { kind: "reset" }>, cursor: Cursor) => Uint8Array;
  reset: (reason: keyof typeof resetReasons, cursor: Cursor) => Uint8Array;
  /** The last event of a stream; without an id: the client resumes after the last event that it has. */
  closed: (reason: keyof typeof closeReasons) => Uint8Array;
}>;

/** Milliseconds after which a client connects again. */
const reconnectMs = 3_000;

/** The first bytes of a stream: the position and the time of a reconnection, which no client shows. */
export function openingText(cursor: Cursor): Uint8Array {
  return utf8Bytes(`retry: ${reconnectMs}\n${positionLines(cursor)}`);
}

/** A heartbeat: a comment, and the position, so that a client with a rare filter resumes from here. */
export function heartbeatText(cursor: Cursor): Uint8Array {
  return utf8Bytes(`: heartbeat\n${positionLines(cursor)}`);
}

/** An id without data sets the client's Last-Event-ID without an event. */
function positionLines(cursor: Cursor): string {
  return `id: ${cursorText(cursor)}\n\n`;
}

/** Why changes are missing. */
export const resetReasons = {
  journal: "The cursor is not in the journal: it is too old, or of another index.",
  bulk: "Many changes at once are not sent one by one.",
} as const;

/** Why a stream ends. */
export const closeReasons = {
  slow: "The client reads too slowly.",
  stopping: "The gateway is stopping.",
  failed: "The events could not be read.",
} as const;

/** The events of `/svc/events`. */
export const namedEvents: EventFormat = {
  key: "",
  change: (change, cursor) => eventText(change.kind, isRowChange(change) ? rowData(change) : blockData(change), cursor),
  reset: (reason, cursor) => eventText("reset", { reason: resetReasons[reason] }, cursor),
  closed: (reason) => utf8Bytes(`event: closed\ndata: ${JSON.stringify({ reason: closeReasons[reason] })}\n\n`),
};

function blockData({ height, hash, timestamp }: BlockChange): object {
  return { height, id: hash, timestamp };
}

function rowData({ id, isItem, ownerAddress, target, tags, size, place, isPending }: RowChange): object {
  return {
    id,
    type: isItem ? "item" : "transaction",
    owner: ownerAddress,
    recipient: target,
    tags: tags.map(({ name, value }) => ({ name, value })),
    size,
    height: place?.height ?? null,
    block: place?.block?.hash ?? null,
    bundledIn: place?.bundledIn ?? null,
    pending: isPending,
  };
}

/** JSON has no line breaks, so its text is one line. */
function eventText(event: string, data: object, cursor: Cursor): Uint8Array {
  return utf8Bytes(`id: ${cursorText(cursor)}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}
