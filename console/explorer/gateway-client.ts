/**
 * The gateway, as the explorer reads it: records by GraphQL, and what only other routes have. Requests go to the origin
 * of the page.
 * @module
 */

export type BlockRecord = Readonly<{ id: string; height: number; timestamp: number; previous: string }>;

export type TransactionRecord = Readonly<{
  id: string;
  owner: Readonly<{ address: string }>;
  recipient: string;
  signatureType: number | null;
  quantity: Readonly<{ winston: string; ar: string }>;
  fee: Readonly<{ winston: string; ar: string }>;
  data: Readonly<{ size: string; type: string | null }>;
  tags: readonly Readonly<{ name: string; value: string }>[];
  block: Readonly<{ id: string; height: number; timestamp: number }> | null;
  bundledIn: Readonly<{ id: string }> | null;
  ingestedAt: number | null;
}>;

export type RecordPage<Row> = Readonly<{ rows: readonly Row[]; next: string | undefined; count: string | null }>;

/** Filters of a list of transactions and items; an absent one does not filter. */
export type TransactionFilter = Readonly<{
  owners?: readonly string[];
  recipients?: readonly string[];
  tags?: readonly Readonly<{ name: string; values: readonly string[] }>[];
  bundledIn?: readonly string[];
  block?: Readonly<{ min: number; max: number }>;
}>;

/** The block's JSON as a node wrote it: what the explorer shows of it. */
export type NodeBlock = Readonly<{
  txs: readonly unknown[];
  tx_root: string;
  block_size: string;
  weave_size: string;
  reward_addr: string;
}>;

/** Rows of one page of a list. */
export const pageRows = 20;

const timeoutMs = 20_000;
const fields = `id owner { address } recipient signatureType quantity { winston ar } fee { winston ar }
  data { size type } tags { name value } block { id height timestamp } bundledIn { id } ingestedAt`;
const blockFields = "id height timestamp previous";

/** The URL of a route. @param path - Below the root of the gateway, without a leading slash. */
export function gatewayUrl(path: string): URL {
  return new URL(`../${path}`, document.baseURI);
}

/** Fetches a route. Rejects when there is no response in time. */
export async function fetchRoute(path: string, signal: AbortSignal, options: RequestInit = {}): Promise<Response> {
  return await fetch(gatewayUrl(path), {
    ...options,
    credentials: "omit",
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  });
}

type Connection<Row> = Readonly<{
  pageInfo: Readonly<{ hasNextPage: boolean; endCursor: string | null }>;
  count?: string | null;
  edges: readonly Readonly<{ node: Row }>[];
}>;

async function ask<Data>(query: string, variables: unknown, signal: AbortSignal): Promise<Data> {
  const response = await fetchRoute("graphql", signal, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ query, variables }),
  });
  const body: Readonly<{ data?: Data | null; errors?: readonly Readonly<{ message: string }>[] }> =
    await response.json();
  const [error] = body.errors ?? [];
  if (error !== undefined) throw new Error(error.message);
  if (body.data === undefined || body.data === null) throw new Error(`GraphQL responded with ${response.status}`);
  return body.data;
}

function pageOf<Row>({ pageInfo, edges, count }: Connection<Row>): RecordPage<Row> {
  const next = pageInfo.hasNextPage ? (pageInfo.endCursor ?? undefined) : undefined;
  return { rows: edges.map(({ node }) => node), next, count: count ?? null };
}

/** One page of transactions and items, the newest first. @param after - The cursor that the page before ended with. */
export async function readTransactions(
  filter: TransactionFilter,
  after: string | undefined,
  signal: AbortSignal,
): Promise<RecordPage<TransactionRecord>> {
  const { transactions } = await ask<{ transactions: Connection<TransactionRecord> }>(
    `query ($owners: [String!], $recipients: [String!], $tags: [TagFilter!], $bundledIn: [ID!], $block: BlockFilter,
       $first: Int, $after: String) {
       transactions(owners: $owners, recipients: $recipients, tags: $tags, bundledIn: $bundledIn, block: $block,
         first: $first, after: $after) { pageInfo { hasNextPage endCursor } count edges { node { ${fields} } } }
     }`,
    { ...filter, first: pageRows, after },
    signal,
  );
  return pageOf(transactions);
}

export type TagPair = Readonly<{ name: string; value: string }>;

/** Rows whose tags are suggested. */
const suggestedRows = 100;

/** The tags of the newest rows that have some tags, without repeats, the newest first. */
export async function readRecentTags(tags: readonly TagPair[], signal: AbortSignal): Promise<readonly TagPair[]> {
  const { transactions } = await ask<{ transactions: Connection<Pick<TransactionRecord, "tags">> }>(
    `query ($tags: [TagFilter!], $first: Int) {
       transactions(tags: $tags, first: $first) {
         pageInfo { hasNextPage endCursor } edges { node { tags { name value } } }
       }
     }`,
    { tags: tags.map(({ name, value }) => ({ name, values: [value] })), first: suggestedRows },
    signal,
  );
  const found = transactions.edges.flatMap(({ node }) => node.tags);
  return [...new Map(found.map((tag) => [JSON.stringify([tag.name, tag.value]), tag])).values()];
}

/** One page of blocks, the newest first. */
export async function readBlocks(after: string | undefined, signal: AbortSignal): Promise<RecordPage<BlockRecord>> {
  const { blocks } = await ask<{ blocks: Connection<BlockRecord> }>(
    `query ($first: Int, $after: String) {
       blocks(first: $first, after: $after) { pageInfo { hasNextPage endCursor } edges { node { ${blockFields} } } }
     }`,
    { first: pageRows, after },
    signal,
  );
  return pageOf(blocks);
}

/** A block by its height or hash; undefined when the index has none. */
export async function readBlock(heightOrHash: string, signal: AbortSignal): Promise<BlockRecord | undefined> {
  const height = isHeight(heightOrHash) ? Number(heightOrHash) : undefined;
  const { blocks } = await ask<{ blocks: Connection<BlockRecord> }>(
    `query ($ids: [ID!], $height: BlockFilter) {
       blocks(ids: $ids, height: $height, first: 1) {
         pageInfo { hasNextPage endCursor } edges { node { ${blockFields} } }
       }
     }`,
    height === undefined ? { ids: [heightOrHash] } : { height: { min: height, max: height } },
    signal,
  );
  return blocks.edges[0]?.node;
}

/** A transaction or item; undefined when the index does not have it. */
export async function readTransaction(id: string, signal: AbortSignal): Promise<TransactionRecord | undefined> {
  const { transaction } = await ask<{ transaction: TransactionRecord | null }>(
    `query ($id: ID!) { transaction(id: $id) { ${fields} } }`,
    { id },
    signal,
  );
  return transaction ?? undefined;
}

/** A page of the entries of a bundle that are not valid data items. */
export type InvalidItems = Readonly<{
  itemCount: number | null;
  invalidCount: number | null;
  items: readonly Readonly<{ index: number; id: string; offset: number; reason: string }>[];
  next: string | null;
}>;

/** Undefined when the gateway does not know the bundle as one. @param after - The `next` of the page before. */
export async function readInvalidItems(
  bundle: string,
  after: string | undefined,
  signal: AbortSignal,
): Promise<InvalidItems | undefined> {
  const cursor = after === undefined ? "" : `&after=${encodeURIComponent(after)}`;
  const response = await fetchRoute(`svc/invalid-items/${bundle}?limit=${pageRows}${cursor}`, signal);
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Error(`the gateway responded with ${response.status}`);
  return await response.json();
}

/** What only the block's own JSON has; undefined when neither the gateway nor a node gives it. */
export async function readNodeBlock(hash: string, signal: AbortSignal): Promise<NodeBlock | undefined> {
  const response = await fetchRoute(`block/hash/${hash}`, signal);
  return response.ok ? await response.json() : undefined;
}

/** The balance of an address, winston; undefined when no node gives it. */
export async function readBalance(address: string, signal: AbortSignal): Promise<bigint | undefined> {
  const response = await fetchRoute(`wallet/${address}/balance`, signal);
  const text = response.ok ? (await response.text()).trim() : "";
  return /^\d+$/.test(text) ? BigInt(text) : undefined;
}

/** The id that a name leads to; undefined when the gateway knows no such name. */
export async function readName(name: string, signal: AbortSignal): Promise<string | undefined> {
  const response = await fetchRoute(`svc/resolver/${encodeURIComponent(name)}`, signal);
  if (!response.ok) return undefined;
  const record: Readonly<{ txId?: unknown }> = await response.json();
  return typeof record.txId === "string" ? record.txId : undefined;
}

/** Largest height that a query takes. */
const heightMax = 2 ** 31 - 1;

export function isHeight(text: string): boolean {
  return /^\d{1,10}$/.test(text) && Number(text) <= heightMax;
}

/** Whether a text has the form of an id or an address. */
export function isId(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text);
}

/** Whether a text has the form of a block's hash. */
export function isBlockHash(text: string): boolean {
  return /^[A-Za-z0-9_-]{64}$/.test(text);
}
