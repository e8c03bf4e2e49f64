/**
 * The query threads: each responds to whole GraphQL requests over its own read-only connection.
 * @module
 */
import { GraphQLError } from "graphql";
import { createMergedPages } from "../src/columnar/merged-pages.ts";
import { openColumnStore } from "../src/columnar/open-store.ts";
import {
  createGraphqlServer,
  type GraphqlJob,
  type GraphqlReply,
  type GraphqlServer,
} from "../src/graphql/graphql-server.ts";
import { createSignatureSource } from "../src/graphql/signature-source.ts";
import { systemClock } from "../src/lib/clock.ts";
import { withDeadline } from "../src/lib/stop.ts";
import { openIndexReader } from "../src/store/index/index-reader.ts";
import { giveWay } from "../src/threads/give-way.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

// Content stays fast while expensive queries run (bench/graphql/attacks.ts).
giveWay();

const servers = new Map<string, Promise<GraphqlServer>>();

/** The signal of the present request: a thread executes one at a time. */
let current = AbortSignal.abort();

/** The main thread ends its wait by itself. */
const endless = new AbortController().signal;

/** Executes one request. */
export async function executeQuery(job: GraphqlJob): Promise<GraphqlReply> {
  const server = await serverOf(job);
  return await withDeadline(endless, Math.max(1, job.endsAtMs - systemClock()), (signal) => {
    current = signal;
    return server(job, () => {
      if (systemClock() > job.endsAtMs || signal.aborted)
        throw new GraphQLError("The query took too long.", { extensions: { code: "QUERY_TIMEOUT" } });
    });
  });
}

function serverOf(job: GraphqlJob): Promise<GraphqlServer> {
  const before = servers.get(job.indexPath);
  if (before !== undefined) return before;
  const opened = openServer(job);
  servers.set(job.indexPath, opened);
  // The next request tries again.
  opened.catch(() => servers.delete(job.indexPath));
  return opened;
}

async function openServer({ indexPath, contentFolder, store }: GraphqlJob): Promise<GraphqlServer> {
  const reader = openIndexReader(indexPath);
  const signatures = createSignatureSource(reader, contentFolder);
  if (store === undefined) return createGraphqlServer({ index: reader, signatures });
  const pages = createMergedPages(reader, await openColumnStore(store), () => current);
  return createGraphqlServer({ index: { ...reader, ...pages }, signatures });
}
