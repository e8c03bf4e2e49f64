/**
 * Offsets of an item that is nested in an upload: `/tx/{id}/offsets` of the upload service.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeBundle, writeBundleHeader } from "../../../src/arweave/bundle.ts";
import { readItemHeader } from "../../../src/arweave/data-item.ts";
import { Failure } from "../../../src/failures.ts";
import { createUnbundledSearch } from "../../../src/upload/unbundled-uploads.ts";
import { post, rsa } from "../../dev/devnet/support.ts";
import { bundleTags, makeItem } from "../../indexing/samples.ts";
import { eventually } from "../../support/until.ts";
import { openUploadStack, sendItem, type UploadStack, untilFinalized } from "../../support/upload-stack.ts";

let stack: UploadStack;
beforeAll(async () => {
  stack = await openUploadStack();
}, 60_000);
afterAll(() => stack.close());

const tagged = (type: string) => ({ tags: [{ name: "Content-Type", value: type }] });
const headerOf = (item: Uint8Array) => {
  const read = readItemHeader(item, "strict");
  if (read.kind !== "header") throw new Error("the test's item is an item");
  return read.header;
};
const offsetsOf = (id: string) => fetch(`${stack.uploads}/tx/${id}/offsets`);

test("an item in an uploaded bundle, on any level, is 200 with its parent and its place there", async () => {
  const deepest = makeItem("the deepest", tagged("text/css"));
  const inner = makeItem(writeBundle([makeItem("beside"), deepest]), { tags: [...bundleTags] });
  const outer = makeItem(writeBundle([makeItem("first"), inner]), { tags: [...bundleTags] });
  const [deepestId, innerId] = [headerOf(deepest).id, headerOf(inner).id];
  const { id } = await sendItem(stack.uploads, outer);
  await untilFinalized(stack, id);
  await eventually(
    () => offsetsOf(deepestId),
    ({ status }) => status === 200,
  );
  const { rootBundleId, startOffsetInRootBundle } = await (await offsetsOf(id)).json();
  for (const [item, parent, nestedId, parentId] of [
    [inner, outer, innerId, id],
    [deepest, inner, deepestId, innerId],
  ] as const) {
    const header = headerOf(item);
    const payload = parent.subarray(headerOf(parent).headerSize);
    const start = Buffer.from(payload).indexOf(item);
    expect(start).toBeGreaterThan(0);
    const response = await offsetsOf(nestedId);
    expect(response.headers.get("cache-control")).toMatch(/^public, max-age=(15|86400)$/);
    expect(await response.json()).toEqual({
      rawContentLength: item.length,
      payloadContentType: item === deepest ? "text/css" : "application/octet-stream",
      payloadDataStart: header.headerSize,
      payloadContentLength: item.length - header.headerSize,
      startOffsetInRootBundle: startOffsetInRootBundle + Buffer.from(outer).indexOf(item),
      parentDataItemId: parentId,
      startOffsetInParentDataItemPayload: start,
      rootBundleId,
    });
    expect(await (await fetch(`${stack.uploads}/v1/tx/${nestedId}/offsets`)).json()).toMatchObject({
      parentDataItemId: parentId,
    });
    // It was not uploaded by itself.
    expect((await fetch(`${stack.uploads}/tx/${nestedId}/status`)).status).toBe(404);
  }
}, 60_000);

test("an item in an uploaded bundle is 200 before a block has the bundle, also after a restart", async () => {
  const items = ["early 1", "early 2", "early 3"].map((data) => makeItem(data, tagged("text/plain")));
  const outer = makeItem(writeBundle(items), { tags: [...bundleTags] });
  const heightBefore = stack.devnet.height();
  const { id } = await sendItem(stack.uploads, outer);
  const payload = Buffer.from(outer.subarray(headerOf(outer).headerSize));
  const look = async () => {
    for (const item of items) {
      const { id: nestedId, headerSize } = headerOf(item);
      const response = await eventually(
        () => offsetsOf(nestedId),
        ({ status }) => status === 200,
      );
      const record = await response.json();
      expect(record).toMatchObject({
        rawContentLength: item.length,
        payloadContentType: "text/plain",
        payloadDataStart: headerSize,
        payloadContentLength: item.length - headerSize,
        parentDataItemId: id,
        startOffsetInParentDataItemPayload: payload.indexOf(item),
      });
      // Offsets in the transaction are reported as soon as they are known, of the item and of its parent.
      const parent = await (await offsetsOf(id)).json();
      if (record.startOffsetInRootBundle !== undefined)
        expect(record.startOffsetInRootBundle).toBe(parent.startOffsetInRootBundle + Buffer.from(outer).indexOf(item));
      if (record.rootBundleId !== undefined) expect(record.rootBundleId).toBe(parent.rootBundleId);
    }
  };
  await look();
  await stack.restart();
  await look();
  expect(stack.devnet.height()).toBe(heightBefore);
  expect((await offsetsOf(headerOf(makeItem("in no bundle")).id)).status).toBe(404);
}, 120_000);

test("a bundle that says what is not so is believed only where the item's header agrees", async () => {
  const item = makeItem("named", tagged("text/plain"));
  const other = makeItem("another");
  const header = writeBundleHeader([
    { id: headerOf(item).id, size: other.length },
    { id: headerOf(makeItem("beyond")).id, size: 2 ** 40 },
  ]);
  const outer = makeItem(Buffer.concat([header, other]), { tags: [...bundleTags] });
  const notABundle = makeItem(new Uint8Array(40).fill(0xff), { tags: [...bundleTags] });
  for (const each of [outer, notABundle]) await sendItem(stack.uploads, each);
  for (const each of [item, makeItem("beyond"), other])
    expect([headerOf(each).id, (await offsetsOf(headerOf(each).id)).status]).toEqual([headerOf(each).id, 404]);
});

test("an item outside of uploads is 404, also if the index has it", async () => {
  const lone = makeItem("lone");
  const nested = makeItem(writeBundle([lone]), { tags: [...bundleTags] });
  const bundle = await post(stack.devnet, rsa, { data: writeBundle([nested]), tags: [...bundleTags] });
  await stack.devnet.mine(1);
  const { id } = headerOf(lone);
  await eventually(
    async () => stack.gateway.reader.locate(id),
    (located) => located !== undefined,
  );
  for (const each of [id, headerOf(nested).id, bundle.id, "x".repeat(43)])
    expect([each, (await offsetsOf(each)).status]).toEqual([each, 404]);
}, 60_000);
test.each([
  ["not read in time fails with 504: the item may be in it", true, "source_timeout"],
  ["read in time, without the item, does not fail", false, undefined],
] as const)("a search through a bundle: %s", async (_which, isSlow, code) => {
  const reader = { page: () => ({ rows: [{ kind: "item", id: "b".repeat(43) }], hasNextPage: false }) };
  const find = createUnbundledSearch({
    reader: reader as unknown as Parameters<typeof createUnbundledSearch>[0]["reader"],
    findStatus: async () => ({ upload: { state: "posted" } }) as never,
    open: async (_id, signal) => {
      if (isSlow)
        await new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      return { size: 0, bytes: async () => new Uint8Array() } as never;
    },
    clock: Date.now,
    readMs: 20,
  });
  const found = await find("a".repeat(43) as Parameters<typeof find>[0]).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(found instanceof Failure ? found.code : found).toBe(code);
});
