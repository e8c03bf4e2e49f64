/**
 * A large item in parts is never in memory, neither while its parts arrive at once nor while the whole is walked over: a
 * process that takes it grows by no more than a few of its pieces.
 *
 * BYTES is its size (default 128 MiB).
 * @module
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { createItemSigning } from "../../../src/arweave/data-item.ts";
import { type Need, testWith } from "../../support/helpers.ts";
import { openTestPayment, type TestPayment, testStart } from "../../support/payment.ts";
import { connectRaw } from "../../support/raw-request.ts";
import { createPartsClient, makeFolder, makeItem, usualSigner } from "./multipart-fixture.ts";

const size = Number(process.env["BYTES"] ?? 128 * 2 ** 20);
/** What uploads as one request are held to (memory.test.ts). Bytes. */
const growthMax = 160 * 2 ** 20;
const linux: Need = { there: process.platform === "linux", what: "Linux's /proc" };
const piece = new Uint8Array(2 ** 20);
const folder = makeFolder();
/** Parts at once. */
const atOnce = 8;

let payment: TestPayment;
let child: Bun.Subprocess<"pipe", "pipe", "inherit">;
let url: string;

// Within a group: what it opened is closed before the databases are (test/support/ledger-databases.ts).
describe("memory", () => {
  beforeAll(async () => {
    payment = await openTestPayment();
    const command = [process.execPath, resolve(import.meta.dir, "multipart-child.ts")];
    child = Bun.spawn([...command, payment.ledger.place, folder.path, String(testStart)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const { value } = await child.stdout.getReader().read();
    url = `http://127.0.0.1:${/^open (\d+)/.exec(new TextDecoder().decode(value))?.[1]}`;
    await payment.credit(makeItem(new Uint8Array(1)).account, 10n ** 15n);
  });
  afterAll(async () => {
    child.kill("SIGKILL");
    await child.exited;
    await payment.close();
    folder.remove();
  });

  /** The header of an item with a generated payload of zeros. */
  function signLarge(): Uint8Array {
    if (usualSigner === undefined) throw new Error("there is a signer of each type");
    const signing = createItemSigning({}, size, usualSigner);
    for (let left = size; left > 0; left -= piece.length) signing.update(piece.subarray(0, left));
    return signing.finish().header;
  }

  /** Most memory that a process has had since it was asked last. Bytes. */
  function takePeak(pid: number): number {
    const [, kilobytes = "0"] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    writeFileSync(`/proc/${pid}/clear_refs`, "5");
    return Number(kilobytes) * 1_024;
  }

  async function putZeroes(id: string, start: number, length: number): Promise<void> {
    const connection = await connectRaw(url);
    await connection.write(
      `POST /chunks/ethereum/${id}/${start} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n`,
    );
    for (let left = length; left > 0; left -= piece.length) await connection.write(piece.subarray(0, left));
    await connection.until("HTTP/1.1 200 ");
    connection.cut();
  }

  testWith(
    linux,
    `an item of ${size / 2 ** 20} MiB in ${atOnce} parts at once takes little memory`,
    async () => {
      const client = createPartsClient(url);
      const header = signLarge();
      const small = makeItem(new Uint8Array(100_000));
      const first = await client.create();
      await client.put(first, 0, small.bytes);
      expect((await client.finalize(first)).status).toBe(200);
      takePeak(child.pid);
      const idle = takePeak(child.pid);
      const id = await client.create();
      expect((await client.put(id, 0, header)).status).toBe(200);
      const each = Math.ceil(size / atOnce);
      const starts = Array.from({ length: atOnce }, (_, index) => index * each);
      await Promise.all(starts.map((start) => putZeroes(id, header.length + start, Math.min(each, size - start))));
      const response = await client.finalize(id);
      expect([response.status, (await response.json()).winc]).toEqual([200, String(header.length + size)]);
      const growth = takePeak(child.pid) - idle;
      console.log(`grew by ${Math.round(growth / 2 ** 20)} MiB from ${Math.round(idle / 2 ** 20)} MiB`);
      expect(growth).toBeLessThan(growthMax);
    },
    120_000 + size / 5_000,
  );
});
