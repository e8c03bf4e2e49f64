/**
 * The query threads: each answers whole GraphQL requests over a read-only connection of its own.
 * @module
 */
import { GraphQLError } from "graphql";
import { createQueryExecutor, type QueryExecutor } from "../src/graphql/execute.ts";
import type { QueryJob } from "../src/graphql/graphql-job.ts";
import { executeSent, type QueryReply } from "../src/graphql/graphql-response.ts";
import { createSignatureSource } from "../src/graphql/signature-source.ts";
import { systemClock } from "../src/lib/clock.ts";
import { openIndexReader } from "../src/store/index/reader.ts";
import { giveWay } from "../src/threads/give-way.ts";

// Content is served at once also while many ask for what takes long (bench/attacks.ts).
giveWay();

const executors = new Map<string, QueryExecutor>();

/** Answers one request. */
export function executeQuery(job: QueryJob): QueryReply {
  return executeSent(job.request, executorOf(job), () => {
    if (systemClock() > job.endsAtMs)
      throw new GraphQLError("The query took too long.", { extensions: { code: "QUERY_TIMEOUT" } });
  });
}

function executorOf({ indexPath, contentFolder }: QueryJob): QueryExecutor {
  const before = executors.get(indexPath);
  if (before !== undefined) return before;
  const index = openIndexReader(indexPath);
  const signatures = createSignatureSource(index, contentFolder);
  const executor = createQueryExecutor({ index, signatures });
  executors.set(indexPath, executor);
  return executor;
}

/** Answers, and so shows that the thread starts and works. */
export function ping(): "ok" {
  return "ok";
}
