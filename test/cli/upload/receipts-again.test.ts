/**
 * Receipts that a run of `cairn upload` paid for and did not store: the next run requests them again.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { rsaKey } from "../../support/signers.ts";
import { runCairn } from "../command.ts";
import { fakeReceipt } from "../upload-service.ts";
import { openUploadFolder } from "./upload-folder.ts";

const { folder, service } = openUploadFolder("cairn-again-");
const state = join(folder, "state", "cairn");
const wallet = join(folder, "key.json");
const small = join(folder, "small.txt");
const large = join(folder, "large.bin");
writeFileSync(wallet, JSON.stringify(rsaKey));
writeFileSync(small, "small");
writeFileSync(large, new Uint8Array(12 * 2 ** 20).fill(7));

beforeEach(() => {
  service.forget();
  removeFolder(state);
});
async function upload(file: string) {
  const words = ["upload", file, "--to", service.url, "--wallet", wallet, "--json"];
  const { code, out, err } = await runCairn(words, {
    environment: { XDG_STATE_HOME: join(folder, "state") },
  });
  if (code !== 0) throw new Error(err);
  return JSON.parse(out).items[0];
}

/** Uploads a file, and removes the stored receipt. */
async function uploadAndLose(file: string): Promise<string> {
  const { id } = await upload(file);
  rmSync(join(state, "receipts"), { recursive: true });
  return id;
}

describe.each([
  ["a small file", small],
  ["a file in parts", large],
])("the receipt of %s", (_what, file) => {
  test("that was lost is requested again, verified and stored", async () => {
    const id = await uploadAndLose(file);
    service.giveAgain();
    const again = await upload(file);
    expect(again).toMatchObject({ id, state: "there", receipt: fakeReceipt(id) });
    const stored = readFileSync(join(state, "receipts", `${id}.json`), "utf8");
    expect(JSON.parse(stored)).toEqual({ ...fakeReceipt(id), to: service.url });
    const asked = () => service.asked.filter(({ path }) => path.endsWith("/receipt")).length;
    const before = asked();
    await upload(file);
    expect(asked()).toBe(before);
  });

  test("that a service does not return again is absent without a failure", async () => {
    const id = await uploadAndLose(file);
    const again = await upload(file);
    expect([again.id, again.state, again.receipt, again.receiptFault]).toEqual([id, "there", undefined, undefined]);
  });

  test("that is forged is not stored, and reported as invalid", async () => {
    const id = await uploadAndLose(file);
    const forged = fakeReceipt(id, { deadlineHeight: 1 });
    service.fail(({ path }) => (path.endsWith("/receipt") ? Response.json(forged) : undefined));
    const { receipt, receiptFault } = await upload(file);
    expect([receipt, receiptFault]).toEqual([
      undefined,
      `the receipt of ${id} from ${service.url} is not valid: its signature does not match its key`,
    ]);
    expect(existsSync(join(state, "receipts", `${id}.json`))).toBe(false);
  });

  test("that is damaged is replaced", async () => {
    const { id } = await upload(file);
    writeFileSync(join(state, "receipts", `${id}.json`), "{");
    service.giveAgain();
    const { receipt, receiptFault } = await upload(file);
    expect([receipt, receiptFault]).toEqual([fakeReceipt(id), undefined]);
  });
});

test("an upload in parts that ended between its finalization and the receipt leaves nothing behind", async () => {
  const id = await uploadAndLose(large);
  const begun = { url: service.url, uploadId: "upload-1", partBytes: 8 * 2 ** 20 };
  writeFileSync(join(state, "uploads", `${id}.json`), JSON.stringify(begun));
  service.giveAgain();
  expect((await upload(large)).receipt).toEqual(fakeReceipt(id));
  expect(readdirSync(join(state, "uploads"))).toEqual([]);
});
