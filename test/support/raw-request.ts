/**
 * Requests written byte by byte on a socket: what no well-behaved client sends, or stops to send.
 * @module
 */

/** A connection to a server. */
export type RawConnection = Readonly<{
  /** Writes, as fast as the other side takes it. */
  write: (bytes: string | Uint8Array) => Promise<void>;
  /** What has come so far, as Latin-1 text. */
  received: () => string;
  /** Resolves with what came when the text is in it; rejects when the connection ends before. */
  until: (text: string) => Promise<string>;
  /** Resolves with what came when the connection has ended. */
  ended: Promise<string>;
  /** Says that nothing more comes, and goes on listening. */
  halfClose: () => void;
  /** Ends it at once. */
  cut: () => void;
}>;

/** Connects to the host and port of a URL. */
export async function connectRaw(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  let text = "";
  let drained = Promise.withResolvers<void>();
  let isOpen = true;
  const ended = Promise.withResolvers<string>();
  const waiters = new Set<() => void>();
  const tell = () => {
    for (const waiter of waiters) waiter();
  };
  const end = () => {
    isOpen = false;
    drained.resolve();
    ended.resolve(text);
    tell();
  };
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    allowHalfOpen: true,
    socket: {
      data: (_socket, bytes) => {
        text += bytes.toString("latin1");
        tell();
      },
      drain: () => drained.resolve(),
      end,
      close: end,
      error: end,
    },
  });
  return {
    write: async (bytes) => {
      let rest = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes;
      while (rest.length > 0 && isOpen) {
        drained = Promise.withResolvers<void>();
        const written = socket.write(rest);
        if (written < 0) return;
        rest = rest.subarray(written);
        if (rest.length > 0) await drained.promise;
      }
    },
    received: () => text,
    until: (wanted) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (!text.includes(wanted) && isOpen) return;
          waiters.delete(look);
          if (text.includes(wanted)) resolve(text);
          else reject(new Error(`the connection ended before "${wanted}"; it said "${text.slice(0, 500)}"`));
        };
        waiters.add(look);
        look();
      }),
    ended: ended.promise,
    halfClose: () => {
      socket.shutdown();
    },
    cut: () => {
      socket.terminate();
    },
  };
}
