/**
 * Executes a valid document over the index and writes the response body.
 *
 * graphql-js coerces variables and executes introspection. The rest is executed here, because the execution of
 * graphql-js is most of the cost of a page (2 ms for 100 rows; bench/graphql/graphql.ts).
 * Source: docs/reference/graphql.md#execution; GraphQL specification (October 2021) §6.
 * @module
 */
import {
  type ASTNode,
  BREAK,
  type DocumentNode,
  executeSync,
  GraphQLError,
  type GraphQLFormattedError,
  getArgumentValues,
  Kind,
  locatedError,
  type OperationDefinitionNode,
  OperationTypeNode,
  visit,
} from "graphql";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { schema } from "./graphql-schema.ts";
import { type ExecutionRequest, prepareOperation } from "./operation.ts";
import { requestRowsMax } from "./query-limits.ts";
import {
  addBytes,
  addText,
  createOutputs,
  finished,
  nullBytes,
  type Output,
  ResponseTooLarge,
  type WriteValue,
} from "./response-bytes.ts";
import { createRootFields, type QueryIndex, type RootContext, tagBytesMax } from "./root-fields.ts";
import { type SelectedField, type SelectionScope, selectFields } from "./selection.ts";
import type { SignatureSource } from "./signature-source.ts";

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

/** Creates the executor of one index. */
export function createQueryExecutor({ index, signatures }: QuerySources): QueryExecutor {
  const beginOutput = createOutputs();
  const rootsOf = createOperations(createRootFields(signatures));
  return async (request, checkpoint) => {
    const prepared = prepareOperation(request);
    if (!("operation" in prepared)) return { kind: "rejected", errors: prepared };
    const { operation, scope } = prepared;
    if (operation.operation !== OperationTypeNode.QUERY)
      return { kind: "rejected", errors: [notConfigured(operation)] };
    const context = { index, checkpoint, rowsLeft: requestRowsMax, tagBytesLeft: tagBytesMax };
    const execution = { request, operation, scope, context };
    const roots = rootsOf(request.document, operation, scope);
    // One snapshot of the index for the whole response: pages, counts and root fields agree.
    const { writers, errors, defects } = await index.snapshot(() => resolveAll(roots, execution));
    return { kind: "executed", body: bodyOf(beginOutput, writers, errors), defects };
  };
}

type Execution = Readonly<{
  request: ExecutionRequest;
  operation: OperationDefinitionNode;
  scope: SelectionScope;
  context: RootContext;
}>;

/** A root field of an operation: what is selected, compiled. */
type Root = Readonly<{
  field: SelectedField;
  resolve: (execution: Execution) => WriteValue | Promise<WriteValue>;
}>;

type Operations = (
  document: DocumentNode,
  operation: OperationDefinitionNode,
  scope: SelectionScope,
) => readonly Root[];

/** Compiles operations: once, unless variables decide what is selected. */
function createOperations(fields: ReturnType<typeof createRootFields>): Operations {
  // Documents that are used again are cached by their text (graphql-server.ts), and keep their operations.
  const compiled = new WeakMap<OperationDefinitionNode, readonly Root[]>();
  return (document, operation, scope) => {
    const known = compiled.get(operation);
    if (known !== undefined) return known;
    const roots = selectFields([operation.selectionSet], scope).map((field) => compileRoot(field, fields));
    if (!selectsByVariables(document)) compiled.set(operation, roots);
    return roots;
  };
}

/** Whether a directive of a document has a variable. */
function selectsByVariables(document: DocumentNode): boolean {
  return contains(document, (node) => node.kind === Kind.DIRECTIVE && hasVariable(node));
}

function hasVariable(node: ASTNode): boolean {
  return contains(node, ({ kind }) => kind === Kind.VARIABLE);
}

function contains(node: ASTNode, isWanted: (node: ASTNode) => boolean): boolean {
  let found = false;
  visit(node, {
    enter: (inner) => {
      if (!isWanted(inner)) return undefined;
      found = true;
      return BREAK;
    },
  });
  return found;
}

function compileRoot(field: SelectedField, fields: ReturnType<typeof createRootFields>): Root {
  if (field.name.startsWith("__")) return { field, resolve: (execution) => introspect(field, execution) };
  const definition = schema.getQueryType()?.getFields()[field.name];
  const makeResolver = fields[field.name];
  assert(definition !== undefined && makeResolver !== undefined, "validation found every root field in the schema");
  const resolve = makeResolver(field);
  const [node] = field.nodes;
  const isConstant = !(node.arguments ?? []).some(hasVariable);
  let constant: unknown;
  return {
    field,
    resolve: ({ scope, context }) => {
      // graphql-js coerces them to the types of the schema.
      const given = constant ?? getArgumentValues(definition, node, { ...scope.variables });
      if (isConstant) constant = given;
      return resolve(given, context);
    },
  };
}

function notConfigured(operation: OperationDefinitionNode): GraphQLError {
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

async function resolveAll(roots: readonly Root[], execution: Execution): Promise<Resolution> {
  const writers: { key: string; write: WriteValue }[] = [];
  const errors: GraphQLFormattedError[] = [];
  const defects: unknown[] = [];
  for (const { field, resolve } of roots) {
    try {
      execution.context.checkpoint();
      writers.push({ key: field.key, write: await resolve(execution) });
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

const writeNull: WriteValue = (out) => addBytes(out, nullBytes);

const nullableRoots: ReadonlySet<string> = new Set(["transaction", "block", "__type"]);

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
  return (out) => addText(out, json);
}

/** The body; of a response above the largest size only the error. */
function bodyOf(
  begin: () => Output,
  writers: Resolution["writers"],
  errors: readonly GraphQLFormattedError[],
): Uint8Array<ArrayBuffer> {
  try {
    return writeBody(begin(), writers, errors);
  } catch (error) {
    if (!(error instanceof ResponseTooLarge)) throw error;
    return writeBody(begin(), undefined, [...errors, { message: error.message }]);
  }
}

function writeBody(
  out: Output,
  writers: Resolution["writers"],
  errors: readonly GraphQLFormattedError[],
): Uint8Array<ArrayBuffer> {
  addText(out, errors.length === 0 ? '{"data":' : `{"errors":${JSON.stringify(errors)},"data":`);
  if (writers === undefined) addBytes(out, nullBytes);
  else {
    addText(out, "{");
    for (const [index, { key, write }] of writers.entries()) {
      addText(out, `${index === 0 ? "" : ","}${JSON.stringify(key)}:`);
      write(out);
    }
    addText(out, "}");
  }
  addText(out, "}");
  return finished(out);
}

/** Whether an error's message may be shown to the client. */
function isPublic(error: unknown): error is GraphQLError | Failure {
  return error instanceof GraphQLError || error instanceof Failure;
}

function locate(error: unknown, field: SelectedField): GraphQLError {
  const shown = isPublic(error) ? error : new GraphQLError(defectMessage);
  return locatedError(shown, field.nodes, [field.key]);
}
