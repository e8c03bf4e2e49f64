/**
 * Bytes of small items that were written and are named by no row: they are reported, counted while their segment is on
 * the disk, and removed with it.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Pool, Workers } from "../../../src/threads/pool.ts";
import { createItemStore } from "../../../src/upload/intake/item-store.ts";
import { createUnnamedBytes, type UnnamedBytes } from "../../../src/upload/intake/unnamed-bytes.ts";
import { until } from "../../support/until.ts";
import { openTestUpload, type TestUpload, testItem } from "../../support/upload.ts";

type IntakePool = Pool<Workers["intake"]>;

let unnamed: UnnamedBytes;
let upload: TestUpload;

beforeEach(async () => {
  unnamed = createUnnamedBytes();
  upload = await openTestUpload({ onUnnamed: unnamed.add, rules: { freeBytesMax: 2 ** 30 } });
});
afterEach(() => upload.close());

const segments = () => Object.entries(upload.files()).filter(([name]) => name.startsWith("segments/"));
const bytesIn = () => segments().reduce((sum, [, size]) => sum + size, 0);

test("an item that is rejected when it is charged is counted, an accepted one is not", async () => {
  const revoked = [{ name: "x-delete-payment-approval", value: "A".repeat(43) }];
  const rejected = testItem("nothing was approved", { tags: revoked });
  expect((await upload.send(rejected.bytes)).status).toBe(400);
  expect([unnamed.bytes(), bytesIn()]).toEqual([rejected.bytes.length, rejected.bytes.length]);
  expect((await upload.send(testItem("accepted").bytes)).status).toBe(200);
  expect(unnamed.bytes()).toBe(rejected.bytes.length);
  for (const [segment] of segments()) unnamed.forget(segment);
  expect(unnamed.bytes()).toBe(0);
});

test("of an item that arrives twice at once, what is not charged is counted", async () => {
  const item = testItem("twice");
  const statuses = await Promise.all([upload.send(item.bytes), upload.send(item.bytes)]);
  expect(statuses.map(({ status }) => status)).toEqual([200, 200]);
  expect(unnamed.bytes()).toBe(bytesIn() - item.bytes.length);
});

test("an item whose client left while it was written is counted", async () => {
  const written = Promise.withResolvers<void>();
  const writing = {
    run: async (_entry: string, { items }: Readonly<{ items: readonly Uint8Array[] }>) => {
      await written.promise;
      return items.map(({ length }) => ({ kind: "written", item: { file: "segments/a", offset: 0, size: length } }));
    },
  };
  const store = createItemStore("", [writing as unknown as IntakePool], unnamed.add);
  const leaving = new AbortController();
  const stays = store.take(new Uint8Array(300), new AbortController().signal);
  const leaves = store.take(new Uint8Array(500), leaving.signal);
  leaving.abort("left");
  expect(await leaves.catch(String)).toBe("left");
  expect(unnamed.bytes()).toBe(0);
  written.resolve();
  expect((await stays).size).toBe(300);
  await until(() => unnamed.bytes() === 500);
});
