/**
 * What the API reference says of administration.
 * Source: docs/reference/gateway.md#administration.
 * @module
 */
import { addressOf, idFromBytes } from "../../arweave/id.ts";
import { announcementsSchema } from "../../gateway/administration/announcements.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { sha256 } from "../../lib/hash.ts";
import type { Body } from "../body-fields.ts";
import { adminBodies } from "../gateway/admin-bodies.ts";
import { pathParameters, queryParameters } from "../gateway/parameters.ts";
import {
  type Description,
  empty,
  failureResponses,
  inQuery,
  json,
  type Responses,
  ref,
  sampleId,
  textSchema,
} from "./words.ts";

const tag = "Administration";

function endpoint(
  method: "GET" | "POST" | "PUT",
  path: string,
  summary: string,
  responses: Responses,
  more: Partial<Description> = {},
): Description {
  const guarded = failureResponses("unauthorized", "too_many_requests", "internal");
  return {
    method,
    path: `/svc/admin${path}`,
    tag,
    summary,
    responses: { ...guarded, ...responses },
    ...more,
  };
}

/** Failures of every JSON body. */
const unreadable = ["malformed_json", "too_large"] as const;

/** An endpoint that takes a body; its fields are those that are read. */
function taking(
  method: "POST" | "PUT",
  path: string,
  summary: string,
  responses: Responses,
  { schema, failures }: Pick<Body<unknown>, "schema" | "failures">,
  example: unknown,
  more: Partial<Description> = {},
): Description {
  const body = { type: "application/json", schema, example };
  return endpoint(
    method,
    path,
    summary,
    { ...responses, ...failureResponses(...unreadable, ...failures) },
    { body, ...more },
  );
}

const said = { 200: json("What was done.", ref("Message")) };
const done = { 200: empty("Done, and written down; the body is empty.") };

const sampleBytes = new Uint8Array(64).fill(1);

/** The header of an item that is nowhere: a header names itself truly. */
const sampleHeader = {
  id: idFromBytes(sha256(sampleBytes)),
  owner: encodeBase64url(sampleBytes),
  owner_address: addressOf(sampleBytes),
  signature: encodeBase64url(sampleBytes),
  data_size: 0,
  target: "",
  anchor: "",
  tags: [{ name: encodeBase64url(sampleBytes), value: encodeBase64url(sampleBytes) }],
};

const queueing: readonly Description[] = [
  taking("POST", "/queue-tx", "Index a transaction with priority", said, adminBodies.transaction, {
    id: sampleId,
  }),
  taking(
    "POST",
    "/queue-bundle",
    "Unbundle a bundle, whatever the filters say",
    said,
    adminBodies.bundle,
    { id: sampleId },
    {
      description:
        "`Bundle skipped` where `bypassFilter` is false and the unbundle filter does not choose the bundle, and " +
        "for a bundle that was unbundled to its end with these filters. A bundle that is being unbundled with " +
        "filters is unbundled again without them.",
    },
  ),
  taking(
    "POST",
    "/queue-bundles",
    "Evaluate the bundles of a range of heights again",
    said,
    adminBodies.bundleRange,
    { startHeight: 0, endHeight: 1 },
    {
      description:
        "Bundles that were skipped, failed or were indexed in part are evaluated by the filters in force, newest " +
        "first, in the background; with `bypassFilter`, whatever the filters say. The debug record " +
        "shows how far it is.",
    },
  ),
  taking(
    "POST",
    "/queue-data-item",
    "Index data items by their headers",
    said,
    { schema: announcementsSchema, failures: ["missing_item_headers"] },
    [sampleHeader],
  ),
  endpoint(
    "GET",
    "/bundle-status/:id",
    "How far a bundle has come",
    { 200: json("The bundle.", ref("BundleStatus")), ...failureResponses("invalid_bundle_id", "bundle_not_found") },
    { parameters: [pathParameters.bundleId] },
  ),
];

const blocking: readonly Description[] = [
  taking(
    "PUT",
    "/block-data",
    "Block content",
    done,
    adminBodies.blockedData,
    { id: sampleId, notes: "an example" },
    { description: "By id, or by `hash`: the SHA-256 of the content. Notes and source are for operators." },
  ),
  taking("PUT", "/unblock-data", "Unblock content", done, adminBodies.sparedData, { id: sampleId }),
  taking("PUT", "/block-name", "Block a name", done, adminBodies.blockedName, {
    name: "an-example",
    notes: "an example",
  }),
  taking("PUT", "/unblock-name", "Unblock a name", done, adminBodies.sparedName, { name: "an-example" }),
  endpoint(
    "GET",
    "/blocks",
    "List the blocked content",
    { 200: json("A page.", ref("BlockList")), ...failureResponses("malformed_input") },
    { parameters: [queryParameters.pageLimit, inQuery("after", textSchema, "`next` of the page before.")] },
  ),
];

const upkeep: readonly Description[] = [
  endpoint("GET", "/debug", "State of the gateway, with warnings and errors", {
    200: json("The state.", ref("Debug")),
  }),
  taking(
    "POST",
    "/export-parquet",
    "Export heights, in the background",
    { ...said, ...failureResponses("export_running") },
    adminBodies.export,
    { outputDir: "an-example", startHeight: 0, endHeight: 1, maxFileRows: 1_000 },
  ),
  endpoint("GET", "/export-parquet/status", "How far the export has come", {
    200: json("The export.", ref("ExportStatus")),
  }),
  taking(
    "POST",
    "/prune-stable-data-items",
    "Remove the rows of stable data items that were indexed before a moment; their content is still served",
    said,
    adminBodies.pruning,
    { indexedAtThreshold: 0 },
  ),
];

/** Every endpoint of administration. */
export const adminDescriptions: readonly Description[] = [...upkeep, ...queueing, ...blocking];
