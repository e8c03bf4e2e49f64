/**
 * `X-Arweave-…` headers: what was signed with content, made safe and bounded, and as the program sends it.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem, readItemHeader } from "../../src/arweave/data-item.ts";
import { addressFromBytes, type Id, idFromBytes, idOfSignature } from "../../src/arweave/id.ts";
import type { Tag } from "../../src/arweave/tags.ts";
import type { Transaction } from "../../src/arweave/transaction.ts";
import type { OpenContent } from "../../src/content/opened-content.ts";
import { Failure } from "../../src/failures.ts";
import { createResolver } from "../../src/gateway/resolve.ts";
import { createSignedContent, type SignedContent } from "../../src/gateway/signed-content.ts";
import {
  arweaveHeaderBytes,
  arweaveHeaderBytesMax,
  setArweaveHeaders,
} from "../../src/http/gateway/content-headers.ts";
import { type ContentFinder, createContentFinder } from "../../src/http/gateway/content-sender.ts";
import { createResponseCache, createResponseCaches } from "../../src/http/gateway/response-cache.ts";
import { chunkPosts, ecdsa, post, rsa, statedOf } from "../dev/devnet/support.ts";
import { header, type WireResponse, wire } from "../support/gateway-server.ts";
import { createMemoryContent } from "../support/memory-content.ts";
import { signers } from "../support/signers.ts";
import { openStack, type Stack } from "../support/stack.ts";

const noTags: SignedContent = {
  ownerAddress: addressFromBytes(new Uint8Array(32)),
  owner: "b".repeat(683),
  signature: "c".repeat(683),
  signatureType: 1,
  target: "",
  anchor: "",
  tags: [],
};

function headersOf(...tags: readonly (readonly [string, string])[]): Record<string, string> {
  const headers = new Headers();
  setArweaveHeaders(headers, { ...noTags, tags: tags.map(([name, value]) => ({ name, value })) });
  expect(arweaveHeaderBytes(headers)).toBeLessThanOrEqual(arweaveHeaderBytesMax);
  return Object.fromEntries(headers);
}

const fixed = {
  "x-arweave-owner-address": "A".repeat(43),
  "x-arweave-owner": "b".repeat(683),
  "x-arweave-signature": "c".repeat(683),
  "x-arweave-signature-type": "1",
};
const truncated = { "x-arweave-tags-truncated": "true" };

describe("headers of what was signed", () => {
  test.each([
    ["no tags", [], {}],
    ["a tag", [["App-Name", "Drive"]], { "x-arweave-tag-app-name": "Drive" }],
    ["an empty value", [["A", ""]], { "x-arweave-tag-a": "" }],
    ["Latin-1", [["A", "grüße"]], { "x-arweave-tag-a": "grüße" }],
    ["a name of other characters", [["a b::c/d_e", "1"]], { "x-arweave-tag-a-b-c-d_e": "1" }],
    ["a name that begins and ends with others", [["<a>", "1"]], { "x-arweave-tag-a": "1" }],
    [
      "one name twice",
      [
        ["A", "1"],
        ["a", "2"],
      ],
      { "x-arweave-tag-a": "1, 2" },
    ],
    ["a name of nothing else", [["石", "1"]], truncated],
    ["no name", [["", "1"]], truncated],
    ["a name that writes headers", [["A\r\nSet-Cookie: a=b", "1"]], { "x-arweave-tag-a-set-cookie-a-b": "1" }],
    ["a value that writes headers", [["A", "1\r\nSet-Cookie: a=b"]], truncated],
    ["a value with a control", [["A", "1\0"]], truncated],
    ["a value beyond Latin-1", [["A", "石"]], truncated],
    ["a value with a space at its end", [["A", "1 "]], truncated],
    ["a value with a space at its begin", [["A", "\u00a01"]], truncated],
    [
      "the name of the count",
      [
        ["Count", "99"],
        ["COUNT", "98"],
        ["-count-", "97"],
      ],
      truncated,
    ],
    ["the name of our own flag", [["s-Truncated", "x"]], { "x-arweave-tag-s-truncated": "x" }],
    ["a long name", [["n".repeat(129), "1"]], truncated],
    ["a long value", [["A", "v".repeat(4_097)]], truncated],
    [
      "the longest",
      [["n".repeat(128), "v".repeat(4_096)]],
      { [`x-arweave-tag-${"n".repeat(128)}`]: "v".repeat(4_096) },
    ],
  ] as const)("%s", (_name, tags, wanted) => {
    expect(headersOf(...tags)).toEqual({ ...fixed, "x-arweave-tag-count": String(tags.length), ...wanted });
  });

  test("are 100 tags at most, and the count is that of all", () => {
    const headers = headersOf(...Array.from({ length: 120 }, (_, index) => [`t${index}`, "v"] as const));
    expect(Object.keys(headers).filter((name) => /^x-arweave-tag-t\d+$/.test(name)).length).toBe(100);
    expect(headers).toMatchObject({ "x-arweave-tag-count": "120", ...truncated });
  });

  test("are 8 KiB at most: later tags that still fit are sent", () => {
    const headers = headersOf(["a", "1"], ["b", "v".repeat(4_000)], ["c", "v".repeat(4_000)], ["d", "2"]);
    expect(headers).toMatchObject({ "x-arweave-tag-a": "1", "x-arweave-tag-d": "2", ...truncated });
    expect(Object.keys(headers)).toContain("x-arweave-tag-b");
    expect(Object.keys(headers)).not.toContain("x-arweave-tag-c");
  });

  test("are headers of these names alone, within the bound, whatever was signed", () => {
    const texts = fc.oneof(fc.string({ unit: "binary", maxLength: 200 }), fc.string({ maxLength: 5_000 }));
    fc.assert(
      fc.property(fc.array(fc.tuple(texts, texts), { maxLength: 130 }), (tags) => {
        const headers = headersOf(...tags);
        for (const [name, value] of Object.entries(headers)) {
          expect(name).toMatch(/^x-arweave-[a-z0-9_-]+$/);
          expect(value).toMatch(/^[\x20-\x7e\xa0-\xff]*$/);
        }
        expect(headers).toMatchObject({ ...fixed, "x-arweave-tag-count": String(tags.length) });
      }),
      { numRuns: 200 },
    );
  });

  test("leave out absent fields, and anchors that are not valid header values", () => {
    const headers = new Headers();
    setArweaveHeaders(headers, {
      ...noTags,
      signature: "",
      owner: "",
      signatureType: undefined,
      anchor: "a\r\nb",
    });
    expect(Object.fromEntries(headers)).toEqual({
      "x-arweave-owner-address": "A".repeat(43),
      "x-arweave-tag-count": "0",
    });
  });
});

const hostile: readonly Tag[] = [
  { name: "Content-Type", value: "text/html" },
  { name: "App-Name", value: "Grüße" },
  { name: "Bad\r\nSet-Cookie", value: "a\r\nX-Evil: b" },
];
const anchor = idFromBytes(new Uint8Array(32).fill(8));
const target = idFromBytes(new Uint8Array(32).fill(7));
const items = signers.map((signer, index) => {
  const bytes = createDataItem({ data: `<p>${index}`, tags: hostile, anchor, target }, signer);
  return { id: idOfSignature(bytes.subarray(2, 2 + signer.scheme.signatureSize)), bytes };
});
const bundle = writeBundle(items.map(({ bytes }) => bytes));

let stack: Stack;
let byRsa: Transaction;
let byEcdsa: Transaction;

beforeAll(async () => {
  stack = await openStack({ ARWEAVE_TAG_RESPONSE_HEADERS_ENABLED: "true", ENABLE_RATE_LIMITER: "true" });
  const { devnet } = stack;
  const data = new TextEncoder().encode("<p>transaction");
  byRsa = await post(devnet, rsa, { data, tags: hostile });
  byEcdsa = await post(devnet, ecdsa, { data, tags: hostile });
  await post(devnet, rsa, {
    stated: statedOf(bundle),
    tags: [
      { name: "Bundle-Format", value: "binary" },
      { name: "Bundle-Version", value: "2.0.0" },
    ],
  });
  for (const body of chunkPosts(bundle)) devnet.postChunk(body);
  await devnet.mine(1);
  await stack.settled();
}, 120_000);
afterAll(() => stack.close());

const get = (path: string, more = "", method = "GET") => wire(stack.port, `${method} ${path} HTTP/1.1${more}`);
const arweave = ({ headers }: WireResponse) =>
  Object.fromEntries(headers.filter(([name]) => name.startsWith("x-arweave-")));
const latin1 = Buffer.from("Grüße", "latin1").toString("latin1");

function wantedOf(signed: Readonly<Record<string, string>>) {
  return {
    ...Object.fromEntries(Object.entries(signed).map(([name, value]) => [`x-arweave-${name}`, value])),
    "x-arweave-tag-count": "3",
    "x-arweave-tag-content-type": "text/html",
    "x-arweave-tag-app-name": latin1,
    ...truncated,
  };
}

async function expectEverywhere(id: Id, wanted: Record<string, string>) {
  for (const path of [`/${id}`, `/raw/${id}`])
    for (const [more, method, status] of [
      ["", "GET", 200],
      ["", "HEAD", 200],
      ["\r\nRange: bytes=0-1", "GET", 206],
      ["\r\nRange: bytes=0-0,2-2", "GET", 206],
      ["", "GET", 200],
    ] as const) {
      const response = await get(path, more, method);
      expect([path, method, more, response.status]).toEqual([path, method, more, status]);
      expect(arweave(response)).toEqual(wanted);
      expect([header(response, "x-evil"), header(response, "set-cookie")]).toEqual(["", ""]);
      expect(header(response, "access-control-expose-headers")).toContain("*");
    }
  const same = await get(`/${id}`, "\r\nIf-None-Match: *");
  expect([same.status, arweave(same)]).toEqual([304, {}]);
}

describe("a gateway with ARWEAVE_TAG_RESPONSE_HEADERS_ENABLED", () => {
  test.each(items.map((item, index) => [index, item] as const))("sends them with item %d", async (_index, item) => {
    const read = readItemHeader(item.bytes, "strict");
    if (read.kind !== "header") throw new Error(Bun.inspect(read));
    const { ownerAddress, owner, signature, signatureType } = read.header;
    await expectEverywhere(
      item.id,
      wantedOf({
        "owner-address": ownerAddress,
        owner: Buffer.from(owner).toString("base64url"),
        signature: Buffer.from(signature).toString("base64url"),
        "signature-type": String(signatureType),
        target,
        anchor,
      }),
    );
  });

  test("sends them with transactions", async () => {
    const of = ({ ownerAddress, owner, signature, lastTx }: Transaction) => ({
      "owner-address": ownerAddress,
      owner,
      signature,
      ...(lastTx === "" ? {} : { anchor: lastTx }),
    });
    await expectEverywhere(byRsa.id, wantedOf({ ...of(byRsa), "signature-type": "1" }));
    await expectEverywhere(byEcdsa.id, wantedOf(of(byEcdsa)));
  });

  test("says so in its information record, with its limits", async () => {
    const record = JSON.parse((await get("/svc/info")).body.toString());
    expect(record.features).toEqual(["arweave-headers"]);
    expect(record.rateLimiter).toEqual({
      enabled: true,
      dataEgress: {
        buckets: {
          resource: {
            capacity: 1e6,
            refillRate: 100,
            capacityBytes: 1_024e6,
            refillRateBytesPerSec: 102_400,
          },
          ip: { capacity: 1e5, refillRate: 20, capacityBytes: 102_400_000, refillRateBytesPerSec: 20_480 },
        },
      },
    });
  });

  test("sends none and says nothing of it when the setting is off again", async () => {
    await stack.restart({ ARWEAVE_TAG_RESPONSE_HEADERS_ENABLED: "false", ENABLE_RATE_LIMITER: "false" });
    await stack.settled();
    for (const id of [items[0]?.id, byRsa.id]) expect(arweave(await get(`/${id}`))).toEqual({});
    const record = JSON.parse((await get("/svc/info")).body.toString());
    expect([record.features, record.rateLimiter]).toEqual([undefined, undefined]);
  });
});

test("X-Cache is MISS when reading what was signed brought the content here", async () => {
  for (const wantsWhole of [true, false]) {
    const content = createMemoryContent();
    const id = content.put("small", { body: new Uint8Array(10), from: "source" });
    let isHere = false;
    const open = async (...asked: Parameters<typeof content.open>) => ({
      ...(await content.open(...asked)),
      cached: () => isHere,
    });
    const finder = createContentFinder({
      resolver: createResolver({ resolve: async () => undefined }),
      content: { open, openIndexed: open },
      signedContentOf: async () => {
        isHere = true;
        return noTags;
      },
      responseCache: createResponseCache(1_000_000, Date.now),
      onDisk: createResponseCaches(1_000_000, Date.now).onDisk,
      clock: Date.now,
    });
    const headers = await headersFrom(finder, id, wantsWhole);
    expect(headers.get("x-cache")).toBe("MISS");
    expect(headers.get("x-arweave-owner-address")).toBe(noTags.ownerAddress);
    await content.close();
  }
});

test("a response without them, because its source did not respond in time, is not cached for long", async () => {
  for (const wantsWhole of [true, false]) {
    const content = createMemoryContent();
    const known = { stable: true, verified: true, digest: "known", from: "file", isHot: true } as const;
    const id = content.put("known", { body: new Uint8Array(10), ...known });
    let now = 1_000_000;
    let asked = 0;
    const { bodies, onDisk } = createResponseCaches(1_000_000, () => now);
    const finder = createContentFinder({
      resolver: createResolver({ resolve: async () => undefined }),
      content,
      signedContentOf: async () => (asked++ === 0 ? undefined : noTags),
      responseCache: bodies,
      onDisk,
      clock: () => now,
    });
    const cached = () => (wantsWhole ? bodies : onDisk).get(`/raw/${id}`) !== undefined;
    const without = await headersFrom(finder, id, wantsWhole);
    expect(without.has("x-arweave-owner-address")).toBe(false);
    expect([without.get("cache-control"), cached()]).toEqual(["public, max-age=300", true]);
    now += 5_000;
    expect(cached()).toBe(false);
    const later = await headersFrom(finder, id, wantsWhole);
    expect(later.get("x-arweave-owner-address")).toBe(noTags.ownerAddress);
    now += 24 * 3_600_000;
    expect([later.get("cache-control"), cached()]).toEqual(["public, max-age=2592000, immutable", true]);
    await content.close();
  }
});

async function headersFrom(finder: ContentFinder, id: Id, wantsWhole: boolean): Promise<Headers> {
  const found = await finder.find({
    address: { kind: "content", id, path: undefined, raw: true, changing: false },
    policy: { sandbox: undefined, variesByDestination: false },
    key: `/raw/${id}`,
    wantsWhole,
    isForGateway: false,
    hint: undefined,
    signal: new AbortController().signal,
  });
  if (found.kind !== "content") throw new Error(found.kind);
  return found.headers;
}

describe("what was signed with content", () => {
  const none = new AbortController().signal;
  const [item] = items;
  const finder = (open: () => Promise<OpenContent>) =>
    createSignedContent({
      reader: { transactionText: () => undefined },
      content: { open },
    });
  const opened = { id: item?.id, root: undefined } as OpenContent;
  const noRoot = () => Promise.reject(new Failure("source_failed", {}));
  const found = { root: { id: byRsaId() }, item: { itemOffset: 0, headerSize: 10, parentStart: 0 } };

  test("is read of an uploaded item's header", async () => {
    const header = async () => item?.bytes ?? new Uint8Array(0);
    expect(await finder(noRoot)({ ...opened, header }, none)).toMatchObject({
      target,
      anchor,
      tags: hostile,
    });
  });

  test("does not trust a header of another item, or an invalid one", async () => {
    for (const bytes of [items[1]?.bytes ?? new Uint8Array(0), new Uint8Array(200), new Uint8Array(0)])
      expect(await finder(noRoot)({ ...opened, header: async () => bytes }, none)).toBeUndefined();
    expect(await finder(noRoot)(opened, none)).toBeUndefined();
  });

  test("is left out when its bytes cannot be had", async () => {
    expect(await finder(noRoot)({ ...opened, ...found } as OpenContent, none)).toBeUndefined();
  });

  test("is a defect's own when reading has a defect, and ends with its reader", async () => {
    const broken = () => Promise.reject(new Error("defect"));
    await expect(finder(broken)({ ...opened, ...found } as OpenContent, none)).rejects.toThrow("defect");
    const left = AbortSignal.abort(new Error("left"));
    const waits = () => Promise.reject(left.reason);
    await expect(finder(waits)({ ...opened, ...found } as OpenContent, left)).rejects.toThrow("left");
  });
});

function byRsaId(): Id {
  return idFromBytes(new Uint8Array(32).fill(1));
}
