/**
 * Uploads with their payment, and kill -9 between any two steps: before the request, after the payment, while bytes are
 * written, signed, finalized and charged for. The payers' own log is the reference. An account that paid has an upload or
 * the credits, once; another account has neither. A repeated payment continues its upload where that is safe.
 *
 * KILLS sets how many (8 by default); SEED repeats a run.
 * @module
 */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import type { LedgerDatabase } from "../../../src/store/ledger/ledger-database.ts";
import { balanceOf, user } from "../../../src/store/ledger/transfers.ts";
import { lifeMs } from "../../../src/upload/multipart/multipart-uploads.ts";
import { type EvmNode, openEvmNode } from "../../payment/x402/evm-node.ts";
import { openFakeFacilitator } from "../../payment/x402/facilitators.ts";
import { authorizationRecord, headerOf, nonce, type Payer, payer, payTo, sign } from "../../payment/x402/payers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { createRandom } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { rsaKey, signers } from "../../support/signers.ts";
import { eventually } from "../../support/until.ts";
import { makeFolder, makeItem, partFilesIn, type TestItem } from "../multipart/multipart-fixture.ts";

const kills = Number(process.env["KILLS"] ?? 8);
const childFile = resolve(import.meta.dir, "child.ts");

/** What every payer has to begin with, in the coin's smallest unit; a unit is a winc, and a byte costs one. */
const funds = 100_000n;

/** Steps that an upload takes, roughly: kills are spread over those of all that are under way. */
const stepsEach = 36;

/** After this time, no process holds a payment. Milliseconds. */
const roundMs = 61_000;

const kinds = ["signed", "unsigned", "unsigned, large", "parts"] as const;

/** One payer's log: what was sent, and what came back. */
type Story = {
  readonly kind: (typeof kinds)[number];
  readonly payer: Payer;
  readonly item: TestItem;
  /** The payment, after its request. */
  header: string | undefined;
  paid: bigint;
  /** The upload in parts that it made. */
  uploadId: string | undefined;
  /** The item that was acknowledged. */
  receipt: string | undefined;
  /** Nothing more is sent: it was acknowledged, or its payer has heard that the payment buys nothing else. */
  isOver: boolean;
};

test(`after ${kills} kills each settled payment is one upload, or credits, and each other one is nothing`, async () => {
  const random = createRandom(newSeed());
  const [kind] = ledgerKinds();
  const ledger = await kind!.open();
  const folder = makeFolder();
  const keyFile = resolve(folder.path, "../key.json");
  writeFileSync(keyFile, JSON.stringify(rsaKey));
  let ahead = 0;
  const node = openEvmNode(() => Date.now() + ahead);
  const facilitator = await openFakeFacilitator(node);
  const stories: Story[] = [];
  /** Payers of whom all had come when the process died. */
  const whole = new Set<string>();
  const seen = new Map<string, number>();
  const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);

  const start = (steps: number) =>
    startChild([
      ledger.place,
      folder.path,
      keyFile,
      rsaKey.n ?? "",
      node.url,
      facilitator.url,
      String(ahead),
      String(steps),
    ]);

  function newStory(kind: Story["kind"]): Story {
    const account = payer(stories.length);
    node.mint(account.address, funds);
    const data = random.bytes((kind === "unsigned, large" ? 70_000 : 2_000) + random.below(3_000));
    new DataView(data.buffer).setUint32(0, stories.length);
    const story: Story = {
      kind,
      payer: account,
      item: makeItem(data, [], signers[4]),
      paid: 0n,
      header: undefined,
      uploadId: undefined,
      receipt: undefined,
      isOver: false,
    };
    stories.push(story);
    return story;
  }

  const pay = (story: Story, amount: bigint) => paymentOf(node, story.payer, amount, Date.now() + ahead);

  try {
    for (let kill = 0; kill <= kills; kill += 1) {
      const left = stories.filter(({ isOver }) => !isOver);
      const fresh = kill === kills ? [] : [0, 1].flatMap(() => kinds.map(newStory));
      const steps = 1 + random.below(stepsEach * (left.length + fresh.length));
      const child = await start(kill === kills ? 0 : steps);
      // Who hears nothing, because the process died, goes on with the next one.
      const ends = await Promise.allSettled([...left, ...fresh].map((story) => goOn(story, child.url, pay, count)));
      for (const end of ends) if (end.status === "rejected" && !isGone(end.reason)) throw end.reason;
      child.process.kill("SIGKILL");
      await child.process.exited;
      expect(await checkLedger(ledger.database)).toEqual([]);
      for (const address of await wholeOf(ledger.database)) whole.add(address);
      ahead += roundMs;
    }
    // What broke off is held until its time is over, and no payment is still on its way then.
    ahead += 2 * lifeMs;
    const last = await start(0);
    const open = () =>
      ledger.database.read((tx) =>
        tx.all(
          "SELECT id FROM x402_payments WHERE state IN ('seen', 'settling') UNION ALL " +
            "SELECT id FROM multipart_uploads WHERE state = 'finalizing'",
        ),
      );
    await eventually(open, (rows) => rows.length === 0, 60_000);
    last.process.kill("SIGKILL");
    await last.process.exited;

    for (const story of stories) {
      const end = await verify(story, ledger.database, node, folder.path);
      count(end);
      if (whole.has(story.payer.address)) expect(end).toContain("an upload");
    }
    console.log("in the end:", Object.fromEntries([...seen].toSorted()));
    const stored = await ledger.database.read((tx) => tx.all<{ file: string }>("SELECT file FROM uploads"));
    const named = new Set(stored.map(({ file }) => file));
    expect(partFilesIn(folder.path).filter((file) => !named.has(`parts/${file}`))).toEqual([]);
    expect(await checkLedger(ledger.database)).toEqual([]);
  } finally {
    await facilitator.close();
    await node.close();
    await ledger.remove();
    folder.remove();
  }
}, 3_600_000);

/** Payers of uploads that are finalized, or will be. */
async function wholeOf(database: LedgerDatabase): Promise<string[]> {
  const rows = await database.read((tx) =>
    tx.all<{ payer: string }>(
      "SELECT payer FROM multipart_uploads WHERE payment IS NOT NULL AND state IN ('finalizing', 'finalized')",
    ),
  );
  return rows.map(({ payer }) => payer);
}

/** A payment of so much by whom it is asked. @param now - Unix milliseconds. */
function paymentOf(node: EvmNode, from: Payer, value: bigint, now: number): string {
  const seconds = BigInt(Math.floor(now / 1_000));
  const authorization = {
    from: from.address,
    to: payTo,
    value,
    validAfter: seconds - 600n,
    validBefore: seconds + 900n,
    nonce: nonce(1),
  };
  const signature = `0x${sign(node.domain, authorization, from.key).toHex()}`;
  const payload = { signature, authorization: authorizationRecord(authorization) };
  return headerOf({ x402Version: 1, scheme: "exact", network: "base", payload });
}

/** Goes on with a story from what its payer knows; throws when the process is gone. */
async function goOn(
  story: Story,
  url: string,
  pay: (story: Story, amount: bigint) => string,
  count: (what: string) => void,
): Promise<void> {
  const isAgain = story.header !== undefined;
  if (story.kind === "parts" && story.uploadId !== undefined) return await finish(story, url);
  if (story.header === undefined) {
    const asked = await send(story, url);
    expect(asked.status).toBe(402);
    story.paid = BigInt((await asked.json()).maxAmountRequired);
    story.header = pay(story, story.paid);
  }
  const response = await decided(story, url);
  if (isAgain) count(`sent again, ${story.kind}: ${response.status}`);
  // 402 is a response too: the payment did not settle, or its payer has the credits.
  expect([200, 402]).toContain(response.status);
  story.isOver = response.status === 402;
  if (response.status === 402) return;
  const { id } = await response.json();
  if (story.kind !== "parts") {
    story.receipt = id;
    story.isOver = true;
    return;
  }
  story.uploadId = id;
  await finish(story, url);
}

/** Sends until it is known what became of the payment. */
async function decided(story: Story, url: string): Promise<Response> {
  return await eventually(
    () => send(story, url),
    ({ status }) => status !== 503,
    60_000,
  );
}

async function send(story: Story, url: string): Promise<Response> {
  const headers: Record<string, string> = story.header === undefined ? {} : { "x-payment": story.header };
  const { bytes, data } = story.item;
  const asked = `chunkSize=5242880&totalBytes=${bytes.length}&address=${story.payer.address}&signatureType=3`;
  switch (story.kind) {
    case "signed":
      return await fetch(`${url}/v1/x402/upload/signed`, { method: "POST", headers, body: blobOf(bytes) });
    case "unsigned":
    case "unsigned, large":
      return await fetch(`${url}/v1/x402/upload/unsigned`, { method: "POST", headers, body: blobOf(data) });
    case "parts":
      return await fetch(`${url}/v1/chunks/base-usdc/-1/-1?${asked}`, { headers });
  }
}

async function finish(story: Story, url: string): Promise<void> {
  const at = `${url}/v1/chunks/base-usdc/${story.uploadId}`;
  const put = await fetch(`${at}/0`, { method: "POST", body: blobOf(story.item.bytes) });
  if (put.status !== 200) expect(await put.text()).toContain("finaliz");
  const response = await fetch(`${at}/-1`, { method: "POST" });
  expect(response.status).toBe(200);
  story.receipt = (await response.json()).id;
  story.isOver = true;
}

/** Whether a client got no response because the process was killed. */
function isGone(error: unknown): boolean {
  return error instanceof Error && "code" in error && /^(ECONN|Connection)/.test(String(error.code));
}

const blobOf = (bytes: Uint8Array) => new Blob([bytes as Uint8Array<ArrayBuffer>]);

/** Holds what is true in the end against what a payer did. @returns What became of it. */
async function verify(
  { kind, payer: { address }, item, paid, receipt }: Story,
  database: LedgerDatabase,
  node: EvmNode,
  folder: string,
): Promise<string> {
  const [balance, items] = await database.read(async (tx) => [
    await balanceOf(tx, user(address)),
    await tx.all<{ id: string; winc: bigint; file: string; file_offset: bigint; size: bigint }>(
      "SELECT u.* FROM uploads u JOIN reservations r ON r.id = u.reservation_id WHERE r.payer = ?",
      address,
    ),
  ]);
  const moved = funds - node.balanceOf(address);
  const [taken] = items;
  expect(items.length).toBeLessThanOrEqual(1);
  expect(balance + (taken?.winc ?? 0n)).toBe(moved);
  expect([0n, paid]).toContain(moved);
  if (receipt !== undefined) expect(taken?.id).toBe(receipt);
  // The payment is bound to its bytes: a repeated request continues the upload of the payer.
  if (kind === "signed" || kind === "unsigned") expect(taken === undefined).toBe(moved === 0n);
  if (taken === undefined) return `${kind}: ${moved === 0n ? "not paid" : "credits"}`;
  const file = readFileSync(join(folder, taken.file));
  const bytes = file.subarray(Number(taken.file_offset), Number(taken.file_offset + taken.size));
  if (kind.startsWith("unsigned")) expect(bytes.subarray(-item.data.length).equals(item.data)).toBe(true);
  else expect(bytes.equals(item.bytes)).toBe(true);
  return `${kind}: an upload${receipt === undefined ? ", of which its payer has not heard" : ""}`;
}

async function startChild(words: readonly string[]) {
  const started = Bun.spawn([process.execPath, childFile, ...words], { stdout: "pipe", stderr: "inherit" });
  const { value } = await started.stdout.getReader().read();
  if (value === undefined) throw new Error("the process ended before it listened");
  return { process: started, url: new TextDecoder().decode(value).trim() };
}
