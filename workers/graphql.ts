/**
 * The query threads: each responds to whole GraphQL requests over its own read-only connection.
 * @module
 */
import { GraphQLError } from "graphql";
import {
  createGraphqlServer,
  type GraphqlJob,
  type GraphqlReply,
  type GraphqlServer,
} from "../src/graphql/graphql-server.ts";
import { createSignatureSource } from "../src/graphql/signature-source.ts";
import { systemClock } from "../src/lib/clock.ts";
import { openIndexReader } from "../src/store/index/index-reader.ts";
import { giveWay } from "../src/threads/give-way.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

// Content stays fast while expensive queries run (bench/attacks.ts).
giveWay();

const servers = new Map<string, GraphqlServer>();

/** Executes one request. */
export async function executeQuery(job: GraphqlJob): Promise<GraphqlReply> {
  return await serverOf(job)(job.request, job.mediaType, () => {
    if (systemClock() > job.endsAtMs)
      throw new GraphQLError("The query took too long.", { extensions: { code: "QUERY_TIMEOUT" } });
  });
}

function serverOf({ indexPath, contentFolder }: GraphqlJob): GraphqlServer {
  const before = servers.get(indexPath);
  if (before !== undefined) return before;
  const index = openIndexReader(indexPath);
  const server = createGraphqlServer({ index, signatures: createSignatureSource(index, contentFolder) });
  servers.set(indexPath, server);
  return server;
}
