/**
 * Finalizations whose outcome is decided while another client asks for one, and uploads whose item fails afterwards.
 * @module
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../../src/failures.ts";
import { attemptId, refundReservation } from "../../../src/payment/credits/reservations.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { openTestPayment, type TestPayment } from "../../support/payment.ts";
import { eventually } from "../../support/until.ts";
import {
  createPartsClient,
  type MultipartFixture,
  makeFolder,
  makeItem,
  openMultipartFixture,
  type PartsClient,
  type TestItem,
} from "./multipart-fixture.ts";

let folder: ReturnType<typeof makeFolder>;
let payment: TestPayment;
let fixture: MultipartFixture;
let client: PartsClient;
/** Thrown instead of a price. */
let fault: Failure | undefined;
/** Called when a read of the ledger has its result. */
let afterRead: () => Promise<void> | void;
/** Called before and after each write to the ledger. */
let onWrite: (when: "before" | "after") => Promise<void> | void;

beforeEach(async () => {
  payment = await openTestPayment();
  folder = makeFolder();
  fault = undefined;
  onWrite = () => undefined;
  afterRead = () => undefined;
  const { database, clock, makeId } = payment;
  fixture = await openMultipartFixture({
    database: {
      ...database,
      read: async (work) => {
        const found = await database.read(work);
        await afterRead();
        return found;
      },
    },
    makeId,
    clock: clock.now,
    folder: folder.path,
    priceOfByte: () => {
      if (fault !== undefined) throw fault;
      return 1n;
    },
    step: (name) => {
      if (name === "before a write to the ledger") return onWrite("before");
      return name === "after a write to the ledger" ? onWrite("after") : undefined;
    },
  });
  client = createPartsClient(fixture.server.url);
});

afterEach(async () => {
  await fixture.close();
  expect(await checkLedger(payment.database)).toEqual([]);
  await payment.close();
  folder.remove();
});

/** An upload with all bytes of an item. */
async function uploadOf(item: TestItem): Promise<string> {
  const id = await client.create();
  expect((await client.put(id, 0, item.bytes)).status).toBe(200);
  return id;
}

/** Begins to finalize an upload, and stops before or after its outcome is written, until `pass` is called. */
async function finalizeUntilOutcome(id: string, stop: "before" | "after") {
  const reached = Promise.withResolvers<void>();
  const pass = Promise.withResolvers<void>();
  const next = Promise.withResolvers<void>();
  let writes = 0;
  onWrite = async (when) => {
    if (when !== stop) return;
    writes += 1;
    if (writes > 2) next.resolve();
    if (writes !== 2) return; // the first one begins the finalization
    reached.resolve();
    await pass.promise;
  };
  const response = client.finalize(id);
  await reached.promise;
  return { response, next: next.promise, pass: pass.resolve };
}

describe("a finalization that fails while another client asks for it", () => {
  test("is tried again where that client was promised the result", async () => {
    const item = makeItem(new Uint8Array(100));
    await payment.credit(item.account, 10_000n);
    const id = await uploadOf(item);
    fault = new Failure("pricing_oracle_unavailable");
    const first = await finalizeUntilOutcome(id, "before");
    expect((await client.finalize(id, "finalize")).status).toBe(202);
    first.pass();
    fault = undefined;
    await eventually(
      () => client.status(id),
      ({ status }) => status === "FINALIZED",
      10_000,
    );
    expect((await first.response).status).toBe(200);
  });

  test("fails for that client too, and stays open, when its request is found before the failure is written", async () => {
    const item = makeItem(new Uint8Array(100));
    await payment.credit(item.account, 10_000n);
    const id = await uploadOf(item);
    fault = new Failure("pricing_oracle_unavailable");
    const first = await finalizeUntilOutcome(id, "before");
    const second = client.finalize(id);
    await first.next; // the second client's request is the next write
    fault = undefined;
    first.pass();
    expect([(await first.response).status, (await second).status]).toEqual([503, 503]);
    expect(await client.status(id)).toMatchObject({ status: "ASSEMBLING" });
    expect(await client.list(id)).toMatchObject({ chunks: [[0, item.bytes.length]] });
    expect((await payment.credits.balance(item.account))?.winc).toBe(10_000n);
  });

  test("gives its result to no client that asks when it is written", async () => {
    const item = makeItem(new Uint8Array(100));
    const id = await uploadOf(item);
    const first = await finalizeUntilOutcome(id, "after");
    expect(await client.status(id)).toMatchObject({ status: "UNDERFUNDED" });
    await payment.credit(item.account, 10_000n);
    const second = client.finalize(id);
    await first.next;
    await new Promise(setImmediate);
    first.pass();
    expect([(await first.response).status, (await second).status]).toEqual([402, 200]);
    expect(await client.status(id)).toMatchObject({ status: "FINALIZED" });
  });
});

describe("a part that arrives during the finalization", () => {
  test("is not written to the file of the item, however late the ledger's response arrives", async () => {
    const item = makeItem(new Uint8Array(100));
    await payment.credit(item.account, 10_000n);
    const id = await uploadOf(item);
    const read = Promise.withResolvers<void>();
    const pass = Promise.withResolvers<void>();
    afterRead = async () => {
      afterRead = () => undefined;
      read.resolve();
      await pass.promise;
    };
    const late = client.put(id, 0, new Uint8Array(item.bytes.length).fill(7));
    await read.promise;
    expect((await client.finalize(id)).status).toBe(200);
    pass.resolve();
    const response = await late;
    expect([response.status, await response.json()]).toEqual([400, "Invalid chunk. The upload is finalized."]);
    expect(readFileSync(join(folder.path, "parts", id)).equals(item.bytes)).toBe(true);
  });
});

describe("an upload whose item failed later, and is refunded", () => {
  test("is INVALID with the reason, has no receipt and no parts, and the item can be uploaded again", async () => {
    const item = makeItem(new Uint8Array(100));
    await payment.credit(item.account, 10_000n);
    const id = await uploadOf(item);
    expect((await client.finalize(id)).status).toBe(200);
    const { database, clock, makeId } = payment;
    await database.write(async (tx) => {
      await tx.run("UPDATE uploads SET failed_reason = 'its file is cut short' WHERE id = ?", item.id);
      await refundReservation(tx, attemptId(item.id, 1n), { now: clock.now(), makeId });
    });

    const reason = "The item has failed: its file is cut short";
    expect(await client.status(id)).toEqual({ status: "INVALID", timestamp: clock.now(), reason });
    expect(await client.list(id)).toMatchObject({ chunks: [], failedReason: "INVALID" });
    for (const how of ["-1", "finalize"] as const) {
      const response = await client.finalize(id, how);
      expect([response.status, await response.json()]).toEqual([400, reason]);
    }
    const part = await client.put(id, 0, item.bytes);
    expect([part.status, await part.json()]).toEqual([400, reason]);

    const again = await uploadOf(item);
    expect(await (await client.finalize(again)).json()).toMatchObject({ id: item.id });
    expect((await payment.credits.balance(item.account))?.winc).toBe(10_000n - BigInt(item.bytes.length));
  });
});
