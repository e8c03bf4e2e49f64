/**
 * Reads a subscription to live events from the query of a request: GraphQL's filters as parameters.
 * Source: docs/reference/gateway.md#events.
 * @module
 */
import { type Address, idFormat, isAddress, isOwnerAddress } from "../../arweave/id.ts";
import { Failure } from "../../failures.ts";
import type { EventFilter, RowFilter } from "../../gateway/events/event-filter.ts";
import { idsMax, listMax, tagFiltersMax } from "../../graphql/query-limits.ts";
import { readJson } from "../../lib/json.ts";
import {
  enumSchema,
  listSchema,
  objectSchema,
  refined,
  stringSchema,
  type ValueSchema,
} from "../../lib/value-schema.ts";
import type { Bounds, TagPlan } from "../../store/index/index-types.ts";
import { type Cursor, readCursor } from "../../store/index/journal/journal-cursor.ts";
import { pendingHeight } from "../../store/index/place.ts";
import { queryParameter } from "../parameter.ts";

const addressText = stringSchema({ pattern: "^[0-9a-zA-Z_-]{43}$" });
const ownerFormat: ValueSchema<Address> = refined(addressText, isOwnerAddress, "32 bytes in canonical base64url.");
const recipientFormat: ValueSchema<Address> = refined(addressText, isAddress, "43 characters of base64url.");
const shortTagFormat = stringSchema({ pattern: "^[^:]+:[\\s\\S]*$" });
const cursorFormat = stringSchema({ pattern: "^[0-9a-f]{12}-(0|[1-9][0-9]{0,14})$" });
const heightFormat = stringSchema({ pattern: "^(0|[1-9][0-9]{0,6})$" });
const kinds = ["transaction", "item"] as const;
const topics = ["transactions", "blocks"] as const;

/** The parameters of the query; ids, addresses and `tag` may repeat, and `topic`. */
export const eventParameters = {
  id: queryParameter("id", idFormat, "Only these ids."),
  owner: queryParameter("owner", ownerFormat, "Only rows of these owners."),
  recipient: queryParameter("recipient", recipientFormat, "Only rows with these target addresses."),
  tag: queryParameter(
    "tag",
    shortTagFormat,
    "Only rows with this tag, as `name:value`. Tags of one name are joined by OR, of several names by AND.",
  ),
  tags: queryParameter("tags", stringSchema(), "Only rows whose tags match every entry: GraphQL's `tags`, as JSON."),
  kind: queryParameter("kind", enumSchema(kinds), "Only transactions of the chain itself, or only data items."),
  bundledIn: queryParameter("bundledIn", idFormat, "Only data items directly in one of these bundles."),
  minHeight: queryParameter("minHeight", heightFormat, "Only blocks from this height on, and rows in these blocks."),
  maxHeight: queryParameter("maxHeight", heightFormat, "Only blocks up to this height, and rows in these blocks."),
  topic: queryParameter("topic", enumSchema(topics), "Rows or blocks alone; both when absent."),
  after: queryParameter("after", cursorFormat, "The cursor of the last event, where `Last-Event-ID` cannot be set."),
} as const;

const tagSchema = objectSchema(
  { name: stringSchema(), values: listSchema(stringSchema(), 0, listMax) },
  { op: enumSchema<TagPlan["op"]>(["EQ", "NEQ"]) },
);
const tagsSchema = listSchema(tagSchema, 0, tagFiltersMax);

const most: Readonly<Record<keyof typeof eventParameters, number>> = {
  id: idsMax,
  owner: listMax,
  recipient: listMax,
  tag: listMax,
  bundledIn: listMax,
  topic: 2,
  tags: 1,
  kind: 1,
  minHeight: 1,
  maxHeight: 1,
  after: 1,
};

/** The events that a client requests. */
export type AskedEvents = Readonly<{ filter: EventFilter; after: Cursor | undefined }>;

/**
 * Reads a query.
 *
 * @param lastEventId - The header, which is newer than the query after a reconnection; null or empty when absent.
 * @throws Failure `malformed_input` for unknown parameters, wrong values, and too many of them.
 */
export function readEvents(query: string, lastEventId: string | null): AskedEvents {
  const sent = new URLSearchParams(query);
  for (const name of sent.keys()) if (!Object.hasOwn(eventParameters, name)) throw reject(name, "is not a parameter");
  const owners = listOf(sent, "owner", ownerFormat.is);
  const ids = listOf(sent, "id", eventParameters.id.is);
  const recipients = listOf(sent, "recipient", recipientFormat.is);
  const [kind] = listOf(sent, "kind", eventParameters.kind.is);
  const tags = [...tagsOf(listOf(sent, "tag", shortTagFormat.is)), ...jsonTagsOf(sent.get("tags"))];
  if (tags.length > tagFiltersMax) throw reject("tag", `has more than ${tagFiltersMax} names`);
  const wanted = new Set<string>(listOf(sent, "topic", eventParameters.topic.is));
  const bundledIn = listOf(sent, "bundledIn", eventParameters.bundledIn.is);
  const block = boundsOf(sent);
  const rows: RowFilter = { ids, owners, recipients, tags, bundledIn, block, ...(kind === undefined ? {} : { kind }) };
  const [after] = listOf(sent, "after", cursorFormat.is);
  return {
    filter: {
      rows: wanted.size === 0 || wanted.has("transactions") ? rows : undefined,
      blocks: wanted.size === 0 || wanted.has("blocks") ? block : undefined,
    },
    after: cursorOf(lastEventId) ?? cursorOf(after ?? null),
  };
}

function listOf<Value extends string>(
  sent: URLSearchParams,
  name: keyof typeof eventParameters,
  is: (value: unknown) => value is Value,
): readonly Value[] {
  const texts: readonly string[] = sent.getAll(name);
  if (texts.length > most[name]) throw reject(name, `has more than ${most[name]} values`);
  return texts.map((text) => {
    if (!is(text)) throw reject(name, "is not of its form");
    return text;
  });
}

/** A height that no block has excludes all, as in GraphQL. */
function boundsOf(sent: URLSearchParams): Bounds {
  const height = (name: "minHeight" | "maxHeight"): number | undefined => {
    const [text] = listOf(sent, name, heightFormat.is);
    return text === undefined ? undefined : Math.min(Number(text), pendingHeight);
  };
  const min = height("minHeight");
  const max = height("maxHeight");
  return { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
}

/** Tags of one name are one filter with several values. */
function tagsOf(texts: readonly string[]): readonly TagPlan[] {
  const byName = new Map<string, string[]>();
  for (const text of texts) {
    const colon = text.indexOf(":");
    const name = text.slice(0, colon);
    byName.set(name, [...(byName.get(name) ?? []), text.slice(colon + 1)]);
  }
  return [...byName].map(([name, values]) => ({ name, values, op: "EQ" }));
}

function jsonTagsOf(text: string | null): readonly TagPlan[] {
  if (text === null) return [];
  const read: unknown = readJson(text);
  if (!tagsSchema.is(read)) throw reject("tags", "is not a list of tag filters");
  return read.map(({ name, values, op = "EQ" }): TagPlan => ({ name, values, op }));
}

function cursorOf(text: string | null): Cursor | undefined {
  if (text === null || text === "") return undefined;
  const cursor = readCursor(text);
  if (cursor === undefined) throw reject("Last-Event-ID", "is not a valid cursor");
  return cursor;
}

function reject(name: string, reason: string): Failure {
  return new Failure("invalid_subscription", { reason: `"${name}" ${reason}` });
}
