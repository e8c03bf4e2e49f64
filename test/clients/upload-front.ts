/**
 * One address before an upload service, as a balancer has it, while the program behind it dies and comes back at a
 * moment that is the test's to choose: after so many responses, with others under way that the client never hears of.
 * @module
 */

/** The address, and the moment. */
export type UploadFront = Readonly<{
  url: string;
  /**
   * Waits until so many posts have a response, and another one was taken whose response is held back.
   *
   * @param client - The sender; its end is an error until then.
   */
  untilHeld: (client: Promise<unknown>) => Promise<void>;
  /** To be called when the program is dead: delayed responses are lost, and new clients wait. */
  down: () => void;
  /** To be called when it is there again: from now on all is passed on. */
  up: () => void;
  close: () => Promise<void>;
}>;

/** Larger than any body that is sent here. Bytes. */
const bodyBytesMax = 64 * 2 ** 20;

/** Opens it. @param target - Where the service is now. @param responsesMax - Responses to posts before one is held back. */
export function openUploadFront(target: () => string, responsesMax: number): UploadFront {
  const held = Promise.withResolvers<void>();
  const isDown = Promise.withResolvers<void>();
  const isUp = Promise.withResolvers<void>();
  let phase: "before" | "down" | "up" = "before";
  let responses = 0;

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    maxRequestBodySize: bodyBytesMax,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const body = method === "POST" ? await request.bytes() : null;
      if (phase === "down") await isUp.promise;
      const response = await fetch(`${target()}${pathname}${search}`, { method, headers, body }).catch(nothing);
      if (phase === "up" || method !== "POST") return response;
      responses += 1;
      if (responses <= responsesMax) return response;
      held.resolve();
      await isDown.promise;
      return nothing();
    },
  });

  return {
    url: `http://127.0.0.1:${server.port}`,
    untilHeld: async (client) => {
      const ended = client.then((end) => held.reject(new Error(`it ended too early: ${Bun.inspect(end)}`)));
      ended.catch(held.reject);
      await held.promise;
    },
    down: () => {
      phase = "down";
      isDown.resolve();
    },
    up: () => {
      phase = "up";
      isUp.resolve();
    },
    close: () => server.stop(true),
  };
}

function nothing(): Response {
  return new Response("", { status: 502 });
}
