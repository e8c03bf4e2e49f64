/**
 * Uploads with a payment by x402: the price, settlement before storage, rejections, and attempts of others with an
 * observed payment.
 * @module
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkItem } from "../../../src/arweave/data-item.ts";
import { Failure } from "../../../src/failures.ts";
import type { HttpServer } from "../../../src/http/server.ts";
import { uploadReference } from "../../../src/http/upload/upload-reference.ts";
import { encodeBase64url } from "../../../src/lib/base64url.ts";
import { sha256 } from "../../../src/lib/hash.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { lifeMs } from "../../../src/upload/multipart/multipart-uploads.ts";
import { findUpload } from "../../../src/upload/upload-rows.ts";
import { boundBytesMax } from "../../../src/upload/x402/x402-uploads.ts";
import { type Payer, readHeader } from "../../payment/x402/payers.ts";
import { funded, openX402Fixture, type X402Fixture } from "../../payment/x402/x402-fixture.ts";
import { createBlockList } from "../../support/block-lists.ts";
import { validEncodings } from "../../support/encodings.ts";
import { closed, faultsOf } from "../../support/schema.ts";
import { rsaKey, signers } from "../../support/signers.ts";
import { eventually } from "../../support/until.ts";
import {
  type MultipartFixture,
  makeFolder,
  makeItem,
  malleableSigners,
  openMultipartFixture,
  partFilesIn,
  type TestItem,
} from "../../upload/multipart/multipart-fixture.ts";
import { openX402UploadServer, type X402UploadServer } from "../../upload/x402/upload-server.ts";

const folder = makeFolder();
let x402: X402Fixture;
let fixture: MultipartFixture;
let server: HttpServer;
let opened: X402UploadServer;
let payers = 0;
/** Whether the disk takes nothing. */
let isBroken = false;

const records = closed(uploadReference.records);

/** How a record differs from what the API reference says of it. */
const faultsBy = (name: string, value: unknown) => faultsOf(value, { $ref: `#/components/schemas/${name}` }, records);

// Within a group: what it opened is closed before the databases are (test/support/ledger-databases.ts).
describe("uploads by x402", () => {
  beforeAll(async () => {
    x402 = await openX402Fixture();
    const { payment } = x402;
    const { database, clock, makeId, credits } = payment;
    const blocked = new Set([String(makeItem(new Uint8Array(1), [], signers[3]).account)]);
    const rules = { itemBytesMax: 20_000_000, freeBytesMax: 200, blocked };
    const step = (name: string) => {
      if (isBroken && name === "before a synchronisation") throw new Failure("no_space", { reason: "broken" });
    };
    fixture = await openMultipartFixture({
      database,
      makeId,
      clock: clock.now,
      folder: folder.path,
      rules,
      blockList,
      step,
    });
    const keyFile = join(folder.path, "key.json");
    writeFileSync(keyFile, JSON.stringify(rsaKey));
    const key = { file: keyFile, modulus: rsaKey.n ?? "" };
    opened = openX402UploadServer({
      x402: x402.x402,
      fixture,
      folder: folder.path,
      key,
      credits,
      rules,
      clock: clock.now,
      blockList,
    });
    server = opened.server;
  }, 30_000);

  afterAll(async () => {
    await opened.close();
    await fixture.close();
    expect(await checkLedger(x402.payment.database)).toEqual([]);
    await x402.close();
    folder.remove();
  });

  function newPayer(): Payer {
    payers += 1;
    return funded(x402, 1_000 + payers);
  }

  const blockList = createBlockList();
  let made = 0;

  function newBytes(size: number): Uint8Array {
    made += 1;
    const bytes = new Uint8Array(size).fill(made);
    new DataView(bytes.buffer).setUint32(0, made);
    return bytes;
  }

  const newItem = (size = 5_000, signer = signers[4]): TestItem => makeItem(newBytes(size), [], signer);

  function post(path: string, body: Uint8Array, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return fetch(`${server.url}${path}`, { method: "POST", body: body as Uint8Array<ArrayBuffer>, headers });
  }

  /** Asks what an upload costs, and signs that. */
  async function payFor(ask: () => Promise<Response>, payer: Payer, version: 1 | 2 = 1) {
    const response = await ask();
    expect(response.status).toBe(402);
    const required = await response.json();
    expect(faultsBy("X402Required", required)).toEqual([]);
    const authorization = x402.authorize(payer, BigInt(required.maxAmountRequired));
    const name = version === 1 ? "x-payment" : "payment-signature";
    return { required, authorization, headers: { [name]: x402.header(authorization, payer, version) } };
  }

  const signed = "/v1/x402/upload/signed";
  const unsigned = "/v1/x402/upload/unsigned";

  describe("P2: content that is blocked", () => {
    afterEach(() => {
      blockList.ids.clear();
      blockList.hashes.clear();
    });

    /** What a payer has when a payment has bought nothing. */
    const credited = (required: { maxAmountRequired: string }) =>
      BigInt(required.maxAmountRequired) * x402.prices.wincEach;

    test("by its id is rejected before it is paid for", async () => {
      const item = newItem();
      const payer = newPayer();
      const { headers } = await payFor(() => post(signed, item.bytes), payer);
      blockList.ids.add(item.id);
      const response = await post(signed, item.bytes, headers);
      expect([response.status, response.headers.has("x-payment-response")]).toEqual([451, false]);
      expect(await x402.balance(payer)).toBe(0n);
    });

    test("by its hash is rejected before it is paid for where all of it is read first, unsigned", async () => {
      const data = newBytes(1_000);
      const payer = newPayer();
      const { headers } = await payFor(() => post(unsigned, data), payer);
      blockList.hashes.add(encodeBase64url(sha256(data)));
      const response = await post(unsigned, data, headers);
      expect([response.status, response.headers.has("x-payment-response")]).toEqual([451, false]);
      expect(await x402.balance(payer)).toBe(0n);
    });

    test.each([
      ["signed", 5_000],
      ["unsigned", boundBytesMax + 1],
    ] as const)(
      "by its hash, %s, is rejected when all of it has come: the payer keeps the credits",
      async (how, size) => {
        const data = newBytes(size);
        const [path, body] = how === "signed" ? [signed, makeItem(data, [], signers[4]).bytes] : [unsigned, data];
        const payer = newPayer();
        const { required, headers } = await payFor(() => post(path, body), payer);
        blockList.hashes.add(encodeBase64url(sha256(data)));
        const before = partFilesIn(folder.path);
        const response = await post(path, body, headers);
        expect([response.status, response.headers.has("x-payment-response")]).toEqual([451, true]);
        expect(await x402.balance(payer)).toBe(credited(required));
        expect(partFilesIn(folder.path)).toEqual(before);
      },
    );
  });

  describe("a signed item", () => {
    test.each([
      "/x402/upload/signed",
      "/v1/x402/upload/signed",
      "/x402/data-item/signed",
      "/v1/x402/data-item/signed",
      "/x402/data-item/signed/base",
      "/v1/x402/data-item/signed/eip155:8453",
    ])("at %p is asked a payment for, and taken with it", async (path) => {
      const item = newItem();
      const payer = newPayer();
      const { required, headers } = await payFor(() => post(path, item.bytes), payer);
      expect(required).toMatchObject({
        x402Version: 1,
        scheme: "exact",
        network: "base",
        error: "X-PAYMENT header is required",
        description: `Turbo cost to upload ${item.bytes.length} bytes`,
        resource: "http://localhost:3002/v1/x402/upload/signed",
        accepts: [{ scheme: "exact", maxTimeoutSeconds: 300 }],
      });
      const response = await post(path, item.bytes, headers);
      const receipt = await response.json();
      expect(response.status).toBe(200);
      expect(faultsBy("PaidReceipt", receipt)).toEqual([]);
      expect(receipt).toMatchObject({ id: item.id, mUSDCPaid: required.maxAmountRequired });
      expect(receipt.x402PaymentTxId).toMatch(/^0x[0-9a-f]{64}$/);
      expect(readHeader(response.headers.get("x-payment-response"))).toMatchObject({
        success: true,
        network: "base",
        payer: payer.address,
        transaction: receipt.x402PaymentTxId,
      });
      // What the least payment buys beyond the item's price is the payer's.
      const paid = BigInt(required.maxAmountRequired) * x402.prices.wincEach;
      expect(await x402.balance(payer)).toBe(paid - BigInt(receipt.winc));
      expect(BigInt(receipt.winc)).toBe(BigInt(item.bytes.length) * x402.prices.wincPerByte);
    });

    test("is paid for by version 2 too", async () => {
      const item = newItem();
      const payer = newPayer();
      const { headers } = await payFor(() => post(signed, item.bytes), payer, 2);
      const response = await post(signed, item.bytes, headers);
      expect(response.status).toBe(200);
      expect(readHeader(response.headers.get("payment-response"))).toMatchObject({
        success: true,
        network: "eip155:8453",
      });
    });

    test("that exists already gets its receipt, and nothing is settled", async () => {
      const item = newItem();
      const first = await payFor(() => post(signed, item.bytes), newPayer());
      const { id, timestamp } = await (await post(signed, item.bytes, first.headers)).json();
      const other = newPayer();
      const second = await payFor(() => post(signed, item.bytes), other);
      const response = await post(signed, item.bytes, second.headers);
      expect(await response.json()).toMatchObject({ id, timestamp });
      expect(response.headers.get("x-payment-response")).toBeNull();
      expect(await x402.balance(other)).toBe(0n);
      expect(x402.node.balanceOf(other.address)).toBe(1_000_000_000n);
    });

    test.each(malleableSigners)(
      "by %s that exists already in another encoding gets the first receipt, and costs nothing",
      async (_name, signer) => {
        const item = newItem(5_000, signer);
        const first = await payFor(() => post(signed, item.bytes), newPayer());
        const { id, timestamp } = await (await post(signed, item.bytes, first.headers)).json();
        const encodings = validEncodings(item.bytes);
        expect(encodings.length).toBeGreaterThan(0);
        for (const bytes of encodings) {
          const other = newPayer();
          const { required, headers } = await payFor(() => post(signed, bytes), other);
          const response = await post(signed, bytes, headers);
          expect(await response.json()).toMatchObject({ id, timestamp });
          // A payment that settled before the content was rejected remains with its payer as credits.
          const settled = response.headers.get("x-payment-response") !== null;
          const paid = BigInt(required.maxAmountRequired);
          expect(await x402.balance(other)).toBe(settled ? paid * x402.prices.wincEach : 0n);
          expect(x402.node.balanceOf(other.address)).toBe(1_000_000_000n - (settled ? paid : 0n));
          expect(settled).toBe(signer?.scheme.type === 6);
        }
      },
    );

    test("that is rejected after its payment leaves the payer the credits, and says so", async () => {
      const item = newItem();
      const payer = newPayer();
      const wrong = item.bytes.map((byte, at) => (at === item.bytes.length - 1 ? ~byte : byte));
      const { required, headers } = await payFor(() => post(signed, wrong), payer);
      const response = await post(signed, wrong, headers);
      expect(response.status).toBe(400);
      expect(readHeader(response.headers.get("x-payment-response"))).toMatchObject({ success: true });
      expect(await x402.balance(payer)).toBe(BigInt(required.maxAmountRequired) * x402.prices.wincEach);
    });

    test.each<[string, () => Uint8Array, number]>([
      ["is invalid", () => newBytes(5_000), 400],
      ["is from a blocked signer", () => newItem(5_000, signers[3]).bytes, 403],
    ])("that %s is rejected before a payment", async (_name, bytesOf, status) => {
      const bytes = bytesOf();
      const payer = newPayer();
      const { headers } = await payFor(() => post(signed, bytes), payer);
      expect((await post(signed, bytes, headers)).status).toBe(status);
      expect(x402.node.balanceOf(payer.address)).toBe(1_000_000_000n);
    });

    test("is not paid for with a payment for another, or for a smaller one", async () => {
      const [first, second, larger] = [newItem(), newItem(), newItem(3_000_000)];
      const payer = newPayer();
      const { headers } = await payFor(() => post(signed, first.bytes), payer);
      expect((await post(signed, first.bytes, headers)).status).toBe(200);
      const before = await x402.balance(payer);
      for (const item of [second, larger]) {
        const response = await post(signed, item.bytes, headers);
        expect([response.status, (await response.json()).error]).toEqual([402, "Payment settlement failed"]);
      }
      const small = await payFor(() => post(signed, second.bytes), newPayer());
      expect((await post(signed, larger.bytes, small.headers)).status).toBe(402);
      expect(await x402.balance(payer)).toBe(before);
    });

    test("twenty at once with one payment are one item, one payment, one charge", async () => {
      const item = newItem();
      const payer = newPayer();
      const { required, headers } = await payFor(() => post(signed, item.bytes), payer);
      const responses = await Promise.all(Array.from({ length: 20 }, () => post(signed, item.bytes, headers)));
      const statuses = new Set(responses.map(({ status }) => status));
      expect([...statuses].every((status) => status === 200 || status === 503)).toBe(true);
      expect(statuses).toContain(200);
      expect((await post(signed, item.bytes, headers)).status).toBe(200);
      const cost = BigInt(item.bytes.length) * x402.prices.wincPerByte;
      expect(await x402.balance(payer)).toBe(BigInt(required.maxAmountRequired) * x402.prices.wincEach - cost);
    });

    test("that is free needs no payment", async () => {
      const item = makeItem(newBytes(4), [], signers[1]);
      expect(item.bytes.length).toBeLessThan(200);
      expect(await (await post(signed, item.bytes)).json()).toMatchObject({ id: item.id, winc: "0" });
    });

    test("needs a length, a network that is known, a size that is taken, and a payment that is one", async () => {
      const stream = new ReadableStream({
        start: (controller) => {
          controller.enqueue(newBytes(100));
          controller.close();
        },
      });
      const noLength = await fetch(`${server.url}${signed}`, { method: "POST", body: stream });
      expect([noLength.status, await noLength.json()]).toEqual([
        411,
        "Missing Content Length. Content Length is required for raw data post.",
      ]);
      expect((await post("/x402/data-item/signed/solana", newItem().bytes)).status).toBe(400);
      expect((await post(signed, newItem().bytes, { "x-payment": "nonsense" })).status).toBe(403);
      const item = newItem();
      const payer = newPayer();
      const { headers } = await payFor(() => post(signed, item.bytes), payer);
      expect((await post(signed, new Uint8Array(20_000_001), headers)).status).toBe(413);
      expect(x402.node.balanceOf(payer.address)).toBe(1_000_000_000n);
    });
  });

  describe("bytes that the service signs", () => {
    const tags = JSON.stringify([{ name: "App", value: "test" }]);

    test.each([unsigned, "/x402/upload/unsigned", "/x402/data-item/unsigned", "/v1/x402/data-item/unsigned/base"])(
      "at %p become an item that says what they are and who paid",
      async (path) => {
        const data = newBytes(9_000);
        const payer = newPayer();
        const headers = { "content-type": "text/plain", "x-data-item-tags": tags };
        const paid = await payFor(() => post(path, data, headers), payer);
        const response = await post(path, data, { ...headers, ...paid.headers });
        const body = await response.json();
        expect(response.status).toBe(200);
        expect(faultsBy("PaidReceipt", body)).toEqual([]);
        expect(body).toMatchObject({
          id: body.receipt.id,
          payer: payer.address,
          mUSDCPaid: paid.required.maxAmountRequired,
          x402Payment: { transactionHash: body.x402PaymentTxId, network: "base", mode: "payg" },
        });
        const upload = await x402.payment.database.read((tx) => findUpload(tx, body.id));
        const bytes = new Uint8Array(readFileSync(join(folder.path, upload?.bytes.file ?? "")));
        const item = checkItem(bytes, "strict");
        if (item.kind !== "item") throw new Error(item.reason);
        expect(item.header.tags).toEqual([
          { name: "Content-Type", value: "text/plain" },
          { name: "App", value: "test" },
          { name: "Data-Item-Authority", value: "Cairn" },
          { name: "X402-Payer-Address", value: payer.address },
        ]);
        expect(Buffer.compare(item.data, data)).toBe(0);
        const cost = BigInt(bytes.length) * x402.prices.wincPerByte;
        expect(BigInt(body.winc)).toBe(cost);
        expect(await x402.balance(payer)).toBe(BigInt(paid.required.maxAmountRequired) * x402.prices.wincEach - cost);
      },
    );

    test.each([9_000, 70_000])("(%p) sent again with their payment get the same response", async (size) => {
      const data = newBytes(size);
      const payer = newPayer();
      const { headers } = await payFor(() => post(unsigned, data), payer);
      const first = await (await post(unsigned, data, headers)).json();
      const before = await x402.balance(payer);
      const files = partFilesIn(folder.path);
      expect(await (await post(unsigned, data, headers)).json()).toMatchObject({ id: first.id });
      const other = await post(unsigned, newBytes(size), headers);
      // A payment for few bytes is for these; of many it is known when the item is there.
      if (size > boundBytesMax) expect(await other.json()).toMatchObject({ id: first.id });
      else expect(other.status).toBe(402);
      expect((await post(unsigned, newBytes(size + 1), headers)).status).toBe(402);
      expect([await x402.balance(payer), partFilesIn(folder.path)]).toEqual([before, files]);
    });

    test("of no type are bytes of any kind", async () => {
      const data = newBytes(3_000);
      const typeless = { "content-type": "" };
      const { headers } = await payFor(() => post(unsigned, data, typeless), newPayer());
      const { id } = await (await post(unsigned, data, { ...headers, ...typeless })).json();
      const upload = await x402.payment.database.read((tx) => findUpload(tx, id));
      expect(upload?.contentType).toBe("application/octet-stream");
    });

    test("that are few go on with a payment that has settled, and bought nothing yet", async () => {
      const payer = newPayer();
      const data = newBytes(5_000);
      const { required, headers } = await payFor(() => post(unsigned, data), payer);
      const before = partFilesIn(folder.path).length;
      isBroken = true;
      const first = await post(unsigned, data, headers);
      isBroken = false;
      expect([first.status, first.headers.has("x-payment-response")]).toEqual([503, true]);
      expect(partFilesIn(folder.path)).toHaveLength(before);
      expect((await post(unsigned, newBytes(5_000), headers)).status).toBe(402);
      const again = await post(unsigned, data, headers);
      const { winc } = await again.json();
      expect(again.status).toBe(200);
      const credited = BigInt(required.maxAmountRequired) * x402.prices.wincEach;
      expect(await x402.balance(payer)).toBe(credited - BigInt(winc));
    });

    test("that were interrupted leave the credits to their payer; the payment gives no other client access", async () => {
      const payer = newPayer();
      const data = newBytes(6_000_000);
      const { required, headers } = await payFor(() => post(unsigned, data), payer);
      const files = partFilesIn(folder.path);
      (await beginSending(data, headers["x-payment"] ?? "")).socket.terminate();
      const credited = BigInt(required.maxAmountRequired) * x402.prices.wincEach;
      await eventually(
        () => x402.balance(payer),
        (winc) => winc === credited,
      );
      await eventually(
        async () => partFilesIn(folder.path),
        (left) => left.length === files.length,
      );
      for (const bytes of [data, newBytes(6_000_000)]) {
        // Until the interrupted request has ended, its payment is being used.
        const response = await eventually(
          () => post(unsigned, bytes, headers),
          ({ status }) => status !== 503,
        );
        expect([response.status, (await response.json()).error]).toEqual([402, "Payment settlement failed"]);
      }
      expect([await x402.balance(payer), partFilesIn(folder.path)]).toEqual([credited, files]);
    });

    test("are not ended by who sends their payment to another program of the same ledger", async () => {
      const elsewhere = await openElsewhere();
      const payer = newPayer();
      const data = newBytes(6_000_000);
      const { headers } = await payFor(() => post(unsigned, data), payer);
      const { socket, responded } = await beginSending(data, headers["x-payment"] ?? "");
      const other = await fetch(`${elsewhere.url}${unsigned}`, {
        method: "POST",
        headers,
        body: data as Uint8Array<ArrayBuffer>,
      });
      expect([other.status, await other.json()]).toEqual([503, "Service busy"]);
      await sendSlowly(socket, data.subarray(data.length / 2));
      expect(await responded).toStartWith("HTTP/1.1 200 OK");
      await elsewhere.close();
    });

    test.each<[string, string]>([
      ["no JSON", "["],
      ["no list", "{}"],
      ["no tags", '[{"name":1,"value":"x"}]'],
      ["the service's own tag", '[{"name":"X402-Payer-Address","value":"x"}]'],
      ["its authority", '[{"name":"data-item-authority","value":"x"}]'],
      ["an approval of the service's credits", '[{"name":"X-Approve-Payment","value":"x"}]'],
      ["the end of one", '[{"name":"x-delete-payment-approval","value":"x"}]'],
    ])("are rejected with tags that are %s, before a payment", async (_name, header) => {
      const response = await post(unsigned, newBytes(1_000), { "x-data-item-tags": header });
      expect(response.status).toBe(400);
      expect(await response.json()).toStartWith("Invalid tags: ");
    });
  });

  describe("an upload in parts", () => {
    const refund = newItem(10, signers[0]).account;
    const path = (size: number, address: string = refund) =>
      `/v1/chunks/base-usdc/-1/-1?chunkSize=5242880&totalBytes=${size}&address=${address}&signatureType=1`;
    const ask = (at: string, headers: Readonly<Record<string, string>> = {}) =>
      fetch(`${server.url}${at}`, { headers });

    test("is made when it is paid, pays for its item, and gives the rest to whom it names", async () => {
      const item = newItem(40_000, signers[0]);
      const at = path(item.bytes.length + 1_000);
      const payer = newPayer();
      const { required, headers } = await payFor(() => ask(at), payer);
      expect(required.description).toBe(`Turbo cost to upload ${item.bytes.length + 1_000} bytes`);
      const response = await ask(at, headers);
      const { id, chunkSize } = await response.json();
      expect([response.status, chunkSize]).toEqual([200, 5_242_880]);
      expect(readHeader(response.headers.get("x-payment-response"))).toMatchObject({ success: true });
      expect((await (await ask(at, headers)).json()).id).toBe(id); // the response was lost
      const before = (await x402.payment.credits.balance(refund))?.winc ?? 0n;
      expect((await post(`/v1/chunks/base-usdc/${id}/0`, new Uint8Array(item.bytes.length + 1_001))).status).toBe(400);
      expect((await post(`/v1/chunks/base-usdc/${id}/0`, item.bytes)).status).toBe(200);
      expect((await post(`/v1/chunks/base-usdc/${id}/-1`, new Uint8Array(0))).status).toBe(200);
      const quoted = BigInt(item.bytes.length + 1_000) * x402.prices.wincPerByte;
      const after = (await x402.payment.credits.balance(refund))?.winc ?? 0n;
      expect(after - before).toBe(quoted - BigInt(item.bytes.length));
    });

    test("is not returned to a client that sends the payment later, or for another address", async () => {
      const at = path(30_000);
      const { headers } = await payFor(() => ask(at), newPayer());
      expect((await ask(at, headers)).status).toBe(200);
      expect((await ask(path(30_000, makeItem(newBytes(9), [], signers[2]).account), headers)).status).toBe(402);
      x402.payment.clock.advance(11 * 60_000);
      expect((await ask(at, headers)).status).toBe(402);
      x402.payment.clock.set(x402.payment.clock.now() - 11 * 60_000);
    });

    test("that never becomes an item gives its credits back", async () => {
      const at = path(25_000);
      const { headers } = await payFor(() => ask(at), newPayer());
      expect((await ask(at, headers)).status).toBe(200);
      const before = (await x402.payment.credits.balance(refund))?.winc ?? 0n;
      x402.payment.clock.advance(lifeMs);
      await fixture.sweep.sweep();
      x402.payment.clock.set(x402.payment.clock.now() - lifeMs);
      const after = (await x402.payment.credits.balance(refund))?.winc ?? 0n;
      expect(after - before).toBeGreaterThanOrEqual(25_000n * x402.prices.wincPerByte);
    });

    test.each([
      "totalBytes=100",
      "address=x",
      "totalBytes=0&address=A&signatureType=1",
      "totalBytes=5&signatureType=99",
    ])("is rejected with %p", async (query) => {
      expect((await ask(`/v1/chunks/base-usdc/-1/-1?${query}`)).status).toBe(400);
    });
  });

  /** Another program with the same ledger, and a folder of its own. */
  async function openElsewhere() {
    const { database, clock, makeId, credits } = x402.payment;
    const other = makeFolder();
    const rules = { itemBytesMax: 20_000_000, freeBytesMax: 200, blocked: new Set<string>() };
    const theirs = await openMultipartFixture({
      database,
      makeId,
      clock: clock.now,
      folder: other.path,
      rules,
      store: "11111111-1111-4111-8111-111111111111",
    });
    const key = { file: join(folder.path, "key.json"), modulus: rsaKey.n ?? "" };
    const settling = x402.openAnother(database);
    const server = openX402UploadServer({
      x402: settling,
      fixture: theirs,
      folder: other.path,
      key,
      credits,
      rules,
      clock: clock.now,
    });
    return {
      url: server.server.url,
      close: async () => {
        await server.close();
        await settling.close();
        await theirs.close();
        other.remove();
      },
    };
  }

  /** Announces bytes with their payment, and sends the first half of them, until they are being written. */
  async function beginSending(data: Uint8Array, payment: string) {
    const before = partFilesIn(folder.path).length;
    const responded = Promise.withResolvers<string>();
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port: server.port,
      socket: { data: (_, bytes) => responded.resolve(bytes.toString()) },
    });
    const head = [
      `POST ${unsigned} HTTP/1.1`,
      "Host: localhost",
      `X-Payment: ${payment}`,
      `Content-Length: ${data.length}`,
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    await sendSlowly(socket, data.subarray(0, data.length / 2));
    await eventually(
      async () => partFilesIn(folder.path).length,
      (files) => files > before,
    );
    return { socket, responded: responded.promise };
  }

  async function sendSlowly(socket: Bun.Socket, bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; await Bun.sleep(1)) at += socket.write(bytes.subarray(at));
  }
});
