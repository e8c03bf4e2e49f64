/**
 * `cairn receipt verify`: valid and invalid receipts, from files, with and without an expected signer.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { repositoryRoot } from "../support/program.ts";
import { runCairn } from "./command.ts";
import { fakeReceipt } from "./upload-service.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-receipt-"));
afterAll(() => removeFolder(folder));

const id = Buffer.alloc(32, 7).toString("base64url");
const good = fakeReceipt(id);
const signer = createHash("sha256").update(Buffer.from(good.public, "base64url")).digest("base64url");
const stranger = Buffer.alloc(32, 9).toString("base64url");

function verify(receipt: unknown, ...words: string[]) {
  const file = join(folder, `${Bun.hash(JSON.stringify(receipt))}.json`);
  writeFileSync(file, typeof receipt === "string" ? receipt : JSON.stringify(receipt));
  return runCairn(["receipt", "verify", file, ...words]);
}

test("a receipt with a valid signature is valid, and its signer is printed", async () => {
  const { code, out } = await verify(good, "--json");
  expect(JSON.parse(out)).toEqual({
    valid: true,
    id,
    signer,
    timestamp: 1_700_000_000_000,
    deadlineHeight: 1_200,
  });
  expect(code).toBe(0);
  const page = (await verify(good)).out;
  expect(page).toContain("valid\n");
  expect(page).toContain("accepted   2023-11-14T22:13:20.000Z");
  expect(page).toContain("on the chain by height 1200");
  expect(page).toContain("set --signer to verify the address");
});

test("a dash reads the receipt from a pipe", async () => {
  const command = [process.execPath, join(repositoryRoot, "src/main.ts"), "receipt", "verify", "-", "--json"];
  const piped = Bun.spawnSync(command, { stdin: Buffer.from(JSON.stringify(good)) });
  expect([piped.exitCode, JSON.parse(piped.stdout.toString())]).toMatchObject([0, { valid: true, id }]);
});

test("with --signer the signer must be that address", async () => {
  const pinned = await verify(good, "--signer", signer);
  expect([pinned.code, pinned.out.includes("--signer")]).toEqual([0, false]);
  const other = await verify(good, "--signer", stranger);
  expect([other.code, other.out]).toEqual([1, "not valid: it is signed by another wallet\n"]);
});

test.each([
  ["another item", { ...good, id: stranger }, "its signature does not match its key"],
  ["a later deadline", { ...good, deadlineHeight: 1_201 }, "its signature does not match its key"],
  ["another time", { ...good, timestamp: 1_700_000_000_001 }, "its signature does not match its key"],
  ["another version", { ...good, version: "0.1.0" }, "its version is not 0.2.0"],
  ["no field of a receipt", { hello: "there" }, "it is not a receipt: it has no version"],
  ["no id", { ...good, id: "x" }, "its id, timestamp or deadlineHeight is missing"],
  ["a time beyond dates", { ...good, timestamp: 2 ** 53 - 1 }, "its id, timestamp or deadlineHeight is missing"],
  ["no key", { ...good, public: 1 }, "its key or signature is missing"],
])("a receipt with %s is not valid", async (_name, receipt, fault) => {
  const { code, out } = await verify(receipt);
  expect([code, out]).toEqual([1, `not valid: ${fault}\n`]);
});

describe("the output of an upload", () => {
  const other = fakeReceipt(stranger);
  const printed = (first: unknown) => ({
    id: stranger,
    items: [
      { id, state: "uploaded", receipt: first },
      { id, state: "copy" },
    ],
    manifest: { id: stranger, state: "uploaded", receipt: other },
  });

  test("is valid when every receipt in it is", async () => {
    const { code, out } = await verify(printed(good), "--signer", signer);
    expect([code, out]).toEqual([0, `valid, 2 receipts\n  signed by  ${signer}\n`]);
    const records = JSON.parse((await verify(printed(good), "--json")).out);
    expect(records).toMatchObject([
      { valid: true, id },
      { valid: true, id: stranger },
    ]);
  });

  test("is invalid when one receipt is invalid, and that one is named", async () => {
    const { code, out } = await verify(printed({ ...good, deadlineHeight: 1 }));
    expect([code, out]).toEqual([1, expect.stringContaining("1 of 2 receipts")]);
    expect(out).toContain(`  ${id}  its signature does not match its key`);
  });
});

describe("a stored receipt", () => {
  const receipts = join(folder, "state", "cairn", "receipts");
  const file = join(receipts, `${id}.json`);
  const verifyStored = (item: string, ...words: string[]) =>
    runCairn(["receipt", "verify", item, ...words], {
      environment: { XDG_STATE_HOME: join(folder, "state") },
    });
  const save = (item: string, text: string) => {
    mkdirSync(receipts, { recursive: true });
    writeFileSync(join(receipts, `${item}.json`), text);
  };

  const whole = JSON.stringify(good);
  const damages: [string, string, string][] = [
    ["was cut off", whole.slice(0, -1), "is not a receipt any more: expected a JSON object"],
    ["is empty", "", "is not a receipt any more: expected a JSON object"],
    ["is a list", "[]", "is not a receipt any more: expected a JSON object"],
    ["has another character", whole.replace("1200", "1201"), "is not valid: its signature does not match its key"],
    ["is another item's", JSON.stringify(fakeReceipt(stranger)), "is not valid: it is for another item"],
  ];
  test.each(damages)("that %s is reported with its file, and other receipts stay valid", async (_, text, fault) => {
    save(id, text);
    save(stranger, JSON.stringify(fakeReceipt(stranger)));
    expect(await verifyStored(id)).toMatchObject({ code: 1, out: `not valid: ${file} ${fault}\n` });
    expect((await verifyStored(stranger)).code).toBe(0);
  });

  test("that cannot be read is named with its file and the reason, in JSON with its id", async () => {
    rmSync(file, { force: true });
    mkdirSync(file, { recursive: true });
    const { code, out } = await verifyStored(id, "--json");
    expect(code).toBe(1);
    expect(JSON.parse(out)).toEqual({
      valid: false,
      id,
      fault: expect.stringContaining(`${file} cannot be read: EISDIR`),
    });
  });

  test("that does not exist is reported", async () => {
    const unknown = Buffer.alloc(32, 8).toString("base64url");
    expect(await verifyStored(unknown)).toMatchObject({
      code: 2,
      err: expect.stringContaining("is stored in"),
    });
  });
});

test.each([
  ["a file that is not JSON", "{", [], "is not a receipt"],
  ["a list", "[]", [], "is not a receipt"],
  ["what an upload printed without receipts", `{"items":[{"id":"${id}"}]}`, [], "lists items without receipts"],
  ["a signer that is not an address", "{}", ["--signer", "x"], "invalid value 'x' for --signer: expected an address"],
])("%s is a misuse", async (_name, text, words, says) => {
  const { code, err } = await verify(text, ...words);
  expect([code, err]).toEqual([2, expect.stringContaining(says)]);
});
