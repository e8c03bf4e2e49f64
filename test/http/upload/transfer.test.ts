/**
 * How an item comes: with a wrong size or none, slowly, cut off at any point, too large, under any word.
 * Source: docs/reference/upload.md#posting-an-item; docs/reference/threats.md (U1).
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { tokens } from "../../../src/payment/addresses.ts";
import { connectRaw, type RawConnection } from "../../support/raw-request.ts";
import { eventually } from "../../support/until.ts";
import { openTestUpload, type TestItem, type TestUpload, testItem } from "../../support/upload.ts";

const freeBytesMax = 4 * 2 ** 20;
const itemBytesMax = 6 * 2 ** 20;

let upload: TestUpload;
let hasty: TestUpload;

beforeAll(async () => {
  upload = await openTestUpload({ rules: { freeBytesMax, itemBytesMax } });
  // Nothing but the pace is another.
  hasty = await openTestUpload({
    rules: { freeBytesMax, itemBytesMax },
    pace: { stallMs: 400, windowMs: 600, windowBytes: 100_000 },
  });
});
afterAll(async () => {
  await upload.close();
  await hasty.close();
});

/** Items are made of a number, so that none comes twice. */
let made = 0;

function newItem(size: number): TestItem {
  made += 1;
  const data = new Uint8Array(size);
  new DataView(data.buffer).setUint32(0, made);
  return testItem(data);
}

const smallSize = 1_000;
/** Comes in four pieces, into a file of its own. */
const largeSize = 3 * 2 ** 20 + 12_345;

const head = (headers: string) => `POST /tx HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n`;
const withLength = (length: number) => head(`Content-Length: ${length}`);
const chunked = head("Transfer-Encoding: chunked");

/** One chunk of chunked transfer. */
async function writeChunk(connection: RawConnection, bytes: Uint8Array): Promise<void> {
  await connection.write(`${bytes.length.toString(16)}\r\n`);
  await connection.write(bytes);
  await connection.write("\r\n");
}

/** The first response: its status line, and its body when it has come. */
async function responseOf(connection: RawConnection): Promise<string> {
  await connection.until("\r\n\r\n");
  const response = await eventually(
    async () => /^HTTP\/1.1 (\d+) .*?\r\n\r\n(.*?["}])(HTTP|$)/s.exec(connection.received()),
    (found) => found !== null,
  );
  return `${response?.[1]} ${response?.[2]}`;
}

/** Nothing is left of an item a moment later, and nothing was charged. */
async function expectGone(service: TestUpload, item: TestItem): Promise<void> {
  await eventually(
    () => filesWithoutOwner(service),
    (files) => files.length === 0,
  );
  expect(await service.row(item.id)).toBeUndefined();
  expect(await service.money()).toEqual({ faults: [], revenue: 0n });
}

/** Files of items that no row names. */
async function filesWithoutOwner({ files, payment }: TestUpload): Promise<string[]> {
  const rows = await payment.database.read((tx) => tx.all<{ file: string }>("SELECT file FROM uploads"));
  const named = new Set(rows.map(({ file }) => file));
  return Object.keys(files()).filter((name) => name.startsWith("items/") && !named.has(name));
}

describe("U1: an item whose size is wrong", () => {
  for (const size of [smallSize, largeSize])
    test.each([
      ["one byte less", (length: number) => length - 1],
      ["half of it", (length: number) => Math.floor(length / 2)],
      ["its header", () => 200],
      ["nothing", () => 0],
    ])(`of ${size} bytes is rejected when %s is announced`, async (_name, announce) => {
      const item = newItem(size);
      const length = announce(item.bytes.length);
      const connection = await connectRaw(upload.url);
      await connection.write(withLength(length));
      await connection.write(item.bytes.subarray(0, length));
      expect(await responseOf(connection)).toMatch(/^400 "Invalid Data Item! /);
      connection.cut();
      await expectGone(upload, item);

      // The following bytes are not a valid request, and the listener may report that first.
      const hurried = await connectRaw(upload.url);
      await hurried.write(withLength(length));
      void hurried.write(item.bytes);
      expect(await hurried.ended).toStartWith("HTTP/1.1 400 ");
      await expectGone(upload, item);
    });

  for (const size of [smallSize, largeSize]) {
    test(`of ${size} bytes leaves nothing when more is announced and the sender goes away`, async () => {
      const item = newItem(size);
      const connection = await connectRaw(upload.url);
      await connection.write(withLength(item.bytes.length + 1));
      await connection.write(item.bytes);
      connection.cut();
      await expectGone(upload, item);
    });

    test(`of ${size} bytes leaves nothing when more is announced and the sender says that it was all`, async () => {
      const item = newItem(size);
      const connection = await connectRaw(upload.url);
      await connection.write(withLength(item.bytes.length + 1));
      await connection.write(item.bytes);
      connection.halfClose();
      await connection.ended;
      await expectGone(upload, item);
    });

    test(`of ${size} bytes is given up when more is announced and the sender falls silent`, async () => {
      const item = newItem(size);
      const connection = await connectRaw(hasty.url);
      await connection.write(withLength(item.bytes.length + 1));
      await connection.write(item.bytes);
      expect(await responseOf(connection)).toBe('408 "Request Timeout"');
      await connection.ended;
      await expectGone(hasty, item);
    });
  }
});

describe("U1: an item without its size", () => {
  test.each([smallSize, largeSize])("of %p bytes is taken when its end comes", async (size) => {
    const item = newItem(size);
    const connection = await connectRaw(upload.url);
    await connection.write(chunked);
    for (let at = 0; at < item.bytes.length; at += 70_001)
      await writeChunk(connection, item.bytes.subarray(at, at + 70_001));
    await writeChunk(connection, new Uint8Array(0));
    expect(await responseOf(connection)).toMatch(/^200 {/);
    expect(await upload.row(item.id)).toMatchObject({ bytes: { size: item.bytes.length } });
    connection.cut();
  });

  test("is taken also when each byte comes alone", async () => {
    const item = newItem(smallSize);
    const connection = await connectRaw(upload.url);
    await connection.write(chunked);
    for (const byte of item.bytes) await writeChunk(connection, Uint8Array.of(byte));
    await writeChunk(connection, new Uint8Array(0));
    expect(await responseOf(connection)).toMatch(/^200 {/);
    connection.cut();
  });

  test("stores nothing for an invalid chunk", async () => {
    const item = newItem(largeSize);
    const connection = await connectRaw(upload.url);
    await connection.write(chunked);
    await writeChunk(connection, item.bytes.subarray(0, 2 ** 21));
    await connection.write("this is not a valid size\r\n");
    await connection.ended;
    await expectGone(upload, item);
  });
});

describe("U1: a sender who is too slow", () => {
  test.each([
    ["with", withLength(largeSize + 116), false],
    ["without", chunked, true],
  ])("%s its size is sent away", async (_name, start, inChunks) => {
    const item = newItem(largeSize);
    const connection = await connectRaw(hasty.url);
    await connection.write(start);
    const piece = async (bytes: Uint8Array) =>
      inChunks ? await writeChunk(connection, bytes) : await connection.write(bytes);
    await piece(item.bytes.subarray(0, 2 * 2 ** 20));
    let isOver = false;
    void connection.until("408").then(() => {
      isOver = true;
    });
    // Never silent for long, and never with much to say.
    for (let at = 2 * 2 ** 20; !isOver && at < item.bytes.length; at += 10) {
      await piece(item.bytes.subarray(at, at + 10));
      await Bun.sleep(10); // the pace of a slow client
    }
    expect(isOver).toBe(true);
    await expectGone(hasty, item);
    connection.cut();
  });

  test("is measured by the time that the service waits, not by the time that the sender waits", async () => {
    // The whole is there at once; what takes long is on our side.
    const slow = await openTestUpload({
      rules: { freeBytesMax },
      pace: { stallMs: 20_000, windowMs: 1_000, windowBytes: 10 ** 9 },
      wrapPool: (pool) => ({
        ...pool,
        run: async (name, job, options) => {
          if (name === "feedItem") await Bun.sleep(500);
          return await pool.run(name, job, options);
        },
      }),
    });
    expect((await slow.send(newItem(largeSize).bytes)).status).toBe(200);
    await slow.close();
  });
});

describe("U1: an item that is cut off", () => {
  const tenths = Array.from({ length: 11 }, (_, index) => index);
  for (const [name, start, inChunks] of [
    ["with", withLength, false],
    ["without", () => chunked, true],
  ] as const)
    test.each(tenths)(`${name} its size after %p tenths leaves nothing`, async (tenth) => {
      for (const size of [smallSize, largeSize]) {
        const item = newItem(size);
        const connection = await connectRaw(upload.url);
        await connection.write(start(item.bytes.length));
        const until = Math.min(item.bytes.length - 1, Math.floor((item.bytes.length * tenth) / 10));
        const part = item.bytes.subarray(0, until);
        await (inChunks && part.length > 0 ? writeChunk(connection, part) : connection.write(part));
        await Bun.sleep(tenth); // a different moment of the upload each time
        connection.cut();
        await expectGone(upload, item);
      }
    });
});

describe("U1: an item that is too large", () => {
  const reason = `"Data item is too large, this service only accepts data items up to ${itemBytesMax} bytes!"`;

  test.each([itemBytesMax + 1, 2 ** 40, Number.MAX_SAFE_INTEGER])(
    "is rejected before a byte of it comes: %p bytes",
    async (size) => {
      const connection = await connectRaw(upload.url);
      await connection.write(withLength(size));
      expect(await responseOf(connection)).toBe(`413 ${reason}`);
      connection.cut();
    },
  );

  test("is rejected when so much has come, where its size was not announced", async () => {
    const rich = newItem(itemBytesMax);
    await upload.payment.credit(rich.account, 10n ** 12n);
    const response = await upload.send(new Blob([rich.bytes]).stream());
    expect([response.status, JSON.stringify(await response.json())]).toEqual([413, reason]);
    expect((await upload.money()).faults).toEqual([]);
    expect(await upload.row(rich.id)).toBeUndefined();
  });
});

describe("a rejection", () => {
  test("is heard while the rest is still being sent, and the connection goes on", async () => {
    const stranger = newItem(itemBytesMax - 1_000);
    const poor = { ...stranger, bytes: stranger.bytes.with(10, 1) };
    const connection = await connectRaw(upload.url);
    await connection.write(withLength(poor.bytes.length).replace("/tx", "/tx/none"));
    await connection.write(poor.bytes.subarray(0, 3_000));
    expect(await responseOf(connection)).toBe('400 "Token not supported"');
    await connection.write(poor.bytes.subarray(3_000));
    const item = newItem(smallSize);
    await connection.write(withLength(item.bytes.length));
    await connection.write(item.bytes);
    await connection.until("HTTP/1.1 200 ");
    connection.cut();
  });

  test("is sent before the body if the sender waits with Expect: 100-continue", async () => {
    const item = newItem(largeSize);
    const connection = await connectRaw(upload.url);
    await connection.write(head(`Content-Length: ${item.bytes.length}\r\nExpect: 100-continue`));
    await connection.until("HTTP/1.1 100 Continue\r\n\r\n");
    await connection.write(item.bytes);
    await connection.until("HTTP/1.1 200 ");
    connection.cut();
  });
});

describe("the type of the body", () => {
  test.each([
    ["application/octet-stream", 200],
    ["Application/Octet-Stream", 200],
    ["application/octet-stream; charset=utf-8", 200],
    ["text/plain", 400],
    ["application/json", 400],
    ["multipart/form-data; boundary=x", 400],
    ["application/octet-streams", 400],
  ])("%s gets %p", async (type, status) => {
    const response = await upload.send(newItem(smallSize).bytes, { headers: { "Content-Type": type } });
    expect(response.status).toBe(status);
    if (status === 400) expect(await response.json()).toBe("Invalid Content Type");
  });

  test("need not be announced", async () => {
    const item = newItem(smallSize);
    const connection = await connectRaw(upload.url);
    await connection.write(withLength(item.bytes.length));
    await connection.write(item.bytes);
    await connection.until("HTTP/1.1 200 ");
    connection.cut();
  });
});

describe("the word for a token", () => {
  const words = Object.values(tokens).flatMap((token) => token.words);
  test.each(words)("%s is known, also below /v1", async (word) => {
    for (const path of [`/tx/${word}`, `/v1/tx/${word}`])
      expect((await upload.send(newItem(smallSize).bytes, { path })).status).toBe(200);
  });

  test.each(["none", "Arweave", "arweave%20", "..", "bitcoin"])("%s is rejected", async (word) => {
    const response = await upload.send(newItem(smallSize).bytes, { path: `/tx/${word}` });
    expect([400, 404]).toContain(response.status);
    if (response.status === 400) expect(await response.json()).toBe("Token not supported");
  });
});
