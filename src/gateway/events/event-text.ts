/**
 * Events as text: server-sent events with a line of JSON, and cursors.
 *
 * Source: WHATWG HTML §9.2 (server-sent events); docs/reference/gateway.md#events.
 * @module
 */
import { utf8Bytes } from "../../lib/bytes.ts";
import type { Change } from "../../store/index/change-record.ts";
import { isRowChange } from "./event-filter.ts";

/** A position in a journal. */
export type Cursor = Readonly<{ journal: string; number: number }>;

const cursorPattern = /^([0-9a-f]{12})-(0|[1-9][0-9]{0,14})$/;

/** Returns undefined for a text that is not a cursor. */
export function readCursor(text: string): Cursor | undefined {
  const [, journal, number] = cursorPattern.exec(text) ?? [];
  return journal === undefined || number === undefined ? undefined : { journal, number: Number(number) };
}

export function cursorText({ journal, number }: Cursor): string {
  return `${journal}-${number}`;
}

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

export function resetText(cursor: Cursor, reason: keyof typeof resetReasons): Uint8Array {
  return eventText("reset", { reason: resetReasons[reason] }, cursor);
}

/** Why a stream ends. */
export const closeReasons = {
  slow: "The client reads too slowly.",
  stopping: "The gateway is stopping.",
  failed: "The events could not be read.",
} as const;

/** The last event of a stream; without an id: the client resumes after the last event that it has. */
export function closedText(reason: keyof typeof closeReasons): Uint8Array {
  return utf8Bytes(`event: closed\ndata: ${JSON.stringify({ reason: closeReasons[reason] })}\n\n`);
}

/** A change as an event. */
export function changeText(change: Change, cursor: Cursor): Uint8Array {
  return change.kind === "reset" ? resetText(cursor, "bulk") : eventText(change.kind, dataOf(change), cursor);
}

function dataOf(change: Exclude<Change, { kind: "reset" }>): object {
  if (!isRowChange(change)) {
    const { height, hash, timestamp } = change;
    return { height, id: hash, timestamp };
  }
  const { id, isItem, ownerAddress, target, tags, size, height, isPending } = change;
  return {
    id,
    type: isItem ? "item" : "transaction",
    owner: ownerAddress,
    recipient: target,
    tags: tags.map(({ name, value }) => ({ name, value })),
    size,
    height: height ?? null,
    pending: isPending,
  };
}

/** JSON has no line breaks, so its text is one line. */
function eventText(event: string, data: object, cursor: Cursor): Uint8Array {
  return utf8Bytes(`id: ${cursorText(cursor)}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}
