/**
 * No receipt leaves before the bytes of its item, and then its row, are on the disk: calls are counted while they are
 * made, and fail one after another.
 * @module
 */
import { afterAll, afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { revenue } from "../../src/store/ledger/accounts.ts";
import { checkLedger } from "../../src/store/ledger/check.ts";
import { findUpload } from "../../src/upload/uploads.ts";
import { describeWith, type Need } from "../support/helpers.ts";
import { openTestPayment, type TestPayment } from "../support/payment.ts";
import { type TestItem, testItem } from "../support/upload.ts";
import { filesIn, makeReceiptKey } from "../support/upload-parts.ts";
import { sendItem, startUploads, type UploadProcess } from "./upload-process.ts";

const root = mkdtempSync(join(tmpdir(), "cairn-synced-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const canAttach: Need = { there: traces(), what: "strace, and the right to attach it" };

function traces(): boolean {
  if (Bun.which("strace") === null) return false;
  const { exitCode } = Bun.spawnSync(["strace", "-qq", "-o", "/dev/null", "true"], { stderr: "ignore" });
  return exitCode === 0;
}

/** A look at the calls of a process, or an end to some of them. */
type Trace = Readonly<{
  /** Ends it. @returns What was called, in the order in which it ended: "fdatasync segments", "receipt". */
  end: () => Promise<string[]>;
}>;

async function attach({ pid }: UploadProcess, ...options: string[]): Promise<Trace> {
  const log = join(root, `trace-${crypto.randomUUID()}`);
  const command = ["strace", "-f", "-y", "-s", "20", ...options, "-o", log, "-p", String(pid)];
  const strace = Bun.spawn(command, { stdio: ["ignore", "ignore", "pipe"] });
  const { value } = await strace.stderr.getReader().read();
  if (!new TextDecoder().decode(value).includes("attached")) throw new Error("strace did not attach");
  return {
    end: async () => {
      strace.kill("SIGINT");
      await strace.exited;
      return readCalls(readFileSync(log, "utf8"));
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

  test("answers each item after its bytes and then its row are on the disk, with no call too many", async () => {
    const trace = await attach(uploads, ...calls);
    for (let index = 0; index < 3; index += 1) await sendItem(uploads.url, newItem(smallSize).bytes);
    await sendItem(uploads.url, newItem(largeSize).bytes);
    const ofSmall = ["fdatasync segments", "fdatasync ledger", "receipt"];
    expect(await trace.end()).toEqual([
      ...[...ofSmall, ...ofSmall, ...ofSmall],
      ...["fdatasync items", "fsync items", "fdatasync ledger", "receipt"],
    ]);
  });

  test("shares calls among items that come at once", async () => {
    const items = Array.from({ length: 200 }, () => newItem(smallSize));
    const trace = await attach(uploads, ...calls);
    const answers = await Promise.all(items.map(({ bytes }) => sendItem(uploads.url, bytes)));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
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

  const segmentOf = () =>
    join(folder, Object.keys(filesIn(folder)).find((name) => name.startsWith("segments/")) ?? "");

  /** An item is refused, and nothing of it is anywhere. */
  async function expectRefused(item: TestItem): Promise<void> {
    const before = await payment.held(revenue);
    const { status, text } = await sendItem(uploads.url, item.bytes);
    expect([status, text]).toEqual([503, expect.not.stringContaining("signature")]);
    expect(await payment.database.read((tx) => findUpload(tx, item.id))).toBeUndefined();
    expect(await payment.held(revenue)).toBe(before);
  }

  test("sends no receipt when the bytes of a small item do not reach the disk", async () => {
    const segment = segmentOf();
    const trace = await attach(uploads, "-P", segment, "-e", "inject=fdatasync:error=EIO:when=1");
    const item = newItem(smallSize);
    await expectRefused(item);
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
    await expectRefused(item);
    expect(Object.keys(filesIn(folder)).filter((name) => name.startsWith("items/"))).toEqual([]);
    await trace.end();
    expect((await sendItem(uploads.url, item.bytes)).status).toBe(200);
  });

  test.each([["write,pwrite64"], ["openat"]])(
    "sends no receipt when %s fails for its bytes",
    async (call) => {
      for (const error of ["ENOSPC", "EIO"]) {
        // The thread's calls alone: those of its own segment.
        const options = ["-P", segmentOf(), "-e", `inject=${call}:error=${error}:when=1`];
        const trace = await attach(uploads, ...options);
        const item = newItem(smallSize);
        await expectRefused(item);
        await trace.end();
        expect((await sendItem(uploads.url, item.bytes)).status).toBe(200);
        await uploads.kill();
        rmSync(folder, { recursive: true });
        uploads = await start();
        expect((await sendItem(uploads.url, newItem().bytes)).status).toBe(200);
      }
    },
  );

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
    await uploads.kill();
    uploads = await start();
    const answers = [await sendItem(uploads.url, item.bytes), await sendItem(uploads.url, item.bytes)];
    expect(answers.map((answer) => answer.status)).toEqual([200, 200]);
    expect(answers[0]?.text).toBe(answers[1]?.text ?? "");
    expect(await payment.held(revenue)).toBe(before + BigInt(item.bytes.length));
  });
});
