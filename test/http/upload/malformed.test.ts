/**
 * An invalid data item is rejected with its reason, however it is sent: nothing is charged or stored.
 * Source: docs/reference/formats.md#data-items; docs/reference/threats.md (U1, B3, B4).
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createDataItem } from "../../../src/arweave/data-item.ts";
import { signers } from "../../support/signers.ts";
import { openTestUpload, type TestUpload } from "../../support/upload.ts";
import { malformedItems } from "./malformed-items.ts";

let upload: TestUpload;

beforeAll(async () => {
  // Free, so that nothing but the item itself rejects it.
  upload = await openTestUpload({ rules: { freeBytesMax: 2 ** 30 } });
});
afterAll(async () => {
  await upload.close();
});

/** What makes an item so large that it comes in pieces to a file of its own. */
const much = new Uint8Array(2 ** 20);

/** Ways of sending, each with another body. */
const ways: readonly (readonly [string, (bytes: Uint8Array) => BodyInit])[] = [
  ["whole", (bytes) => new Uint8Array(bytes)],
  ["in chunks, without its size", (bytes) => streamOf([bytes])],
  ["byte by byte", (bytes) => streamOf(Array.from(bytes, (byte) => Uint8Array.of(byte)))],
  ["with a million bytes behind it", (bytes) => new Blob([new Uint8Array(bytes), much])],
  ["with a million bytes behind it, without its size", (bytes) => streamOf([bytes, much])],
];

for (const [way, bodyOf] of ways)
  describe(`B4: sent ${way}, an item is rejected`, () => {
    test.each(malformedItems)("for %s", async (_name, bytes, reason) => {
      const response = await upload.send(bodyOf(bytes));
      const text = await response.json();
      expect([response.status, text]).toEqual([400, expect.stringContaining("Invalid Data Item! ")]);
      // With bytes behind them, some break another rule first.
      if (bodyOf === ways[0]?.[1]) expect(text).toMatch(reason);
      expect(upload.files()).toEqual({});
    });
  });

test("U1: every truncation of an item of every signature type is rejected", async () => {
  for (const signer of signers) {
    const item = createDataItem({ data: "payload", tags: [{ name: "n", value: "v" }] }, signer);
    const cuts = Array.from({ length: item.length }, (_, size) => new Uint8Array(item.subarray(0, size)));
    await inOrder(cuts, async (cut) => {
      const response = await upload.send(cut.length % 2 === 0 ? cut : streamOf([cut]));
      const text = await response.text();
      if (response.status !== 400 || !text.startsWith('"Invalid Data Item! '))
        throw new Error(`${cut.length} bytes of type ${signer.scheme.type}: ${response.status} ${text}`);
    });
    // The complete item is not one of these.
    expect((await upload.send(new Uint8Array(item))).status).toBe(200);
  }
}, 120_000);

test("in the end nothing was charged, and nothing is stored of what was rejected", async () => {
  expect(await upload.money()).toEqual({ faults: [], revenue: 0n });
  const sizes = Object.values(upload.files());
  const stored = signers.map((signer) =>
    createDataItem({ data: "payload", tags: [{ name: "n", value: "v" }] }, signer),
  );
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(stored.reduce((sum, { length }) => sum + length, 0));
});

/** A body of unknown size. */
function streamOf(pieces: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  let next = 0;
  return new ReadableStream({
    pull(controller) {
      const piece = pieces[next];
      next += 1;
      if (piece === undefined) controller.close();
      else if (piece.length > 0) controller.enqueue(new Uint8Array(piece));
      else controller.close();
    },
  });
}

/** Does work for each, some at once. */
async function inOrder<Value>(values: readonly Value[], work: (value: Value) => Promise<void>): Promise<void> {
  const left = [...values];
  const worker = async () => {
    for (let value = left.pop(); value !== undefined; value = left.pop()) await work(value);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}
