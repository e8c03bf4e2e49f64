/**
 * Uploads in parts at their limits: how many, how large, how long, how much of the disk, and what a disk that fails
 * does.
 * @module
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { winc } from "../../../src/arweave/winston.ts";
import { Failure } from "../../../src/failures.ts";
import { createLog } from "../../../src/lib/log.ts";
import { attemptId, refundReservation } from "../../../src/payment/credits/reservations.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { openPartFiles, type PartFile, type PartFiles } from "../../../src/store/uploads/part-files.ts";
import { createUploadQuota } from "../../../src/upload/intake/upload-quota.ts";
import type { Payers } from "../../../src/upload/multipart/multipart-rows.ts";
import {
  chunkSizeMax,
  lifeMs,
  partsMax,
  unfinishedMax,
  unfinishedPerClientMax,
} from "../../../src/upload/multipart/multipart-uploads.ts";
import { createPartWriters } from "../../../src/upload/multipart/part-writers.ts";
import { findUpload } from "../../../src/upload/upload-rows.ts";
import { openTestPayment, type TestPayment, testAddress } from "../../support/payment.ts";
import { eventually } from "../../support/until.ts";
import {
  type FixtureOptions,
  type MultipartFixture,
  makeFolder,
  makeItem,
  openMultipartFixture,
  partFilesIn,
} from "./multipart-fixture.ts";

const payers: Payers = { paidBy: [], directive: "list-or-signer", token: undefined };
const neverAborted = new AbortController().signal;
let folder: ReturnType<typeof makeFolder>;
let payment: TestPayment;
let fixture: MultipartFixture;

beforeEach(async () => {
  payment = await openTestPayment();
  folder = makeFolder();
  fixture = await openFixture();
});

afterEach(async () => {
  await fixture.close();
  expect(await checkLedger(payment.database)).toEqual([]);
  await payment.close();
  folder.remove();
});

function openFixture(more: Partial<FixtureOptions> = {}): Promise<MultipartFixture> {
  const { database, clock, makeId } = payment;
  return openMultipartFixture({ database, makeId, clock: clock.now, folder: folder.path, ...more });
}

async function reopen(more: Partial<FixtureOptions> = {}): Promise<void> {
  await fixture.close();
  fixture = await openFixture(more);
}

const create = async (client = "client") => (await fixture.multipart.create({ chunkSize: undefined, client })).id;

async function put(id: string, start: number, bytes: Uint8Array): Promise<void> {
  await fixture.multipart.put(id, { start, size: bytes.length, pieces: piecesOf(bytes) }, neverAborted);
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}

async function failureOf(work: Promise<unknown>): Promise<Failure> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof Failure) return error;
  throw new Error(`no Failure, but ${Bun.inspect(error)}`);
}

describe("an upload of an item that was accepted before", () => {
  test.each([1, 2])("replaces the item when that fails meanwhile, before write %d to the ledger", async (number) => {
    let writesLeft = Number.POSITIVE_INFINITY;
    const { database } = payment;
    await reopen({
      step: async (name) => {
        if (name !== "before a write to the ledger") return;
        writesLeft -= 1;
        if (writesLeft !== 0) return;
        const failed = { now: payment.clock.now(), makeId: payment.makeId };
        await database.write(async (tx) => {
          await tx.run("UPDATE uploads SET failed_reason = 'lost' WHERE id = ?", item.id);
          await refundReservation(tx, attemptId(item.id, 1n), failed);
        });
      },
    });
    const item = makeItem(new Uint8Array(100));
    await payment.credit(item.account, 10_000n);
    const [first, second] = [await create(), await create()];
    for (const id of [first, second]) await put(id, 0, item.bytes);
    await fixture.multipart.finalize(first, payers, neverAborted);
    writesLeft = number;
    await fixture.multipart.finalize(second, payers, neverAborted);
    const upload = await database.read((tx) => findUpload(tx, item.id));
    expect([writesLeft <= 0, upload?.state]).toEqual([true, "stored"]);
  });
});

describe("a finalization whose database reports a fault after the commit", () => {
  test.each(["a repeated request", "the next tidying"])("ends its counts with %s", async (ending) => {
    let writes = Number.NEGATIVE_INFINITY;
    await reopen({
      step: (name) => {
        if (name !== "after a write to the ledger") return;
        writes += 1;
        // The first write begins the finalization, the second makes the item.
        if (writes === 2) throw new Failure("database_unavailable", {});
      },
    });
    const item = makeItem(new Uint8Array(100_000));
    await payment.credit(item.account, 1_000_000n);
    const id = await create();
    await put(id, 0, item.bytes);
    for (let count = 1; count < unfinishedPerClientMax; count += 1) await create();
    writes = 0;
    expect((await failureOf(fixture.multipart.finalize(id, payers, neverAborted))).code).toBe("database_unavailable");
    expect((await payment.database.read((tx) => findUpload(tx, item.id)))?.state).toBe("stored");
    expect(fixture.writers.diskBytes()).toBeGreaterThanOrEqual(100_000);
    if (ending === "the next tidying") await fixture.sweep.tidy();
    else await fixture.multipart.finalize(id, payers, neverAborted);
    expect(fixture.writers.diskBytes()).toBe(0);
    await create();
    expect((await failureOf(create())).code).toBe("too_many_requests");
  });
});

describe("limits", () => {
  test("a client makes so many uploads; one that ends, however it does, makes space for another", async () => {
    for (let count = 0; count < unfinishedPerClientMax; count += 1) await create("a");
    expect((await failureOf(create("a"))).code).toBe("too_many_requests");
    const other = await create("b");
    await put(other, 0, new Uint8Array(10));

    payment.clock.advance(lifeMs);
    await fixture.sweep.sweep();
    const item = makeItem(new Uint8Array(100));
    await payment.credit(item.account, 10_000n);
    for (let count = 0; count < unfinishedPerClientMax + 3; count += 1) {
      const id = await create("a");
      if (count % 2 === 1 && count < 7) continue;
      if (count >= 7) break;
      await put(id, 0, item.bytes);
      await fixture.multipart.finalize(id, payers, neverAborted);
    }
    for (let count = 4; count < unfinishedPerClientMax; count += 1) await create("a");
    expect((await failureOf(create("a"))).code).toBe("too_many_requests");
  }, 120_000);

  test("an upload has so many parts; those that come again are none more", async () => {
    const id = await create();
    await payment.database.write(async (tx) => {
      for (let start = 0; start < partsMax - 1; start += 1)
        await tx.run("INSERT INTO multipart_parts (upload_id, start, size) VALUES (?, ?, 1)", id, BigInt(start));
      await tx.run("UPDATE multipart_uploads SET part_count = ? WHERE id = ?", BigInt(partsMax - 1), id);
    });
    await put(id, partsMax - 1, new Uint8Array(1));
    await put(id, partsMax - 1, new Uint8Array(1));
    await put(id, 0, new Uint8Array(1));
    expect((await failureOf(put(id, partsMax, new Uint8Array(1)))).context["reason"]).toBe(
      "Invalid chunk. An upload has at most 10000 parts.",
    );
    expect((await fixture.multipart.list(id)).parts).toHaveLength(partsMax);
    expect((await failureOf(fixture.multipart.finalize(id, payers, neverAborted))).code).toBe("upload_rejected");
  }, 120_000);

  test("a part has at most 500 MiB, by its announcement", async () => {
    await reopen({ rules: { itemBytesMax: 2 ** 40 } });
    const id = await create();
    const part = { start: 0, size: chunkSizeMax + 1, pieces: piecesOf(new Uint8Array(1)) };
    const { code, context } = await failureOf(fixture.multipart.put(id, part, neverAborted));
    expect([code, context["reason"]]).toEqual(["item_too_large", "Chunks have at most 524288000 bytes!"]);
  });

  test.each([
    [4, 5],
    [6, 5],
    [0, 5],
  ])("a part of %p bytes that announces %p is rejected, and not in the list", async (come, announced) => {
    const id = await create();
    const part = { start: 0, size: announced, pieces: piecesOf(new Uint8Array(come)) };
    const { context } = await failureOf(fixture.multipart.put(id, part, neverAborted));
    expect(context["reason"]).toBe(`Invalid chunk. It has ${come} bytes, ${announced} were announced.`);
    expect((await fixture.multipart.list(id)).parts).toEqual([]);
  });

  test("the disk that uploads may take is taken by what they have written, not by what they span", async () => {
    await reopen({ diskBytesMax: 1_000_000 });
    const id = await create();
    await put(id, 900_000_000, new Uint8Array(400_000));
    await put(id, 900_000_000, new Uint8Array(400_000)); // the same bytes once more
    const { code, context } = await failureOf(put(id, 0, new Uint8Array(700_000)));
    expect([code, String(context["reason"])]).toEqual(["no_space", expect.stringContaining("UPLOAD_DISK_BYTES_MAX")]);
    expect(fixture.writers.diskBytes()).toBeLessThan(500_000);
    // Still so after a restart. The expiry of the upload frees the space.
    await reopen({ diskBytesMax: 1_000_000 });
    expect((await failureOf(put(id, 0, new Uint8Array(700_000)))).code).toBe("no_space");
    payment.clock.advance(lifeMs);
    await fixture.sweep.sweep();
    expect(fixture.writers.diskBytes()).toBe(0);
    const next = await create();
    await eventually(
      () =>
        put(next, 0, new Uint8Array(700_000)).then(
          () => "taken",
          (error: unknown) => {
            payment.clock.advance(20_000); // what is stored is counted again now and then
            return String(error);
          },
        ),
      (response) => response === "taken",
    );
  });
});

describe("unpaid parts", () => {
  test("take no more than their share of the disk, those that arrive included; what is paid for goes on", async () => {
    await reopen({ unpaidBytesMax: 1_000_000 });
    const id = await create();
    await put(id, 0, new Uint8Array(500_000));
    const held = Promise.withResolvers<void>();
    const other = await create();
    const arriving = fixture.multipart.put(
      other,
      {
        start: 0,
        size: 400_000,
        pieces: (async function* () {
          yield new Uint8Array(1);
          await held.promise;
          yield new Uint8Array(399_999);
        })(),
      },
      neverAborted,
    );
    await eventually(
      async () => fixture.writers.isOpen(other),
      (isOpen) => isOpen,
    );
    const more = put(id, 500_000, new Uint8Array(200_000));
    expect((await failureOf(more)).context["reason"]).toStartWith("Unpaid parts take ");
    const payer = testAddress("payer");
    await payment.credit(payer, 10n);
    const paid = { payer, winc: winc(5n), size: 900_000, payment: "one" };
    const paidFor = await fixture.multipart.createPaid({ chunkSize: undefined, paid, from: payer });
    await put(paidFor.id, 0, new Uint8Array(900_000));
    held.resolve();
    await arriving;
    // The first has 500,000 bytes and the second 400,000; those that are paid for do not count.
    expect((await failureOf(put(id, 500_000, new Uint8Array(150_000)))).code).toBe("no_space");
    await put(id, 500_000, new Uint8Array(20_000));
    payment.clock.advance(lifeMs);
    await fixture.sweep.sweep();
    await put(await create(), 0, new Uint8Array(900_000));
  });

  test("at their limit no more uploads begin; those that are paid for still do", async () => {
    const payer = testAddress("payer");
    await payment.credit(payer, 10n);
    const from = await create();
    await payment.database.write(async (tx) => {
      for (let count = 1; count < unfinishedMax; count += 1)
        await tx.run(
          "INSERT INTO multipart_uploads (id, state, store, chunk_size, created_at, changed_at, expires_at) SELECT " +
            "?, state, store, chunk_size, created_at, changed_at, expires_at FROM multipart_uploads WHERE id = ?",
          ...[`upload ${count}`, from],
        );
    });
    expect((await failureOf(create("other"))).code).toBe("busy");
    const paid = { payer, winc: winc(5n), size: 10, payment: "one" };
    const { id } = await fixture.multipart.createPaid({ chunkSize: undefined, paid, from: payer });
    await put(id, 0, new Uint8Array(10));
  });
});

describe("time", () => {
  test("an upload expires after 24 hours: it is not found, its file is removed, and its writers are stopped", async () => {
    const id = await create();
    await put(id, 0, new Uint8Array(1_000));
    payment.clock.advance(lifeMs - 1);
    await fixture.sweep.sweep();
    await put(id, 1_000, new Uint8Array(1_000));
    const held = Promise.withResolvers<void>();
    const late = failureOf(
      fixture.multipart.put(
        id,
        {
          start: 5_000,
          size: 10,
          pieces: (async function* () {
            yield new Uint8Array(1);
            await held.promise;
            yield new Uint8Array(9);
          })(),
        },
        neverAborted,
      ),
    );
    await eventually(
      async () => fixture.writers.isOpen(id),
      (isOpen) => isOpen,
    );
    payment.clock.advance(1);
    const asked: Promise<unknown>[] = [
      fixture.multipart.list(id),
      fixture.multipart.status(id),
      put(id, 0, new Uint8Array(1)),
      fixture.multipart.finalize(id, payers, neverAborted),
    ];
    for (const { code } of await Promise.all(asked.map(failureOf))) expect(code).toBe("multipart_not_found");
    await fixture.sweep.sweep();
    expect((await late).code).toBe("upload_rejected");
    held.resolve();
    expect(partFilesIn(folder.path)).toEqual([]);
    expect(await rowsOf("multipart_parts")).toBe(0n);
    expect(await rowsOf("multipart_uploads")).toBe(0n);
  });

  test("an upload that is an item is remembered for 30 days more", async () => {
    const item = makeItem(new Uint8Array(100));
    await payment.credit(item.account, 10_000n);
    const id = await create();
    await put(id, 0, item.bytes);
    await fixture.multipart.finalize(id, payers, neverAborted);
    payment.clock.advance(31 * lifeMs - 1);
    await fixture.sweep.sweep();
    await fixture.sweep.tidy();
    expect((await fixture.multipart.status(id)).kind).toBe("finalized");
    payment.clock.advance(1);
    await fixture.sweep.tidy();
    expect((await failureOf(fixture.multipart.status(id))).code).toBe("multipart_not_found");
    expect(partFilesIn(folder.path)).toEqual([id]);
  });

  test("orphaned files are removed, those of uploads and items stay", async () => {
    const id = await create();
    await put(id, 0, new Uint8Array(10_000));
    mkdirSync(join(folder.path, "parts"), { recursive: true });
    writeFileSync(join(folder.path, "parts", "orphan"), "left behind");
    await reopen();
    expect(partFilesIn(folder.path)).toEqual([id]);
    expect(fixture.writers.diskBytes()).toBeGreaterThanOrEqual(10_000);
  });

  test("one that cannot be removed does not prevent the start, or the removal of others", async () => {
    mkdirSync(join(folder.path, "parts", "a-folder"), { recursive: true });
    writeFileSync(join(folder.path, "parts", "orphan"), "left behind");
    await reopen();
    expect(partFilesIn(folder.path)).toEqual(["a-folder"]);
  });
});

describe("what was paid when the upload was made", () => {
  const payer = testAddress("payer");
  const payedFor = (size: number, payment: string) => ({ payer, winc: winc(5_000n), size, payment });
  const makePaid = (paid: ReturnType<typeof payedFor>, from = payer) =>
    fixture.multipart.createPaid({ chunkSize: undefined, paid, from });
  const balanceOf = async () => (await payment.credits.balance(payer))?.winc;

  beforeEach(async () => {
    await payment.credit(payer, 6_000n);
  });

  test("is held, pays for the item, and what is left of it goes back", async () => {
    const item = makeItem(new Uint8Array(1_000));
    const { id } = await makePaid(payedFor(5_000, "one"));
    expect(await balanceOf()).toBe(1_000n);
    expect((await makePaid(payedFor(5_000, "one"))).id).toBe(id);
    expect(await balanceOf()).toBe(1_000n);
    await put(id, 0, item.bytes);
    const { upload } = await fixture.multipart.finalize(id, payers, neverAborted);
    expect([upload.winc, upload.signer]).toEqual([winc(BigInt(item.bytes.length)), item.account]);
    expect(await balanceOf()).toBe(6_000n - BigInt(item.bytes.length));
    expect((await makePaid(payedFor(5_000, "one"))).id).toBe(id);
  });

  test("covers what it was paid for, whatever it costs by then, known or not", async () => {
    await reopen({
      priceOfByte: () => {
        throw new Failure("pricing_oracle_unavailable");
      },
    });
    const item = makeItem(new Uint8Array(1_000));
    const { id } = await makePaid(payedFor(item.bytes.length, "one"));
    await put(id, 0, item.bytes);
    expect((await fixture.multipart.finalize(id, payers, neverAborted)).upload.winc).toBe(winc(5_000n));
    await reopen({ priceOfByte: () => 1_000n });
    const next = makeItem(new Uint8Array(50));
    await payment.credit(payer, 5_000n);
    const second = (await makePaid(payedFor(10_000, "two"))).id;
    await put(second, 0, next.bytes);
    expect((await fixture.multipart.finalize(second, payers, neverAborted)).upload.winc).toBe(winc(5_000n));
    expect(await balanceOf()).toBe(1_000n);
  });

  test("pays for no byte more", async () => {
    const { id } = await makePaid(payedFor(100, "one"));
    await put(id, 0, new Uint8Array(100));
    for (const [start, size] of [
      [0, 101],
      [100, 1],
      [99, 2],
    ] as const)
      expect((await failureOf(put(id, start, new Uint8Array(size)))).context["reason"]).toBe(
        `Invalid chunk. It ends at byte ${start + size}, and 100 bytes are paid for.`,
      );
  });

  test("goes back when the item is rejected; mended, it is paid from what went back", async () => {
    const item = makeItem(new Uint8Array(1_000));
    const { id } = await makePaid(payedFor(item.bytes.length, "one"));
    await put(
      id,
      0,
      item.bytes.map((byte, at) => (at === 500 ? ~byte : byte)),
    );
    expect((await failureOf(fixture.multipart.finalize(id, payers, neverAborted))).code).toBe("upload_rejected");
    expect(await balanceOf()).toBe(6_000n);
    await put(id, 0, item.bytes);
    await fixture.multipart.finalize(id, payers, neverAborted);
    expect(await balanceOf()).toBe(1_000n);
  });

  test("goes back when its time is over, once", async () => {
    const { id } = await makePaid(payedFor(100, "one"));
    await put(id, 0, new Uint8Array(100));
    payment.clock.advance(lifeMs);
    await Promise.all([fixture.sweep.sweep(), fixture.sweep.sweep()]);
    await payment.credits.expire(neverAborted);
    expect(await balanceOf()).toBe(6_000n);
    expect((await failureOf(fixture.multipart.status(id))).code).toBe("multipart_not_found");
  });

  test("goes back when its time is over while it is being finalized and cannot be, once", async () => {
    let isKnown = false;
    await reopen({
      priceOfByte: () => {
        if (isKnown) return 1n;
        throw new Failure("pricing_oracle_unavailable");
      },
    });
    const item = makeItem(new Uint8Array(1_000));
    const { id } = await makePaid(payedFor(5_000, "one"));
    await put(id, 0, item.bytes);
    expect(await fixture.multipart.finalizeLater(id, payers)).toBeUndefined();
    payment.clock.advance(lifeMs);
    // Until the next try it is neither over nor an item.
    await fixture.sweep.sweep();
    expect(await balanceOf()).toBe(1_000n);
    await eventually(
      () =>
        fixture.multipart.status(id).then(
          () => "there",
          (error: unknown) => (error instanceof Failure ? error.code : error),
        ),
      (seen) => seen === "multipart_not_found",
    );
    isKnown = true;
    await Promise.all([fixture.sweep.sweep(), fixture.sweep.sweep()]);
    await payment.credits.expire(neverAborted);
    expect([await balanceOf(), await rowsOf("uploads"), partFilesIn(folder.path)]).toEqual([6_000n, 0n, []]);
  });

  test("goes back when the item was there already", async () => {
    const item = makeItem(new Uint8Array(1_000));
    await payment.credit(item.account, 10_000n);
    const first = await create();
    await put(first, 0, item.bytes);
    await fixture.multipart.finalize(first, payers, neverAborted);
    const { id } = await makePaid(payedFor(5_000, "one"));
    await put(id, 0, item.bytes);
    await fixture.multipart.finalize(id, payers, neverAborted);
    expect(await balanceOf()).toBe(6_000n);
  });

  test("is given to whom the upload names, and given back to them", async () => {
    const item = makeItem(new Uint8Array(1_000));
    const { id } = await makePaid({ ...payedFor(5_000, "one"), payer: item.account }, payer);
    expect([await balanceOf(), (await payment.credits.balance(item.account))?.winc]).toEqual([1_000n, 0n]);
    await put(id, 0, item.bytes);
    await fixture.multipart.finalize(id, payers, neverAborted);
    const left = (await payment.credits.balance(item.account))?.winc;
    expect([await balanceOf(), left]).toEqual([1_000n, 5_000n - BigInt(item.bytes.length)]);
  });

  test("cannot be held when it was spent meanwhile", async () => {
    const asked = { payer, winc: winc(6_001n), size: 5, payment: "one" };
    expect((await failureOf(makePaid(asked))).code).toBe("insufficient_balance");
    expect(await rowsOf("multipart_uploads")).toBe(0n);
  });
});

describe("another start", () => {
  test("continues interrupted finalizations, also when no client waits", async () => {
    const item = makeItem(new Uint8Array(3_000_000));
    await payment.credit(item.account, 10_000_000n);
    const id = await create();
    await put(id, 0, item.bytes);
    expect(await fixture.multipart.finalizeLater(id, payers)).toBeUndefined();
    await reopen();
    await eventually(
      () => fixture.multipart.status(id),
      ({ kind }) => kind === "finalized",
    );
    expect((await payment.credits.balance(item.account))?.winc).toBe(10_000_000n - BigInt(item.bytes.length));
  });

  test("another process responds that the upload is stored here, and reports its status", async () => {
    const id = await create();
    await put(id, 0, new Uint8Array(10));
    await payment.database.write((tx) => tx.run("UPDATE multipart_uploads SET store = 'elsewhere' WHERE id = ?", id));
    expect((await failureOf(put(id, 0, new Uint8Array(10)))).code).toBe("busy");
    expect((await failureOf(fixture.multipart.finalize(id, payers, neverAborted))).code).toBe("busy");
    expect((await fixture.multipart.status(id)).kind).toBe("open");
    payment.clock.advance(lifeMs);
    await fixture.sweep.sweep();
    expect(await rowsOf("multipart_uploads")).toBe(1n);
  });
});

describe("a disk that fails", () => {
  const log = createLog({ level: "error", format: "json", clock: Date.now, write: () => undefined });

  /** Writers on files of which a test decides what becomes of a call. */
  async function faultyWriters(faults: Partial<Record<"write" | "sync", () => void>>) {
    const files = await openPartFiles(folder.path);
    const faulty: PartFiles = {
      ...files,
      open: async (upload) => {
        const file = await files.open(upload);
        let count = 0;
        const counted = async (work: () => Promise<void>, fault: (() => void) | undefined) => {
          try {
            fault?.();
            await work();
          } catch (error) {
            count += 1;
            throw error;
          }
        };
        const wrapped: PartFile = {
          ...file,
          write: (pieces, position) => counted(() => file.write(pieces, position), faults.write),
          sync: () => counted(() => file.sync(), faults.sync),
          faults: () => file.faults() + count,
        };
        return wrapped;
      },
    };
    const quota = createUploadQuota({
      folder: folder.path,
      log,
      clock: Date.now,
      countStored: async () => 0,
      storedBytes: 0,
      bytesMax: 2 ** 40,
      freeBytesMin: 0,
    });
    return createPartWriters(faulty, quota);
  }

  const allowed = async () => ({ paid: undefined });

  function systemError(code: string): Error {
    return Object.assign(new Error(`${code}: it failed`), { code, syscall: "pwritev" });
  }

  test("rejects the part that it did not take, with what the system says", async () => {
    const faults = {
      write: () => {
        throw systemError("ENOSPC");
      },
    };
    const writers = await faultyWriters(faults);
    const part = { start: 0, size: 5, pieces: piecesOf(new Uint8Array(5)) };
    const { code, context } = await failureOf(writers.write("upload", part, neverAborted, allowed));
    expect([code, context["reason"]]).toEqual(["no_space", "ENOSPC: it failed"]);
    expect(writers.isOpen("upload")).toBe(false);
  });

  test("believes no part that was being written when another was lost, and takes both again", async () => {
    let isFaulty = true;
    const faults = {
      sync: () => {
        if (isFaulty) throw systemError("EIO");
      },
    };
    const writers = await faultyWriters(faults);
    const pause = Promise.withResolvers<void>();
    const slow = writers.write(
      "upload",
      {
        start: 100,
        size: 2,
        pieces: (async function* () {
          yield new Uint8Array(1);
          await pause.promise;
          yield new Uint8Array(1);
        })(),
      },
      neverAborted,
      allowed,
    );
    await eventually(
      async () => writers.isOpen("upload"),
      (isOpen) => isOpen,
    );
    const quick = { start: 0, size: 5, pieces: piecesOf(new Uint8Array(5)) };
    expect((await failureOf(writers.write("upload", quick, neverAborted, allowed))).code).toBe("disk_failed");
    isFaulty = false;
    pause.resolve();
    expect((await failureOf(slow)).context["reason"]).toBe("a concurrent part of the same file was lost");
    await writers.write("upload", { start: 0, size: 5, pieces: piecesOf(new Uint8Array(5)) }, neverAborted, allowed);
  });
});

async function rowsOf(table: "multipart_parts" | "multipart_uploads" | "uploads"): Promise<bigint | undefined> {
  const row = await payment.database.read((tx) => tx.get<{ n: bigint }>(`SELECT COUNT(*) AS n FROM ${table}`));
  return row?.n;
}
