/**
 * Lines of what another process writes, one after another.
 * @module
 */

/** @returns A function that gives the next line; it rejects when the process ended before it. */
export function lineReader(stream: ReadableStream<Uint8Array>): () => Promise<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = "";
  return async () => {
    while (!text.includes("\n")) {
      const { done, value } = await reader.read();
      if (done) throw new Error(`the process ended; it wrote last: ${text.slice(-500)}`);
      text += decoder.decode(value, { stream: true });
    }
    const end = text.indexOf("\n");
    const line = text.slice(0, end);
    text = text.slice(end + 1);
    return line;
  };
}
