/**
 * Ledgers of versions that charged an item again under another encoding of its signature: `cairn ledger check` finds
 * each such charge, `cairn ledger repair` undoes it once, and nothing else is touched.
 * @module
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import type { Tag } from "../../src/arweave/tags.ts";
import { createSigningReader } from "../../src/cli/signing-reader.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { adjustment, user } from "../../src/store/ledger/transfers.ts";
import { validEncodings } from "../support/encodings.ts";
import { testAddress } from "../support/payment.ts";
import { repositoryRoot } from "../support/program.ts";
import { createMultiAptosSigner, signers, testKey } from "../support/signers.ts";
import { openTestUpload, type TestItem, type TestUpload, testItem } from "../support/upload.ts";

const rich = 10n ** 9n;
const bela = testAddress("Bela");
const carl = testAddress("Carl");
const signer = (type: number): Signer => {
  const found = signers.find(({ scheme }) => scheme.type === type);
  if (found === undefined) throw new Error("every type has a signer");
  return found;
};
const malleable = [
  ["ethereum", signer(3)],
  ["typedEthereum", signer(7)],
  ["kyve", signer(101)],
  ["multiAptos", createMultiAptosSigner([testKey(61), testKey(62), testKey(63)], 2)],
] as const;

let upload: TestUpload;
let root: string;

beforeEach(async () => {
  upload = await openTestUpload();
  root = mkdtempSync(join(tmpdir(), "cairn-doubles-"));
});
afterEach(async () => {
  await upload.close();
  removeFolder(root);
});

const sql = (text: string, ...values: string[]) => upload.payment.database.write((tx) => tx.run(text, ...values));

async function send(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const response = await upload.send(bytes);
  expect(response.status).toBe(200);
  return (await response.json()).id;
}

/** Uploads an item, and another encoding of it as versions without signing ids took it: as another item. */
async function chargedTwice(item: TestItem): Promise<string> {
  await send(item.bytes);
  upload.payment.clock.advance(1_000);
  await sql("UPDATE uploads SET id = 'hidden', owner_address = 'hidden' WHERE id = ?", item.id);
  const [other] = validEncodings(item.bytes);
  const id = await send(other ?? item.bytes);
  expect(id).not.toBe(item.id);
  await sql(
    "UPDATE uploads SET id = ?, owner_address = (SELECT owner_address FROM uploads WHERE id = ?) WHERE id = 'hidden'",
    ...[item.id, id],
  );
  await sql("UPDATE uploads SET signing_id = NULL");
  return id;
}

/** Runs the command on a copy of the ledger and of the folder of uploads. */
function command(...words: string[]) {
  const folder = mkdtempSync(join(root, "data-"));
  const source = new Database(upload.payment.ledger.place);
  source.run(`VACUUM INTO '${join(folder, "ledger.sqlite")}'`);
  source.close();
  cpSync(upload.folder, join(folder, "uploads"), { recursive: true });
  const run = (...these: string[]) => {
    const { PATH } = process.env;
    const { exitCode, stdout, stderr } = Bun.spawnSync(
      [process.execPath, resolve(repositoryRoot, "src/main.ts"), "ledger", ...these],
      { env: { PATH, DATA_DIR: folder }, cwd: folder },
    );
    return { exitCode, said: stdout.toString(), complained: stderr.toString() };
  };
  return { ...run(...words), run, path: join(folder, "ledger.sqlite") };
}

function balanceIn(path: string, account: string): bigint {
  const db = new Database(path, { safeIntegers: true });
  const row = db.query("SELECT balance FROM accounts WHERE account = ?").get(account);
  db.close();
  return (row as { balance: bigint } | null)?.balance ?? 0n;
}

describe.each(malleable)("U2: an item by %s that was charged twice", (_name, by) => {
  test("is found by check, listed by a dry run, and paid back by repair, once", async () => {
    const item = testItem("charged twice", { signer: by });
    const beside = testItem("charged once", { signer: by });
    await upload.payment.credit(item.account, rich);
    await send(beside.bytes);
    const double = await chargedTwice(item);
    const size = BigInt(item.bytes.length);
    const spent = 2n * size + BigInt(beside.bytes.length);
    expect(await upload.payment.held(user(item.account))).toBe(rich - spent);

    const checked = command("check", "--json");
    expect(checked.exitCode).toBe(1);
    expect(JSON.parse(checked.said).findings).toMatchObject([{ rule: "a signature is charged once", subject: double }]);

    const dry = command("repair", "--dry-run", "--json");
    const planned = {
      id: double,
      firstId: item.id,
      undone: false,
      notes: [],
      transfers: [{ reason: "charge", to: item.account, winc: size.toString() }],
    };
    expect([dry.exitCode, JSON.parse(dry.said)]).toEqual([1, { doubles: [planned], unread: [] }]);
    expect(balanceIn(dry.path, `user:${item.account}`)).toBe(rich - spent);
    expect(dry.run("repair", "--dry-run").said).toContain(`  ${size} winc to ${item.account} (charge)`);

    const repaired = command("repair", "--json");
    expect([repaired.exitCode, JSON.parse(repaired.said)]).toEqual([
      0,
      { doubles: [{ ...planned, undone: true }], unread: [] },
    ]);
    expect(balanceIn(repaired.path, `user:${item.account}`)).toBe(rich - spent + size);
    expect(JSON.parse(repaired.run("repair", "--json").said)).toEqual({ doubles: [], unread: [] });
    expect(balanceIn(repaired.path, `user:${item.account}`)).toBe(rich - spent + size);
    expect(repaired.run("check")).toMatchObject({ exitCode: 0 });
  }, 60_000);
});

test("U2: an approval that was given twice is taken back: what is left, and what was spent of it", async () => {
  const tags: Tag[] = [
    { name: "x-approve-payment", value: bela },
    { name: "x-amount", value: "100000" },
  ];
  const item = testItem("approves", { signer: signer(3), tags });
  await upload.payment.credit(item.account, rich);
  const double = await chargedTwice(item);
  const payerBefore = await upload.payment.held(user(item.account));
  // The first approval is spent first; 30,000 of the second are spent too.
  const { credits } = upload.payment;
  const spend = { paidBy: [item.account], directive: "list-only" as const, signer: bela };
  const expiresAt = upload.payment.clock.now() + 1_000;
  for (const [itemId, winc] of [
    ["one", 100_000n],
    ["two", 30_000n],
  ] as const)
    await credits.post((await credits.reserve({ ...spend, itemId, winc, expiresAt })).id);
  const size = BigInt(item.bytes.length);
  const repaired = command("repair", "--json");
  expect(JSON.parse(repaired.said).doubles).toMatchObject([
    {
      id: double,
      undone: true,
      transfers: [
        { reason: "charge", to: item.account, winc: size.toString() },
        { reason: "approval: unused", to: item.account, winc: "70000" },
        { reason: "approval: spent", to: item.account, winc: "30000" },
      ],
    },
  ]);
  expect(balanceIn(repaired.path, `user:${item.account}`)).toBe(payerBefore + size + 100_000n);
  expect(balanceIn(repaired.path, adjustment)).toBe(-30_000n);
  expect(repaired.run("check")).toMatchObject({ exitCode: 0 });
});

test("a double whose approval holds credits for uploads under way is left until they end", async () => {
  const tags: Tag[] = [
    { name: "x-approve-payment", value: carl },
    { name: "x-amount", value: "100" },
  ];
  const item = testItem("approves", { signer: signer(3), tags });
  await upload.payment.credit(item.account, rich);
  await chargedTwice(item);
  const spend = { paidBy: [item.account], directive: "list-only" as const, signer: carl };
  const expiresAt = upload.payment.clock.now() + 1_000;
  await upload.payment.credits.reserve({ ...spend, itemId: "under way", winc: 150n, expiresAt });
  const repaired = command("repair");
  expect(repaired.exitCode).toBe(1);
  expect(repaired.said).toContain("not undone");
  expect(repaired.said).toContain("its approval holds 50 winc for uploads in progress: try again later");
});

test("uploads that are alike but signed for themselves are left alone", async () => {
  // The same owner, sizes and payload; only the anchors differ.
  const items = ["a", "b"].map((delivery) =>
    testItem("alike", { signer: signer(3), anchor: Buffer.from(delivery.repeat(32)).toString("base64url") }),
  );
  for (const { bytes, account } of items) {
    await upload.payment.credit(account, rich);
    await send(bytes);
  }
  await sql("UPDATE uploads SET signing_id = NULL");
  expect(JSON.parse(command("repair", "--json").said)).toEqual({ doubles: [], unread: [] });
});

test("an upload whose bytes are gone is named, and nothing is undone on a guess", async () => {
  const item = testItem("charged twice", { signer: signer(3) });
  await upload.payment.credit(item.account, rich);
  await chargedTwice(item);
  await sql("UPDATE uploads SET file = 'segments/gone'");
  const { exitCode, said } = command("check", "--json");
  expect(exitCode).toBe(0);
  expect(JSON.parse(said).unchecked).toEqual([
    expect.stringContaining("its file is missing, and it is not on the chain"),
    expect.stringContaining("its file is missing, and it is not on the chain"),
  ]);
});

test.each(malleable)("of an item by %s on the chain the signing is read from a gateway", async (_name, by) => {
  const item = testItem(new Uint8Array(300_000).fill(1), { signer: by });
  const [other] = validEncodings(item.bytes);
  await upload.payment.credit(item.account, rich);
  await send(item.bytes);
  const row = await upload.row(item.id);
  const first = 1_000;
  const bundle = new Uint8Array(first + item.bytes.length + 50);
  const server = Bun.serve({
    port: 0,
    fetch: (request) => {
      const { pathname } = new URL(request.url);
      const [, start = "", end = ""] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "") ?? [];
      if (pathname !== "/raw/transaction" || start === "") return new Response("Not Found", { status: 404 });
      const body = bundle.slice(Number(start), Number(end) + 1);
      return new Response(body, {
        status: 206,
        headers: { "content-range": `bytes ${start}-${end}/${bundle.length}` },
      });
    },
  });
  const reader = createSigningReader(join(root, "empty"), server.url.origin);
  try {
    if (row === undefined) throw new Error("the item was taken");
    const place = {
      bundleId: "b",
      position: 0,
      offset: first,
      transactionId: "transaction" as typeof row.id,
    };
    const signal = AbortSignal.timeout(60_000);
    bundle.set(item.bytes, first);
    expect(await reader.read({ ...row, place }, signal)).toBe(row.signingId ?? row.id);
    // Bytes of another id are not believed.
    bundle.set(other ?? item.bytes, first);
    expect(await reader.read({ ...row, place }, signal)).toEqual({
      unread: "its bytes are not those that were uploaded",
    });
    const elsewhere = { ...place, transactionId: "elsewhere" as typeof row.id };
    expect(await reader.read({ ...row, place: elsewhere }, signal)).toEqual({
      unread: expect.stringContaining("responded 404"),
    });
  } finally {
    reader.close();
    await server.stop(true);
  }
});
