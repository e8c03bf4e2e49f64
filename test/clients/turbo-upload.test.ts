/**
 * The published SDK for uploads against `cairn dev`, unchanged: what it uploads is read back at once to the byte, its
 * receipts hold by a computation of their own, and every winc is where it must be.
 *
 * The request of each call, and the required response: docs/reference/upload.md#posting-an-item.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import { appendFileSync, createReadStream, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { type RunningProgram, repositoryRoot, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";
import { librarySigners } from "./arbundles-signers.ts";
import { isSigned, signerOf, type WireReceipt } from "./receipt-check.ts";
import { arweaveKey, openAnonymousTurbo, openTurbo, payCheckout, type TurboKey, turboKeys } from "./turbo.ts";

/** Items up to this size are free here; what is uploaded below is larger, unless it says that it is free. */
const freeBytes = 4_096;

const { CHUNKED_MIB = "40" } = process.env;
const chunkedMib = Number(CHUNKED_MIB);

/** A chunked upload is waited for by the SDK with pauses of its own. */
const chunkedMs = 300_000;

describeWith(clientLibraries, "turbo-sdk", () => {
  let program: RunningProgram;
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "cairn-uploads-"));
    program = await startDev({ environment: { FREE_UPLOAD_BYTES: String(freeBytes) } });
    for (const key of payers()) await topUp(key);
  }, 120_000);

  afterAll(async () => {
    await program?.remove();
    removeFolder(folder);
  });

  /** One key of every chain. */
  function payers(): TurboKey[] {
    return turboKeys(program).filter(({ token }) => ["arweave", "ethereum", "solana"].includes(token));
  }

  async function topUp(key: TurboKey): Promise<void> {
    const { USD } = await import("@ardrive/turbo-sdk");
    const turbo = await openTurbo(program, key);
    const before = await wincOf(key.address);
    const { url } = await turbo.createCheckoutSession({ amount: USD(50), owner: key.address });
    await payCheckout(url ?? "");
    await eventually(
      () => wincOf(key.address),
      (winc) => winc > before,
    );
  }

  async function wincOf(address: string): Promise<bigint> {
    const balance = await (await openAnonymousTurbo(program)).getBalance(address);
    return BigInt(balance.winc);
  }

  /** What an item costs, by the service's word; nothing when it is free. */
  async function priceOf(size: number): Promise<bigint> {
    if (size <= freeBytes) return 0n;
    const [cost] = await (await openAnonymousTurbo(program)).getUploadCosts({ bytes: [size] });
    return BigInt(cost?.winc ?? -1);
  }

  async function statusOf(id: string) {
    const reply = await fetch(`${program.line.upload}/v1/tx/${id}/status`);
    return { code: reply.status, record: await reply.json() };
  }

  async function bytesOf(id: string): Promise<Buffer> {
    const reply = await fetch(`${program.line.gateway}/raw/${id}`);
    expect(reply.status).toBe(200);
    return Buffer.from(await reply.arrayBuffer());
  }

  async function onGraphql(id: string) {
    const query = `{ transaction(id: "${id}") { id signature owner { address } tags { name value } data { size type } bundledIn { id } } }`;
    const reply = await fetch(`${program.line.gateway}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query }),
    });
    return (await reply.json()).data.transaction;
  }

  /** All that is true of an item that was taken: its receipt, its bytes, its row, and what was charged for it. */
  async function checkTaken(response: unknown, data: Uint8Array, payer?: { before: bigint; key: TurboKey }) {
    const receipt = response as WireReceipt;
    expect(isSigned(receipt)).toBe(true);
    expect(signerOf(receipt)).toBe(await serviceAddress());
    // A comparison with patterns writes them into what it compares.
    expect(structuredClone(receipt)).toMatchObject({
      id: expect.stringMatching(/^[\w-]{43}$/),
      version: "0.2.0",
      dataCaches: [new URL(program.line.gateway).host],
      fastFinalityIndexes: [new URL(program.line.gateway).host],
      owner: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(Math.abs(Date.now() - receipt.timestamp)).toBeLessThan(60_000);
    expect(await bytesOf(receipt.id)).toEqual(Buffer.from(data));
    const row = await onGraphql(receipt.id);
    expect(row).toMatchObject({ owner: { address: receipt.owner }, data: { size: String(data.length) } });
    const { record } = await statusOf(receipt.id);
    expect(record).toMatchObject({ winc: receipt.winc, payloadContentLength: data.length });
    expect(receipt.winc).toBe((await priceOf(record.rawContentLength)).toString());
    if (payer !== undefined) expect(await wincOf(payer.key.address)).toBe(payer.before - BigInt(receipt.winc));
  }

  async function serviceAddress(): Promise<string> {
    return (await (await openAnonymousTurbo(program)).getTurboCryptoWallets()).arweave ?? "";
  }

  function fileOf(name: string, data: Uint8Array | string): string {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, data);
    return path;
  }

  describe("with keys of every chain", () => {
    const large = randomBytes(300_000);
    const text = `Grüße ☃ ${"long ".repeat(2_000)}`;
    const kinds: readonly (readonly [string, (name: string) => object, Uint8Array])[] = [
      ["upload of a string", () => ({ data: text }), Buffer.from(text)],
      ["upload of a Buffer", () => ({ data: large }), large],
      ["upload of a Uint8Array", () => ({ data: new Uint8Array(large) }), large],
      ["upload of an ArrayBuffer", () => ({ data: new Uint8Array(large).buffer }), large],
    ];
    test.each(kinds)("%s", async (_name, data, bytes) => {
      for (const key of payers()) {
        const turbo = await openTurbo(program, key);
        const before = await wincOf(key.address);
        const made = data(key.token) as { data: Buffer };
        const dataItemOpts = { tags: [{ name: "Key", value: `${_name} ${key.token}` }] };
        await checkTaken(await turbo.upload({ ...made, dataItemOpts }), bytes, { before, key });
      }
    });

    test("uploadFile of a file, by its path and by streams of it", async () => {
      for (const key of payers()) {
        const turbo = await openTurbo(program, key);
        for (const isStreamed of [false, true]) {
          const data = randomBytes(1_200_000);
          const file = fileOf(`${isStreamed}-${key.token}.bin`, data);
          const before = await wincOf(key.address);
          const streams = {
            fileStreamFactory: () => createReadStream(file),
            fileSizeFactory: () => data.length,
          };
          const tags = [{ name: "Content-Type", value: "application/x-test" }];
          const dataItemOpts = { tags };
          const taken = isStreamed
            ? await turbo.uploadFile({ ...streams, dataItemOpts })
            : await turbo.uploadFile({ file, dataItemOpts });
          await checkTaken(taken, data, { before, key });
          expect((await onGraphql(taken.id)).data.type).toBe("application/x-test");
        }
      }
    });

    test("with target and anchor, and events that tell of every byte", async () => {
      const data = randomBytes(500_000);
      const target = createHash("sha256").update("target").digest("base64url");
      for (const key of payers()) {
        const turbo = await openTurbo(program, key);
        const before = await wincOf(key.address);
        const seen = { signed: 0, sent: 0, succeeded: false };
        const taken = await turbo.upload({
          data,
          dataItemOpts: { target, anchor: "a".repeat(32), tags: [] },
          events: {
            onSigningProgress: ({ processedBytes }) => (seen.signed = processedBytes),
            onUploadProgress: ({ processedBytes }) => (seen.sent = processedBytes),
            onUploadSuccess: () => (seen.succeeded = true),
          },
        });
        await checkTaken(taken, data, { before, key });
        const { record } = await statusOf(taken.id);
        expect(seen).toEqual({ signed: data.length, sent: record.rawContentLength, succeeded: true });
      }
    });
  });

  describe("free of charge", () => {
    test("small items cost nothing, also to those who never paid", async () => {
      const key = stranger();
      const turbo = await openTurbo(program, key);
      const taken = await turbo.upload({ data: "small" });
      expect(taken.winc).toBe("0");
      await checkTaken(taken, Buffer.from("small"));
      expect(await wincOf(key.address)).toBe(0n);
    });
  });

  describe("of items that were signed before", () => {
    test("uploadSignedDataItem by every signer of arbundles", async () => {
      const library = await import("@dha-team/arbundles");
      const turbo = await openAnonymousTurbo(program);
      const owners = new Map<number, string>();
      for (const [name, make] of Object.entries(librarySigners(library))) {
        const [type, signer] = make();
        const data = Buffer.from(`signed by ${name}`);
        const item = library.createData(data, signer, { tags: [{ name: "Signer", value: name }] });
        await item.sign(signer);
        const raw = item.getRaw();
        const taken = await turbo.uploadSignedDataItem({
          dataItemStreamFactory: () => raw,
          dataItemSizeFactory: () => raw.length,
        });
        expect(taken.id, name).toBe(item.id);
        await checkTaken(taken, data);
        owners.set(type, taken.owner);
        const ownerAddress = createHash("sha256").update(item.rawOwner).digest("base64url");
        expect(taken.owner, name).toBe(ownerAddress);
      }
      expect([...owners.keys()].sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 101]);
    });

    test("as a stream of unknown length", async () => {
      const raw = await signedItem(randomBytes(3_000));
      const reply = await fetch(`${program.line.upload}/v1/tx`, {
        method: "POST",
        body: new ReadableStream({
          async start(controller) {
            for (let at = 0; at < raw.length; at += 100) {
              controller.enqueue(raw.subarray(at, at + 100));
              await Bun.sleep(0);
            }
            controller.close();
          },
        }),
      });
      expect(reply.status).toBe(200);
      expect(isSigned(await reply.json())).toBe(true);
    });

    test("twice, or ten times at once, is one charge and one receipt to the byte", async () => {
      const key = arweaveKey(program);
      const before = await wincOf(key.address);
      const raw = await signedItem(randomBytes(200_000), key);
      const post = () =>
        fetch(`${program.line.upload}/v1/tx/arweave`, {
          method: "POST",
          headers: { "content-type": "application/octet-stream" },
          body: Uint8Array.from(raw),
        });
      const responses = await Promise.all(Array.from({ length: 10 }, post));
      responses.push(await post());
      expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 11 }, () => 200));
      const texts = new Set(await Promise.all(responses.map((reply) => reply.text())));
      expect(texts.size).toBe(1);
      const [text = ""] = texts;
      expect(before - (await wincOf(key.address))).toBe(await priceOf(raw.length));
      const turbo = await openAnonymousTurbo(program);
      const again = await turbo.uploadSignedDataItem({
        dataItemStreamFactory: () => raw,
        dataItemSizeFactory: () => raw.length,
      });
      expect(again).toEqual(JSON.parse(text));
    });
  });

  describe("without credits", () => {
    test("is rejected with what is needed and what there is, and nothing is stored", async () => {
      const key = stranger();
      const turbo = await openTurbo(program, key);
      const upload = turbo.upload({ data: randomBytes(100_000) });
      const error = await upload.then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error).toMatchObject({ status: 402 });
      const said = JSON.parse(/\{.*\}/s.exec(String((error as Error).message))?.[0] ?? "{}");
      expect(said).toMatchObject({ error: "Insufficient balance", available: "0" });
      expect(BigInt(said.needed)).toBeGreaterThan(0n);
      const raw = await signedItem(randomBytes(100_000), key);
      const reply = await fetch(`${program.line.upload}/v1/tx/ethereum`, {
        method: "POST",
        body: Uint8Array.from(raw),
      });
      expect(reply.status).toBe(402);
      const [id] = await idsOf(raw);
      expect((await statusOf(id ?? "")).code).toBe(404);
      expect((await fetch(`${program.line.gateway}/raw/${id}`)).status).toBe(404);
    });
  });

  describe("with credits of another account", () => {
    test("shareCredits, spending by paidBy, and revokeCredits, to the winc", async () => {
      const [, giver] = payers();
      if (giver === undefined) throw new Error("there is no Ethereum key");
      const taker = stranger(2);
      const turbo = await openTurbo(program, giver);
      const other = await openTurbo(program, taker);
      const size = 50_000;
      const before = await wincOf(giver.address);
      const shared = 10n ** 11n;
      const approval = await turbo.shareCredits({
        approvedAddress: taker.address,
        approvedWincAmount: shared.toString(),
        expiresBySeconds: 600,
      });
      expect(structuredClone(approval)).toMatchObject({
        approvalDataItemId: expect.stringMatching(/^[\w-]{43}$/),
        approvedAddress: taker.address,
        payingAddress: giver.address,
        approvedWincAmount: shared.toString(),
        usedWincAmount: "0",
      });
      const until = Date.parse(approval.expirationDate ?? "") - Date.parse(approval.creationDate);
      expect(until).toBe(600_000);
      expect(await wincOf(giver.address)).toBe(before - shared);
      expect(await other.getBalance()).toMatchObject({ winc: "0", effectiveBalance: shared.toString() });

      // Without naming who pays, the approval is not spent.
      await expect(other.upload({ data: randomBytes(size) })).rejects.toThrow("Insufficient balance");
      const data = randomBytes(size);
      const taken = await other.upload({ data, dataItemOpts: { paidBy: [giver.address] } });
      await checkTaken(taken, data);
      const left = shared - BigInt(taken.winc);
      expect(await other.getBalance()).toMatchObject({ winc: "0", effectiveBalance: left.toString() });
      const { givenApprovals } = await turbo.getCreditShareApprovals({});
      expect(givenApprovals).toMatchObject([{ usedWincAmount: taken.winc }]);

      const [revoked, ...more] = await turbo.revokeCredits({ revokedAddress: taker.address });
      expect(more).toEqual([]);
      expect(revoked?.approvalDataItemId).toBe(approval.approvalDataItemId);
      expect(await wincOf(giver.address)).toBe(before - BigInt(taken.winc));
      const later = other.upload({ data: randomBytes(size), dataItemOpts: { paidBy: giver.address } });
      await expect(later).rejects.toThrow("Insufficient balance");
    });
  });

  describe("of folders", () => {
    test("uploadFolder with a manifest, an index and a fallback is opened through the gateway at once", async () => {
      const site = {
        "index.html": "<h1>Home</h1>",
        "404.html": "<h1>Not here</h1>",
        "about/index.html": "<h1>About</h1>",
        "assets/style.css": "h1 { color: teal }",
        "assets/photo with spaces.png": randomBytes(30_000),
      };
      for (const [path, data] of Object.entries(site)) fileOf(`site/${path}`, data);
      for (const key of payers()) {
        const turbo = await openTurbo(program, key);
        const { fileResponses, manifest, manifestResponse, errors } = await turbo.uploadFolder({
          folderPath: join(folder, "site"),
          maxConcurrentUploads: 3,
          dataItemOpts: { tags: [{ name: "App-Name", value: `Site-${key.token}` }] },
        });
        expect(errors).toBeUndefined();
        expect(fileResponses.length).toBe(Object.keys(site).length);
        for (const response of fileResponses) expect(isSigned(response as unknown as WireReceipt)).toBe(true);
        expect(Object.keys(manifest?.paths ?? {}).sort()).toEqual(Object.keys(site).sort());
        const root = `${program.line.gateway}/${manifestResponse?.id}`;
        const opened = await openAll(root, ["", ...Object.keys(site), "about/", "no/such/page"]);
        const { "index.html": home, "404.html": missing, "about/index.html": about } = site;
        expect(opened.get("")).toEqual([200, "text/html; charset=utf-8", home]);
        expect(opened.get("about/")).toEqual([200, "text/html; charset=utf-8", about]);
        expect(opened.get("no/such/page")?.[2]).toBe(missing);
        expect(opened.get("assets/style.css")).toEqual([200, "text/css; charset=utf-8", site["assets/style.css"]]);
        expect(opened.get("assets/photo with spaces.png")?.[1]).toBe("image/png");
      }
    });
  });

  describe("in chunks", () => {
    test(
      "11 MiB, which the SDK chunks by itself",
      async () => {
        const key = arweaveKey(program);
        const turbo = await openTurbo(program, key);
        const data = randomBytes(11 * 2 ** 20);
        const before = await wincOf(key.address);
        const taken = await turbo.uploadFile({ file: fileOf("eleven.bin", data) });
        await checkTaken(taken, data, { before, key });
      },
      chunkedMs,
    );

    test(
      `${chunkedMib} MiB of a file, in parts of 16 MiB out of order`,
      async () => {
        const key = arweaveKey(program);
        const turbo = await openTurbo(program, key);
        const file = fileOf("many-parts.bin", "");
        const block = randomBytes(2 ** 20);
        for (let count = 0; count < chunkedMib; count += 1) appendFileSync(file, block.fill(count, 0, 4));
        const before = await wincOf(key.address);
        const taken = await turbo.uploadFile({
          file,
          chunkByteCount: 16 * 2 ** 20,
          maxChunkConcurrency: 8,
        });
        await checkTaken(taken, readFileSync(file), { before, key });
      },
      chunkedMs,
    );

    test(
      "forced, for a small item, by keys of every chain",
      async () => {
        for (const key of payers()) {
          const turbo = await openTurbo(program, key);
          const data = randomBytes(100_000);
          const before = await wincOf(key.address);
          const taken = await turbo.upload({ data, chunkingMode: "force" });
          await checkTaken(taken, data, { before, key });
        }
      },
      chunkedMs,
    );

    test(
      "without credits is rejected, and nothing is stored",
      async () => {
        const turbo = await openTurbo(program, stranger());
        const upload = turbo.upload({ data: randomBytes(100_000), chunkingMode: "force" });
        await expect(upload).rejects.toThrow();
      },
      chunkedMs,
    );
  });

  test("is on the chain within seconds, every item of it, and the ledger is exact", async () => {
    const key = arweaveKey(program);
    const turbo = await openTurbo(program, key);
    const taken = await turbo.upload({ data: randomBytes(10_000) });
    const { record } = await eventually(
      () => statusOf(taken.id),
      (reply) => reply.record.status === "FINALIZED",
      60_000,
    );
    expect(record.info).toBe("permanent");
    const row = await onGraphql(taken.id);
    expect(row.bundledIn.id).toBe(record.bundleId);
    const signature = Buffer.from(row.signature, "base64url");
    expect(createHash("sha256").update(signature).digest("base64url")).toBe(taken.id);
    const check = Bun.spawnSync([process.execPath, "src/main.ts", "ledger", "check"], {
      cwd: repositoryRoot,
      env: { ...process.env, DATA_DIR: program.folder },
    });
    expect([check.exitCode, check.stdout.toString()]).toEqual([0, expect.any(String)]);
  }, 120_000);

  /** A key that never paid. */
  function stranger(which = 1): TurboKey {
    const privateKey = `0x${(0x20 + which).toString(16).repeat(32)}`;
    const { privateKeyToAccount } = require("viem/accounts");
    return { token: "ethereum", privateKey, address: privateKeyToAccount(privateKey).address, winc: 0n };
  }

  async function signedItem(data: Buffer, key: TurboKey = arweaveKey(program)): Promise<Buffer> {
    const library = await import("@dha-team/arbundles");
    const signer =
      key.token === "arweave"
        ? new library.ArweaveSigner(key.privateKey as JsonWebKey as never)
        : new library.EthereumSigner(String(key.privateKey).slice(2));
    const item = library.createData(data, signer);
    await item.sign(signer);
    return item.getRaw();
  }

  async function idsOf(raw: Buffer): Promise<string[]> {
    const { DataItem } = await import("@dha-team/arbundles");
    return [new DataItem(raw).id];
  }
});

/** Opens paths below an address: status, type without parameters, text. */
async function openAll(root: string, paths: readonly string[]) {
  const opened = new Map<string, readonly [number, string, string]>();
  for (const path of paths) {
    const reply = await fetch(`${root}/${encodeURI(path)}`);
    const type = reply.headers.get("content-type") ?? "";
    opened.set(path, [reply.status, type, await reply.text()]);
  }
  return opened;
}
