/**
 * Reads a valid query for one row by its id into a plan: the row and the fields to write, as plain data for the thread
 * that serves.
 * Source: docs/decisions/117-lookups.md.
 * @module
 */
import { type DefinitionNode, type DocumentNode, Kind, type OperationDefinitionNode, OperationTypeNode } from "graphql";
import { documentCharactersMax, findQuotedId, type LookupPlan } from "./lookups.ts";
import { namesWithin } from "./row-reads.ts";
import { fragmentsOf, repeatedField, type SelectedField, selectFields, writtenField } from "./selection.ts";

/**
 * Plans a document whose execution costs less than its way to a thread and back whatever its text: one short query,
 * of one row, each of whose fields is written once.
 *
 * @param query - The text of the document.
 * @returns Undefined for any other document.
 */
export function planLookup(document: DocumentNode, query: string): LookupPlan | undefined {
  // Directives may leave fields out.
  if (query.length > documentCharactersMax || query.includes("@")) return undefined;
  const [operation, ...others] = document.definitions.filter(isOperation);
  if (operation?.operation !== OperationTypeNode.QUERY || others.length > 0) return undefined;
  const scope = { fragments: fragmentsOf(document), variables: {} };
  const [field, ...otherFields] = selectFields([operation.selectionSet], scope);
  if (field === undefined || otherFields.length > 0 || !isCheap(field)) return undefined;
  const root = rootOf(field);
  const id = readId(field.nodes, operation, query);
  if (root === undefined || id === undefined) return undefined;
  const { key, inner } = writtenField(field);
  return { query, operationName: operation.name?.value, root, id, key, fields: inner };
}

function isOperation(node: DefinitionNode): node is OperationDefinitionNode {
  return node.kind === Kind.OPERATION_DEFINITION;
}

/** A signature may have to be read from a file of content. */
function isCheap(field: SelectedField): boolean {
  return repeatedField(field) === undefined && !namesWithin(field.inner).has("signature");
}

function rootOf({ name }: SelectedField): LookupPlan["root"] | undefined {
  return name === "transaction" || name === "block" ? name : undefined;
}

/** The argument is the first name in quotes in the document, or the only variable, whose value each request sends. */
function readId(
  [node, ...others]: SelectedField["nodes"],
  operation: OperationDefinitionNode,
  query: string,
): LookupPlan["id"] | undefined {
  const value = node.arguments?.[0]?.value;
  if (value?.kind === Kind.STRING) {
    // A field that is selected in two places has its id in both: a document with another one in the first is invalid.
    if (others.length > 0) return undefined;
    const quoted = findQuotedId(query);
    return quoted !== undefined && quoted.at === value.loc?.start ? { at: quoted.at } : undefined;
  }
  if (value?.kind !== Kind.VARIABLE) return undefined;
  // A document that defines more variables than it has uses for is invalid.
  const [definition] = operation.variableDefinitions ?? [];
  return definition?.defaultValue === undefined ? { variable: value.name.value } : undefined;
}
