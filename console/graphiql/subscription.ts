/**
 * Follows a subscription: results as server-sent events, by fetch, because a browser's EventSource sends no POST.
 * Source: docs/reference/graphql.md#subscriptions.
 * @module
 */

/** Follows a subscription. Ending the iteration ends the request. */
export function followSubscription(url: string, parameters: object): AsyncIterableIterator<unknown> {
  const life = new AbortController();
  const results = readResults(url, parameters, life.signal);
  const followed: AsyncIterableIterator<unknown> = {
    [Symbol.asyncIterator]: () => followed,
    next: async () => {
      try {
        return await results.next();
      } catch (error) {
        if (life.signal.aborted) return { done: true, value: undefined };
        throw error;
      }
    },
    return: async () => {
      life.abort();
      return { done: true, value: undefined };
    },
  };
  return followed;
}

async function* readResults(url: string, parameters: object, signal: AbortSignal): AsyncGenerator<unknown, undefined> {
  const headers = { "Content-Type": "application/json", Accept: "text/event-stream" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(parameters), signal });
  if (!response.ok || response.body === null) {
    yield await response.json();
    return undefined;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return undefined;
    const events = (rest + value).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const lines = event.split("\n");
      if (lines.includes("event: complete")) return undefined;
      const data = lines.find((line) => line.startsWith("data: "));
      if (lines.includes("event: next") && data !== undefined) yield JSON.parse(data.slice("data: ".length));
    }
  }
}
