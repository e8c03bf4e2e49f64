/**
 * Blocked items are rejected by every way of uploading, and items that are blocked while they wait are not posted: nothing
 * is charged, or it is paid back, and no byte of it stays.
 * Source: docs/decisions/083-blocked-uploads.md.
 * @module
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Id } from "../../src/arweave/id.ts";
import { decodeBase64url, encodeBase64url } from "../../src/lib/base64url.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { checkLedger } from "../../src/store/ledger/ledger-check.ts";
import { user } from "../../src/store/ledger/transfers.ts";
import { smallItemBytesMax } from "../../src/upload/intake/item-store.ts";
import { createBlockList, type TestBlockList } from "../support/block-lists.ts";
import { validEncodings } from "../support/encodings.ts";
import { openTestPayment } from "../support/payment.ts";
import { signers } from "../support/signers.ts";
import { eventually } from "../support/until.ts";
import { openTestUpload, type TestUpload, testItem } from "../support/upload.ts";
import { openUploadStack, sendItem, statusOf } from "../support/upload-stack.ts";
import { makeFolder, makeItem, openMultipartFixture, partFilesIn } from "./multipart/multipart-fixture.ts";

const message = "Blocked by this gateway's content policy";
const hashOf = (data: Uint8Array) => encodeBase64url(sha256(data));
const bytesOf = (size: number, seed: number) => new Uint8Array(size).map((_, at) => (at * seed + seed) % 251);

describe("P2: an item that is blocked", () => {
  let upload: TestUpload;
  let blockList: TestBlockList;
  beforeEach(async () => {
    blockList = createBlockList();
    upload = await openTestUpload({ blockList });
  });
  afterEach(() => upload.close());

  const sizes = { "in one piece": 500, "in a file of its own": smallItemBytesMax + 10 } as const;
  const ways: readonly (readonly [string, "id" | "hash", number, "sized" | "streamed"])[] = Object.entries(
    sizes,
  ).flatMap(([name, size]) =>
    (["id", "hash"] as const).flatMap((by) =>
      (["sized", "streamed"] as const).map((how) => [`${name}, ${how}`, by, size, how] as const),
    ),
  );

  test.each(ways)("%s, blocked by its %s, gets status 451; nothing is charged or stored", async (_, by, size, how) => {
    const data = bytesOf(size, 3);
    const item = testItem(data);
    await upload.payment.credit(item.account, 10n ** 9n);
    block(blockList, by, item, data);
    const send = () => upload.send(how === "sized" ? item.bytes : new Blob([item.bytes]).stream());
    const response = await send();
    expect([response.status, await response.json()]).toEqual([451, message]);
    expect([await upload.row(item.id), upload.files()]).toEqual([undefined, {}]);
    expect(await upload.money()).toEqual({ faults: [], revenue: 0n });
    blockList.ids.clear();
    blockList.hashes.clear();
    expect((await send()).status).toBe(200);
  });

  test("by its id is rejected in the other encoding of its signature too", async () => {
    const [, , signer] = signers;
    const item = testItem("blocked in every encoding", signer === undefined ? {} : { signer });
    await upload.payment.credit(item.account, 10n ** 9n);
    blockList.ids.add(item.id);
    const encodings = [item.bytes, ...validEncodings(item.bytes)];
    expect(encodings.length).toBe(2);
    for (const bytes of encodings) expect((await upload.send(bytes)).status).toBe(451);
    expect(await upload.money()).toEqual({ faults: [], revenue: 0n });
  });

  test("after it was taken and paid for has its receipt still, and is not charged again", async () => {
    const data = bytesOf(500, 5);
    const item = testItem(data);
    await upload.payment.credit(item.account, 10n ** 9n);
    const receipt = await (await upload.send(item.bytes)).text();
    const { revenue } = await upload.money();
    block(blockList, "hash", item, data);
    block(blockList, "id", item, data);
    expect(await (await upload.send(item.bytes)).text()).toBe(receipt);
    expect(await upload.money()).toEqual({ faults: [], revenue });
  });

  test.each(["id", "hash"] as const)(
    "in parts, by its %s, fails as INVALID when it is finalized, and its file goes",
    async (by) => {
      const folder = makeFolder();
      const payment = await openTestPayment();
      const { database, clock, makeId } = payment;
      const fixture = await openMultipartFixture({
        database,
        makeId,
        clock: clock.now,
        folder: folder.path,
        blockList,
      });
      try {
        const data = bytesOf(3_000, 7);
        const { bytes, id, account } = makeItem(data, []);
        await payment.credit(account, 10n ** 9n);
        block(blockList, by, { id }, data);
        const signal = new AbortController().signal;
        const { id: uploadId } = await fixture.multipart.create({ chunkSize: undefined, client: "one" });
        await fixture.multipart.put(uploadId, { start: 0, size: bytes.length, pieces: once(bytes) }, signal);
        const payers = { paidBy: [], directive: "list-or-signer", token: undefined } as const;
        const finalize = () => fixture.multipart.finalize(uploadId, payers, signal);
        await expect(finalize()).rejects.toMatchObject({ code: "blocked" });
        expect(await fixture.multipart.status(uploadId)).toMatchObject({
          kind: "failed",
          upload: { failure: { word: "INVALID", reason: message } },
        });
        expect((await fixture.multipart.list(uploadId)).parts).toEqual([]);
        expect(partFilesIn(folder.path)).toEqual([]);
        expect(await checkLedger(database)).toEqual([]);
        expect(await payment.held(user(account))).toBe(10n ** 9n);
      } finally {
        await fixture.close();
        await payment.close();
        folder.remove();
      }
    },
  );
});

test("P2: in a whole program what waits and is blocked is not posted and fails, and what comes is 451", async () => {
  const key = "key-of-the-test";
  const stack = await openUploadStack({
    environment: { ADMIN_API_KEY: key, UPLOAD_BUNDLE_WAIT_MS: "4000" },
  });
  try {
    const data = [bytesOf(700, 11), bytesOf(700, 13), bytesOf(700, 17)] as const;
    const [byId, byHash, beside] = data.map((each) => testItem(each));
    if (byId === undefined || byHash === undefined || beside === undefined) throw new Error("no items");
    for (const { bytes } of [byId, byHash, beside]) await sendItem(stack.uploads, bytes);
    const tell = async (body: unknown) => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const url = `${stack.content}/svc/admin/block-data`;
      expect((await fetch(url, { method: "PUT", headers, body: JSON.stringify(body) })).status).toBe(200);
    };
    await tell({ id: byId.id });
    await tell({ hash: hashOf(data[1]) });
    for (const { id } of [byId, byHash]) {
      const failed = await eventually(
        () => statusOf(stack.uploads, id),
        ({ status }) => status === "FAILED",
      );
      expect(failed).toMatchObject({ status: "FAILED", info: "failed", reason: message });
      expect((await fetch(`${stack.content}/${id}`)).status).not.toBe(200);
    }
    const again = await fetch(`${stack.uploads}/tx`, { method: "POST", body: byHash.bytes });
    expect([again.status, await again.json()]).toEqual([451, message]);
    const other = await eventually(
      async () => {
        await stack.devnet.mine(1);
        return await statusOf(stack.uploads, beside.id);
      },
      ({ bundleId }) => bundleId !== undefined,
    );
    // Its transaction is known before its chunks are at the nodes.
    const readBack = await eventually(
      async () => {
        await stack.devnet.mine(1);
        const response = await fetch(`${stack.content}/raw/${other.bundleId}`);
        return { status: response.status, bytes: await response.bytes() };
      },
      ({ status }) => status === 200,
    );
    const posted = readBack.bytes;
    for (const { id } of [byId, byHash]) {
      const raw = decodeBase64url(id);
      expect(raw === undefined ? -1 : Buffer.from(posted).indexOf(raw)).toBe(-1);
    }
    expect(Buffer.from(posted).indexOf(data[2])).toBeGreaterThan(0);
  } finally {
    await stack.close();
  }
}, 60_000);

function block(list: TestBlockList, by: "id" | "hash", { id }: Readonly<{ id: Id | string }>, data: Uint8Array): void {
  if (by === "id") list.ids.add(id);
  else list.hashes.add(hashOf(data));
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
