/**
 * Documents made at random from the schema: aliases, fragments, directives, variables, arguments of every kind.
 * @module
 */
import fc from "fast-check";
import { type DocumentNode, type GraphQLObjectType, getNamedType, isObjectType, parse } from "graphql";
import { writeBlockCursor } from "../../src/graphql/cursor.ts";
import { exceededLimits } from "../../src/graphql/document-size.ts";
import { schema } from "../../src/graphql/graphql-schema.ts";
import { tokensMax } from "../../src/graphql/query-limits.ts";
import { writeTransactionCursor } from "../support/transaction-cursor.ts";
import { addressOf, blockOf, idOf } from "./memory-index.ts";

const filters = {
  transaction: [`(id: "${idOf("3/0/96")}")`, `(id: "${idOf("nowhere")}")`, '(id: "x")', "(id: $id)"],
  block: [`(id: "${blockOf(4).hash}")`, '(id: "x")'],
  transactions: [
    "",
    "(first: 3)",
    "(first: $first, after: $after, sort: $sort)",
    '(tags: [{name: "Content-Type", values: ["image/png", "text/html"]}])',
    '(tags: [{name: "Content-Type", values: "image/png", op: NEQ}, {name: "Bundle-Format", values: ["binary"]}], first: 5)',
    "(bundledIn: null, sort: HEIGHT_ASC)",
    `(bundledIn: "${idOf("2/0/-1")}")`,
    `(owners: ["${addressOf("owner 1")}"], block: {min: 2, max: 9}, first: 4)`,
    `(recipients: ["${addressOf("target 1")}"])`,
    `(ids: ["${idOf("1/0/-1")}", "x", "${idOf("5/1/-1")}"])`,
    "(tags: $tags, ingested_at: {min: 1700000004})",
    `(after: "${writeTransactionCursor({ height: 4, txIndex: 0, offset: 96 })}", first: 2)`,
  ],
  blocks: [
    "",
    "(first: 3, sort: HEIGHT_ASC)",
    `(after: "${writeBlockCursor(6)}", first: 4)`,
    "(height: {max: 3})",
    `(ids: ["${blockOf(2).hash}"])`,
  ],
} as const;

/** A document that is valid and within limits, and values for its variables. */
export const documents = fc
  .tuple(
    fc.array(fc.nat({ max: 999 }), { minLength: 40, maxLength: 200 }),
    fc.record({
      id: fc.constantFrom(idOf("7/1/-1"), idOf("0/0/9000"), "none"),
      first: fc.integer({ min: 1, max: 30 }),
      after: fc.constantFrom(null, "", writeTransactionCursor({ height: 8, txIndex: 1, offset: -1 })),
      sort: fc.constantFrom("HEIGHT_ASC", "HEIGHT_DESC"),
      tags: fc.constantFrom(null, [], [{ name: "Content-Type", values: ["text/html"] }], {
        name: "x",
        values: "y",
        op: "NEQ",
      }),
      yes: fc.boolean(),
    }),
  )
  .map(([choices, variables]) => ({ query: writeDocument(choices), variables }))
  .filter(({ query }) => isWithinLimits(parse(query)));

/** A choice may come to more tokens than are allowed, and fragments that are in fragments to more aliases. */
function isWithinLimits(document: DocumentNode): boolean {
  const { tokenCount = Number.POSITIVE_INFINITY } = document;
  return tokenCount <= tokensMax && exceededLimits(document).length === 0;
}

function writeDocument(choices: readonly number[]): string {
  let position = 0;
  const choose = (count: number) => (choices[position++ % choices.length] ?? 0) % count;
  let aliases = 0;
  const fragments: string[] = [];

  const directive = () =>
    ["", "", "", " @include(if: $yes)", " @skip(if: $yes)", " @skip(if: false) @include(if: true)"][choose(6)] ?? "";

  function selection(type: GraphQLObjectType, level: number): string {
    const fields = Object.values(type.getFields());
    const count = type.name === "Query" ? 1 + choose(3) : 1 + choose(fields.length);
    const parts = Array.from({ length: count }, () => fieldOf(type, level));
    const part = parts.at(-1) ?? "__typename";
    const wrap = choose(8);
    if (wrap === 0 && type.name !== "Query") parts.push(`... on ${type.name}${directive()} { ${part} }`);
    if (wrap === 1 && type.name !== "Query") parts.push(`...${directive()} { __typename }`);
    if (wrap === 2 && type.name !== "Query" && fragments.length < 6) {
      const name = `f${fragments.length}`;
      fragments.push(`fragment ${name} on ${type.name} { ${part} }`);
      parts.push(`...${name}${directive()}`, `...${name}`);
    }
    return `{ ${parts.join(" ")} }`;
  }

  function fieldOf(type: GraphQLObjectType, level: number): string {
    const fields = Object.values(type.getFields());
    const field = fields[choose(fields.length)];
    if (field === undefined || choose(20) === 0) return "__typename";
    const inner = getNamedType(field.type);
    // Two uses of one root field would have to agree on their arguments: each has a name of its own.
    const isRoot = type.name === "Query";
    const alias = isRoot || (aliases < 20 && choose(10) === 0) ? `a${aliases++}${isRoot ? "" : field.name}: ` : "";
    const given = isRoot
      ? (filters[field.name as keyof typeof filters][choose(filters[field.name as keyof typeof filters].length)] ?? "")
      : "";
    const body = isObjectType(inner) ? ` ${selection(inner, level + 1)}` : "";
    return `${alias}${field.name}${given}${directive()}${body}`;
  }

  const query = schema.getQueryType();
  const body = query === undefined || query === null ? "" : selection(query, 0);
  // Every variable is used once, whatever was chosen.
  const uses =
    "uses: transaction(id: $id) @include(if: $yes) { id } more: transactions(first: $first, after: $after, sort: $sort, tags: $tags) { count }";
  return `query($id: ID!, $first: Int = 4, $after: String, $sort: SortOrder = HEIGHT_DESC, $tags: [TagFilter!], $yes: Boolean!) { ${uses} ...root } fragment root on Query ${body} ${fragments.join(" ")}`;
}
