/**
 * The records of the interface, as components of the API reference.
 *
 * A field that nodes of today leave out is not required, although the specification's table lists it; fields
 * beyond the table are passed on as nodes send them.
 * @module
 */
import { countSchema, idSchema, patterns, record, ref, type Schema, textSchema } from "./openapi-types.ts";

const integer: Schema = { type: "integer" };
const number: Schema = { type: "number" };
const strings: Schema = { type: "array", items: textSchema };
const dateTime: Schema = { type: "string", format: "date-time" };
/** Integers beyond 2^53, which nodes have come to write as text. */
const amount: Schema = { oneOf: [{ type: "integer" }, { type: "string", pattern: patterns.digits }] };
const maybe = (schema: Schema): Schema => ({ ...schema, nullable: true });
const maybeTime: Schema = { ...countSchema, nullable: true, description: "Seconds since the epoch." };
const tags: Schema = {
  type: "array",
  items: record({ name: textSchema, value: textSchema }),
};

const bucket = record({
  capacity: number,
  refillRate: number,
  capacityBytes: number,
  refillRateBytesPerSec: number,
});

const poa = record({ option: textSchema, tx_path: textSchema, data_path: textSchema, "chunk?": textSchema });

const blockHashSchema: Schema = { type: "string", pattern: patterns.blockHash };

const gatewayRecords = {
  Message: record({ message: textSchema }),
  Filter: { type: "object", description: "A filter over bundles or data items." },
  GatewayInfo: record({
    wallet: textSchema,
    processId: textSchema,
    ans104UnbundleFilter: { $ref: "#/components/schemas/Filter" },
    ans104IndexFilter: { $ref: "#/components/schemas/Filter" },
    supportedManifestVersions: strings,
    release: textSchema,
    services: {
      type: "object",
      additionalProperties: textSchema,
      description: "Other services of this program by name, each with its path here or its address.",
    },
    "features?": { ...strings, description: "What the operator switched on; absent where it is nothing." },
    "rateLimiter?": record(
      {
        enabled: { type: "boolean" },
        dataEgress: record({ buckets: record({ resource: bucket, ip: bucket }) }),
      },
      "Limits of clients and resources, in tokens of 1 KiB; absent where there are none.",
    ),
  }),
  Health: record({
    status: textSchema,
    uptime: number,
    date: dateTime,
    reasons: strings,
    "chain?": record({ height: maybe(countSchema), tip: maybe(countSchema), lag: maybe(integer) }),
  }),
  InvalidItems: record(
    {
      id: idSchema,
      itemCount: maybe(countSchema),
      invalidCount: maybe(countSchema),
      items: {
        type: "array",
        items: record({ index: countSchema, id: idSchema, offset: countSchema, reason: textSchema }),
      },
      next: maybe(textSchema),
    },
    "`itemCount`: all entries of the bundle; null until they were read. `invalidCount`: the invalid ones; null also " +
      "for a bundle that an earlier release unbundled. `offset`: byte of the item in the root's data. " +
      "`next`: `after` of the next page.",
  ),
  Peers: record({
    gateways: {
      type: "object",
      additionalProperties: record({ url: textSchema, dataWeight: number, chunkWeight: number }),
    },
    arweaveNodes: {
      type: "object",
      additionalProperties: record({ url: textSchema, blocks: integer, height: integer, lastSeen: integer }),
    },
  }),
  NameRecord: record({
    txId: idSchema,
    ttlSeconds: countSchema,
    "processId?": textSchema,
    resolvedAt: integer,
    "index?": integer,
    "limit?": integer,
  }),
} as const satisfies Record<string, Schema>;

/** Offsets are bytes of the root transaction's data; bytes travel as base64url. */
const proofRecords = {
  Proof: record(
    {
      version: { type: "integer", enum: [1] },
      id: idSchema,
      kind: { type: "string", enum: ["transaction", "data_item"] },
      stable: { type: "boolean" },
      size: countSchema,
      range: record({ start: countSchema, end: countSchema }),
      block: maybe(record({ height: countSchema, hash: blockHashSchema, text: textSchema })),
      transaction: maybe(
        record({
          id: idSchema,
          owner: idSchema,
          text: textSchema,
          data_at: maybe(countSchema),
          data_size: countSchema,
          data_root: textSchema,
          place: maybe(record({ weave_start: textSchema, weave_end: textSchema, tx_path: textSchema })),
        }),
      ),
      items: { type: "array", items: ref("ProofItem") },
      signature: maybe(
        record({
          type: countSchema,
          signature: textSchema,
          owner: textSchema,
          target: textSchema,
          anchor: textSchema,
          tags: textSchema,
        }),
      ),
      chunks: { type: "array", items: ref("ProofChunk") },
    },
    "What leads from bytes to a block's tx_root; docs/proof.md says how to check it by hand.",
  ),
  ProofItem: record({
    id: idSchema,
    parent: idSchema,
    bundle_start: countSchema,
    entry: maybe(record({ index: countSchema, count: countSchema })),
    start: countSchema,
    data_start: countSchema,
    end: countSchema,
    header: textSchema,
  }),
  ProofChunk: record({
    start: countSchema,
    end: countSchema,
    absolute_end_offset: textSchema,
    data_path: textSchema,
    chunk: maybe(textSchema),
  }),
} as const satisfies Record<string, Schema>;

const chainRecords = {
  NodeStatus: record({
    network: textSchema,
    version: integer,
    release: integer,
    current: textSchema,
    blocks: integer,
    peers: integer,
    queue_length: integer,
    node_state_latency: number,
    height: integer,
  }),
  Block: record({
    "usd_to_ar_rate?": strings,
    "scheduled_usd_to_ar_rate?": strings,
    "packing_2_5_threshold?": amount,
    "strict_data_split_threshold?": amount,
    nonce: textSchema,
    previous_block: textSchema,
    timestamp: integer,
    last_retarget: integer,
    diff: amount,
    height: integer,
    hash: textSchema,
    indep_hash: blockHashSchema,
    txs: { type: "array", items: idSchema },
    "tx_root?": textSchema,
    "tx_tree?": { type: "array", items: {} },
    "wallet_list?": textSchema,
    reward_addr: textSchema,
    tags: { type: "array", items: {} },
    reward_pool: amount,
    weave_size: amount,
    block_size: amount,
    "cumulative_diff?": amount,
    "hash_list_merkle?": textSchema,
    "poa?": poa,
  }),
  Transaction: record({
    format: integer,
    id: idSchema,
    last_tx: textSchema,
    owner: textSchema,
    tags,
    target: textSchema,
    quantity: textSchema,
    data: textSchema,
    "data_tree?": strings,
    "data_root?": textSchema,
    "data_size?": textSchema,
    reward: textSchema,
    signature: textSchema,
  }),
  TransactionOffset: record({ size: textSchema, offset: textSchema }),
  TransactionStatus: record({
    block_height: integer,
    block_indep_hash: blockHashSchema,
    number_of_confirmations: integer,
  }),
  Chunk: record({
    chunk: textSchema,
    data_path: textSchema,
    "tx_path?": textSchema,
    packing: textSchema,
    "absolute_end_offset?": textSchema,
    "chunk_size?": textSchema,
  }),
  PostedChunk: record({
    data_root: textSchema,
    data_size: textSchema,
    data_path: textSchema,
    offset: textSchema,
    chunk: textSchema,
  }),
  ...proofRecords,
  NodeError: { type: "object", description: "A node's own words.", properties: { error: textSchema } },
} as const satisfies Record<string, Schema>;

const sourceStatuses: Schema = {
  type: "array",
  items: record({
    url: { type: "string", description: "The origin only." },
    successShare: number,
    latencyMs: number,
    faults: countSchema,
    wrongs: { ...countSchema, description: "Responses that were provably false." },
    rests: { type: "boolean", description: "Gets no requests for a while after a fault." },
  }),
};

const byName = (schema: Schema): Schema => ({ type: "object", additionalProperties: schema });
const winc: Schema = { type: "string", pattern: "^-?[0-9]+$", description: "Winc or winston, decimal." };

const recentRequests: Schema = {
  type: "array",
  items: record({
    at: countSchema,
    requestId: textSchema,
    method: textSchema,
    path: textSchema,
    service: textSchema,
    route: textSchema,
    status: integer,
    durationMs: number,
    bytes: countSchema,
  }),
};

const contentTotals = record({ responses: countSchema, bytes: countSchema });

const unfinishedBundle = record({
  id: textSchema,
  state: { type: "string", enum: ["filling", "planned", "prepared", "posted", "seeded"] },
  waitsFor: { type: "string", description: "A sentence." },
  itemCount: countSchema,
  itemsSize: countSchema,
  transactionId: maybe(idSchema),
  blockHeight: maybe(countSchema),
  createdAt: countSchema,
  changedAt: countSchema,
  nextAt: countSchema,
  attempts: countSchema,
  lastError: maybe(textSchema),
});

const historyRange = record({
  stepSeconds: countSchema,
  endsAt: maybe({ ...integer, description: "Time of the last sample, Unix milliseconds." }),
  values: byName({ type: "array", items: maybe(number) }),
});

const adminRecords = {
  MetricsHistory: record({
    metrics: { type: "array", items: record({ name: textSchema, unit: textSchema }) },
    hour: historyRange,
    day: historyRange,
  }),
  OperatorStatus: record({
    version: textSchema,
    startedAt: countSchema,
    now: countSchema,
    settings: record({ cacheBytesMax: countSchema, uploadBytesMax: countSchema }),
    chain: record({
      height: maybe(countSchema),
      tip: maybe(countSchema),
      lag: maybe(integer),
      blocksPerSecond: maybe(number),
      secondsToTip: maybe(countSchema),
    }),
    reasons: strings,
    index: byName(countSchema),
    queues: byName(countSchema),
    requests: record({
      responses: countSchema,
      serverErrors: countSchema,
      bytes: countSchema,
      content: record({ memory: contentTotals, disk: contentTotals, source: contentTotals }),
      recent: record({ requests: recentRequests, errors: recentRequests }),
    }),
    lines: {
      type: "array",
      items: record({
        at: countSchema,
        level: { type: "string", enum: ["warn", "error"] },
        message: textSchema,
        fields: textSchema,
      }),
    },
    cache: record({ bytes: countSchema, bytesMax: countSchema, evictedRoots: countSchema }),
    sources: record({
      nodes: sourceStatuses,
      gateways: sourceStatuses,
      chunks: sourceStatuses,
      peers: record({ gateways: countSchema, nodes: countSchema }),
    }),
    disk: byName(record({ freeBytes: countSchema, bytes: countSchema })),
    ledger: maybe(
      record({
        liabilities: winc,
        revenue: winc,
        promotions: winc,
        adjustments: winc,
        paid: byName(winc),
        transfers: byName(countSchema),
      }),
    ),
    uploads: maybe(
      record({
        items: byName(countSchema),
        bytes: byName(countSchema),
        bundles: byName(countSchema),
        oldest: byName(number),
        list: { type: "array", items: unfinishedBundle },
        wallet: maybe(
          record({
            address: textSchema,
            balance: winc,
            spentPerDay: winc,
            daysLeft: maybe(number),
            readAt: countSchema,
          }),
        ),
      }),
    ),
    unreadable: {
      type: "array",
      description: "Of `ledger` and `uploads`, those whose database could not be read; they are null.",
      items: { type: "string", enum: ["ledger", "uploads"] },
    },
  }),
  Debug: record({
    db: record({
      counts: { type: "object", additionalProperties: integer },
      heights: { type: "object", additionalProperties: integer },
      timestamps: { type: "object", additionalProperties: integer },
      bundlePasses: {
        type: "array",
        description: "Passes over older bundles that are under way: after a change of filters, or of `queue-bundles`.",
        items: record({
          reason: { type: "string", enum: ["filters changed", "queued by height"] },
          startHeight: countSchema,
          endHeight: countSchema,
          nextHeight: integer,
          bypassFilter: { type: "boolean" },
        }),
      },
      errors: strings,
      warnings: strings,
    }),
  }),
  BundleStatus: record({
    id: idSchema,
    rootTransactionId: { ...idSchema, nullable: true },
    ...nullable("formatId", "unbundleFilterId", "indexFilterId", "dataItemCount", "matchedDataItemCount"),
    ...nullable("importAttemptCount", "duplicatedDataItemCount", "previousUnbundleFilterId"),
    ...nullable("previousIndexFilterId", "retryAttemptCount"),
    ...times("Queued", "Skipped", "Unbundled", "FullyIndexed", "Retried"),
  }),
  ExportStatus: record({
    status: { type: "string", enum: ["not_started", "running", "completed", "errored"] },
    "outputDir?": textSchema,
    "startHeight?": countSchema,
    "endHeight?": countSchema,
    "maxFileRows?": countSchema,
    "heightPartitionSize?": countSchema,
    "skipL1Transactions?": { type: "boolean" },
    "skipL1Tags?": { type: "boolean" },
    "durationInSeconds?": number,
    "endTime?": dateTime,
    "endTimestamp?": integer,
    "error?": textSchema,
  }),
  BlockList: record({
    blocks: {
      type: "array",
      items: record({
        kind: { type: "string", enum: ["id", "hash", "name"] },
        value: textSchema,
        source: maybe(textSchema),
        notes: maybe(textSchema),
        blockedAt: { ...countSchema, description: "Seconds since the epoch." },
      }),
    },
    next: maybe(textSchema),
  }),
} as const satisfies Record<string, Schema>;

const queryRecords = {
  QueryResult: {
    type: "object",
    properties: {
      data: { type: "object", nullable: true },
      errors: {
        type: "array",
        items: record({
          message: textSchema,
          "locations?": { type: "array", items: record({ line: integer, column: integer }) },
          "path?": { type: "array", items: { oneOf: [textSchema, integer] } },
          "extensions?": record({ "code?": textSchema }),
        }),
      },
    },
  },
} as const satisfies Record<string, Schema>;

/** Every component, by name. */
export const records = { ...gatewayRecords, ...chainRecords, ...adminRecords, ...queryRecords };

function nullable(...names: readonly string[]): Readonly<Record<string, Schema>> {
  return Object.fromEntries(names.map((name) => [name, { ...integer, nullable: true }]));
}

function times(...names: readonly string[]): Readonly<Record<string, Schema>> {
  return Object.fromEntries(
    names.flatMap((name) => [
      [`first${name}At`, maybeTime],
      [`last${name}At`, maybeTime],
    ]),
  );
}
