/**
 * Threads that end during their work: the affected clients get a 503 with a retry, and no other client notices.
 * Source: docs/reference/threats.md (B5).
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventually } from "../../support/until.ts";
import { openTestUpload, type TestUpload, testItem } from "../../support/upload.ts";

let upload: TestUpload;

beforeAll(async () => {
  upload = await openTestUpload({
    threads: 1,
    rules: { freeBytesMax: 2 ** 30 },
    intakeEntry: new URL("./mortal-intake.ts", import.meta.url),
  });
});
afterAll(() => upload.close());

const fatal = "the thread ends here";
const large = 3_000_000;

test("after the end of a thread, the item that caused it gets a 503, and the others of its batch are accepted", async () => {
  const items = Array.from({ length: 100 }, (_, index) => testItem(index === 40 ? fatal : `item ${index} of a batch`));
  const responses = await Promise.all(items.map(({ bytes }) => upload.send(bytes)));
  const others = responses.filter((_, index) => index !== 40).map(({ status }) => status);
  expect(new Set(others)).toEqual(new Set([200]));
  const response = responses[40];
  expect([response?.status, await response?.json(), response?.headers.get("retry-after")]).toEqual([
    503,
    "Service busy",
    "5",
  ]);
  expect(await upload.row(items[40]?.id ?? "")).toBeUndefined();
});

test("a large item whose thread ends gets a 503, its file is removed, and another thread accepts the next item", async () => {
  const data = Buffer.alloc(large, "-");
  data.write(fatal, 2_500_000);
  const response = await upload.send(testItem(new Uint8Array(data)).bytes);
  expect([response.status, response.headers.get("retry-after")]).toEqual([503, "5"]);
  expect(Object.keys(upload.files()).filter((name) => name.startsWith("items/"))).toEqual([]);
  expect((await upload.send(testItem(new Uint8Array(large)).bytes)).status).toBe(200);
});

test("a large item whose thread was ended by another item gets a 503 in every phase", async () => {
  const slow = testItem(new Uint8Array(large).fill(3));
  const goOn = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(slow.bytes.subarray(0, 2_200_000));
      await goOn.promise;
      controller.enqueue(slow.bytes.subarray(2_200_000));
      controller.close();
    },
  });
  const response = upload.send(body);
  // The thread has a part of it.
  await eventually(
    async () => Object.values(upload.files()),
    (sizes) => sizes.includes(2 * 2 ** 20),
  );
  expect((await upload.send(testItem(`${fatal}, again`).bytes)).status).toBe(503);
  goOn.resolve();
  expect((await response).status).toBe(503);
  expect(await upload.row(slow.id)).toBeUndefined();
  expect((await upload.send(slow.bytes)).status).toBe(200);
  const row = await upload.row(slow.id);
  const own = Object.keys(upload.files()).filter((name) => name.startsWith("items/"));
  expect(own).toContain(row?.bytes.file ?? "none");
  expect(own).toHaveLength(2);
});

test("after all of this nothing was charged", async () => {
  expect(await upload.money()).toEqual({ faults: [], revenue: 0n });
});
