/**
 * The size of a GraphQL document: counted over its syntax before anything else looks at it.
 *
 * graphql-js validates some rules in time that grows with the square of the fields, so these limits come first.
 * Source: docs/reference/graphql.md#limits.
 * @module
 */
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from "graphql";
import { aliasesMax, aliasLengthMax, depthMax, fieldsMax, rootFieldsMax } from "./query-limits.ts";

/** Size of a document; every number saturates at `Number.MAX_SAFE_INTEGER`. */
type Size = Readonly<{ depth: number; aliases: number; aliasLength: number; fields: number }>;

/**
 * Counts every operation of a document against the limits.
 *
 * @returns One error a limit that is exceeded; empty means within all.
 */
export function exceededLimits(document: DocumentNode): GraphQLError[] {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const node of document.definitions)
    if (node.kind === Kind.FRAGMENT_DEFINITION) fragments.set(node.name.value, node);
  const measure = createMeasure(fragments);
  return document.definitions
    .filter((node) => node.kind === Kind.OPERATION_DEFINITION)
    .flatMap((operation) => exceededBy(operation, measure));
}

function exceededBy(operation: OperationDefinitionNode, measure: Measure): GraphQLError[] {
  const size = measure.size(operation.selectionSet);
  const roots = measure.roots(operation.selectionSet);
  const rows: readonly (readonly [what: string, found: number, max: number])[] = [
    ["depth", size.depth, depthMax],
    ["count of aliases", size.aliases, aliasesMax],
    ["longest alias", size.aliasLength, aliasLengthMax],
    ["count of fields", size.fields, fieldsMax],
    ["count of root fields", roots, rootFieldsMax],
  ];
  return rows
    .filter(([, found, max]) => found > max)
    .map(
      ([what, found, max]) =>
        new GraphQLError(`The query's ${what} is ${found}; at most ${max} is allowed.`, {
          nodes: operation,
          extensions: { code: "QUERY_TOO_COMPLEX" },
        }),
    );
}

type Measure = Readonly<{
  size: (set: SelectionSetNode) => Size;
  /** Root fields but `__…`. */
  roots: (set: SelectionSetNode) => number;
}>;

const nothing: Size = { depth: 0, aliases: 0, aliasLength: 0, fields: 0 };

function createMeasure(fragments: ReadonlyMap<string, FragmentDefinitionNode>): Measure {
  // Each fragment is measured once, so that nested fragments cost their text and not their expansion.
  const sizes = new Map<string, Size>();
  const rootCounts = new Map<string, number>();

  function size(set: SelectionSetNode): Size {
    let sum = nothing;
    for (const node of set.selections) {
      if (node.kind === Kind.FIELD) sum = join(sum, sizeOfField(node));
      else if (node.kind === Kind.INLINE_FRAGMENT) sum = join(sum, size(node.selectionSet));
      else sum = join(sum, ofFragment(node.name.value, sizes, size, nothing));
    }
    return sum;
  }

  function sizeOfField(node: FieldNode): Size {
    const inner = node.selectionSet === undefined ? nothing : size(node.selectionSet);
    const introspects = node.name.value.startsWith("__");
    return {
      depth: introspects ? 0 : inner.depth + 1,
      aliases: inner.aliases + (node.alias === undefined ? 0 : 1),
      aliasLength: Math.max(inner.aliasLength, node.alias?.value.length ?? 0),
      fields: inner.fields + 1,
    };
  }

  function roots(set: SelectionSetNode): number {
    let sum = 0;
    for (const node of set.selections) {
      if (node.kind === Kind.FIELD) sum += node.name.value.startsWith("__") ? 0 : 1;
      else if (node.kind === Kind.INLINE_FRAGMENT) sum += roots(node.selectionSet);
      else sum += ofFragment(node.name.value, rootCounts, roots, 0);
    }
    return Math.min(sum, Number.MAX_SAFE_INTEGER);
  }

  function ofFragment<Value>(
    name: string,
    known: Map<string, Value>,
    count: (set: SelectionSetNode) => Value,
    none: Value,
  ): Value {
    const before = known.get(name);
    if (before !== undefined) return before;
    const fragment = fragments.get(name);
    if (fragment === undefined) return none; // graphql-js says "Unknown fragment"
    known.set(name, none); // a cycle ends here; graphql-js says that it is one
    const value = count(fragment.selectionSet);
    known.set(name, value);
    return value;
  }

  return { size, roots };
}

function join(a: Size, b: Size): Size {
  return {
    depth: Math.max(a.depth, b.depth),
    aliases: Math.min(a.aliases + b.aliases, Number.MAX_SAFE_INTEGER),
    aliasLength: Math.max(a.aliasLength, b.aliasLength),
    fields: Math.min(a.fields + b.fields, Number.MAX_SAFE_INTEGER),
  };
}
