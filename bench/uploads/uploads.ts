/**
 * Uploads: CPU time of the server for a small item, against one signature of its receipt; throughput of a large item,
 * against the slower of SHA-384 and the disk; and the time until an item can be read.
 *
 * UPLOAD_BYTES sets the size of the large item (the target is for 4294967296), UPLOAD_ITEMS the number of small items
 * in a round.
 * @module
 */
import { generateKeyPairSync } from "node:crypto";
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createDataItem, createItemSigning } from "../../src/arweave/data-item.ts";
import { idFromBytes } from "../../src/arweave/id.ts";
import { receiptMessage } from "../../src/arweave/receipt.ts";
import { createArweaveSigner } from "../../src/arweave/signers/arweave.ts";
import { createSolanaSigner } from "../../src/arweave/signers/ed25519.ts";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import { readWallet } from "../../src/arweave/wallet.ts";
import { assert } from "../../src/lib/assert.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { accountOf } from "../../src/upload/intake/charge-item.ts";
import { startDev } from "../../test/support/program.ts";
import { type Bench, type BenchRow, type BenchSize, median } from "../harness.ts";
import { takePeak } from "../support/memory.ts";
import { cpuSeconds } from "../support/processor-time.ts";

type Sizes = Readonly<{ items: number; rounds: number; largeBytes: number; reads: number }>;

const sizes: Readonly<Record<BenchSize, Sizes>> = {
  small: { items: 20, rounds: 1, largeBytes: 8 * 2 ** 20, reads: 3 },
  large: { items: 1_000, rounds: 5, largeBytes: 512 * 2 ** 20, reads: 200 },
};

/** Concurrent clients. */
const clients = 32;
const payloadBytes = 1_024;
const piece = new Uint8Array(2 ** 20).map((_, index) => index % 251);

/** Uploads of 1 KiB, and of large items. */
export const uploadsBench: Bench = {
  name: "uploads",
  measure: async (size) => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-bench-uploads-"));
    const rsaKey = generateKeyPairSync("rsa", { modulusLength: 4_096 }).privateKey.export({ format: "jwk" });
    const rsa = createArweaveSigner(rsaKey);
    const solana = createSolanaSigner(new Uint8Array(32).fill(7));
    const served = await startServed(folder, [rsa, solana]);
    try {
      const { UPLOAD_BYTES, UPLOAD_ITEMS } = process.env;
      const usual = sizes[size];
      const chosen = {
        ...usual,
        largeBytes: Number(UPLOAD_BYTES ?? usual.largeBytes),
        items: Number(UPLOAD_ITEMS ?? usual.items),
      };
      return [
        ...(await measureSmall(served, chosen, rsa, rsaKey)),
        ...(await measureLarge(served, folder, chosen.largeBytes, solana)),
        ...(await measureReads(chosen.reads, solana)),
      ];
    } finally {
      await served.stop();
      removeFolder(folder);
    }
  },
};

type Served = Readonly<{ url: string; pid: number; stop: () => Promise<void> }>;

async function startServed(folder: string, signers: readonly Signer[]): Promise<Served> {
  const accounts = signers.map(({ scheme, owner }) => accountOf(scheme.type, owner));
  const command = [process.execPath, resolve(import.meta.dir, "uploads-served.ts"), folder, ...accounts];
  const child = Bun.spawn(command, { stdio: ["ignore", "pipe", "inherit"] });
  const { value } = await child.stdout.getReader().read();
  const [, url = ""] = /^open (\S+)/.exec(Buffer.from(value ?? []).toString()) ?? [];
  const stop = async () => {
    child.kill();
    await child.exited;
  };
  return { url, pid: child.pid, stop };
}

async function measureSmall(
  { url, pid }: Served,
  { items, rounds }: Sizes,
  signer: Signer,
  jwk: JsonWebKey,
): Promise<BenchRow[]> {
  const wallet = readWallet(jwk as Parameters<typeof readWallet>[0], 0);
  const made = Array.from({ length: items * (rounds + 1) }, (_, index) => makeItem(signer, index));
  await send(url, made.splice(0, items)); // not counted: threads start
  const measured: { itemMs: number; signatureMs: number; rate: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const signatureMs = signatureCpuMs(wallet, Math.min(items, 200));
    const before = cpuSeconds(pid);
    const startedAt = performance.now();
    await send(url, made.splice(0, items));
    const seconds = (performance.now() - startedAt) / 1_000;
    const itemMs = ((cpuSeconds(pid) - before) / items) * 1_000;
    measured.push({ itemMs, signatureMs, rate: items / seconds });
  }
  const itemMs = median(measured.map((round) => round.itemMs));
  const rate = median(measured.map((round) => round.rate));
  const signature = median(measured.map(({ signatureMs }) => signatureMs));
  return [
    {
      name: "1 KiB RSA item uploaded, paid for and synced, server CPU",
      metric: `${itemMs.toFixed(2)} ms, ${rate.toFixed(0)} items/s`,
      reference: `one 4096-bit signature ${signature.toFixed(2)} ms`,
      ratio: median(measured.map((round) => round.itemMs / round.signatureMs)),
      target: "≤ 1.25",
    },
  ];
}

function makeItem(signer: Signer, index: number): Uint8Array<ArrayBuffer> {
  const data = new Uint8Array(payloadBytes);
  new DataView(data.buffer).setUint32(0, index);
  const tags = [
    { name: "Content-Type", value: "application/octet-stream" },
    { name: "App-Name", value: "bench" },
    { name: "Number", value: String(index) },
  ];
  return new Uint8Array(createDataItem({ data, tags }, signer));
}

async function send(url: string, items: readonly Uint8Array<ArrayBuffer>[]): Promise<void> {
  const left = [...items];
  const client = async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) {
      const response = await fetch(`${url}/tx`, { method: "POST", body: item });
      const receipt = await response.json();
      assert(response.status === 200 && receipt.winc === String(item.length), "an item is taken and paid for");
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
}

/** CPU time of one signature of a receipt in this process. */
function signatureCpuMs(wallet: ReturnType<typeof readWallet>, count: number): number {
  const message = receiptMessage({ id: idFromBytes(new Uint8Array(32)), deadlineHeight: 1, timestamp: 1 });
  const before = process.cpuUsage();
  for (let index = 0; index < count; index += 1) wallet.sign(message);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / count;
}

/** Time from the receipt to the complete content, requested at once from the complete program, before any bundle. */
async function measureReads(reads: number, signer: Signer): Promise<BenchRow[]> {
  const program = await startDev({ environment: { UPLOAD_BUNDLE_WAIT_MS: "86400000" } });
  try {
    const { gateway, upload } = program.line;
    const times: number[] = [];
    for (let index = 0; index <= reads; index += 1) {
      const item = makeItem(signer, index);
      const receipt = await (await fetch(`${upload}/tx`, { method: "POST", body: item })).json();
      const startedAt = performance.now();
      const response = await fetch(`${gateway}/raw/${receipt.id}`);
      const { byteLength } = await response.arrayBuffer();
      assert(response.status === 200 && byteLength === payloadBytes, "an item is there with its receipt");
      times.push(performance.now() - startedAt);
    }
    // The first one opens the connection.
    const metric = `${median(times.slice(1)).toFixed(1)} ms, ${Math.max(...times.slice(1)).toFixed(1)} ms at most`;
    return [{ name: "from receipt to read by GET, none of which was repeated", metric }];
  } finally {
    await program.remove();
  }
}

async function measureLarge({ url, pid }: Served, folder: string, size: number, signer: Signer): Promise<BenchRow[]> {
  const signing = createItemSigning({}, size, signer);
  for (let left = size; left > 0; left -= piece.length) signing.update(piece.subarray(0, left));
  const { header } = signing.finish();
  const hashRate = rateOf(size, hashAll);
  const diskRate = rateOf(size, (bytes) => writeAll(join(folder, "disk"), bytes));
  takePeak(pid);
  const idle = takePeak(pid);
  const startedAt = performance.now();
  await sendLarge(url, header, size);
  const rate = size / ((performance.now() - startedAt) / 1_000);
  const growth = takePeak(pid) - idle;
  const limit = Math.min(hashRate, diskRate);
  const mib = 2 ** 20;
  return [
    {
      name: `one item of ${(size / mib).toFixed(0)} MiB uploaded`,
      metric: `${(rate / 1e6).toFixed(0)} MB/s`,
      reference: `SHA-384 ${(hashRate / 1e6).toFixed(0)} MB/s, disk ${(diskRate / 1e6).toFixed(0)} MB/s`,
      ratio: rate / limit,
      target: "≥ 0.7",
    },
    {
      name: `memory that an item of ${(size / mib).toFixed(0)} MiB takes`,
      metric: `+${growth.toFixed(0)} MiB`,
      target: "≤ +200 MB",
    },
  ];
}

function rateOf(size: number, work: (size: number) => void): number {
  const startedAt = performance.now();
  work(size);
  return size / ((performance.now() - startedAt) / 1_000);
}

function hashAll(size: number): void {
  const hash = new Bun.SHA384();
  for (let left = size; left > 0; left -= piece.length) hash.update(piece.subarray(0, left));
  hash.digest();
}

function writeAll(path: string, size: number): void {
  const file = openSync(path, "w");
  for (let left = size; left > 0; left -= piece.length) writeSync(file, piece.subarray(0, left));
  fdatasyncSync(file);
  closeSync(file);
  rmSync(path);
}

/** Sends an item as fast as the socket accepts it. */
async function sendLarge(url: string, header: Uint8Array, size: number): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  const responded = new Promise<string>((resolve, reject) => {
    socket.once("data", (bytes) => resolve(bytes.toString("latin1")));
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("the connection ended before a response")));
  });
  const write = async (bytes: Uint8Array | string) => {
    if (!socket.write(bytes)) await new Promise((resolve) => socket.once("drain", resolve));
  };
  await write(`POST /tx HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${header.length + size}\r\n\r\n`);
  await write(header);
  for (let left = size; left > 0; left -= piece.length) await write(piece.subarray(0, left));
  assert((await responded).startsWith("HTTP/1.1 200 "), "a large item is taken");
  socket.destroy();
}
