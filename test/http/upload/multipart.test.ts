/**
 * Multipart uploads over HTTP: every route, its responses and its rejections.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../../src/failures.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { findUpload } from "../../../src/upload/upload-rows.ts";
import { validEncodings } from "../../support/encodings.ts";
import { openTestPayment, type TestPayment } from "../../support/payment.ts";
import { signers } from "../../support/signers.ts";
import { eventually } from "../../support/until.ts";
import {
  createPartsClient,
  type MultipartFixture,
  makeFolder,
  makeItem,
  malleableSigners,
  openMultipartFixture,
  type PartsClient,
  partFilesIn,
  type TestItem,
} from "../../upload/multipart/multipart-fixture.ts";

const folder = makeFolder();
let payment: TestPayment;
let fixture: MultipartFixture;
let client: PartsClient;
let price: (() => bigint) | undefined;

// Within a group: what it opened is closed before the databases are (test/support/ledger-databases.ts).
describe("uploads in parts", () => {
  beforeAll(async () => {
    payment = await openTestPayment();
    const { database, clock, makeId } = payment;
    const blocked = new Set([String(makeItem(new Uint8Array(1), [], signers[3]).account)]);
    fixture = await openMultipartFixture({
      database,
      makeId,
      clock: clock.now,
      folder: folder.path,
      rules: { itemBytesMax: 50_000_000, blocked },
      priceOfByte: () => price?.() ?? 1n,
    });
    client = createPartsClient(`${fixture.server.url}/v1`);
  });

  afterAll(async () => {
    await fixture.close();
    expect(await checkLedger(payment.database)).toEqual([]);
    await payment.close();
    folder.remove();
  });

  let made = 0;

  /** An item that no other test has. */
  function newItem(size: number, tags: Parameters<typeof makeItem>[1] = [], signer = signers[2]): TestItem {
    made += 1;
    const data = new Uint8Array(size).fill(made);
    new DataView(data.buffer).setUint32(0, made);
    return makeItem(data, tags, signer);
  }

  async function rejection(response: Response): Promise<unknown[]> {
    return [response.status, await response.json()];
  }

  /** Uploads whole items in parts of a size. */
  async function putAll(id: string, { bytes }: TestItem, size: number): Promise<void> {
    for (let start = 0; start < bytes.length; start += size) {
      const response = await client.put(id, start, bytes.subarray(start, start + size));
      expect([response.status, await response.text()]).toEqual([200, "OK"]);
    }
  }

  const balance = async (item: TestItem) => (await payment.credits.balance(item.account))?.winc ?? 0n;

  describe("GET /chunks/:token/-1/-1", () => {
    test.each(["", "/v1"])("makes an upload (below %p), says its limits and repeats the size", async (prefix) => {
      const response = await fetch(`${fixture.server.url}${prefix}/chunks/arweave/-1/-1?chunkSize=5242880`, {
        headers: { "x-chunking-version": "2" },
      });
      expect(response.status).toBe(200);
      expect(response.headers.get("cache-control")).toBe("no-store");
      expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
      const { id, ...limits } = await response.json();
      expect(id).toMatch(/^[0-9a-f-]{36}$/);
      expect(limits).toEqual({ min: 5_242_880, max: 524_288_000, chunkSize: 5_242_880 });
    });

    test("takes 25,000,000 bytes where no size is said", async () => {
      const response = await fetch(`${fixture.server.url}/chunks/solana/-1/-1`);
      expect(await response.json()).toMatchObject({ chunkSize: 25_000_000 });
    });

    test.each(["5242879", "524288001", "0", "-1", "5242880.5", "0x500000", "", "5e6", "A", "9".repeat(400)])(
      "rejects the size %p",
      async (size) => {
        const response = await fetch(`${fixture.server.url}/chunks/arweave/-1/-1?chunkSize=${size}`);
        expect(await rejection(response)).toEqual([
          400,
          { error: "Invalid chunk size", min: 5_242_880, max: 524_288_000 },
        ]);
      },
    );

    test.each(["5242880", "524288000"])("takes the size %p", async (size) => {
      const response = await fetch(`${fixture.server.url}/chunks/arweave/-1/-1?chunkSize=${size}`);
      expect(await response.json()).toMatchObject({ chunkSize: Number(size) });
    });

    test.each(["arweave", "native", "ethereum", "solana", "ed25519", "matic", "pol", "base-eth", "base-usdc", "kyve"])(
      "knows the token %p",
      async (token) => {
        expect((await fetch(`${fixture.server.url}/chunks/${token}/-1/-1`)).status).toBe(200);
      },
    );

    test("rejects words that are no token", async () => {
      for (const token of ["bitcoin", "Arweave", "-1"])
        expect(await rejection(await fetch(`${fixture.server.url}/chunks/${token}/-1/-1`))).toEqual([
          400,
          "Token not supported",
        ]);
    });

    test("makes nothing for HEAD", async () => {
      const response = await fetch(`${fixture.server.url}/chunks/arweave/-1/-1`, { method: "HEAD" });
      expect([response.status, response.headers.get("allow")]).toEqual([405, "GET"]);
    });
  });

  describe("POST /chunks/:token/:uploadId/:offset", () => {
    test.each<[string, string | undefined]>([
      ["no length", undefined],
      ["a body of nothing", ""],
    ])("rejects a part of %s", async (_name, body) => {
      const id = await client.create();
      const stream = new ReadableStream({
        start: (controller) => {
          controller.enqueue(new Uint8Array(100));
          controller.close();
        },
      });
      const response = await fetch(`${fixture.server.url}/chunks/arweave/${id}/0`, {
        method: "POST",
        body: body ?? stream,
      });
      expect(await rejection(response)).toEqual([
        400,
        "Content-Length header is required a must be a positive integer.",
      ]);
      expect((await client.list(id))["chunks"]).toEqual([]);
    });

    test.each(["-2", "1.5", "0x10", "1e3", "x", "9".repeat(16), "finalise"])(
      "rejects the offset %p",
      async (offset) => {
        const id = await client.create();
        const response = await fetch(`${fixture.server.url}/chunks/arweave/${id}/${offset}`, {
          method: "POST",
          body: "a",
        });
        expect(await rejection(response)).toEqual([400, "Invalid chunk. Expected an offset from 0 to 999999999999999"]);
      },
    );

    test("rejects unknown uploads, also when the client sends megabytes", async () => {
      for (const id of ["-1", "unnamed", crypto.randomUUID(), "x".repeat(1_000)]) {
        const response = await client.put(id, 0, new Uint8Array(6 * 2 ** 20));
        expect(await rejection(response)).toEqual([404, `Multi-part upload with ID ${id.slice(0, 43)} not found!`]);
      }
    });

    test("rejects what ends beyond the largest item, and beyond the largest part", async () => {
      const id = await client.create();
      const reason = "Data item is too large, this service only accepts data items up to 50000000 bytes!";
      expect(await rejection(await client.put(id, 50_000_000, new Uint8Array(1)))).toEqual([413, reason]);
      expect(await rejection(await client.put(id, 999_999_999_999_999, new Uint8Array(1)))).toEqual([413, reason]);
      expect((await client.put(id, 49_999_999, new Uint8Array(1))).status).toBe(200);
      expect((await client.list(id))["chunks"]).toEqual([[49_999_999, 1]]);
      expect(await fixture.files.diskBytes(id)).toBeLessThan(100_000);
    });

    test("lists parts in the order of their places, each once, whatever came when", async () => {
      const id = await client.create("?chunkSize=6000000");
      for (const [start, size] of [
        [500, 100],
        [0, 10],
        [500, 100],
        [0, 20],
        [10, 5],
        [500, 99],
      ] as const)
        expect((await client.put(id, start, new Uint8Array(size))).status).toBe(200);
      expect(await client.list(id)).toEqual({
        id,
        min: 5_242_880,
        max: 524_288_000,
        size: 6_000_000,
        chunks: [
          [0, 10],
          [0, 20],
          [10, 5],
          [500, 99],
          [500, 100],
        ],
        expiresAt: payment.clock.now() + 86_400_000,
      });
      expect(await client.status(id)).toEqual({ status: "ASSEMBLING", timestamp: payment.clock.now() });
    });
  });

  describe("finalizing", () => {
    test("POST …/-1 returns the receipt; the item is in the file of its parts, is charged and reported once", async () => {
      const item = newItem(300_000, [{ name: "Content-Type", value: "text/plain" }]);
      await payment.credit(item.account, 1_000_000n);
      const before = await balance(item);
      const id = await client.create();
      await putAll(id, item, 100_000);
      const response = await client.finalize(id);
      const receipt = await response.json();
      expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"]);
      expect(receipt).toMatchObject({ id: item.id, winc: String(item.bytes.length), deadlineHeight: 1_200 });
      expect(await balance(item)).toBe(before - BigInt(item.bytes.length));
      expect(fixture.announced.filter((id) => id === item.id)).toEqual([item.id]);
      const upload = await payment.database.read((tx) => findUpload(tx, item.id));
      expect(upload).toMatchObject({
        bytes: { file: `parts/${id}`, offset: 0, size: item.bytes.length },
        contentType: "text/plain",
        signer: item.account,
      });
      expect(readFileSync(join(folder.path, "parts", id)).equals(item.bytes)).toBe(true);
      expect(await client.status(id)).toEqual({
        status: "FINALIZED",
        timestamp: payment.clock.now(),
        receipt,
      });
      const { expiresAt: _, ...listed } = await client.list(id);
      expect(listed).toEqual({
        id,
        min: 5_242_880,
        max: 524_288_000,
        size: 25_000_000,
        chunks: [[0, item.bytes.length]],
      });
      for (const how of ["-1", "finalize"] as const) {
        const again = await client.finalize(id, how);
        expect([again.status, await again.json()]).toEqual([200, receipt]);
      }
      expect(await balance(item)).toBe(before - BigInt(item.bytes.length));
      expect(await rejection(await client.put(id, 0, item.bytes.subarray(0, 10)))).toEqual([
        400,
        "Invalid chunk. The upload is finalized.",
      ]);
    });

    test.each(malleableSigners)(
      "another encoding of an item by %s gets the first receipt, and is charged nothing",
      async (_name, signer) => {
        const item = newItem(300_000, [], signer);
        await payment.credit(item.account, 1_000_000n);
        const before = await balance(item);
        const encodings = [item.bytes, ...validEncodings(item.bytes)];
        expect(encodings.length).toBeGreaterThan(1);
        const receipts: unknown[] = [];
        // The first to come is not the signer's own.
        for (const bytes of encodings.toReversed()) {
          for (const how of ["-1", "finalize"] as const) {
            const id = await client.create();
            await putAll(id, { ...item, bytes }, 100_000);
            await client.finalize(id, how);
            const last = await eventually(
              () => client.status(id),
              ({ status }) => status === "FINALIZED",
            );
            receipts.push(last["receipt"]);
            expect(await (await client.finalize(id)).json()).toEqual(last["receipt"]);
            // The file of an encoding that was not taken is removed after the receipt is there.
            const isFirst = receipts.length === 1;
            await eventually(
              async () => partFilesIn(folder.path).includes(id),
              (isThere) => isThere === isFirst,
            );
          }
        }
        expect(receipts.length).toBeGreaterThan(3);
        for (const receipt of receipts) expect(receipt).toEqual(receipts[0]);
        expect(await balance(item)).toBe(before - BigInt(item.bytes.length));
      },
    );

    test("POST …/finalize responds 202 with nothing, and the status tells the rest", async () => {
      const item = newItem(200_000);
      await payment.credit(item.account, 1_000_000n);
      const id = await client.create();
      await putAll(id, item, 150_000);
      const response = await client.finalize(id, "finalize");
      expect([response.status, await response.text()]).toEqual([202, ""]);
      const last = await eventually(
        () => client.status(id),
        ({ status }) => status === "FINALIZED",
      );
      expect(last["receipt"]).toMatchObject({ id: item.id });
    });

    test("rejects what has gaps, says where, and takes it when they are filled", async () => {
      const item = newItem(50_000);
      await payment.credit(item.account, 1_000_000n);
      const id = await client.create();
      expect(await rejection(await client.finalize(id))).toEqual([400, "Invalid Data Item! No part has arrived."]);
      await client.put(id, 1_000, item.bytes.subarray(1_000, 2_000));
      expect(await rejection(await client.finalize(id))).toEqual([
        400,
        "Invalid Data Item! Bytes 0 to 999 are missing.",
      ]);
      await client.put(id, 0, item.bytes.subarray(0, 1_500));
      await client.put(id, 2_001, item.bytes.subarray(2_001));
      expect(await rejection(await client.finalize(id, "finalize"))).toEqual([
        400,
        "Invalid Data Item! Bytes 2000 to 2000 are missing.",
      ]);
      expect(await client.status(id)).toMatchObject({ status: "ASSEMBLING" });
      await client.put(id, 2_000, item.bytes.subarray(2_000, 2_001));
      expect((await client.finalize(id)).status).toBe(200);
    });

    test("says INVALID of what no signature covers; the missing end, or the right bytes, mend it", async () => {
      const item = newItem(50_000);
      await payment.credit(item.account, 1_000_000n);
      const id = await client.create();
      await client.put(id, 0, item.bytes.subarray(0, 40_000));
      const rejected = await rejection(await client.finalize(id));
      expect(rejected[0]).toBe(400);
      expect(rejected[1]).toStartWith("Invalid Data Item! ");
      const status = await client.status(id);
      expect(status).toMatchObject({ status: "INVALID", reason: rejected[1] });
      expect((await client.list(id))["failedReason"]).toBe("INVALID");
      const wrong = item.bytes.slice(39_000);
      wrong[500] = ~(wrong[500] ?? 0);
      await client.put(id, 39_000, wrong);
      expect(await client.status(id)).toMatchObject({ status: "ASSEMBLING" });
      expect((await client.finalize(id)).status).toBe(400);
      await client.put(id, 39_000, item.bytes.subarray(39_000));
      expect(await (await client.finalize(id)).json()).toMatchObject({ id: item.id });
    });

    test.each<[string, (item: TestItem) => Uint8Array, string]>([
      ["cut in its header", ({ bytes }) => bytes.slice(0, 50), "the item is cut short"],
      [
        "of no known type",
        ({ bytes }) => bytes.map((byte, at) => (at < 2 ? 255 : byte)),
        "signature type 65535 is unknown",
      ],
      ["of one byte", ({ bytes }) => bytes.slice(0, 1), "the item is cut short"],
    ])("rejects an invalid item: %s", async (_name, change, reason) => {
      const id = await client.create();
      await client.put(id, 0, change(newItem(1_000)));
      for (const how of ["-1", "finalize"] as const) {
        const response = await client.finalize(id, how);
        if (how === "-1") expect(await rejection(response)).toEqual([400, `Invalid Data Item! ${reason}`]);
        else expect(response.status).toBe(202);
        await eventually(
          () => client.status(id),
          ({ status }) => status === "INVALID",
        );
      }
    });

    test("bytes behind the end of a part that broke off are not the item's", async () => {
      const item = newItem(30_000);
      await payment.credit(item.account, 1_000_000n);
      const id = await client.create();
      await client.put(id, 0, item.bytes);
      await breakOff(id, item.bytes.length - 10, 5_000_000, 3_000_000);
      await client.put(id, item.bytes.length - 10, item.bytes.subarray(-10));
      expect(await (await client.finalize(id)).json()).toMatchObject({ id: item.id });
      expect(readFileSync(join(folder.path, "parts", id)).length).toBe(item.bytes.length);
    });

    test("says what is needed and what there is, and takes it when it is paid", async () => {
      const item = newItem(20_000, [], signers[4]);
      const id = await client.create();
      await putAll(id, item, 20_000);
      const insufficient = {
        error: "Insufficient balance",
        message: "Insufficient balance",
        needed: String(item.bytes.length),
        available: "0",
      };
      expect(await rejection(await client.finalize(id))).toEqual([402, insufficient]);
      expect(await client.status(id)).toMatchObject({ status: "UNDERFUNDED" });
      expect((await client.finalize(id, "finalize")).status).toBe(202);
      await eventually(
        () => client.status(id),
        ({ status }) => status === "UNDERFUNDED",
      );
      await payment.credit(item.account, BigInt(item.bytes.length));
      expect((await client.finalize(id)).status).toBe(200);
      expect(await balance(item)).toBe(0n);
    });

    test("lets others pay, in any case of the header", async () => {
      const payer = newItem(10, [], signers[0]).account;
      const item = newItem(20_000, [], signers[1]);
      await payment.credit(payer, 1_000_000n);
      await payment.credits.approve({
        approvalId: "approval",
        payer,
        approved: item.account,
        winc: 500_000n,
      });
      const id = await client.create();
      await putAll(id, item, 20_000);
      const rejected = await client.finalize(id, "-1", { "X-Paid-By": "unnamed" });
      expect(await rejection(rejected)).toEqual([400, "x-paid-by contains an invalid address"]);
      const response = await client.finalize(id, "-1", { "X-PAID-BY": ` ${payer} , ${payer}` });
      expect(response.status).toBe(200);
      expect((await payment.credits.approval("approval"))?.usedWinc).toBe(BigInt(item.bytes.length));
    });

    test("carries out approvals, and says APPROVAL_FAILED and REVOKE_FAILED where it cannot", async () => {
      const approved = newItem(10, [], signers[1]).account;
      const approve = (amount: string) => [
        { name: "x-approve-payment", value: approved },
        { name: "x-amount", value: amount },
      ];
      const good = newItem(10, approve("77"));
      await payment.credit(good.account, 1_000_000n);
      const first = await client.create();
      await putAll(first, good, 5_000);
      const receipt = await (await client.finalize(first)).json();
      expect(receipt.createdApproval).toMatchObject({ approvedAddress: approved, approvedWincAmount: "77" });

      const tooMuch = newItem(10, approve("999999999999999"));
      const second = await client.create();
      await putAll(second, tooMuch, 5_000);
      expect((await client.finalize(second)).ok).toBe(false);
      expect(await client.status(second)).toMatchObject({ status: "APPROVAL_FAILED" });

      const nothing = newItem(10, [{ name: "x-delete-payment-approval", value: newItem(10, [], signers[0]).account }]);
      const third = await client.create();
      await putAll(third, nothing, 5_000);
      expect((await client.finalize(third)).ok).toBe(false);
      expect(await client.status(third)).toMatchObject({ status: "REVOKE_FAILED" });
    });

    test("rejects who is blocked before the item is walked over", async () => {
      const item = newItem(20_000, [], signers[3]);
      const id = await client.create();
      await putAll(id, item, 20_000);
      expect(await rejection(await client.finalize(id))).toEqual([403, "Forbidden"]);
      expect(await client.status(id)).toMatchObject({ status: "INVALID", reason: "Forbidden" });
    });

    test("an item that exists already gets its first receipt, costs nothing, and leaves no second file", async () => {
      const item = newItem(20_000);
      await payment.credit(item.account, 1_000_000n);
      const first = await client.create();
      await putAll(first, item, 7_000);
      const receipt = await (await client.finalize(first)).json();
      const before = await balance(item);
      payment.clock.advance(5_000);
      for (const size of [20_000, 3_000]) {
        const id = await client.create();
        await putAll(id, item, size);
        expect(await (await client.finalize(id)).json()).toEqual(receipt);
        expect(partFilesIn(folder.path)).not.toContain(id);
        expect(await client.status(id)).toMatchObject({ status: "FINALIZED", receipt });
      }
      expect(await balance(item)).toBe(before);
      expect(fixture.announced.filter((id) => id === item.id)).toEqual([item.id]);
    });

    test("forty finalizations of one upload at once are one charge and forty equal receipts", async () => {
      const item = newItem(2_000_000);
      await payment.credit(item.account, 10_000_000n);
      const before = await balance(item);
      const id = await client.create();
      await putAll(id, item, 700_000);
      const responses = await Promise.all(
        Array.from({ length: 40 }, (_, index) => client.finalize(id, index % 4 === 3 ? "finalize" : "-1")),
      );
      const bodies = await Promise.all(responses.filter(({ status }) => status === 200).map((one) => one.text()));
      expect(responses.every(({ status }) => status === 200 || status === 202)).toBe(true);
      expect(bodies.length).toBeGreaterThanOrEqual(30);
      expect(new Set(bodies).size).toBe(1);
      expect(await balance(item)).toBe(before - BigInt(item.bytes.length));
    });

    test("two uploads of one item finalized at once are one charge, one file, and equal receipts", async () => {
      const item = newItem(1_500_000);
      await payment.credit(item.account, 10_000_000n);
      const before = await balance(item);
      const ids = await Promise.all([1, 2, 3].map(() => client.create()));
      for (const id of ids) await putAll(id, item, 800_000);
      const receipts = await Promise.all(ids.map(async (id) => await (await client.finalize(id)).text()));
      expect(new Set(receipts).size).toBe(1);
      expect(await balance(item)).toBe(before - BigInt(item.bytes.length));
      expect(ids.filter((id) => partFilesIn(folder.path).includes(id))).toHaveLength(1);
    });

    test("a part that still arrives is rejected, and harms nothing", async () => {
      const item = newItem(400_000);
      await payment.credit(item.account, 10_000_000n);
      const id = await client.create();
      await putAll(id, item, 200_000);
      const late = slowPart(id, 0, 300_000);
      await late.begun;
      const receipt = await (await client.finalize(id)).json();
      expect(receipt).toMatchObject({ id: item.id });
      expect(await late.response).toContain('"Invalid chunk. The upload is being finalized."');
      expect(readFileSync(join(folder.path, "parts", id)).equals(item.bytes)).toBe(true);
    });

    test("what can pass is 503 at once, and is tried again where it was promised", async () => {
      const item = newItem(10_000);
      await payment.credit(item.account, 10_000_000n);
      const id = await client.create();
      await putAll(id, item, 10_000);
      price = () => {
        throw new Failure("pricing_oracle_unavailable");
      };
      try {
        const response = await client.finalize(id);
        expect([response.status, response.headers.get("retry-after")]).toEqual([503, "5"]);
        expect(await client.status(id)).toMatchObject({ status: "ASSEMBLING" });
        expect((await client.finalize(id, "finalize")).status).toBe(202);
        await eventually(
          () => client.status(id),
          ({ status }) => status === "VALIDATING" || status === "FINALIZING",
        );
      } finally {
        price = undefined;
      }
      await eventually(
        () => client.status(id),
        ({ status }) => status === "FINALIZED",
      );
    });
  });

  describe("the routes", () => {
    test("know no other words", async () => {
      const id = await client.create();
      for (const path of [`${id}/0`, `${id}/x`, `${id}/finalize`, "-1/0"])
        expect((await fetch(`${fixture.server.url}/chunks/arweave/${path}`)).status).toBe(404);
      for (const [method, allow] of [
        ["PUT", "GET, HEAD, OPTIONS, POST"],
        ["DELETE", "GET, HEAD, OPTIONS, POST"],
      ] as const) {
        const response = await fetch(`${fixture.server.url}/chunks/arweave/${id}/0`, { method });
        expect([response.status, response.headers.get("allow")?.split(", ").toSorted().join(", ")]).toEqual([
          405,
          allow,
        ]);
      }
    });

    test("say of an upload that is not there that it is not", async () => {
      for (const ask of [client.list, client.status]) {
        const failure = await ask("unnamed").catch((error: unknown) => String(error));
        expect(failure).toContain("404");
        expect(failure).toContain("Multi-part upload with ID unnamed not found!");
      }
      for (const how of ["-1", "finalize"] as const) {
        const response = await client.finalize("unnamed", how);
        expect(await rejection(response)).toEqual([404, "Multi-part upload with ID unnamed not found!"]);
      }
    });
  });

  /** Announces a part, sends the beginning of it, and goes. */
  async function breakOff(id: string, start: number, announced: number, sent: number): Promise<void> {
    const { response, begun, socket } = slowPart(id, start, announced, sent);
    await begun;
    await eventually(
      () => fixture.files.diskBytes(id),
      (bytes) => bytes > 1_000_000,
    );
    (await socket).terminate();
    await response;
    await eventually(
      async () => fixture.writers.isOpen(id),
      (isOpen) => !isOpen,
    );
  }

  /** Announces a part and sends the beginning of it. */
  function slowPart(id: string, start: number, announced: number, sent = 1_000) {
    const begun = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<string>();
    let text = "";
    const socket = Bun.connect({
      hostname: "127.0.0.1",
      port: fixture.server.port,
      socket: {
        data: (connection, bytes) => {
          text += bytes.toString();
          if (text.includes("\r\n\r\n")) connection.end();
        },
        close: () => ended.resolve(text),
      },
    });
    const send = async () => {
      const connection = await socket;
      connection.write(
        `POST /chunks/arweave/${id}/${start} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${announced}\r\n\r\n`,
      );
      const bytes = new Uint8Array(sent).fill(0x55);
      for (let at = 0; at < sent; ) {
        at += connection.write(bytes.subarray(at));
        if (at < sent) await Bun.sleep(1);
      }
      await eventually(
        async () => fixture.writers.isOpen(id),
        (isOpen) => isOpen,
      );
      begun.resolve();
    };
    void send();
    return { begun: begun.promise, response: ended.promise, socket };
  }
});
