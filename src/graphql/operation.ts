/**
 * Chooses the operation of a valid document, and coerces its variables.
 * Source: GraphQL specification (October 2021) §6.1.
 * @module
 */
import {
  type DocumentNode,
  GraphQLError,
  getOperationAST,
  getVariableValues,
  type OperationDefinitionNode,
} from "graphql";
import { schema } from "./graphql-schema.ts";
import { fragmentsOf, type SelectionScope } from "./selection.ts";

export type ExecutionRequest = Readonly<{
  /** Parsed and valid. */
  document: DocumentNode;
  variables?: Readonly<Record<string, unknown>> | null | undefined;
  operationName?: string | null | undefined;
}>;

/** An operation with its variables. */
export type PreparedOperation = Readonly<{ operation: OperationDefinitionNode; scope: SelectionScope }>;

/** Errors of variables that one response lists. */
const faultsMax = 20;

/** Prepares the operation that a request names. @returns Errors when the name or the variables are invalid. */
export function prepareOperation(request: ExecutionRequest): PreparedOperation | readonly GraphQLError[] {
  const operation = findOperation(request.document, request.operationName ?? undefined);
  if (operation instanceof GraphQLError) return [operation];
  const variables = getVariableValues(
    schema,
    operation.variableDefinitions ?? [],
    { ...request.variables },
    { maxErrors: faultsMax },
  );
  if (variables.errors !== undefined) return variables.errors;
  return { operation, scope: { fragments: fragmentsOf(request.document), variables: variables.coerced } };
}

function findOperation(document: DocumentNode, name: string | undefined): OperationDefinitionNode | GraphQLError {
  const operation = getOperationAST(document, name);
  if (operation !== null && operation !== undefined) return operation;
  const message =
    name === undefined
      ? "Must provide operation name if query contains multiple operations."
      : `Unknown operation named "${name}".`;
  return new GraphQLError(message);
}
