/**
 * What the API reference says of administration.
 * Source: specification 4A "Administration", part 7.
 * @module
 */
import {
  type Answers,
  countSchema,
  type Description,
  empty,
  idSchema,
  inPath,
  inQuery,
  json,
  ref,
  refusals,
  type Schema,
  sampleId,
  textSchema,
} from "./words.ts";

const tag = "Administration";

const withBody = refusals("malformed_json", "too_large");

function endpoint(
  method: "GET" | "POST" | "PUT",
  path: string,
  summary: string,
  answers: Answers,
  more: Partial<Description> = {},
): Description {
  const guarded = refusals("unauthorized", "too_many_requests", "internal");
  return { method, path: `/svc/admin${path}`, tag, summary, answers: { ...guarded, ...answers }, ...more };
}

function body(properties: Readonly<Record<string, Schema>>, required: readonly string[], example: unknown) {
  const needs = required.length === 0 ? {} : { required };
  return { type: "application/json", schema: { type: "object", properties, ...needs }, example };
}

function both(first: Answers, second: Answers): Answers {
  return { ...first, ...second };
}

const said = { 200: json("What was done.", ref("Message")) };
const done = { 200: empty("Done, and written down; the body is empty.") };
const note = { notes: textSchema, source: textSchema };

const queueing: readonly Description[] = [
  endpoint(
    "POST",
    "/queue-tx",
    "Index a transaction with priority",
    both(said, { ...withBody, ...refusals("malformed_json", "missing_id") }),
    { body: body({ id: idSchema }, [], { id: sampleId }) },
  ),
  endpoint(
    "POST",
    "/queue-bundle",
    "Unbundle a bundle, whatever the filters say",
    both(said, { ...withBody, ...refusals("malformed_json", "missing_id", "invalid_bypass_filter") }),
    { body: body({ id: idSchema, bypassFilter: { type: "boolean" } }, [], { id: sampleId }) },
  ),
  endpoint(
    "POST",
    "/queue-data-item",
    "Index data items by their headers",
    both(said, { ...withBody, ...refusals("malformed_json", "missing_item_headers") }),
    {
      body: {
        type: "application/json",
        schema: { type: "array", maxItems: 10_000, items: ref("DataItemHeader") },
        example: [],
      },
    },
  ),
  endpoint(
    "GET",
    "/bundle-status/:id",
    "How far a bundle has come",
    both(
      { 200: json("The bundle.", ref("BundleStatus")) },
      refusals("invalid_bundle_id", "bundle_not_found"),
    ),
    { parameters: [inPath("id", idSchema, sampleId, "Id of the bundle.")] },
  ),
];

const refusing: readonly Description[] = [
  endpoint(
    "PUT",
    "/block-data",
    "Serve content no more",
    both(done, { ...withBody, ...refusals("malformed_json", "malformed_input", "missing_id_or_hash") }),
    {
      description:
        "By id, or by `hash`: the SHA-256 of the content, base64url. Notes and source are for people.",
      body: body({ id: idSchema, hash: textSchema, ...note }, [], { id: sampleId, notes: "an example" }),
    },
  ),
  endpoint(
    "PUT",
    "/unblock-data",
    "Serve content again",
    both(done, { ...withBody, ...refusals("malformed_json", "missing_id_or_hash") }),
    { body: body({ id: idSchema, hash: textSchema }, [], { id: sampleId }) },
  ),
  endpoint(
    "PUT",
    "/block-name",
    "Serve a name no more",
    both(done, { ...withBody, ...refusals("malformed_json", "malformed_input", "missing_name") }),
    { body: body({ name: textSchema, ...note }, [], { name: "an-example", notes: "an example" }) },
  ),
  endpoint(
    "PUT",
    "/unblock-name",
    "Serve a name again",
    both(done, { ...withBody, ...refusals("malformed_json", "missing_name") }),
    { body: body({ name: textSchema }, [], { name: "an-example" }) },
  ),
  endpoint(
    "GET",
    "/blocks",
    "What is not served, page by page",
    both({ 200: json("A page.", ref("Refusals")) }, refusals("malformed_input")),
    {
      parameters: [
        inQuery("limit", { type: "integer", minimum: 1, maximum: 10_000 }, "Entries of the page."),
        inQuery("after", textSchema, "`next` of the page before."),
      ],
    },
  ),
];

const upkeep: readonly Description[] = [
  endpoint("GET", "/debug", "State of the gateway, with warnings and errors", {
    200: json("The state.", ref("Debug")),
  }),
  endpoint(
    "POST",
    "/export-parquet",
    "Export heights, in the background",
    both(said, { ...withBody, ...refusals("export_refused", "export_running") }),
    {
      body: body(
        { outputDir: textSchema, startHeight: countSchema, endHeight: countSchema, maxFileRows: countSchema },
        ["outputDir", "startHeight", "endHeight", "maxFileRows"],
        { outputDir: "an-example", startHeight: 0, endHeight: 1, maxFileRows: 1_000 },
      ),
    },
  ),
  endpoint("GET", "/export-parquet/status", "How far the export has come", {
    200: json("The export.", ref("ExportStatus")),
  }),
  endpoint(
    "POST",
    "/prune-stable-data-items",
    "Forget stable data items that were indexed before a moment",
    both(said, {
      ...withBody,
      ...refusals("malformed_json", "invalid_threshold", "invalid_start_height", "invalid_end_height"),
    }),
    { body: body({ indexedAtThreshold: countSchema }, ["indexedAtThreshold"], { indexedAtThreshold: 0 }) },
  ),
];

/** Every endpoint of administration. */
export const adminDescriptions: readonly Description[] = [...upkeep, ...queueing, ...refusing];
