/**
 * The published SDK's uploads in parts against `cairn dev`, unchanged: 11 MiB, and as much as MEBIBYTES says; through a
 * program that is killed on the way; by those who cannot pay.
 *
 * Requests of the SDK and the required responses: docs/reference/upload.md#uploads-in-parts.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { isSigned, type WireReceipt } from "./receipt-check.ts";
import { arweaveKey, openAnonymousTurbo, openTurbo, type TurboKey, turboKeys } from "./turbo.ts";
import { openUploadFront } from "./upload-front.ts";

const { MEBIBYTES } = process.env;
const mebibyte = 2 ** 20;
/** Just above two of the SDK's parts, where it sends parts by default. */
const sizes = [11, ...(MEBIBYTES === undefined ? [] : MEBIBYTES.split(",").map(Number))];

/** Nothing is free here but what a test pays for others with. */
const freeBytes = 1_024;

describeWith(clientLibraries, "turbo-sdk in parts", () => {
  let program: RunningProgram;

  beforeAll(async () => {
    program = await startDev({ environment: { FREE_UPLOAD_BYTES: String(freeBytes) } });
  }, 120_000);

  afterAll(() => program?.remove());

  /** Bytes that repeat nowhere at the distance of a part, made as they are read. */
  function content(size: number, seed: number) {
    const block = (index: number) => {
      const bytes = new Uint8Array(mebibyte).fill(index + seed);
      new DataView(bytes.buffer).setUint32(0, index * 97 + seed);
      return bytes;
    };
    const blocks = size / mebibyte;
    const hash = createHash("sha256");
    for (let index = 0; index < blocks; index += 1) hash.update(block(index));
    return {
      digest: hash.digest("hex"),
      stream: () =>
        Readable.from(
          (function* () {
            for (let index = 0; index < blocks; index += 1) yield block(index);
          })(),
        ),
    };
  }

  async function digestOf(id: string): Promise<string> {
    const response = await fetch(`${program.line.gateway}/raw/${id}`);
    expect(response.status).toBe(200);
    const hash = createHash("sha256");
    for await (const piece of response.body ?? []) hash.update(piece);
    return hash.digest("hex");
  }

  async function wincOf({ address }: TurboKey): Promise<bigint> {
    return BigInt((await (await openAnonymousTurbo(program)).getBalance(address)).winc);
  }

  const partFiles = () => readdirSync(join(program.folder, "uploads", "parts"));

  test.each(sizes)(
    "uploadFile of %p MiB is charged once, and readable to the byte at once",
    async (mebibytes) => {
      const key = arweaveKey(program);
      const turbo = await openTurbo(program, key);
      const size = mebibytes * mebibyte;
      const { stream, digest } = content(size, mebibytes);
      const before = await wincOf(key);
      const progress: number[] = [];
      const receipt = await turbo.uploadFile({
        fileStreamFactory: stream,
        fileSizeFactory: () => size,
        chunkingMode: "force",
        dataItemOpts: { tags: [{ name: "Content-Type", value: "application/x-test" }] },
        events: { onUploadProgress: ({ processedBytes }) => void progress.push(processedBytes) },
      });
      expect(isSigned(receipt as unknown as WireReceipt)).toBe(true);
      expect(receipt.owner).toBe(key.address);
      expect(BigInt(receipt.winc)).toBeGreaterThan(0n);
      expect(before - (await wincOf(key))).toBe(BigInt(receipt.winc));
      expect(await digestOf(receipt.id)).toBe(digest);
      const head = await fetch(`${program.line.gateway}/raw/${receipt.id}`, { method: "HEAD" });
      expect(head.headers.get("content-type")).toBe("application/x-test");
      expect(progress.length).toBeGreaterThan(1);
    },
    900_000,
  );

  test("an Ethereum key without credits gets that error, and only the payable upload is stored", async () => {
    const key = turboKeys(program).find(({ token }) => token === "ethereum") ?? arweaveKey(program);
    const turbo = await openTurbo(program, key);
    const size = 11 * mebibyte;
    const { stream } = content(size, 3);
    const upload = turbo.uploadFile({
      fileStreamFactory: stream,
      fileSizeFactory: () => size,
      chunkingMode: "force",
    });
    expect(await upload.then(String, String)).toContain("Insufficient balance");
  }, 120_000);

  test("is paid by another, whose approval the upload names", async () => {
    const payer = arweaveKey(program);
    const key = turboKeys(program).find(({ token }) => token === "solana") ?? payer;
    const size = 11 * mebibyte;
    const [cost] = await (await openAnonymousTurbo(program)).getUploadCosts({ bytes: [2 * size] });
    await (await openTurbo(program, payer)).shareCredits({
      approvedAddress: key.address,
      approvedWincAmount: BigInt(cost?.winc ?? 0).toString(),
    });
    const before = await wincOf(payer);
    const { stream, digest } = content(size, 5);
    const receipt = await (await openTurbo(program, key)).uploadFile({
      fileStreamFactory: stream,
      fileSizeFactory: () => size,
      chunkingMode: "force",
      dataItemOpts: { paidBy: payer.address },
    });
    expect(await digestOf(receipt.id)).toBe(digest);
    expect(await wincOf(payer)).toBe(before);
  }, 120_000);

  test("goes on through a program that is killed and comes back, part by part", async () => {
    const key = arweaveKey(program);
    const size = 31 * mebibyte;
    const { stream, digest } = content(size, 7);
    const before = await wincOf(key);
    const front = openUploadFront(() => program.line.upload, 2);
    const upstream = { ...program, line: { ...program.line, upload: front.url } };
    const turbo = await openTurbo(upstream, key);
    const upload = turbo.uploadFile({
      fileStreamFactory: stream,
      fileSizeFactory: () => size,
      chunkingMode: "force",
      maxChunkConcurrency: 1,
    });
    await front.untilHeld(upload);
    expect(partFiles().length).toBeGreaterThan(1);
    await program.kill();
    front.down();
    program = await startDev({
      folder: program.folder,
      environment: { FREE_UPLOAD_BYTES: String(freeBytes) },
    });
    front.up();
    const receipt = await upload;
    await front.close();
    expect(await digestOf(receipt.id)).toBe(digest);
    expect(before - (await wincOf(key))).toBe(BigInt(receipt.winc));
  }, 240_000);
});
