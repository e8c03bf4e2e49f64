/**
 * A request of content looks up its row once: `locate` gives all that the response needs. A response from a cache needs
 * no row.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { type Id, idOfSignature } from "../../src/arweave/id.ts";
import { hitBytesMax } from "../../src/http/gateway/response-cache.ts";
import { stableDepth } from "../../src/store/index/index-types.ts";
import { chunkPosts, post, rsa, statedOf, testBytes } from "../dev/devnet/support.ts";
import { signers } from "../support/signers.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { until } from "../support/until.ts";

const requests = {
  GET: { method: "GET" },
  HEAD: { method: "HEAD" },
  "GET of a range": { method: "GET", headers: { range: "bytes=10-19" } },
  "HEAD of a range": { method: "HEAD", headers: { range: "bytes=10-19" } },
} as const;
type Kind = keyof typeof requests;
const kinds = Object.keys(requests) as Kind[];
/** Small content is cached in memory; of large content, what is on this disk. Bytes. */
const sizes = { small: 3_000, large: hitBytesMax + 3_000 } as const;
type Size = keyof typeof sizes;
const paths = ["/", "/raw/"] as const;

/** Content of its own for each first request, without and with headers of what was signed. */
const cases = [false, true].flatMap((withHeaders) =>
  (["item", "transaction"] as const).flatMap((what) =>
    (Object.keys(sizes) as Size[]).flatMap((size) =>
      kinds.flatMap((kind) => paths.map((path) => ({ withHeaders, what, size, kind, path }))),
    ),
  ),
);
type Case = (typeof cases)[number];
const ids = new Map<Case, Id>();
let stack: Stack;
let looked: string[] = [];
let lookedFor: Id | undefined;

beforeAll(async () => {
  stack = await openStack();
  const items: Uint8Array[] = [];
  for (const [seed, each] of cases.entries()) {
    const data = testBytes(sizes[each.size], seed);
    if (each.what === "transaction") ids.set(each, (await post(stack.devnet, rsa, { data })).id);
    else {
      const bytes = createDataItem({ data }, signer);
      ids.set(each, idOfSignature(bytes.subarray(2, 2 + signer.scheme.signatureSize)));
      items.push(bytes);
    }
  }
  const bundle = writeBundle(items);
  const names = { "Bundle-Format": "binary", "Bundle-Version": "2.0.0" };
  const tags = Object.entries(names).map(([name, value]) => ({ name, value }));
  await post(stack.devnet, rsa, { stated: statedOf(bundle), tags });
  for (const body of chunkPosts(bundle)) stack.devnet.postChunk(body);
  // Caches keep stable content without a limit of time.
  await stack.devnet.mine(1 + stableDepth);
  await stack.settled();
  recordLookups();
}, 120_000);
afterAll(() => stack.close());

const [signer] = signers as [(typeof signers)[number]];

/** Records each call of the index's reader that is given the id, or the place of any row. */
function recordLookups(): void {
  const { reader } = stack.gateway;
  for (const [name, call] of Object.entries(reader)) {
    if (typeof call !== "function") continue;
    const recorded = (...args: readonly unknown[]): unknown => {
      const [first] = args;
      const isPlace = typeof first === "object" && first !== null && "txIndex" in first;
      if (lookedFor !== undefined && (first === lookedFor || isPlace)) looked.push(name);
      return Reflect.apply(call, reader, args);
    };
    Object.assign(reader, { [name]: recorded });
  }
}

type Asked = Readonly<{ status: number; hasDigest: boolean; lookups: readonly string[] }>;

/** Sends a request. @returns Its status, whether the hash is stated, and what was looked up for it. */
async function ask(id: Id, path: string, kind: Kind): Promise<Asked> {
  looked = [];
  lookedFor = id;
  const response = await fetch(`${stack.gateway.url}${path}${id}`, requests[kind]);
  await response.arrayBuffer();
  lookedFor = undefined;
  return { status: response.status, hasDigest: response.headers.has("x-ar-io-digest"), lookups: looked };
}

/** Requests content that no cache has, and then again in each way. @param lookups - Of a request without a cache. */
async function expectLookups(each: Case, lookups: readonly string[]): Promise<void> {
  const { what, size, kind, path } = each;
  const id = ids.get(each);
  if (id === undefined) throw new Error(`the ${what} was posted`);
  expect(await ask(id, path, kind)).toMatchObject({ status: statusOf(kind), lookups });
  // The body of small content is put into memory by the first GET of all of it, and serves all requests from then on.
  let isInMemory = size === "small" && kind === "GET";
  for (const next of [kind, ...kinds]) {
    const again = await ask(id, path, next);
    const mayComeFromDisk = next === "GET of a range" || (next === "GET" && size === "large");
    const isCached = isInMemory || (mayComeFromDisk && again.lookups.length === 0);
    expect({ next, ...again }).toMatchObject({ next, status: statusOf(next), lookups: isCached ? [] : lookups });
    isInMemory ||= size === "small" && next === "GET";
  }
  if (size === "large") await expectFromDisk(id, path);
}

/**
 * A GET of content on disk, of which the hash is known, looks up nothing once its file was compared after its last
 * change. A file that has just changed is compared again at the next GET.
 */
async function expectFromDisk(id: Id, path: string): Promise<void> {
  await until(async () => (await ask(id, path, "GET")).lookups.length === 0, "the file was compared");
  for (const next of ["GET", "GET of a range", "GET"] as const) {
    const expected = { next, status: statusOf(next), hasDigest: true, lookups: [] };
    expect({ next, ...(await ask(id, path, next)) }).toEqual(expected);
  }
}

function statusOf(kind: Kind): number {
  return kind.endsWith("range") ? 206 : 200;
}

const named = (withHeaders: boolean) =>
  cases
    .filter((each) => each.withHeaders === withHeaders)
    .map((each) => [`${each.kind} ${each.path} of a ${each.size} ${each.what}`, each] as const);

describe("one look-up of the row", () => {
  test.each(named(false))("%s", (_name, each) => expectLookups(each, ["locate"]));
});

describe("with ARWEAVE_TAG_RESPONSE_HEADERS_ENABLED one look-up of an item, and one more for a transaction's text", () => {
  beforeAll(async () => {
    await stack.restart({ ARWEAVE_TAG_RESPONSE_HEADERS_ENABLED: "true" });
    await stack.settled();
    recordLookups();
  }, 120_000);

  test.each(named(true))("%s", (_name, each) =>
    expectLookups(each, each.what === "item" ? ["locate"] : ["locate", "transactionText"]),
  );
});
