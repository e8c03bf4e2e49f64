/**
 * A large item is never in memory: a process that takes it grows by no more than a few of its pieces, and can do so
 * under a limit of its addresses.
 *
 * BYTES is its size (default 128 MiB).
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createItemSigning } from "../../../src/arweave/data-item.ts";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { type Need, testWith } from "../../support/helpers.ts";
import { openTestPayment, type TestPayment } from "../../support/payment.ts";
import { connectRaw } from "../../support/raw-request.ts";
import { fastSigner, testItem } from "../../support/upload.ts";
import { makeReceiptKey } from "../../support/upload-parts.ts";
import { sendItem, startUploads, type UploadProcess } from "../upload-process.ts";

const size = Number(process.env["BYTES"] ?? 128 * 2 ** 20);
const growthMax = 160 * 2 ** 20;
/** Of addresses, above what the idle process has: more than memory, for threads that start take some too. */
const addressesMax = 256 * 2 ** 20;
const linux: Need = {
  there: process.platform === "linux" && Bun.which("prlimit") !== null,
  what: "Linux's /proc, and prlimit",
};
const root = mkdtempSync(join(tmpdir(), "cairn-memory-"));
const piece = new Uint8Array(2 ** 20);

let payment: TestPayment;
let uploads: UploadProcess;

beforeAll(async () => {
  payment = await openTestPayment();
  const keyFile = makeReceiptKey(join(root, "keys"));
  uploads = await startUploads({
    place: payment.ledger.place,
    folder: join(root, "uploads"),
    keyFile,
    itemBytesMax: 2 * size,
  });
  await payment.credit(testItem("").account, 10n ** 15n);
});
afterAll(async () => {
  await uploads.kill();
  await payment.close();
  removeFolder(root);
});

/** Signs a generated payload of this size without holding it in memory. */
function signLarge(number: number) {
  const signing = createItemSigning({ tags: [{ name: "number", value: String(number) }] }, size, fastSigner);
  for (let left = size; left > 0; left -= piece.length) signing.update(piece.subarray(0, left));
  return signing.finish();
}

/** Most memory that a process has had since it was asked last. Bytes. */
function takePeak(pid: number): number {
  const peak = readStatus(pid, "VmHWM");
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
  return peak;
}

/** Lets a process have no more addresses than it has now and so many bytes; another call sets it anew. */
function limitAddresses(pid: number, more: number): void {
  const limit = readStatus(pid, "VmSize") + more;
  const { exitCode } = Bun.spawnSync(["prlimit", "--pid", `${pid}`, `--as=${limit}:`]);
  expect(exitCode).toBe(0);
}

function readStatus(pid: number, name: "VmHWM" | "VmSize"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const [, kilobytes] = new RegExp(`${name}:\\s+(\\d+) kB`).exec(status) ?? [];
  expect(kilobytes).toBeDefined();
  return Number(kilobytes) * 1_024;
}

for (const [name, start, inChunks] of [
  ["with its size", (length: number) => `Content-Length: ${length}`, false],
  ["without its size", () => "Transfer-Encoding: chunked", true],
] as const)
  testWith(
    linux,
    `an item of ${size / 2 ** 20} MiB sent ${name} takes little memory`,
    async () => {
      const { header } = signLarge(inChunks ? 1 : 2);
      expect((await sendItem(uploads.url, testItem(`before ${name}`).bytes)).status).toBe(200);
      await Bun.sleep(500); // the memory of the first upload is released
      takePeak(uploads.pid);
      const idle = takePeak(uploads.pid);
      limitAddresses(uploads.pid, addressesMax);
      const connection = await connectRaw(uploads.url);
      await connection.write(`POST /tx HTTP/1.1\r\nHost: localhost\r\n${start(header.length + size)}\r\n\r\n`);
      const write = async (bytes: Uint8Array) => {
        if (inChunks) await connection.write(`${bytes.length.toString(16)}\r\n`);
        await connection.write(bytes);
        if (inChunks) await connection.write("\r\n");
      };
      await write(header);
      for (let left = size; left > 0; left -= piece.length) await write(piece.subarray(0, left));
      if (inChunks) await write(new Uint8Array(0));
      await connection.until("HTTP/1.1 200 ");
      connection.cut();
      const growth = takePeak(uploads.pid) - idle;
      console.log(`grew by ${Math.round(growth / 2 ** 20)} MiB from ${Math.round(idle / 2 ** 20)} MiB`);
      expect(growth).toBeLessThan(growthMax);
    },
    60_000 + size / 10_000,
  );

test("the complete item is on the disk", async () => {
  const sizes = await payment.database.read((tx) =>
    tx.all<{ size: bigint; file: string }>("SELECT size, file FROM uploads WHERE size > 1000000"),
  );
  expect(sizes).toHaveLength(linux.there ? 2 : 0);
  for (const { size: written, file } of sizes) expect(BigInt(Bun.file(join(root, "uploads", file)).size)).toBe(written);
});
