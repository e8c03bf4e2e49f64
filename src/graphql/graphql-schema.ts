/**
 * The GraphQL schema, as text and built.
 *
 * Names, defaults and nullability are what published clients expect; `signature` and `owner.key` may be null because
 * a data item's are read from its bytes, which need not be on this disk.
 * Source: docs/reference/graphql.md.
 * @module
 */
import { buildSchema } from "graphql";

/** The schema as its authors write it; introspection shows the descriptions. */
export const schemaText = `
type Query {
  "One transaction or data item by its id; null when the index does not know it."
  transaction(id: ID!): Transaction

  """
  Transactions and data items. Filters of different kinds are joined by AND, entries of one list by OR; the entries of
  \`tags\` by AND. An empty list does not filter.
  """
  transactions(
    "Only these ids."
    ids: [ID!]
    "Only these owner addresses."
    owners: [String!]
    "Only these target addresses."
    recipients: [String!]
    "Only rows whose tags match every entry."
    tags: [TagFilter!]
    "Only data items directly in one of these bundles; null means only transactions of the chain itself."
    bundledIn: [ID!]
    "Only rows in blocks of these heights; pending rows are in none."
    block: BlockFilter
    "Only rows that this gateway indexed in this time."
    ingested_at: RangeFilter
    "Rows a page, 1 or more; more than 1000 means 1000."
    first: Int = 10
    "The cursor of the last row of the page before."
    after: String
    "Pending rows come first in HEIGHT_DESC and last in HEIGHT_ASC."
    sort: SortOrder = HEIGHT_DESC
    "The former name of bundledIn."
    parent: [ID!] @deprecated(reason: "Use \`bundledIn\`.")
  ): TransactionConnection!

  "One block by its id (independent hash)."
  block(id: String!): Block

  "Blocks."
  blocks(
    "Only these ids (independent hashes)."
    ids: [ID!]
    "Only these heights."
    height: BlockFilter
    "Rows a page, 1 or more; more than 1000 means 1000."
    first: Int = 10
    "The cursor of the last row of the page before."
    after: String
    sort: SortOrder = HEIGHT_DESC
  ): BlockConnection!
}

"Changes of the index as they happen, sent as server-sent events."
type Subscription {
  """
  Changes of transactions and data items, from now on or after a cursor. The filters are those of the query. A row
  passes \`bundledIn\` and \`block\` by its place after the change or before it.
  """
  transactions(
    "Only these ids."
    ids: [ID!]
    "Only these owner addresses."
    owners: [String!]
    "Only these target addresses."
    recipients: [String!]
    "Only rows whose tags match every entry."
    tags: [TagFilter!]
    "Only data items directly in one of these bundles; null means only transactions of the chain itself."
    bundledIn: [ID!]
    "Only rows in blocks of these heights; pending rows are in none."
    block: BlockFilter
    "The cursor of the last event; the header Last-Event-ID replaces it."
    after: String
  ): TransactionEvent!

  "Blocks that are on the chain from now on, or no longer; from now on or after a cursor."
  blocks(
    "Only these heights."
    height: BlockFilter
    "The cursor of the last event; the header Last-Event-ID replaces it."
    after: String
  ): BlockEvent!
}

enum EventKind {
  "The row is listed and in no block; again when a verified row replaces an announced one."
  PENDING
  "The block is on the chain, or the row is in a block; again when a row moves."
  MINED
  "The block, or the block of the row, was forked away."
  FORKED
  "The row is no longer pending, and in no block."
  DROPPED
  "Changes are missing: everything must be read again."
  RESET
}

type TransactionEvent {
  "The position after this event."
  cursor: String!
  kind: EventKind!
  "Null for RESET."
  node: EventTransaction
  "Why changes are missing; null for all other kinds."
  reason: String
}

type BlockEvent {
  "The position after this event."
  cursor: String!
  kind: EventKind!
  "Null for RESET."
  node: Block
  "Why changes are missing; null for all other kinds."
  reason: String
}

"What an event says of a transaction or data item; \`transaction\` has the rest."
type EventTransaction {
  id: ID!
  "The target address; empty when absent."
  recipient: String!
  owner: EventOwner!
  data: MetaData!
  tags: [Tag!]!
  "The block that a forked row was in; null for PENDING and DROPPED."
  block: Block
  "As \`block\`: the bundle that contains the data item; null for a transaction of the chain."
  bundledIn: Bundle
  "Whether the row is pending from now on; a forked row may be."
  pending: Boolean!
}

type EventOwner {
  address: String!
}

enum SortOrder {
  "Oldest first."
  HEIGHT_ASC
  "Newest first."
  HEIGHT_DESC
}

"How a tag filter compares."
enum TagOperator {
  "A tag with this name has one of the values."
  EQ
  "No tag with this name has any of the values."
  NEQ
}

"Rows by one tag; names and values are compared byte by byte."
input TagFilter {
  name: String!
  values: [String!]!
  op: TagOperator = EQ
}

"Heights, both inclusive."
input BlockFilter {
  min: Int
  max: Int
}

"Unix seconds, both inclusive."
input RangeFilter {
  min: Int
  max: Int
}

type TransactionConnection {
  pageInfo: PageInfo!
  edges: [TransactionEdge!]!
  "Rows on all pages together; null when counting them would cost more than a page."
  count: String
}

type TransactionEdge {
  cursor: String!
  node: Transaction!
}

type BlockConnection {
  pageInfo: PageInfo!
  edges: [BlockEdge!]!
  "Rows on all pages together; null when counting them would cost more than a page."
  count: String
}

type BlockEdge {
  cursor: String!
  node: Block!
}

type PageInfo {
  hasNextPage: Boolean!
  "The cursor of this page's last row; null when the page is empty."
  endCursor: String
}

"A transaction of the chain, or a data item in a bundle."
type Transaction {
  id: ID!
  "The anchor (of a transaction: last_tx); empty when absent."
  anchor: String!
  "Null when the item's bytes are not on this gateway's disk."
  signature: String
  "The ANS-104 signature type; 1 is RSA."
  signatureType: Int
  "The target address; empty when absent."
  recipient: String!
  owner: Owner!
  fee: Amount!
  quantity: Amount!
  data: MetaData!
  tags: [Tag!]!
  "Null while the transaction is pending."
  block: Block
  "The bundle that contains the data item; null for a transaction of the chain."
  parent: Parent @deprecated(reason: "Use \`bundledIn\`.")
  "The bundle that contains the data item; null for a transaction of the chain."
  bundledIn: Bundle
  "When this gateway indexed the row, in Unix seconds."
  ingestedAt: Int
}

type Parent {
  id: ID!
}

type Bundle {
  id: ID!
}

type Block {
  "The independent hash."
  id: ID!
  "Unix seconds."
  timestamp: Int!
  height: Int!
  "The id of the block before; empty for the first."
  previous: ID!
}

type MetaData {
  "Bytes of the payload."
  size: String!
  "The Content-Type tag."
  type: String
}

"An amount in both units; exact."
type Amount {
  winston: String!
  ar: String!
}

type Owner {
  address: String!
  "The public key; null when it must be read from bytes that are not on this gateway's disk."
  key: String
}

type Tag {
  name: String!
  value: String!
}
`;

/** The schema, built; the one instance that everything here shares. */
export const schema = buildSchema(schemaText);
