/**
 * A gateway that resolves names, over HTTP: it says what a test tells it to, and remembers what it was asked.
 * @module
 */

/** The response for a name: a status with headers, no response, or none registered. */
export type NameScript =
  | Readonly<{ status: number; headers?: Readonly<Record<string, string>>; body?: string }>
  | "silent"
  | "closed";

/** One question. */
export type NameQuestion = Readonly<{ method: string; host: string; path: string; hops: string | null }>;

/** The gateway. */
export type NameGateway = Readonly<{
  /** With the name in its host. */
  template: string;
  /** With the name in its path. */
  pathTemplate: string;
  /** By name; a name that is not there is 404. */
  scripts: Map<string, NameScript>;
  questions: NameQuestion[];
  /** Lets those that wait in silence have their 404. */
  speak: () => void;
  close: () => Promise<void>;
}>;

/** Opens one on a free port. */
export function openNameGateway(): NameGateway {
  const scripts = new Map<string, NameScript>();
  const questions: NameQuestion[] = [];
  let silence = Promise.withResolvers<void>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request, self) => {
      const { host, pathname } = new URL(request.url);
      const inPath = /^\/ar-io\/resolver\/(.+)$/.exec(pathname)?.[1];
      const name = inPath ?? host.split(".")[0] ?? "";
      questions.push({
        method: request.method,
        host,
        path: pathname,
        hops: request.headers.get("x-ar-io-hops"),
      });
      const script = scripts.get(name) ?? { status: 404 };
      if (script === "silent") {
        self.timeout(request, 0);
        await silence.promise;
        return new Response("Not found", { status: 404 });
      }
      if (script === "closed") return Response.error();
      return new Response(script.body ?? "", { status: script.status, headers: script.headers ?? {} });
    },
  });
  return {
    template: `http://__NAME__.localhost:${server.port}`,
    pathTemplate: `http://127.0.0.1:${server.port}/ar-io/resolver/__NAME__`,
    scripts,
    questions,
    speak: () => {
      silence.resolve();
      silence = Promise.withResolvers();
    },
    close: async () => {
      silence.resolve();
      await server.stop(true);
    },
  };
}
