/**
 * An executor of query text, for tests: parse, validate, execute.
 * @module
 */
import { GraphQLError } from "graphql";
import { createQueryExecutor, type ExecutionResult, type QuerySources } from "../../src/graphql/execute.ts";
import { createDocuments } from "../../src/graphql/graphql-server.ts";
import type { RequestParameters } from "../../src/graphql/request-parameters.ts";

/** Creates the executor. */
export function createTextExecutor(sources: QuerySources) {
  const documents = createDocuments();
  const execute = createQueryExecutor(sources);
  return async (
    { query, ...rest }: RequestParameters,
    checkpoint: () => void = () => undefined,
  ): Promise<ExecutionResult> => {
    try {
      const document = documents.parse(query);
      const errors = documents.validate(document);
      return errors.length > 0 ? { kind: "rejected", errors } : await execute({ document, ...rest }, checkpoint);
    } catch (error) {
      if (error instanceof GraphQLError) return { kind: "rejected", errors: [error] };
      throw error;
    }
  };
}
