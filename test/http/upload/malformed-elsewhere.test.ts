/**
 * An invalid data item is rejected with its reason by every other route: in parts, by both ways of finalizing, and with
 * a payment. Nothing is charged or stored; a settled payment becomes credits of its payer.
 * Source: docs/reference/formats.md#data-items; docs/reference/threats.md (U1, B3, B4).
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createDataItem } from "../../../src/arweave/data-item.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { revenue } from "../../../src/store/ledger/transfers.ts";
import { lifeMs } from "../../../src/upload/multipart/multipart-uploads.ts";
import { funded, openX402Fixture, type X402Fixture } from "../../payment/x402/x402-fixture.ts";
import { rsaKey, signers } from "../../support/signers.ts";
import { eventually } from "../../support/until.ts";
import { filesIn } from "../../support/upload-parts.ts";
import {
  createPartsClient,
  type MultipartFixture,
  makeFolder,
  openMultipartFixture,
  type PartsClient,
} from "../../upload/multipart/multipart-fixture.ts";
import { openX402UploadServer, type X402UploadServer } from "../../upload/x402/upload-server.ts";
import { malformedItems } from "./malformed-items.ts";

const folder = makeFolder();
const noItem = /^Invalid Data Item! ./;
const dollars = 1_000_000_000n;
let x402: X402Fixture;
let fixture: MultipartFixture;
let opened: X402UploadServer;
let client: PartsClient;
let payers = 0;

// Within a group: what it opened is closed before the databases are (test/support/ledger-databases.ts).
describe("an invalid data item", () => {
  beforeAll(async () => {
    x402 = await openX402Fixture();
    const { database, clock, makeId, credits } = x402.payment;
    // Free in parts, so that nothing but the item itself rejects it.
    const rules = { itemBytesMax: 2 ** 20, freeBytesMax: 2 ** 20, blocked: new Set<string>() };
    fixture = await openMultipartFixture({ database, makeId, clock: clock.now, folder: folder.path, rules });
    const file = join(folder.path, "../key.json");
    writeFileSync(file, JSON.stringify(rsaKey));
    opened = openX402UploadServer({
      x402: x402.x402,
      fixture,
      folder: folder.path,
      credits,
      clock: clock.now,
      rules: { ...rules, freeBytesMax: 0 },
      key: { file, modulus: rsaKey.n ?? "" },
    });
    client = createPartsClient(opened.server.url);
  }, 30_000);

  afterAll(async () => {
    await opened.close();
    await fixture.close();
    await x402.close();
    folder.remove();
  });

  const some = malformedItems.filter(([, bytes]) => bytes.length > 0);

  describe("in parts", () => {
    test.each(some)("is rejected for %s", async (_name, bytes, reason) => {
      const id = await client.create();
      const half = bytes.length >> 1;
      await client.put(id, half, bytes.subarray(half));
      if (half > 0) await client.put(id, 0, bytes.subarray(0, half));
      const response = await client.finalize(id);
      const text = await response.json();
      expect([response.status, text]).toEqual([400, expect.stringMatching(noItem)]);
      expect(text).toMatch(reason);
      expect(await client.status(id)).toMatchObject({ status: "INVALID", reason: text });
      expect((await client.finalize(id, "finalize")).status).toBe(202);
      const status = await eventually(
        () => client.status(id),
        (seen) => seen["status"] === "INVALID",
      );
      expect(status).toMatchObject({ reason: text });
    });

    test.each(signers.map((signer) => [signer.scheme.name, signer] as const))(
      "is rejected for every truncation (%s), also where it grows by a byte each time",
      async (_name, signer) => {
        const item = createDataItem({ data: "payload", tags: [{ name: "n", value: "v" }] }, signer);
        const id = await client.create();
        const headerEnd = item.length - "payload".length;
        const fieldEnds = [2, 2 + signer.scheme.signatureSize, headerEnd - 16, headerEnd];
        // Within a signature or a key one byte more is like the one before it.
        const cuts = Array.from({ length: item.length - 1 }, (_, index) => index + 1).filter(
          (size) => size > headerEnd - 40 || size % 23 === 0 || fieldEnds.some((end) => Math.abs(size - end) < 3),
        );
        let had = 0;
        for (const size of cuts) {
          expect((await client.put(id, had, item.subarray(had, size))).status).toBe(200);
          had = size;
          const response = await client.finalize(id);
          const text = await response.json();
          if (response.status !== 400 || !noItem.test(text)) throw new Error(`${size}: ${response.status} ${text}`);
        }
        // The complete item is not one of these.
        await client.put(id, had, item.subarray(had));
        expect((await client.finalize(id)).status).toBe(200);
      },
      120_000,
    );
  });

  describe("with a payment", () => {
    const post = (bytes: Uint8Array, headers: Readonly<Record<string, string>> = {}) =>
      fetch(`${opened.server.url}/v1/x402/upload/signed`, {
        method: "POST",
        headers,
        body: new Blob([bytes as Uint8Array<ArrayBuffer>]),
      });

    test.each(some)("is rejected for %s, and what was paid is the payer's", async (_name, bytes, reason) => {
      payers += 1;
      const payer = funded(x402, 9_000 + payers, dollars);
      const asked = await post(bytes);
      expect(asked.status).toBe(402);
      const { maxAmountRequired } = await asked.json();
      const authorization = x402.authorize(payer, BigInt(maxAmountRequired));
      const before = filesIn(folder.path);
      const response = await post(bytes, { "x-payment": x402.header(authorization, payer) });
      const text = await response.json();
      expect([response.status, text]).toEqual([400, expect.stringMatching(noItem)]);
      expect(text).toMatch(reason);
      const paid = dollars - x402.node.balanceOf(payer.address);
      expect(await x402.balance(payer)).toBe(paid * x402.prices.wincEach);
      expect(response.headers.has("x-payment-response")).toBe(paid > 0n);
      expect(filesIn(folder.path)).toEqual(before);
    });

    test("is rejected without bytes, before a payment is requested", async () => {
      const response = await post(new Uint8Array(0));
      expect([response.status, await response.json()]).toEqual([400, "Invalid Data Item! the item is cut short"]);
    });
  });

  test("costs nothing in the end, and leaves no file after it expires", async () => {
    x402.payment.clock.advance(2 * lifeMs);
    await fixture.sweep.sweep();
    expect(await checkLedger(x402.payment.database)).toEqual([]);
    expect(await x402.payment.held(revenue)).toBe(0n);
    // Of each type of signature one was an item in the end.
    const sizes = Object.values(filesIn(folder.path)).filter((size) => size > 0);
    expect(sizes).toHaveLength(signers.length);
  });
});
