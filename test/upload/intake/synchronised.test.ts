/**
 * No receipt leaves before the bytes of its item, and then its row, are on the disk: calls are counted while they are
 * made, and fail one after another.
 * @module
 */
import { afterAll, afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { revenue } from "../../../src/store/ledger/transfers.ts";
import { findUpload } from "../../../src/upload/upload-rows.ts";
import { describeWith, type Need } from "../../support/helpers.ts";
import { openTestPayment, type TestPayment } from "../../support/payment.ts";
import { eventually } from "../../support/until.ts";
import { type TestItem, testItem } from "../../support/upload.ts";
import { filesIn, makeReceiptKey } from "../../support/upload-parts.ts";
import { sendItem, startUploads, type UploadProcess } from "../upload-process.ts";

const root = mkdtempSync(join(tmpdir(), "cairn-synced-"));
afterAll(() => removeFolder(root));

const canAttach: Need = { there: traces(), what: "strace, and the right to attach it" };

function traces(): boolean {
  if (Bun.which("strace") === null) return false;
  const { exitCode } = Bun.spawnSync(["strace", "-qq", "-o", "/dev/null", "true"], { stderr: "ignore" });
  return exitCode === 0;
}

/** A look at the calls of a process, or an end to some of them. */
type Trace = Readonly<{
  /** What strace has written so far. */
  text: () => string;
  /** Ends it. @returns What was called, in the order in which it ended: "fdatasync segments", "receipt". */
  end: () => Promise<string[]>;
}>;

async function attach({ pid }: UploadProcess, ...options: string[]): Promise<Trace> {
  const log = join(root, `trace-${crypto.randomUUID()}`);
  const command = ["strace", "-f", "-y", "-s", "20", ...options, "-o", log, "-p", String(pid)];
  const strace = Bun.spawn(command, { stdio: ["ignore", "ignore", "pipe"] });
  const { value } = await strace.stderr.getReader().read();
  if (!new TextDecoder().decode(value).includes("attached")) throw new Error("strace did not attach");
  const text = () => readFileSync(log, "utf8");
  return {
    text,
    end: async () => {
      strace.kill("SIGINT");
      await strace.exited;
      return readCalls(text());
    },
  };
}

function readCalls(text: string): string[] {
  const begun = new Map<string, string>();
  return text.split("\n").flatMap((line) => {
    const [, thread = "", call = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    if (call.endsWith("<unfinished ...>")) begun.set(thread, call);
    const whole = call.startsWith("<... ") ? (begun.get(thread) ?? "") : call;
    return call.endsWith("<unfinished ...>") ? [] : nameOf(whole);
  });
}

function nameOf(call: string): string[] {
  if (/^sendto\(.*"HTTP\/1.1 200/.test(call)) return ["receipt"];
  const [, name, path = ""] = /^(fdatasync|fsync)\(\d+<([^>]*)>/.exec(call) ?? [];
  if (name === undefined) return [];
  const what = /ledger\.sqlite-wal$|\/(segments|items)(?=\/|$)/.exec(path)?.[0] ?? path;
  return [`${name} ${what.replace("ledger.sqlite-wal", "ledger").replace("/", "")}`];
}

const calls = ["-e", "trace=fsync,fdatasync,sendto"];

let made = 0;

function newItem(size = 100): TestItem {
  made += 1;
  return testItem(String(made).padEnd(size, "-"));
}

const smallSize = 100;
const largeSize = 1_500_000;

describeWith(canAttach, "a process whose calls are watched", () => {
  let payment: TestPayment;
  let uploads: UploadProcess;
  let folder: string;
  let start: () => Promise<UploadProcess>;

  beforeEach(async () => {
    payment = await openTestPayment();
    folder = join(root, crypto.randomUUID());
    const keyFile = makeReceiptKey(join(root, "keys"));
    await payment.credit(newItem().account, 10n ** 12n);
    start = () => startUploads({ place: payment.ledger.place, folder, keyFile, threads: 1 });
    uploads = await start();
    // The first of a segment also brings the segment's name to the disk.
    expect((await sendItem(uploads.url, newItem().bytes)).status).toBe(200);
  });
  afterEach(async () => {
    await uploads.kill();
    expect(await checkLedger(payment.database)).toEqual([]);
    await payment.close();
  });

  test("responds to each item after its bytes and then its row are durable, without superfluous calls", async () => {
    const trace = await attach(uploads, ...calls);
    for (let index = 0; index < 3; index += 1) await sendItem(uploads.url, newItem(smallSize).bytes);
    await sendItem(uploads.url, newItem(largeSize).bytes);
    const ofSmall = ["fdatasync segments", "fdatasync ledger", "receipt"];
    expect(await trace.end()).toEqual([
      ...ofSmall,
      ...ofSmall,
      ...ofSmall,
      "fdatasync items",
      "fsync items",
      "fdatasync ledger",
      "receipt",
    ]);
  });

  test("shares calls among items that come at once", async () => {
    const items = Array.from({ length: 200 }, () => newItem(smallSize));
    const trace = await attach(uploads, ...calls);
    const responses = await Promise.all(items.map(({ bytes }) => sendItem(uploads.url, bytes)));
    expect(responses.every(({ status }) => status === 200)).toBe(true);
    const counted = await trace.end();
    const count = (name: string) => counted.filter((each) => each === name).length;
    expect(count("receipt")).toBe(200);
    for (const name of ["fdatasync segments", "fdatasync ledger"]) {
      expect(count(name)).toBeGreaterThan(0);
      expect(count(name)).toBeLessThan(100);
    }
    // The last wait for the disk comes before the last receipt.
    expect(counted.lastIndexOf("fdatasync ledger")).toBeLessThan(counted.lastIndexOf("receipt"));
  });

  const segmentOf = () => join(folder, Object.keys(filesIn(folder)).find((name) => name.startsWith("segments/")) ?? "");

  const diskFailed = '"Storage of uploads failed"';

  /** An item is rejected with a text, and nothing of it is anywhere. */
  async function expectRejected(item: TestItem, why = diskFailed): Promise<void> {
    const before = await payment.held(revenue);
    const { status, text, retryAfter } = await sendItem(uploads.url, item.bytes);
    expect([status, text, retryAfter]).toEqual([503, why, "60"]);
    expect(await payment.database.read((tx) => findUpload(tx, item.id))).toBeUndefined();
    expect(await payment.held(revenue)).toBe(before);
  }

  test("sends no receipt when the bytes of a small item do not reach the disk", async () => {
    const segment = segmentOf();
    const trace = await attach(uploads, "-P", segment, "-e", "inject=fdatasync:error=EIO:when=1");
    const item = newItem(smallSize);
    await expectRejected(item);
    // The segment is not written to any more, and no longer than it was.
    expect(filesIn(folder)[segment.slice(folder.length + 1)]).toBe(newItem(smallSize).bytes.length);
    expect((await sendItem(uploads.url, item.bytes)).status).toBe(200);
    await trace.end();
    const row = await payment.database.read((tx) => findUpload(tx, item.id));
    expect(segment).not.toEndWith(row?.bytes.file ?? "none");
  });

  test.each([
    ["bytes", "fdatasync"],
    ["name", "fsync"],
  ])("sends no receipt when the %s of a large item do not reach the disk", async (_what, call) => {
    const trace = await attach(uploads, "-e", `inject=${call}:error=EIO:when=1+`);
    const item = newItem(largeSize);
    await expectRejected(item);
    expect(Object.keys(filesIn(folder)).filter((name) => name.startsWith("items/"))).toEqual([]);
    await trace.end();
    expect((await sendItem(uploads.url, item.bytes)).status).toBe(200);
  });

  test("trusts no file of which a part did not reach the disk on the way, whatever the disk says at its end", async () => {
    // What a failed synchronisation left out is not written by the next one, which says that all is well.
    const trace = await attach(uploads, "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=1+");
    const size = 34 * 2 ** 20;
    const item = newItem(size);
    const goOn = Promise.withResolvers<void>();
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      async start(controller) {
        controller.enqueue(item.bytes.subarray(0, 33 * 2 ** 20));
        await goOn.promise;
        controller.enqueue(item.bytes.subarray(33 * 2 ** 20));
        controller.close();
      },
    });
    const response = sendItem(uploads.url, body);
    await eventually(
      async () => trace.text(),
      (text) => text.includes("(INJECTED)"),
    );
    await trace.end();
    goOn.resolve();
    expect(await response).toMatchObject({ status: 503, text: diskFailed });
    expect(Object.keys(filesIn(folder)).filter((name) => name.startsWith("items/"))).toEqual([]);
    expect(await payment.database.read((tx) => findUpload(tx, item.id))).toBeUndefined();
    expect((await sendItem(uploads.url, item.bytes)).status).toBe(200);
  });

  test("takes nothing until the names of its folders are on the disk, however often it has to try", async () => {
    await uploads.kill();
    rmSync(folder, { recursive: true });
    uploads = await start();
    const trace = await attach(uploads, "-e", "inject=fsync:error=EIO:when=1+");
    for (const size of [smallSize, largeSize, smallSize]) await expectRejected(newItem(size));
    await trace.end();
    const watched = await attach(uploads, ...calls);
    expect((await sendItem(uploads.url, newItem(smallSize).bytes)).status).toBe(200);
    // The folder of uploads, its parent, and the folder of segments, which differ only in their order.
    const called = await watched.end();
    expect(called.filter((call) => call.startsWith("fsync"))).toHaveLength(3);
    expect(called.at(-1)).toBe("receipt");
  });

  test.each([["write,pwrite64"], ["openat"]])("sends no receipt when %s fails for its bytes", async (call) => {
    for (const error of ["ENOSPC", "EIO"]) {
      // The thread's calls alone: those of its own segment.
      const options = ["-P", segmentOf(), "-e", `inject=${call}:error=${error}:when=1`];
      const trace = await attach(uploads, ...options);
      const item = newItem(smallSize);
      await expectRejected(item, error === "EIO" ? diskFailed : '"No space for uploads"');
      await trace.end();
      expect((await sendItem(uploads.url, item.bytes)).status).toBe(200);
      await uploads.kill();
      rmSync(folder, { recursive: true });
      uploads = await start();
      expect((await sendItem(uploads.url, newItem().bytes)).status).toBe(200);
    }
  });

  test("sends no receipt when the row does not reach the disk, and charges once whatever became of it", async () => {
    const log = `${payment.ledger.place}-wal`;
    const trace = await attach(uploads, "-P", log, "-e", "inject=fdatasync:error=EIO:when=1");
    const before = await payment.held(revenue);
    const item = newItem(smallSize);
    const { status, text } = await sendItem(uploads.url, item.bytes);
    expect([status, text]).toEqual([503, '"Cloud Database Unavailable"']);
    await trace.end();
    // What a disk has that said it could not is not known: until it is started again, nothing more is promised.
    expect((await sendItem(uploads.url, newItem(smallSize).bytes)).status).toBe(503);
    // Nor is it because a read finds the row.
    expect((await sendItem(uploads.url, item.bytes)).status).toBe(503);
    expect((await fetch(`${uploads.url}/tx/${item.id}/receipt`)).status).toBe(503);
    await uploads.kill();
    uploads = await start();
    const responses = [await sendItem(uploads.url, item.bytes), await sendItem(uploads.url, item.bytes)];
    expect(responses.map((response) => response.status)).toEqual([200, 200]);
    expect(responses[0]?.text).toBe(responses[1]?.text ?? "");
    expect(await payment.held(revenue)).toBe(before + BigInt(item.bytes.length));
  });
});
