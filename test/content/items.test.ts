/**
 * Data items that the index lacks, on a real chain: found by each source of their places, checked,
 * served as slices of their root's data; not found only when everyone says so; never other bytes under an
 * item's id.
 * @module
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Id, idBytes } from "../../src/arweave/id.ts";
import type { Hint } from "../../src/chain/hint.ts";
import type { ContentChecks } from "../../src/content/content.ts";
import type { OpenContent } from "../../src/content/opened-content.ts";
import { Failure } from "../../src/failures.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { checkBlockNames, checkItem } from "../../workers/verify.ts";
import { isChunkRequest, madeId } from "../chain/data-node.ts";
import { type Fault, type FaultServer, openFaultServer, rangeResult } from "../chain/fault-server.ts";
import { type Packable, writeRootIndex } from "../support/cdb64.ts";
import { signers } from "../support/signers.ts";
import { until } from "../support/until.ts";
import { forgedItem, type MadeItem, makeItem, makeNested } from "./bundles.ts";
import {
  type Harness,
  type HarnessOptions,
  isSame,
  joined,
  locatedOf,
  openHarness,
  seeded,
  timeoutsFor,
} from "./content-harness.ts";
import {
  type FakeGateway,
  type ItemFixture,
  openFakeGateway,
  openItemFixture,
  type PostedBundle,
  rootHeaders,
} from "./item-fixture.ts";

const mebibyte = 2 ** 20;
const none = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), "cairn-items-"));
const closers: (() => Promise<unknown>)[] = [];

/** What every test reads; none changes it. */
let fixture: ItemFixture;
let bundle: PostedBundle;
const direct = makeItem(3_000);
const nestedOnce = makeItem(40_000);
const nestedDeep = makeItem(700);
const empty = makeItem(0);
const outer = makeNested([makeItem(5), nestedOnce]);
const deep3 = makeNested([nestedDeep]);
const deep2 = makeNested([makeItem(9), deep3]);
const deep1 = makeNested([deep2, makeItem(9)]);
const ofAllTypes = signers.map((signer) => makeItem(500, [], signer));
const kinds: readonly (readonly [string, MadeItem])[] = [
  ["directly in the transaction", direct],
  ["without payload", empty],
  ["in a nested bundle", nestedOnce],
  ["in four bundles", nestedDeep],
];

beforeAll(async () => {
  fixture = await openItemFixture();
  bundle = await fixture.postBundle([makeItem(100), direct, outer, deep1, empty, ...ofAllTypes, makeItem(50)]);
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  fixture.node.setFault(() => undefined);
  fixture.node.requests.length = 0;
});
afterAll(async () => {
  await fixture.close();
  removeFolder(folder);
});

function harnessOf(options: Partial<HarnessOptions> = {}): Harness {
  const harness = openHarness({ nodeUrls: [fixture.node.url], ...options });
  closers.push(harness.close);
  return harness;
}

async function gatewayOf(): Promise<FakeGateway> {
  const gateway = await openFakeGateway();
  closers.push(gateway.stop);
  return gateway;
}

/** A file on this machine; its name is new each time. */
function fileOf(...records: (readonly [Id, Readonly<Record<string, Packable>>])[]): string {
  const path = join(folder, `${Bun.randomUUIDv7()}.cdb`);
  writeFileSync(path, writeRootIndex(records));
  return path;
}

/** The same by ranges from a server. */
async function fileServerOf(bytes: Uint8Array): Promise<FaultServer> {
  const server = await openFaultServer(({ headers }) => rangeResult(headers, bytes));
  closers.push(server.stop);
  return server;
}

async function outcomeOf(work: Promise<OpenContent>): Promise<OpenContent | string> {
  return await work.catch((error: unknown) => (error instanceof Failure ? error.code : String(error)));
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => "no failure",
    (error: unknown) => (error instanceof Failure ? error.code : String(error)),
  );
}

const wholeOf = (opened: OpenContent) => joined(opened.read({ start: 0, end: opened.size }, none));

/** Every source of an item's place: additions to a fixture, and the hint to send. */
type Teller = (id: Id) => Promise<Readonly<{ options?: Partial<HarnessOptions>; hint?: Hint }>>;

const chainOf = (id: Id) => [bundle.rootId, ...bundle.place(id).parents];
const tellers: readonly (readonly [string, Teller])[] = [
  [
    "a client with root and offset",
    async (id) => ({
      hint: { rootId: bundle.rootId, path: [], itemOffset: bundle.place(id).itemOffset },
    }),
  ],
  [
    "a client with root and path",
    async (id) => ({
      hint: { rootId: bundle.rootId, path: bundle.place(id).parents, itemOffset: undefined },
    }),
  ],
  ["a client with the root alone", async () => ({ hint: { rootId: bundle.rootId, path: [], itemOffset: undefined } })],
  [
    "a gateway's headers",
    async (id) => {
      const gateway = await gatewayOf();
      const place = bundle.place(id);
      gateway.raw.set(id, { headers: rootHeaders(bundle.rootId, place), body: place.payload });
      return { options: { gatewayUrls: [gateway.url] } };
    },
  ],
  [
    "gateways' queries",
    async (id) => {
      const gateway = await gatewayOf();
      const chain = [...chainOf(id), id];
      for (const [index, each] of chain.entries()) gateway.parents.set(each, chain[index - 1] ?? null);
      return { options: { gatewayUrls: [gateway.url] } };
    },
  ],
  ["a file: root", async (id) => ({ options: { rootFiles: [fileOf([id, { r: idBytes(bundle.rootId) }])] } })],
  [
    "a file: root and offsets",
    async (id) => {
      const { itemOffset, headerSize } = bundle.place(id);
      const value = { r: idBytes(bundle.rootId), i: itemOffset, d: itemOffset + headerSize };
      return { options: { rootFiles: [fileOf([madeId(1), {}], [id, value])] } };
    },
  ],
  ["a file: path", async (id) => ({ options: { rootFiles: [fileOf([id, { p: chainOf(id).map(idBytes) }])] } })],
  [
    "a file by ranges: path and offsets",
    async (id) => {
      const { itemOffset, headerSize } = bundle.place(id);
      const value = { p: chainOf(id).map(idBytes), i: itemOffset, d: itemOffset + headerSize };
      const server = await fileServerOf(writeRootIndex([[id, value]]));
      return { options: { rootFiles: [`${server.url}/index.cdb`] } };
    },
  ],
];

describe("an item is found", () => {
  for (const [where, item] of kinds)
    test.each(tellers)(`${where}, by %s`, async (_name, teller) => {
      const { options, hint } = await teller(item.id);
      const harness = harnessOf(options);
      const opened = await harness.content.open(item.id, none, hint);
      const place = bundle.place(item.id);
      expect(opened).toMatchObject({
        size: item.payload.length,
        verified: true,
        stable: false,
        trusted: true,
        contentType: "text/plain",
        dataOffset: place.itemOffset + place.headerSize,
        item: {
          itemOffset: place.itemOffset,
          headerSize: place.headerSize,
          parentStart: place.parentStart,
        },
      });
      expect(opened.root?.id).toBe(bundle.rootId);
      expect(isSame(opened.digest, sha256(item.payload))).toBe(true);
      expect(isSame(await wholeOf(opened), item.payload)).toBe(true);
      const asked = fixture.node.requests.length;
      expect(isSame(await wholeOf(await harness.content.open(item.id, none, hint)), item.payload)).toBe(true);
      expect(fixture.node.requests.length).toBe(asked); // it is remembered, and its bytes are here
    });

  test("with each signature type", async () => {
    const harness = harnessOf();
    const hint = { rootId: bundle.rootId, path: [], itemOffset: undefined };
    for (const item of ofAllTypes) {
      const opened = await harness.content.open(item.id, none, hint);
      expect([opened.verified, isSame(await wholeOf(opened), item.payload)]).toEqual([true, true]);
    }
    expect(fixture.node.requests.filter((line) => line === `GET /tx/${bundle.rootId}`)).toHaveLength(1);
  });

  test("once for 200 concurrent readers", async () => {
    const harness = harnessOf({ rootFiles: [fileOf([direct.id, { r: idBytes(bundle.rootId) }])] });
    const all = await Promise.all(Array.from({ length: 200 }, () => harness.content.open(direct.id, none)));
    for (const opened of all) expect(opened.verified).toBe(true);
    const count = (path: string) => fixture.node.requests.filter((line) => line === `GET ${path}`).length;
    expect([count(`/tx/${direct.id}`), count(`/tx/${bundle.rootId}`)]).toEqual([1, 1]);
    expect(fixture.chunkRequests()).toBe(1);
  });

  test("verified where its root is in the index, stable as the root is, and its weave offset is not requested", async () => {
    const known = harnessOf({ rootFiles: [fileOf([direct.id, { r: idBytes(bundle.rootId) }])] });
    const first = await known.content.open(direct.id, none);
    const root = first.root;
    if (root === undefined) throw new Error("its root is known");
    const harness = harnessOf({ rootFiles: [fileOf([direct.id, { r: idBytes(bundle.rootId) }])] });
    const place = await fetch(`${fixture.node.url}/tx/${bundle.rootId}/offset`);
    const { offset, size } = (await place.json()) as { offset: string; size: string };
    const weaveStart = BigInt(offset) - BigInt(size);
    harness.index.set(bundle.rootId, locatedOf(bundle.rootId, { ...root, weaveStart }));
    fixture.node.requests.length = 0;
    expect(await harness.content.open(direct.id, none)).toMatchObject({ verified: true, stable: true });
    const asked = fixture.node.requests.filter((line) => !isChunkRequest(line));
    expect(asked).toEqual([`GET /tx/${direct.id}`]);
  });
});

describe("an item's root", () => {
  const hint = () => ({ rootId: bundle.rootId, path: [], itemOffset: undefined });
  const unplaced: readonly (readonly [
    string,
    (harness: Partial<HarnessOptions>) => Partial<HarnessOptions>,
    Fault | null,
  ])[] = [
    ["whose status is unknown", (options) => options, { kind: "response", response: { status: 404 } }],
    ["whose status request fails", (options) => options, { kind: "reset" }],
    [
      "at a height where another block was followed",
      (options) => ({
        ...options,
        blockAt: () => ({ height: 1, hash: "x".repeat(64) as never, timestamp: 1, previous: "" }),
      }),
      null,
    ],
  ];
  test.each(unplaced)("%s leaves its items unverified, and served", async (_name, change, fault) => {
    fixture.node.setFault(({ path }) => (path.endsWith("/status") ? (fault ?? undefined) : undefined));
    const harness = harnessOf(change({}));
    const opened = await harness.content.open(direct.id, none, hint());
    expect(opened).toMatchObject({ verified: false, trusted: true });
    expect(isSame(await wholeOf(opened), direct.payload)).toBe(true);
  });

  test("is accepted in its block only: not in a block that does not contain it, nor in an altered one", async () => {
    const status = await (await fetch(`${fixture.node.url}/tx/${bundle.rootId}/status`)).json();
    const text = await (await fetch(`${fixture.node.url}/block/hash/${status.block_indep_hash}`)).text();
    const other = await (await fetch(`${fixture.node.url}/block/height/0`)).text();
    const blocks = [other, text.replace(/"reward":"\d/, '"reward":"7'), text.replace(bundle.rootId, direct.id)];
    for (const body of blocks) {
      fixture.node.setFault(({ path }) =>
        path.startsWith("/block/") ? { kind: "response", response: { status: 200, body } } : undefined,
      );
      const opened = await harnessOf().content.open(direct.id, none, hint());
      expect(opened.verified).toBe(false);
    }
    fixture.node.setFault(() => undefined);
    expect((await harnessOf().content.open(direct.id, none, hint())).verified).toBe(true);
  });
});

test("an item whose root left its block in a reorg is no longer verified", async () => {
  const item = makeItem(300);
  const posted = await fixture.postBundle([item]);
  const harness = harnessOf({ rootFiles: [fileOf([item.id, { r: idBytes(posted.rootId) }])] });
  expect((await harness.content.open(item.id, none)).verified).toBe(true);
  const isStatus = (path: string) => path.endsWith("/status");
  fixture.node.setFault(({ path }) =>
    isStatus(path) ? { kind: "response", response: { status: 202, body: "Pending" } } : undefined,
  );
  expect((await harness.content.open(item.id, none)).verified).toBe(true); // the reorg is not known yet
  harness.content.forgetAll();
  expect((await harness.content.open(item.id, none)).verified).toBe(false);
  fixture.node.setFault(() => undefined);
  for (const id of [posted.rootId, item.id]) harness.content.forget(id); // as a new block does with what it names
  expect((await harness.content.open(item.id, none)).verified).toBe(true);
});

describe("an item whose root leaves its block", () => {
  const leave = (content: Harness["content"]) => {
    fixture.node.setFault(({ path }) =>
      path.endsWith("/status") ? { kind: "response", response: { status: 202, body: "Pending" } } : undefined,
    );
    content.forgetAll();
  };

  test.each(["item", "blockNames"] as const)("during its search (%s) is not remembered as verified", async (check) => {
    const item = makeItem(300);
    const posted = await fixture.postBundle([item]);
    const checks: Partial<ContentChecks> = {
      item: async (job) => {
        if (check === "item") leave(harness.content);
        return checkItem(job);
      },
      blockNames: async (job) => {
        if (check === "blockNames") leave(harness.content);
        return checkBlockNames(job);
      },
    };
    const harness = harnessOf({ rootFiles: [fileOf([item.id, { r: idBytes(posted.rootId) }])], checks });
    await harness.content.open(item.id, none);
    expect((await harness.content.open(item.id, none)).verified).toBe(false);
  });

  test.each(["item", "blockNames"] as const)(
    "during a search (%s) is not verified for later requests",
    async (check) => {
      const item = makeItem(300);
      const posted = await fixture.postBundle([item]);
      let later: ReturnType<Harness["content"]["open"]> | undefined;
      const leaveOnce = () => {
        if (later !== undefined) return;
        leave(harness.content);
        later = harness.content.open(item.id, none);
      };
      const checks: Partial<ContentChecks> = {
        item: async (job) => {
          if (check === "item") leaveOnce();
          return checkItem(job);
        },
        blockNames: async (job) => {
          if (check === "blockNames") leaveOnce();
          return checkBlockNames(job);
        },
      };
      const harness = harnessOf({ rootFiles: [fileOf([item.id, { r: idBytes(posted.rootId) }])], checks });
      await harness.content.open(item.id, none);
      expect((await later)?.verified).toBe(false);
    },
  );

  test("while it is read is not remembered as verified at the end of the read", async () => {
    const item = makeItem(2 * mebibyte);
    const posted = await fixture.postBundle([item]);
    const harness = harnessOf({ rootFiles: [fileOf([item.id, { r: idBytes(posted.rootId) }])] });
    const opened = await harness.content.open(item.id, none);
    let isLeft = false;
    for await (const _piece of opened.read({ start: 0, end: item.payload.length }, none)) {
      if (!isLeft) leave(harness.content);
      isLeft = true;
    }
    expect((await harness.content.open(item.id, none)).verified).toBe(false);
  });
});

describe("a large item", () => {
  const big = makeItem(3 * mebibyte + 777);
  const forged = forgedItem(makeItem(2 * mebibyte));
  let large: PostedBundle;
  let fake: PostedBundle;
  beforeAll(async () => {
    large = await fixture.postBundle([makeItem(10), big]);
    fake = await fixture.postBundle([forged, makeItem(10)]);
  });

  test("is found by its header: a range fetches the chunks that it touches, and is not verified", async () => {
    const harness = harnessOf({ rootFiles: [fileOf([big.id, { r: idBytes(large.rootId) }])] });
    const opened = await harness.content.open(big.id, none);
    expect(opened).toMatchObject({
      verified: false,
      trusted: true,
      digest: undefined,
      size: big.payload.length,
    });
    expect(fixture.chunkRequests()).toBe(1);
    const span = { start: 2 * mebibyte, end: 2 * mebibyte + 1_000 };
    const bytes = await opened.bytes(span, none);
    expect(isSame(bytes, big.payload.subarray(span.start, span.end))).toBe(true);
    expect(fixture.chunkRequests()).toBeLessThanOrEqual(2);
    expect((await harness.content.open(big.id, none)).verified).toBe(false);
  });

  const readings: readonly (readonly [string, (opened: OpenContent, size: number) => Promise<unknown>])[] = [
    ["streamed", (opened) => wholeOf(opened)],
    ["taken at once", (opened, size) => opened.bytes({ start: 0, end: size }, none)],
    [
      "sent as a file",
      async (opened, size) => {
        await opened.bytes({ start: 0, end: size - 1 }, none);
        await opened.bytes({ start: size - 1, end: size }, none);
        return await opened.file({ start: 0, end: size }, none);
      },
    ],
  ];
  test.each(readings)("is verified, and its hash known, after it was %s whole", async (_name, readAll) => {
    const harness = harnessOf({ rootFiles: [fileOf([big.id, { r: idBytes(large.rootId) }])] });
    const opened = await harness.content.open(big.id, none);
    expect(opened.verified).toBe(false);
    await readAll(opened, opened.size);
    const again = await harness.content.open(big.id, none);
    expect(again.verified).toBe(true);
    expect(isSame(again.digest, sha256(big.payload))).toBe(true);
    expect(isSame(await wholeOf(again), big.payload)).toBe(true);
  });

  test.each(readings)(
    "whose payload is not its own breaks off where it was %s, and is not found there again",
    async (_name, readAll) => {
      const harness = harnessOf({ rootFiles: [fileOf([forged.id, { r: idBytes(fake.rootId) }])] });
      const opened = await harness.content.open(forged.id, none);
      expect(opened.verified).toBe(false);
      expect(await codeOf(readAll(opened, opened.size))).toBe("source_failed");
      expect(await codeOf(harness.content.open(forged.id, none))).toBe("source_failed");
    },
  );

  test("with a forged payload never ends completely: its last piece is not sent", async () => {
    const harness = harnessOf({ rootFiles: [fileOf([forged.id, { r: idBytes(fake.rootId) }])] });
    const opened = await harness.content.open(forged.id, none);
    let got = 0;
    const reading = async () => {
      for await (const piece of opened.read({ start: 0, end: opened.size }, none)) got += piece.length;
    };
    expect(await codeOf(reading())).toBe("source_failed");
    expect(got).toBeLessThan(opened.size);
  });

  test("found by a client's hint is checked completely: a client cannot put other bytes under its id", async () => {
    const honest = { rootId: large.rootId, path: [], itemOffset: undefined };
    const opened = await harnessOf().content.open(big.id, none, honest);
    expect(opened.verified).toBe(true);
    expect(isSame(opened.digest, sha256(big.payload))).toBe(true);
    const staged = { rootId: fake.rootId, path: [], itemOffset: undefined };
    expect(await codeOf(harnessOf().content.open(forged.id, none, staged))).toBe("not_found");
  });

  test("of more than 16 MiB is not looked for by a client's hint", async () => {
    const huge = makeItem(16 * mebibyte);
    const posted = await fixture.postBundle([huge]);
    const hint = { rootId: posted.rootId, path: [], itemOffset: undefined };
    expect(await codeOf(harnessOf().content.open(huge.id, none, hint))).toBe("not_found");
    const harness = harnessOf({ rootFiles: [fileOf([huge.id, { r: idBytes(posted.rootId) }])] });
    expect((await harness.content.open(huge.id, none)).size).toBe(16 * mebibyte);
  });
});

describe("a false place", () => {
  const small = makeItem(2_000);
  const forged = forgedItem(small);
  const decoy = makeNested([makeItem(1_000)]);
  let fake: PostedBundle;
  let honest: PostedBundle;
  let plainId: Id;
  beforeAll(async () => {
    honest = await fixture.postBundle([makeItem(7), makeNested([small]), decoy]);
    fake = await fixture.postBundle([forged]);
    plainId = await fixture.postData(small.bytes, [{ name: "Content-Type", value: "text/plain" }]);
  });

  const falsePlaces: readonly (readonly [string, () => Hint, "wrong" | "fault"])[] = [
    ["in a transaction that is not a bundle", () => hintTo(plainId), "wrong"],
    ["in another bundle than its own", () => hintTo(bundle.rootId), "wrong"],
    ["at another byte", () => ({ ...hintTo(honest.rootId), itemOffset: decoyByte() }), "wrong"],
    ["in another nested bundle", () => ({ ...hintTo(honest.rootId), path: [decoy.id] }), "wrong"],
    ["of a fake item with its id", () => hintTo(fake.rootId), "wrong"],
    ["in a root that does not exist", () => hintTo(madeId(77)), "fault"],
    ["in a data item", () => hintTo(direct.id), "fault"],
  ];

  const decoyByte = () => honest.place(decoy.id).itemOffset + 500;

  function hintTo(rootId: Id): Hint {
    return { rootId, path: [], itemOffset: undefined };
  }

  test.each(falsePlaces)(
    "%s: its gateway is asked less often, and another one's place is used; alone it is a fault, not an absence",
    async (_name, placeOf, blame) => {
      const [liar, other] = [await gatewayOf(), await gatewayOf()];
      const { rootId, path, itemOffset } = placeOf();
      const headers: Record<string, string> = { "x-ar-io-root-transaction-id": rootId };
      if (path.length > 0) headers["x-ar-io-root-path"] = path.join(",");
      if (itemOffset !== undefined) headers["x-ar-io-root-data-item-offset"] = String(itemOffset);
      liar.raw.set(small.id, { headers, body: forged.payload });
      const place = honest.place(small.id);
      other.raw.set(small.id, { headers: rootHeaders(honest.rootId, place), body: small.payload });

      const alone = harnessOf({ gatewayUrls: [liar.url] });
      const outcome = await outcomeOf(alone.content.open(small.id, none));
      // What cannot be looked into is left to the gateway's word; what is untrue is not.
      if (blame === "wrong") expect(outcome).toBe("source_failed");
      else expect(outcome).toMatchObject({ verified: false, root: undefined });

      if (blame !== "wrong") return;
      const both = harnessOf({ gatewayUrls: [liar.url, other.url] });
      let asked = 0;
      while (!liar.requests.some((line) => line.startsWith("HEAD")) || asked < 2) {
        both.content.forget(small.id);
        const opened = await both.content.open(small.id, none);
        expect(isSame(await wholeOf(opened), small.payload)).toBe(true);
        expect(opened.verified).toBe(true);
        asked += 1;
        if (asked > 50) break;
      }
      const sourceStatus = both.gateways.sourceStatus();
      expect(sourceStatus.find(({ url }) => url === other.url)?.wrongs).toBe(0);
      expect(alone.gateways.sourceStatus()[0]?.wrongs).toBe(1);
      expect(alone.gateways.sourceStatus()[0]?.restsUntil ?? 0).toBeGreaterThan(Date.now() + 60_000);
    },
  );

  test.each(falsePlaces)("%s: a file is skipped, and the next one is searched", async (_name, placeOf) => {
    const { rootId, path, itemOffset } = placeOf();
    const value: Record<string, Packable> =
      path.length > 0 ? { p: [rootId, ...path].map(idBytes) } : { r: idBytes(rootId) };
    if (itemOffset !== undefined) value["i"] = itemOffset;
    const bad = fileOf([small.id, value]);
    const good = fileOf([small.id, { r: idBytes(honest.rootId) }]);
    for (const rootFiles of [
      [bad, good],
      [good, bad],
    ])
      expect((await harnessOf({ rootFiles }).content.open(small.id, none)).verified).toBe(true);
    expect(await codeOf(harnessOf({ rootFiles: [bad] }).content.open(small.id, none))).toBe("source_failed");
  });

  test.each(falsePlaces)(
    "%s: a client's hint gains nothing, and does not affect other clients",
    async (_name, placeOf) => {
      const harness = harnessOf({ rootFiles: [fileOf([small.id, { r: idBytes(honest.rootId) }])] });
      const [hinted, unhinted] = await Promise.all([
        harness.content.open(small.id, none, placeOf()),
        harness.content.open(small.id, none),
      ]);
      for (const opened of [hinted, unhinted]) expect(isSame(await wholeOf(opened), small.payload)).toBe(true);
      const alone = harnessOf();
      expect(await codeOf(alone.content.open(small.id, none, placeOf()))).toBeOneOf(["not_found", "source_failed"]);
      expect(await codeOf(alone.content.open(small.id, none))).toBe("not_found");
      expect((await alone.content.open(small.id, none, hintTo(honest.rootId))).verified).toBe(true);
    },
  );

  test("query responses with loops, too many levels, or other items are faults", async () => {
    const [one, two] = [madeId(1), madeId(2)];
    const chains: readonly (readonly [string, readonly (readonly [Id, Id | null])[]])[] = [
      ["itself", [[small.id, small.id]]],
      [
        "a circle",
        [
          [small.id, one],
          [one, two],
          [two, one],
        ],
      ],
      ["five bundles", [1, 2, 3, 4, 5].map((n) => [n === 1 ? small.id : madeId(n), madeId(n + 1)] as const)],
      [
        "a transaction that is nowhere",
        [
          [small.id, one],
          [one, null],
        ],
      ],
      ["a bundle that is not known further", [[small.id, one]]],
    ];
    for (const [name, parents] of chains) {
      const gateway = await gatewayOf();
      for (const [id, parent] of parents) gateway.parents.set(id, parent);
      const harness = harnessOf({ gatewayUrls: [gateway.url] });
      expect([name, await codeOf(harness.content.open(small.id, none))]).toEqual([name, "source_failed"]);
      expect(gateway.requests.filter((line) => line === "POST /graphql").length).toBeLessThanOrEqual(5);
    }
  });

  const badFiles: readonly (readonly [string, () => Uint8Array])[] = [
    ["is empty", () => new Uint8Array(0)],
    ["is cut in its head", () => writeRootIndex([]).subarray(0, 4_000)],
    ["has a value of another shape", () => writeRootIndex([[small.id, { x: 1 }]])],
    ["has a root of 31 bytes", () => writeRootIndex([[small.id, { r: new Uint8Array(31) }]])],
    ["has a path of eleven", () => writeRootIndex([[small.id, { p: Array(11).fill(new Uint8Array(32)) }]])],
    ["has an empty path", () => writeRootIndex([[small.id, { p: [] }]])],
    ["has an offset that is a text", () => writeRootIndex([[small.id, { r: new Uint8Array(32), i: "1" }]])],
    ["is random", () => crypto.getRandomValues(new Uint8Array(8_192))],
  ];
  test.each(badFiles)("a file that %s is a fault, on disk and by ranges", async (name, make) => {
    const path = join(folder, `${Bun.randomUUIDv7()}.cdb`);
    writeFileSync(path, make());
    const server = await fileServerOf(make());
    for (const source of [path, `${server.url}/x.cdb`]) {
      const code = await codeOf(harnessOf({ rootFiles: [source] }).content.open(small.id, none));
      // Random tables may be well-formed and without the key's slot; nothing is found there in any case.
      expect(code).toBeOneOf(name === "is random" ? ["source_failed", "not_found"] : ["source_failed"]);
    }
    const missing = harnessOf({ rootFiles: [join(folder, "nowhere.cdb")] });
    expect(await codeOf(missing.content.open(small.id, none))).toBe("source_failed");
  });

  test("a replaced file is read again", async () => {
    const path = fileOf([madeId(3), { r: idBytes(honest.rootId) }]);
    const harness = harnessOf({ rootFiles: [path] });
    expect(await codeOf(harness.content.open(small.id, none))).toBe("not_found");
    writeFileSync(
      path,
      writeRootIndex([
        [small.id, { r: idBytes(honest.rootId) }],
        [madeId(4), { x: 1 }],
      ]),
    );
    harness.content.forget(small.id);
    expect((await harness.content.open(small.id, none)).verified).toBe(true);
  });
});

describe("fault", () => {
  const faults: readonly (readonly [string, Fault])[] = [
    ["the connection is reset", { kind: "reset" }],
    ["no response", { kind: "hang", at: "headers" }],
    ["the connection ends before the headers", { kind: "cut", at: "headers" }],
    ["the body stops at its first byte", { kind: "hang", at: 0 }],
    ["the body ends in the middle", { kind: "cut", at: 5 }],
    ["the announced length is too great", { kind: "length", by: 1 }],
    ["the body is cut short", { kind: "shorter", bytes: 10 }],
    ["a bit is wrong", { kind: "flip", at: 700 }],
    ["the body is HTML", { kind: "response", response: { status: 200, body: "<html>Sorry</html>" } }],
    ["the status is 403", { kind: "response", response: { status: 403 } }],
    ["the status is 429", { kind: "response", response: { status: 429 } }],
    ["the status is 451", { kind: "response", response: { status: 451 } }],
    ["the status is 500", { kind: "response", response: { status: 500 } }],
    ["the status is 503", { kind: "response", response: { status: 503 } }],
    ["it leads elsewhere", { kind: "response", response: { status: 302, headers: { location: "/" } } }],
  ];
  const few = faults.filter(([, { kind }]) => ["reset", "hang", "shorter", "flip"].includes(kind));
  const parts: readonly (readonly [string, (path: string) => boolean, typeof faults])[] = [
    ["the transaction", (path) => path === `/tx/${bundle.rootId}`, faults],
    ["its offset", (path) => path.endsWith("/offset"), few.slice(0, 3)],
    ["its chunks", isChunkRequest, faults],
    ["everything", () => true, few],
  ];
  for (const [what, isIt, some] of parts)
    test.each(some)(`with ${what}, where %s, is reported as a fault, and recovers`, async (_name, fault) => {
      const rootFiles = [fileOf([direct.id, { r: idBytes(bundle.rootId) }])];
      const harness = harnessOf({ rootFiles, timeouts: timeoutsFor(fault) });
      fixture.node.setFault(({ path }) => (isIt(path) ? fault : undefined));
      expect(await codeOf(harness.content.open(direct.id, none))).toBeOneOf(["source_failed", "source_timeout"]);
      expect(harness.extents.stats().bytes).toBe(0);
      fixture.node.setFault(() => undefined);
      const opened = await harness.content.open(direct.id, none);
      expect(isSame(await wholeOf(opened), direct.payload)).toBe(true);
    });

  // A response to HEAD has no body to be wrong.
  const ofHeads = faults.filter(([, fault]) => fault.kind !== "flip" && !JSON.stringify(fault).includes("html"));
  test.each(ofHeads)("with a gateway, where %s, is reported as a fault", async (_name, fault) => {
    const gateway = await gatewayOf();
    gateway.setFault(() => fault);
    const harness = harnessOf({ gatewayUrls: [gateway.url], timeouts: timeoutsFor(fault) });
    expect(await codeOf(harness.content.open(direct.id, none))).toBeOneOf(["source_failed", "source_timeout"]);
  });

  test.each(faults)("with a file, where %s, is reported as a fault, and recovers", async (_name, fault) => {
    const server = await fileServerOf(writeRootIndex([[direct.id, { r: idBytes(bundle.rootId) }]]));
    const harness = harnessOf({ rootFiles: [server.url], timeouts: timeoutsFor(fault) });
    server.setFault(() => fault);
    const code = await codeOf(harness.content.open(direct.id, none));
    // A wrong bit may fall where nothing is read, or make another table empty.
    if (fault.kind !== "flip") expect(code).toBeOneOf(["source_failed", "source_timeout"]);
    server.setFault(() => undefined);
    harness.content.forget(direct.id);
    expect((await harness.content.open(direct.id, none)).verified).toBe(true);
  });

  test("with one source neither hides nor delays the result of another one", async () => {
    const hanging = await gatewayOf();
    hanging.setFault(() => ({ kind: "hang", at: "headers" }));
    const harness = harnessOf({
      gatewayUrls: [hanging.url],
      rootFiles: [fileOf([direct.id, { r: idBytes(bundle.rootId) }])],
    });
    const opened = await harness.content.open(direct.id, none);
    expect(opened.verified).toBe(true);
    await until(() => hanging.openSockets() === 0); // the slower request was aborted
  });

  test("of all sources ends in time, and aborts their requests", async () => {
    const hanging = await gatewayOf();
    for (const server of [hanging, fixture.node]) server.setFault(() => ({ kind: "hang", at: "headers" }));
    const harness = harnessOf({
      gatewayUrls: [hanging.url],
      findMsMax: 500,
    });
    expect(await codeOf(harness.content.open(direct.id, none))).toBe("source_timeout");
    await until(() => hanging.openSockets() + fixture.node.openSockets() === 0);
  });

  test("with a better proof leaves a gateway's unproven place, after a short time", async () => {
    const [gateway, hanging] = [await gatewayOf(), await fileServerOf(writeRootIndex([]))];
    gateway.raw.set(direct.id, { headers: {}, body: direct.payload });
    hanging.setFault(() => ({ kind: "hang", at: "headers" }));
    const harness = harnessOf({
      gatewayUrls: [gateway.url],
      rootFiles: [hanging.url],
    });
    const opened = await harness.content.open(direct.id, none);
    expect(opened).toMatchObject({ verified: false, root: undefined });
    expect(isSame(await wholeOf(opened), direct.payload)).toBe(true);
  });

  test("is not the result for an unknown id, which is absent and cached as absent", async () => {
    const gateway = await gatewayOf();
    const harness = harnessOf({
      gatewayUrls: [gateway.url],
      rootFiles: [fileOf([direct.id, { r: idBytes(bundle.rootId) }])],
    });
    for (let times = 0; times < 3; times += 1)
      expect(await codeOf(harness.content.open(madeId(9), none))).toBe("not_found");
    expect(gateway.requests).toEqual([`HEAD /raw/${madeId(9)}`, "POST /graphql"]);
  });
});

describe("blocked content", () => {
  const hint = () => ({ rootId: bundle.rootId, path: [], itemOffset: undefined });
  const blockedIds: readonly (readonly [string, () => Id])[] = [
    ["itself", () => nestedDeep.id],
    ["the bundle around it", () => deep3.id],
    ["a bundle further out", () => deep1.id],
    ["its transaction", () => bundle.rootId],
  ];
  test.each(blockedIds)("%s: the item is not served", async (_name, blocked) => {
    const harness = harnessOf();
    const opened = await harness.content.open(nestedDeep.id, none, hint());
    harness.blockedIds.add(blocked());
    expect(await codeOf(wholeOf(opened))).toBe("blocked");
    expect(await codeOf(opened.bytes({ start: 0, end: 1 }, none))).toBe("blocked");
    expect(await codeOf(opened.check({ start: 0, end: 1 }, none))).toBe("blocked");
    expect(await codeOf(opened.file({ start: 0, end: 1 }, none))).toBe("blocked");
    harness.blockedIds.clear();
    harness.blockedIds.add(madeId(3));
    expect(isSame(await wholeOf(opened), nestedDeep.payload)).toBe(true);
  });

  test("hash: the item is not served, also when its hash was unknown", async () => {
    const item = makeItem(2 * mebibyte);
    const posted = await fixture.postBundle([item]);
    const harness = harnessOf({
      rootFiles: [fileOf([item.id, { r: idBytes(posted.rootId) }], [direct.id, { r: idBytes(bundle.rootId) }])],
    });
    for (const each of [item, direct]) {
      const opened = await harness.content.open(each.id, none);
      harness.blockedDigests.add(sha256(each.payload).toHex());
      expect(await codeOf(opened.bytes({ start: 5, end: 6 }, none))).toBe("blocked");
      harness.blockedDigests.clear();
    }
  });
});

test("60 items in random bundles, with mostly false or failing sources: each response is right or a fault", async () => {
  const seed = Number(process.env["TEST_SEED"] ?? Date.now() % 1e9);
  console.log(`seed ${seed} (TEST_SEED)`);
  const random = seeded(seed);
  const below = (count: number) => Math.floor(random() * count);
  const items = Array.from({ length: 60 }, () => makeItem(below(3_000)));
  const posted: PostedBundle[] = [];
  for (let at = 0; at < items.length; at += 20) {
    let group = items.slice(at, at + 20);
    for (let level = below(3); level > 0; level -= 1) {
      const split = below(group.length);
      group = [...group.slice(0, split), makeNested(group.slice(split))];
    }
    posted.push(await fixture.postBundle(group));
  }
  const truthOf = (id: Id) => posted.find(({ places }) => places.has(id));
  const files = Array.from({ length: 4 }, () =>
    fileOf(
      ...items.map(({ id }): readonly [Id, Readonly<Record<string, Packable>>] => {
        const truth = truthOf(id);
        const wrong = posted[below(posted.length)];
        const { rootId } = (random() < 0.4 ? truth : wrong) ?? bundle;
        const i = random() < 0.5 ? truth?.place(id).itemOffset : below(5_000);
        return [id, random() < 0.5 ? { r: idBytes(rootId) } : { r: idBytes(rootId), i: i ?? 0 }];
      }),
    ),
  );
  const fail: readonly Fault[] = [{ kind: "reset" }, { kind: "flip", at: 600 }, { kind: "cut", at: 500 }];
  fixture.node.setFault(() => (random() < 0.1 ? fail[below(fail.length)] : undefined));
  const harness = harnessOf({ rootFiles: files });
  const counts = { right: 0, fault: 0 };
  for (const item of items) {
    const outcome = await outcomeOf(harness.content.open(item.id, none));
    if (typeof outcome === "string") {
      expect(outcome).toBeOneOf(["source_failed", "source_timeout"]);
      counts.fault += 1;
      continue;
    }
    const bytes = await wholeOf(outcome).catch((error: unknown) => error);
    if (bytes instanceof Uint8Array) expect(isSame(bytes, item.payload)).toBe(true);
    counts.right += 1;
  }
  expect(counts.right).toBeGreaterThan(10);
});
