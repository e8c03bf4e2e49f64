/**
 * Executes a valid document over the index and writes the response body.
 *
 * graphql-js coerces variables and executes introspection. The rest is executed here, because the execution of
 * graphql-js is most of the cost of a page (2 ms for 100 rows; bench/graphql.ts).
 * Source: docs/reference/graphql.md#execution; GraphQL specification (October 2021) §6.
 * @module
 */
import {
  type DocumentNode,
  executeSync,
  GraphQLError,
  type GraphQLFormattedError,
  getArgumentValues,
  getOperationAST,
  getVariableValues,
  Kind,
  locatedError,
  type OperationDefinitionNode,
  OperationTypeNode,
} from "graphql";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { schema } from "./graphql-schema.ts";
import type { BlocksArguments, TransactionsArguments } from "./page-query.ts";
import { requestRowsMax } from "./query-limits.ts";
import { createResponseTexts, type ResponseText, type WriteValue } from "./response-text.ts";
import {
  type QueryIndex,
  type RootContext,
  resolveBlock,
  resolveBlocks,
  resolveTransaction,
  resolveTransactions,
  tagBytesMax,
} from "./root-fields.ts";
import { fragmentsOf, type SelectedField, type SelectionScope, selectFields } from "./selection.ts";
import type { SignatureSource } from "./signature-source.ts";

/** What to execute. */
export type ExecutionRequest = Readonly<{
  /** Parsed and valid. */
  document: DocumentNode;
  variables?: Readonly<Record<string, unknown>> | null | undefined;
  operationName?: string | null | undefined;
}>;

export type ExecutionResult =
  /** A whole body, `data` with `errors` where there were some; `defects` are for the log only. */
  | Readonly<{ kind: "executed"; body: Uint8Array<ArrayBuffer>; defects: readonly unknown[] }>
  /** Nothing was executed: the operation name or the variables are invalid. */
  | Readonly<{ kind: "rejected"; errors: readonly GraphQLError[] }>;

/** Executes requests, one at a time. `checkpoint` is called between steps and throws to end the request. */
export type QueryExecutor = (request: ExecutionRequest, checkpoint: () => void) => Promise<ExecutionResult>;

export type QuerySources = Readonly<{ index: QueryIndex; signatures: SignatureSource }>;

/** Message of an unexpected error in a field. */
const defectMessage = "Internal Server Error";

/** Errors of variables that one response lists. */
const faultsMax = 20;

/** Creates the executor of one index. */
export function createQueryExecutor(sources: QuerySources): QueryExecutor {
  const beginResponse = createResponseTexts();
  return async (request, checkpoint) => {
    const operation = findOperation(request.document, request.operationName ?? undefined);
    if (operation instanceof GraphQLError) return { kind: "rejected", errors: [operation] };
    const variables = getVariableValues(
      schema,
      operation.variableDefinitions ?? [],
      { ...request.variables },
      { maxErrors: faultsMax },
    );
    if (variables.errors !== undefined) return { kind: "rejected", errors: variables.errors };
    const scope = { fragments: fragmentsOf(request.document), variables: variables.coerced };
    const context = { ...sources, checkpoint, rowsLeft: requestRowsMax, tagBytesLeft: tagBytesMax };
    return await execute({ request, operation, scope, context, beginResponse });
  };
}

type Execution = Readonly<{
  request: ExecutionRequest;
  operation: OperationDefinitionNode;
  scope: SelectionScope;
  context: RootContext;
  beginResponse: () => ResponseText;
}>;

function findOperation(document: DocumentNode, name: string | undefined): OperationDefinitionNode | GraphQLError {
  const operation = getOperationAST(document, name);
  if (operation === null || operation === undefined) {
    const message =
      name === undefined
        ? "Must provide operation name if query contains multiple operations."
        : `Unknown operation named "${name}".`;
    return new GraphQLError(message);
  }
  if (operation.operation === OperationTypeNode.QUERY) return operation;
  return new GraphQLError(`Schema is not configured to execute ${operation.operation} operation.`, {
    nodes: operation,
  });
}

/** Results of the root fields; `writers` is undefined where `data` is null. */
type Resolution = Readonly<{
  writers: readonly Readonly<{ key: string; write: WriteValue }>[] | undefined;
  errors: readonly GraphQLFormattedError[];
  defects: readonly unknown[];
}>;

async function execute(execution: Execution): Promise<ExecutionResult> {
  // One snapshot of the index for the whole response: pages, counts and root fields agree.
  const { writers, errors, defects } = await execution.context.index.snapshot(() => resolveAll(execution));
  return { kind: "executed", body: writeBody(execution.beginResponse(), writers, errors), defects };
}

async function resolveAll(execution: Execution): Promise<Resolution> {
  const writers: { key: string; write: WriteValue }[] = [];
  const errors: GraphQLFormattedError[] = [];
  const defects: unknown[] = [];
  for (const field of selectFields([execution.operation.selectionSet], execution.scope)) {
    try {
      writers.push({ key: field.key, write: await resolve(field, execution) });
    } catch (error) {
      if (!isPublic(error) || error.cause !== undefined) defects.push(error);
      errors.push(locate(error, field).toJSON());
      // A null where the schema allows none makes the whole of `data` null: the rest need not be read.
      if (!nullableRoots.has(field.name)) return { writers: undefined, errors, defects };
      writers.push({ key: field.key, write: writeNull });
    }
  }
  return { writers, errors, defects };
}

const writeNull: WriteValue = (response) => response.add("null");

const nullableRoots: ReadonlySet<string> = new Set(["transaction", "block", "__type"]);

async function resolve(field: SelectedField, execution: Execution): Promise<WriteValue> {
  const { context, scope } = execution;
  context.checkpoint();
  if (field.name.startsWith("__")) return introspect(field, execution);
  const definition = schema.getQueryType()?.getFields()[field.name];
  assert(definition !== undefined, "validation found every root field in the schema");
  // graphql-js coerced them to the types of the schema; the types below repeat them.
  const given = getArgumentValues(definition, field.nodes[0], { ...scope.variables });
  switch (field.name) {
    case "transaction":
      return await resolveTransaction(given as { id: string }, field, context);
    case "transactions":
      return await resolveTransactions(given as TransactionsArguments, field, context);
    case "block":
      return resolveBlock(given as { id: string }, field, context);
    default:
      assert(field.name === "blocks", "the schema has four root fields");
      return resolveBlocks(given as BlocksArguments, field, context);
  }
}

/** `__schema`, `__type` and `__typename`: graphql-js executes a document that has only this field. */
function introspect(field: SelectedField, { operation, scope, request }: Execution): WriteValue {
  const only = { ...operation, selectionSet: { kind: Kind.SELECTION_SET, selections: field.nodes } } as const;
  const result = executeSync({
    schema,
    document: { kind: Kind.DOCUMENT, definitions: [only, ...scope.fragments.values()] },
    variableValues: { ...request.variables },
  });
  const error = result.errors?.[0];
  if (error !== undefined) throw error;
  const json = JSON.stringify(result.data?.[field.key] ?? null);
  return (response) => response.add(json);
}

function writeBody(
  response: ResponseText,
  writers: Resolution["writers"],
  errors: readonly GraphQLFormattedError[],
): Uint8Array<ArrayBuffer> {
  response.add(errors.length === 0 ? '{"data":' : `{"errors":${JSON.stringify(errors)},"data":`);
  if (writers === undefined) response.add("null");
  else {
    response.add("{");
    for (const [index, { key, write }] of writers.entries()) {
      response.add(`${index === 0 ? "" : ","}${JSON.stringify(key)}:`);
      write(response);
    }
    response.add("}");
  }
  response.add("}");
  return response.finish();
}

/** Whether an error's message may be shown to the client. */
function isPublic(error: unknown): error is GraphQLError | Failure {
  return error instanceof GraphQLError || error instanceof Failure;
}

function locate(error: unknown, field: SelectedField): GraphQLError {
  const shown = isPublic(error) ? error : new GraphQLError(defectMessage);
  return locatedError(shown, field.nodes, [field.key]);
}
