/**
 * Uploads in parts against a model: parts of any place and size, right and wrong bytes, some of them at once, breaks,
 * restarts and finalizations in any order. Lists, accepted items and messages equal those of the model.
 *
 * RUNS says how many uploads, SEED repeats a run.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../../src/failures.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import type { Part, Payers } from "../../../src/upload/multipart/multipart-rows.ts";
import { openTestPayment, type TestPayment } from "../../support/payment.ts";
import { createRandom } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { eventually } from "../../support/until.ts";
import {
  type MultipartFixture,
  makeFolder,
  makeItem,
  openMultipartFixture,
  partFilesIn,
  type TestItem,
} from "./multipart-fixture.ts";

const runs = Number(process.env["RUNS"] ?? 40);
const seed = newSeed();
const random = createRandom(seed);
const folder = makeFolder();
const payers: Payers = { paidBy: [], directive: "list-or-signer", token: "ethereum" };
const neverAborted = new AbortController().signal;
/** Span of the owner in an item of the usual signer: after its type and its signature. Half-open, bytes. */
const ownerSpan = [2 + 65, 2 + 65 + 65] as const;
let payment: TestPayment;
let fixture: MultipartFixture;

// Within a group: what it opened is closed before the databases are (test/support/ledger-databases.ts).
describe("U1: uploads in parts, against a model", () => {
  beforeAll(async () => {
    payment = await openTestPayment();
    fixture = await openFixture();
  });

  afterAll(async () => {
    await fixture.close();
    expect(await checkLedger(payment.database)).toEqual([]);
    await payment.close();
    folder.remove();
  });

  function openFixture(): Promise<MultipartFixture> {
    const { database, clock, makeId } = payment;
    return openMultipartFixture({ database, makeId, clock: clock.now, folder: folder.path });
  }

  /** Expected state of an upload: the known bytes of its file, and its parts. */
  type Model = Readonly<{ bytes: Uint8Array; parts: Map<string, Part> }>;

  type Step = (upload: string, item: TestItem, model: Model) => Promise<boolean>;

  /** Part of an item, cut at random; often where another one ends. */
  function anySpan(item: TestItem, model: Model): Part {
    const { length } = item.bytes;
    const ends = [0, ...[...model.parts.values()].map(({ start, size }) => start + size)].filter((end) => end < length);
    const start = random.chance(0.6) ? random.pick(ends) : random.below(length);
    const most = length - start;
    return { start, size: random.chance(0.2) ? most : 1 + random.below(most) };
  }

  async function* inPieces(bytes: Uint8Array, breaks: boolean): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; ) {
      const size = 1 + random.below(Math.min(40_000, bytes.length - at));
      yield bytes.slice(at, at + size);
      at += size;
      if (breaks && at > bytes.length / 2) throw new Error("the sender is gone");
      if (random.chance(0.1)) await Bun.sleep(0);
    }
  }

  async function putPart(upload: string, item: TestItem, model: Model, span: Part): Promise<void> {
    const { start, size } = span;
    const bytes = item.bytes.subarray(start, start + size);
    await fixture.multipart.put(upload, { start, size, pieces: inPieces(bytes, false) }, neverAborted);
    model.bytes.set(bytes, start);
    model.parts.set(`${start} ${size}`, span);
  }

  /** Events of an upload. Each returns whether the upload has become an item. */
  const steps: readonly Step[] = [
    async (upload, item, model) => {
      await putPart(upload, item, model, anySpan(item, model));
      return false;
    },
    // Several at once, with the same bytes where they overlap.
    async (upload, item, model) => {
      const spans = Array.from({ length: 2 + random.below(4) }, () => anySpan(item, model));
      await Promise.all(spans.map((span) => putPart(upload, item, model, span)));
      return false;
    },
    // Wrong bytes: only a later part with the right ones mends them.
    async (upload, item, model) => {
      const { start, size } = anySpan(item, model);
      const bytes = item.bytes.slice(start, start + size);
      bytes[random.below(size)] = random.below(256);
      await fixture.multipart.put(upload, { start, size, pieces: inPieces(bytes, false) }, neverAborted);
      model.bytes.set(bytes, start);
      model.parts.set(`${start} ${size}`, { start, size });
      return false;
    },
    // A client that disconnects: the part is not stored, and the overwritten bytes are unknown until a repetition.
    async (upload, item, model) => {
      const span = anySpan(item, model);
      const { start, size } = span;
      if (size < 2) return false;
      const bytes = item.bytes.subarray(start, start + size);
      const put = fixture.multipart.put(upload, { start, size, pieces: inPieces(bytes, true) }, neverAborted);
      await expect(put).rejects.toThrow("the sender is gone");
      await checkList(upload, model);
      await putPart(upload, item, model, span);
      return false;
    },
    async (upload, _item, model) => {
      await fixture.close();
      fixture = await openFixture();
      await checkList(upload, model);
      return false;
    },
    finalize,
    finalize,
  ];

  async function finalize(upload: string, item: TestItem, model: Model): Promise<boolean> {
    const expected = expectedEnd(item, model);
    const isLater = random.chance(0.5);
    const outcome = await (isLater
      ? finalizeLater(upload)
      : fixture.multipart.finalize(upload, payers, neverAborted)
    ).then(
      ({ upload: taken }) => taken.id,
      (error: unknown) => (error instanceof Failure ? String(error.context["reason"] ?? error.message) : error),
    );
    if (expected === "item") expect(outcome).toBe(item.id);
    // The credits of the owner in the header are checked before the item is verified.
    else if (expected === "invalid" && !isOwned(item, model) && outcome === "Insufficient balance") return false;
    else if (expected === "invalid") expect(outcome).toStartWith("Invalid Data Item! ");
    else expect(outcome).toBe(expected);
    return expected === "item";
  }

  async function finalizeLater(upload: string) {
    const known = await fixture.multipart.finalizeLater(upload, payers);
    if (known !== undefined) return known;
    const status = await eventually(
      () => fixture.multipart.status(upload),
      ({ kind }) => kind === "finalized" || kind === "failed",
    );
    if (status.kind === "failed") throw new Failure("upload_rejected", { reason: status.upload.failure?.reason });
    if (status.kind === "finalized") return status.taken;
    throw new Error(`unexpected status ${status.kind}`);
  }

  function isOwned(item: TestItem, { bytes }: Model): boolean {
    const [start, end] = ownerSpan;
    return Buffer.compare(bytes.subarray(start, end), item.bytes.subarray(start, end)) === 0;
  }

  function expectedEnd(item: TestItem, model: Model): string {
    const covered = new Uint8Array(item.bytes.length);
    let end = 0;
    for (const { start, size } of model.parts.values()) {
      covered.fill(1, start, start + size);
      end = Math.max(end, start + size);
    }
    if (end === 0) return "Invalid Data Item! No part has arrived.";
    const gap = covered.indexOf(0);
    if (gap >= 0 && gap < end) return `Invalid Data Item! Bytes ${gap} to ${covered.indexOf(1, gap) - 1} are missing.`;
    return end === item.bytes.length && Buffer.compare(model.bytes, item.bytes) === 0 ? "item" : "invalid";
  }

  async function checkList(upload: string, { parts }: Model): Promise<void> {
    const listed = (await fixture.multipart.list(upload)).parts.map(({ start, size }) => `${start} ${size}`);
    const expected = [...parts.values()]
      .toSorted((left, right) => left.start - right.start || left.size - right.size)
      .map(({ start, size }) => `${start} ${size}`);
    expect(listed).toEqual(expected);
  }

  let made = 0;

  function newItem(): TestItem {
    made += 1;
    const data = random.bytes(10 + random.below(random.chance(0.1) ? 3_000_000 : 100_000));
    new DataView(data.buffer).setUint32(0, made);
    return makeItem(data);
  }

  test(
    `${runs} uploads are what their parts make them`,
    async () => {
      for (let run = 0; run < runs; run += 1) {
        const item = newItem();
        await payment.credit(item.account, BigInt(item.bytes.length));
        const { id } = await fixture.multipart.create({ chunkSize: undefined, client: "" });
        const model: Model = { bytes: new Uint8Array(item.bytes.length), parts: new Map() };
        let isItem = false;
        for (let step = 0; step < 12 && !isItem; step += 1) {
          isItem = await random.pick(steps)(id, item, model);
          if (!isItem) await checkList(id, model);
        }
        if (!isItem) {
          await putPart(id, item, model, { start: 0, size: item.bytes.length });
          expect(await finalize(id, item, model)).toBe(true);
        }
        expect(readFileSync(join(folder.path, "parts", id)).equals(item.bytes)).toBe(true);
        expect((await payment.credits.balance(item.account))?.winc).toBe(0n);
      }
      expect(partFilesIn(folder.path)).toHaveLength(runs);
      // The row says that it is an item a moment before its file is counted as one.
      await eventually(
        async () => fixture.writers.diskBytes(),
        (bytes) => bytes === 0,
      );
    },
    60_000 + runs * 5_000,
  );
});
