/**
 * `/ready` during a start, watched from the first connection on: it is 200 when a thread that responds to queries lives
 * and waits for work, not before.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { programPorts, type RunningProgram, startDev } from "../support/program.ts";

const opened: RunningProgram[] = [];
afterAll(async () => {
  for (const program of opened) await program.remove();
});

/** Requests until the status is 200. @returns Every earlier status, in order, and the state at that moment. */
async function watch(origin: string, ended: () => boolean) {
  const statuses: number[] = [];
  while (!ended()) {
    const ready = await fetch(`${origin}/ready`).catch(() => undefined);
    if (ready?.status === 200) return { statuses, ...(await lookAt(origin)) };
    if (ready === undefined) await Bun.sleep(1);
    else statuses.push(ready.status);
  }
  throw new Error(`the start ended before /ready was 200: ${statuses.slice(-5)}`);
}

async function lookAt(origin: string) {
  const metrics = await (await fetch(`${origin}/metrics`)).text();
  const read = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(metrics)?.[1]);
  const response = await fetch(`${origin}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query: "{ transactions(first: 1) { edges { node { id } } } }" }),
  });
  const { data, errors } = await response.json();
  return {
    threads: read('worker_threads\\{pool="query"\\}'),
    waiting: read('queue_length\\{queue_name="query"\\}'),
    query: [response.status, errors ?? null, data.transactions.edges.length],
  };
}

/** Starts the program, watches it, and stops it. */
async function startWatched(folder: string | undefined) {
  const ports = programPorts();
  let hasEnded = false;
  const environment = { QUERY_THREADS: "3" };
  const starting = startDev({ ports, environment, ...(folder !== undefined && { folder }) });
  const watching = watch(`http://127.0.0.1:${ports["GATEWAY_PORT"]}`, () => hasEnded);
  watching.catch(() => undefined); // it is awaited below, when the start has succeeded
  try {
    const program = await starting;
    opened.push(program);
    const seen = await watching;
    expect(await program.stop()).toBe(0);
    return { seen, folder: program.folder };
  } finally {
    hasEnded = true;
  }
}

test("/ready is 200 when a query thread has started, at a first start and at a second one", async () => {
  const first = await startWatched(undefined);
  // This one finds blocks in the index: nothing but the thread keeps it from being ready at once.
  const second = await startWatched(first.folder);
  for (const { statuses, threads, waiting, query } of [first.seen, second.seen]) {
    expect([threads, waiting]).toEqual([1, 0]);
    expect(query).toEqual([200, null, 1]);
    expect(statuses.filter((status) => status !== 503)).toEqual([]);
  }
}, 240_000);
