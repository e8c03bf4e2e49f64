/**
 * Reads server-sent events as a browser does: it remembers the last id, also of an id without data.
 * Source: WHATWG HTML §9.2.6.
 * @module
 */

/** An event that a client dispatches. */
export type ReadEvent = Readonly<{ event: string; id: string; data: Record<string, unknown> }>;

/** A parser of a stream; chunks may end anywhere. */
export type EventReader = Readonly<{
  add: (text: string) => void;
  events: ReadEvent[];
  /** The `Last-Event-ID` of a reconnection. */
  lastId: () => string;
  comments: string[];
}>;

export function createEventReader(): EventReader {
  const events: ReadEvent[] = [];
  const comments: string[] = [];
  let rest = "";
  let id = "";
  let event = "message";
  let data: string[] = [];
  const line = (text: string): void => {
    if (text === "") {
      if (data.length > 0) events.push({ event, id, data: data.join("") === "" ? {} : JSON.parse(data.join("\n")) });
      event = "message";
      data = [];
      return;
    }
    const colon = text.indexOf(":");
    const [name, value] = [text.slice(0, colon), text.slice(colon + 1).replace(/^ /, "")];
    if (name === "") comments.push(value);
    if (name === "id") id = value;
    if (name === "event") event = value;
    if (name === "data") data.push(value);
  };
  return {
    add: (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const each of lines) line(each);
    },
    events,
    lastId: () => id,
    comments,
  };
}

/** A client that follows a URL. */
export type EventClient = EventReader &
  Readonly<{ response: Response; leave: () => Promise<void>; ended: Promise<void> }>;

/** Connects; resolves when the headers have arrived. @param body - JSON to post. */
export async function followEvents(url: string, lastEventId?: string, body?: object): Promise<EventClient> {
  const life = new AbortController();
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (lastEventId !== undefined) headers["Last-Event-ID"] = lastEventId;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const posted = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(url, { ...posted, headers, signal: life.signal });
  const reader = createEventReader();
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const piece of response.body ?? []) reader.add(decoder.decode(piece, { stream: true }));
  };
  const ended = response.status === 200 ? read().catch(() => undefined) : Promise.resolve();
  return {
    ...reader,
    response,
    ended,
    leave: async () => {
      life.abort();
      await ended;
    },
  };
}
