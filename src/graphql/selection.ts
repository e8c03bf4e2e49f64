/**
 * Which fields an operation selects, with fragments put in their places and equal response keys merged.
 *
 * Every type of our schema is an object type, so that a fragment always applies after validation.
 * Source: GraphQL specification (October 2021) §6.3.2 CollectFields, §6.4.3 MergeSelectionSets.
 * @module
 */
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type FragmentSpreadNode,
  GraphQLIncludeDirective,
  GraphQLSkipDirective,
  getDirectiveValues,
  type InlineFragmentNode,
  Kind,
  type SelectionSetNode,
} from "graphql";

/** A field to write. */
export type WrittenField = Readonly<{
  /** The response key: the alias, or the name. */
  key: string;
  name: string;
  /** Fields of the object that this field gives; empty for a leaf and for introspection. */
  inner: readonly WrittenField[];
}>;

/** A field of the response, with the syntax that selects it. */
export type SelectedField = WrittenField &
  Readonly<{
    /** The syntax it comes from; arguments are equal in all of them (validated). */
    nodes: readonly [FieldNode, ...FieldNode[]];
    inner: readonly SelectedField[];
  }>;

/** Fragments and variables of the operation whose fields are selected. */
export type SelectionScope = Readonly<{
  fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** Coerced values of the operation's variables; `@skip` and `@include` read them. */
  variables: Readonly<Record<string, unknown>>;
}>;

/** The fragments of a document by name. */
export function fragmentsOf(document: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const node of document.definitions)
    if (node.kind === Kind.FRAGMENT_DEFINITION) fragments.set(node.name.value, node);
  return fragments;
}

/**
 * Selects the fields of one object of the response, and of the objects within it.
 *
 * @param sets - Selection sets of a validated document that all speak of this object.
 * @returns The fields in the order of the response.
 */
export function selectFields(sets: readonly SelectionSetNode[], scope: SelectionScope): SelectedField[] {
  const nodesByKey = new Map<string, [FieldNode, ...FieldNode[]]>();
  const seen = new Set<string>();
  for (const set of sets) gather(set, scope, nodesByKey, seen);
  return [...nodesByKey].map(([key, nodes]) => {
    const name = nodes[0].name.value;
    const innerSets = nodes.flatMap((node) => node.selectionSet ?? []);
    // graphql-js runs introspection; its selections mean nothing to us.
    return { key, name, nodes, inner: name.startsWith("__") ? [] : selectFields(innerSets, scope) };
  });
}

/** A field without its syntax, as plain data for another thread. */
export function writtenField({ key, name, inner }: SelectedField): WrittenField {
  return { key, name, inner: inner.map(writtenField) };
}

/** The name of a field that one object below a field has twice; undefined if each has its fields once. */
export function repeatedField({ inner }: WrittenField): string | undefined {
  const names = new Set<string>();
  for (const field of inner) {
    if (names.has(field.name)) return field.name;
    names.add(field.name);
    const repeated = repeatedField(field);
    if (repeated !== undefined) return repeated;
  }
  return undefined;
}

function gather(
  set: SelectionSetNode,
  scope: SelectionScope,
  nodesByKey: Map<string, [FieldNode, ...FieldNode[]]>,
  seen: Set<string>,
): void {
  for (const node of set.selections) {
    if (!isIncluded(node, scope)) continue;
    if (node.kind === Kind.FIELD) {
      const key = node.alias?.value ?? node.name.value;
      const nodes = nodesByKey.get(key);
      if (nodes === undefined) nodesByKey.set(key, [node]);
      else nodes.push(node);
    } else if (node.kind === Kind.INLINE_FRAGMENT) {
      gather(node.selectionSet, scope, nodesByKey, seen);
    } else if (!seen.has(node.name.value)) {
      seen.add(node.name.value);
      const fragment = scope.fragments.get(node.name.value);
      if (fragment !== undefined) gather(fragment.selectionSet, scope, nodesByKey, seen);
    }
  }
}

function isIncluded(node: FieldNode | FragmentSpreadNode | InlineFragmentNode, scope: SelectionScope): boolean {
  if (node.directives === undefined || node.directives.length === 0) return true;
  const values = { ...scope.variables };
  if (getDirectiveValues(GraphQLSkipDirective, node, values)?.["if"] === true) return false;
  return getDirectiveValues(GraphQLIncludeDirective, node, values)?.["if"] !== false;
}
