/**
 * A GraphQL request is read where it is executed: a small text can take long to read, and content would wait for it.
 * Lookups are the exception (graphql-lookups.test.ts).
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createGraphqlServer, type GraphqlJob } from "../../src/graphql/graphql-server.ts";
import { createMemoryIndex, noSignatures } from "../graphql/memory-index.ts";
import { openGraphqlServer, poolOf } from "./graphql-server.ts";

const serve = createGraphqlServer({ index: createMemoryIndex([], []), signatures: noSignatures });

describe("the thread that serves, which knows no lookups yet, looks into no request", () => {
  const rows: [string, string, string, string][] = [
    ["JSON", "application/json", "json", '{"query":'],
    ["a document", "application/graphql", "document", "{ nope"],
    ["a form", "application/x-www-form-urlencoded", "form", "query=%7B&variables=["],
  ];
  test.each(rows)("of %s: its text is a query thread's to read", async (_name, type, form, text) => {
    const jobs: unknown[] = [];
    const other = openGraphqlServer({
      pool: poolOf((job: GraphqlJob) => {
        jobs.push(job.request);
        return serve(job, () => undefined);
      }),
    });
    const headers = { "Content-Type": type };
    await (await fetch(`${other.url}/graphql`, { method: "POST", body: text, headers })).bytes();
    await (await fetch(`${other.url}/graphql?${encodeURI(text)}`)).bytes();
    expect(jobs).toEqual([
      { form, text },
      { form: "form", text: encodeURI(text) },
    ]);
    await other.close(0);
  });
});
