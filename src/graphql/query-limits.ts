/**
 * Limits of a GraphQL request. Constants only, so that the main thread need not load graphql-js, which takes 6 MiB.
 * Source: docs/reference/graphql.md#limits.
 * @module
 */

/** Bytes of a request's body, or of its query string. */
export const bodyBytesMax = 64 * 2 ** 10;

/** Tokens of a document; the largest query that a published client sends has 310 (introspection). */
export const tokensMax = 2_000;

/** Nesting of fields; the schema itself nests six deep. Introspection has its own limit in graphql-js. */
export const depthMax = 12;

/** Fields with an alias, fragments counted where they are used. */
export const aliasesMax = 30;

/** Characters of an alias: a response repeats it for each row, and for each tag of a row. */
export const aliasLengthMax = 64;

/** Fields directly under the operation, introspection not counted: each is a query of its own. */
export const rootFieldsMax = 30;

/** Fields in all, fragments counted where they are used: bounds what small nested fragments can expand to. */
export const fieldsMax = 1_000;

/** Rows a connection may give. */
export const pageRowsMax = 1_000;

/** Rows that the connections of one request may ask for together. */
export const requestRowsMax = 3_000;

/** Entries of `ids`; as many as rows on a page. */
export const idsMax = 1_000;

/** Entries of `owners`, `recipients`, `bundledIn`, and values of one tag filter: each is a walk of its own. */
export const listMax = 100;

/** Entries of `tags`. */
export const tagFiltersMax = 20;
