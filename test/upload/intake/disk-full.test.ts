/**
 * No free space: uploads are rejected with a retry before their first byte if possible, nothing of them is stored, what
 * was accepted is still served, and freed space is used without a restart.
 * Source: docs/reference/upload.md#posting-an-item; docs/reference/threats.md (C6).
 * @module
 */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "../../../src/failures.ts";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import {
  balanceOf,
  createTransferIds,
  provider,
  revenue,
  transfer,
  user,
} from "../../../src/store/ledger/transfers.ts";
import { describeWith } from "../../support/helpers.ts";
import { openPlace } from "../../support/ledger-place.ts";
import { connectRaw } from "../../support/raw-request.ts";
import { canMount } from "../../support/small-disk.ts";
import { eventually } from "../../support/until.ts";
import { openTestUpload, type TestItem, type TestUpload, testItem } from "../../support/upload.ts";
import { filesIn, makeReceiptKey } from "../../support/upload-parts.ts";
import { sendItem, startUploads } from "../upload-process.ts";

let made = 0;

function newItem(size: number): TestItem {
  made += 1;
  return testItem(String(made).padEnd(size, "-"));
}

const large = 1_500_000;
const noQuota = '"No space for uploads"';

describe.each([
  ["busy, and stored nothing", "busy", 0],
  ["unavailable, and may have stored the row", "database_unavailable", 1],
] as const)("when the ledger is %s", (_state, code, files) => {
  test(`a large item is 503, and leaves ${files} files`, async () => {
    let failure: Failure | undefined = new Failure(code);
    const upload = await openTestUpload({
      rules: { freeBytesMax: 2 ** 30 },
      wrapLedger: (ledger) => ({
        ...ledger,
        write: (work) => (failure === undefined ? ledger.write(work) : Promise.reject(failure)),
      }),
    });
    const item = newItem(large);
    expect((await upload.send(item.bytes)).status).toBe(503);
    const ofItems = () => Object.keys(upload.files()).filter((name) => name.startsWith("items/"));
    expect(ofItems()).toHaveLength(files);
    failure = undefined;
    expect((await upload.send(item.bytes)).status).toBe(200);
    expect(ofItems()).toHaveLength(files + 1);
    await upload.close();
  });
});

describe("when uploads have taken all that they may", () => {
  let upload: TestUpload;
  afterEach(() => upload.close());

  const open = async (quota: { bytesMax?: number; freeBytesMin?: number }) => {
    upload = await openTestUpload({ quota, rules: { freeBytesMax: 2 ** 30 } });
  };

  test("the next upload is rejected before its first byte, and accepted uploads still get responses", async () => {
    await open({ bytesMax: 4_000_000 });
    const first = newItem(large);
    const receipt = await (await upload.send(first.bytes)).text();
    expect((await upload.send(newItem(large).bytes)).status).toBe(200);
    const third = newItem(large);
    const connection = await connectRaw(upload.url);
    await connection.write(`POST /tx HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${third.bytes.length}\r\n\r\n`);
    await connection.write(third.bytes.subarray(0, 1_000));
    const response = await connection.until(noQuota);
    expect(response).toMatch(/^HTTP\/1.1 503 /);
    expect(response.toLowerCase()).toContain("\r\nretry-after: 60\r\n");
    connection.cut();
    expect(upload.parts.quota.reasons()).toEqual([]);
    expect(await (await upload.send(first.bytes)).text()).toBe(receipt);
    // A smaller item fits.
    expect((await upload.send(newItem(100).bytes)).status).toBe(200);
    expect((await upload.money()).faults).toEqual([]);
  });

  test("an item without an announced size ends when the space is exhausted, and leaves no file", async () => {
    await open({ bytesMax: 4_000_000 });
    const item = newItem(10_000_000);
    const response = await upload.send(new Blob([item.bytes]).stream());
    expect([response.status, await response.text(), response.headers.get("retry-after")]).toEqual([503, noQuota, "60"]);
    expect(upload.files()).toEqual({});
    expect((await upload.send(newItem(large).bytes)).status).toBe(200);
  });

  test("those under way count, and what they held is free when they leave", async () => {
    await open({ bytesMax: 4_000_000 });
    const slow = newItem(3_000_000);
    const connection = await connectRaw(upload.url);
    await connection.write(`POST /tx HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${slow.bytes.length}\r\n\r\n`);
    await connection.write(slow.bytes.subarray(0, 2_500_000));
    const item = newItem(large);
    await eventually(
      async () => (await upload.send(newItem(large).bytes)).status,
      (status) => status === 503,
    );
    connection.cut();
    await eventually(
      async () => (await upload.send(item.bytes)).status,
      (status) => status === 200,
    );
  });

  test("space is free again a moment after items are permanent", async () => {
    await open({ bytesMax: 2_000_000 });
    const first = newItem(large);
    expect((await upload.send(first.bytes)).status).toBe(200);
    const second = newItem(large);
    expect((await upload.send(second.bytes)).status).toBe(503);
    await upload.payment.database.write((tx) =>
      tx.run("UPDATE uploads SET failed_reason = 'permanent, as far as space goes' WHERE id = ?", first.id),
    );
    upload.payment.clock.advance(16_000);
    await eventually(
      async () => (await upload.send(second.bytes)).status,
      (status) => status === 200,
    );
  });

  test("what is to stay free on the disk stays free", async () => {
    await open({ freeBytesMin: 2 ** 50 });
    expect(upload.parts.quota.reasons()).toEqual([expect.stringContaining("UPLOAD_FREE_BYTES_MIN")]);
    const response = await upload.send(newItem(100).bytes);
    expect([response.status, await response.text()]).toEqual([503, noQuota]);
  });
});

describeWith({ there: canMount(), what: "the right to mount a small disk" }, "on a disk that is full", () => {
  const root = mkdtempSync(join(tmpdir(), "cairn-full-"));
  const disk = join(root, "disk");
  afterAll(() => removeFolder(root));

  for (const [where, ledgerFolder] of [
    ["uploads alone", root],
    ["uploads and the ledger", disk],
  ] as const)
    test(`with ${where}: 503, other responses continue, and freed space is used without a restart`, async () => {
      mkdirSync(disk, { recursive: true });
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=32m", "tmpfs", disk]);
      const place = join(ledgerFolder, `ledger-${crypto.randomUUID()}.sqlite`);
      const ledger = await openPlace(place);
      const { account } = newItem(1);
      await ledger.write((tx) =>
        transfer(tx, {
          id: createTransferIds(Date.now, Math.random)(),
          kind: "payment",
          at: Date.now(),
          legs: [
            { account: provider("stripe"), amount: -(10n ** 12n) },
            { account: user(account), amount: 10n ** 12n },
          ],
        }),
      );
      const folder = join(disk, "uploads");
      const uploads = await startUploads({ place, folder, keyFile: makeReceiptKey(join(root, "keys")) });
      const filler = join(disk, "filler");
      try {
        const first = newItem(500);
        const receipt = await sendItem(uploads.url, first.bytes);
        expect(receipt.status).toBe(200);
        const taken = [first, newItem(large)];
        expect((await sendItem(uploads.url, taken[1]?.bytes ?? first.bytes)).status).toBe(200);

        for (let round = 0; round < 3; round += 1) {
          fill(disk, filler);
          const rejected = [newItem(900_000), newItem(large), newItem(20_000), newItem(3_000_000)];
          const responses = await Promise.all(rejected.map(({ bytes }) => sendItem(uploads.url, bytes)));
          for (const { status, text } of responses) expect([status, text]).toEqual([503, expect.any(String)]);
          expect(await sendItem(uploads.url, first.bytes)).toEqual(receipt);
          const before = fileSizes(folder);
          rmSync(filler);
          // The same process accepts the rejected items when space is free.
          for (const { bytes } of rejected)
            await eventually(
              () => sendItem(uploads.url, bytes),
              ({ status }) => status === 200,
            );
          taken.push(...rejected);
          expect(before).toBe(fileSizes(folder, rejected));
        }
        const sizes = taken.reduce((sum, { bytes }) => sum + BigInt(bytes.length), 0n);
        expect(await ledger.read((tx) => balanceOf(tx, revenue))).toBe(sizes);
        expect(await checkLedger(ledger)).toEqual([]);
      } finally {
        await uploads.kill();
        await ledger.close();
        execFileSync("umount", [disk]);
      }
    }, 120_000);
});

/** Bytes of all files of uploads, without those of some items. */
function fileSizes(folder: string, without: readonly TestItem[] = []): number {
  const all = Object.entries(filesIn(folder)).filter(([name]) => /^(items|segments)\//.test(name));
  const sum = all.reduce((total, [, size]) => total + size, 0);
  return sum - without.reduce((total, { bytes }) => total + bytes.length, 0);
}

/** Leaves a few hundred bytes of a disk. */
function fill(disk: string, file: string): void {
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(file, new Uint8Array(Math.max(0, bavail * bsize)));
}
