/**
 * A program that is killed repeatedly, at any moment of its uploads, while clients continue to send: no acknowledged item
 * is lost, charged twice, or on the chain twice.
 *
 * Most kills wait until the ledger shows that an item or a bundle has just entered a state, one state after another.
 * The responses to the clients, the ledger and the chain are compared. KILLS is the number of kills (default 10: once at
 * each moment, and once at any); MINUTES limits the time of kills. SEED repeats the items, not the times of kills.
 * @module
 */
import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { checkItem, createDataItem } from "../../src/arweave/data-item.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { checkLedger } from "../../src/store/ledger/ledger-check.ts";
import { createTransferIds } from "../../src/store/ledger/transfers.ts";
import { accountOf } from "../../src/upload/intake/charge-item.ts";
import { openTestDevnet, rsaJwk, serve } from "../dev/devnet/support.ts";
import { bundledOnChain } from "../support/items-on-chain.ts";
import { openPlace } from "../support/ledger-place.ts";
import { paidIn } from "../support/payment.ts";
import { createRandom, type Random } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";
import { testKey } from "../support/signers.ts";
import { eventually } from "../support/until.ts";

const kills = Number(process.env["KILLS"] ?? 10);
const endAt = Date.now() + Number(process.env["MINUTES"] ?? Number.POSITIVE_INFINITY) * 60_000;
const seed = newSeed();
const signer = createEd25519Signer(testKey(41));
const account = accountOf(signer.scheme.type, signer.owner);
const funds = 10n ** 15n;

/** Longest that a program lives after its first response, where it is killed at whatever moment. Milliseconds. */
const lifeMsMax = 1_200;

/** Longest wait for a moment to kill it at. Milliseconds. */
const momentMsMax = 5_000;

/** One in so many items is large: it has a file of its own, and chunks. */
const largeEvery = 40;

/** Senders at once. */
const senders = 3;

/** By id: the number of the item, and its response. */
type Sent = Map<string, Readonly<{ number: number; receipt: string | undefined }>>;

/** Those of a test that failed must not stay. */
const children: Bun.Subprocess[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
});

describe("N2: kill -9 on the whole way", () => {
  test(
    `loses nothing, charges once and doubles nothing over at most ${kills} kills`,
    async () => {
      const root = mkdtempSync(join(tmpdir(), "cairn-killed-"));
      const folder = join(root, "data");
      mkdirSync(folder);
      const walletFile = join(root, "wallet.json");
      writeFileSync(walletFile, JSON.stringify(rsaJwk));
      const devnet = await openTestDevnet({ clock: Date.now, mining: "auto" });
      const node = serve(devnet);
      const ledgerFile = join(folder, "ledger.sqlite");
      await fund(ledgerFile);
      const random = createRandom(seed);
      const sent: Sent = new Map();
      const seen = new Map<string, number>(moments.map((moment) => [moment, 0]));
      const begin = () => startChild(folder, `http://127.0.0.1:${node.port}`, walletFile);

      let killed = 0;
      for (; killed < kills && Date.now() < endAt; killed += 1) {
        const child = await begin();
        const responded = Promise.withResolvers<void>();
        const traffic = Promise.all(
          Array.from({ length: senders }, () => sendUntilGone(child.uploads, random, sent, responded.resolve)),
        );
        // Its threads start with the first items. Some are killed before that.
        if (random.chance(0.9)) await Promise.race([responded.promise, Bun.sleep(10_000)]);
        const moment = moments[killed % (moments.length + 1)];
        if (moment === undefined) await Bun.sleep(random.below(lifeMsMax));
        else await untilSeen(ledgerFile, moment);
        // As often at once as a little later.
        if (random.chance(0.5)) await Bun.sleep(random.below(20));
        child.kill();
        await child.exited;
        await traffic;
        for (const { state } of statesIn(ledgerFile, newestBundles)) seen.set(state, (seen.get(state) ?? 0) + 1);
        // An item that waits for a block is not always mined before the next start.
        if (random.chance(0.3)) await devnet.mine(1);
      }

      const last = await begin();
      const mining = setInterval(() => void devnet.mine(1), 100);
      await untilSettled(ledgerFile);
      for (const [id, { number, receipt }] of [...sent].filter(() => random.chance(25 / sent.size))) {
        const again = await send(last.uploads, makeItem(number));
        if (receipt !== undefined) expect(again).toBe(receipt);
        expect(JSON.parse(again).id).toBe(id);
      }
      // An item without a response may have been accepted only now.
      await untilSettled(ledgerFile);
      clearInterval(mining);
      last.kill();
      await last.exited;

      const acknowledged = [...sent].filter(([, { receipt }]) => receipt !== undefined).map(([id]) => id);
      console.log(
        `${killed} kills, ${sent.size} items, ${acknowledged.length} acknowledged, ${devnet.height()} blocks`,
      );
      console.log(`kills at which something was in a state: ${JSON.stringify(Object.fromEntries(seen))}`);
      // A run in which hardly anything was under way shows nothing.
      expect(acknowledged.length).toBeGreaterThan(killed);
      expect([...seen.values()].filter((count) => count > 0).length).toBeGreaterThanOrEqual(
        killed < 100 ? momentsMin : moments.length,
      );
      const onChain = bundledOnChain(devnet);
      await expectSound(ledgerFile, acknowledged, onChain);
      for (const { id, bytes } of onChain)
        expect([id, Bun.hash(makeItem(sent.get(id)?.number ?? 0))]).toEqual([id, Bun.hash(bytes)]);
      await node.close();
      devnet.close();
      removeFolder(root);
    },
    Math.max(300_000, kills * 15_000),
  );
});

async function fund(ledgerFile: string): Promise<void> {
  const database = await openPlace(ledgerFile);
  const clock = { now: Date.now, set: () => undefined, advance: () => undefined };
  await paidIn({ database, clock, makeId: createTransferIds(Date.now, () => 0.5) }, "payment", account, funds);
  await database.close();
}

async function startChild(folder: string, nodeUrl: string, walletFile: string) {
  const child = Bun.spawn(
    [process.execPath, resolve(import.meta.dir, "service-child.ts"), folder, nodeUrl, walletFile],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  children.push(child);
  const { done, value } = await child.stdout.getReader().read();
  if (done) throw new Error(`the program ended by itself: ${await child.exited}`);
  return {
    uploads: new TextDecoder().decode(value).trim(),
    kill: () => child.kill("SIGKILL"),
    exited: child.exited,
  };
}

/** Sends items one after another until the process is gone: new ones, and old ones again. */
async function sendUntilGone(uploads: string, random: Random, sent: Sent, onResponse: () => void): Promise<void> {
  for (;;) {
    const isAgain = sent.size > 0 && random.chance(0.2);
    const number = isAgain ? random.below(sent.size) : sent.size;
    const bytes = makeItem(number);
    const id = idOf(bytes);
    // The item may be accepted without a response.
    if (!sent.has(id)) sent.set(id, { number, receipt: undefined });
    try {
      const receipt = await send(uploads, bytes);
      onResponse();
      const before = sent.get(id)?.receipt;
      if (before !== undefined) expect(receipt).toBe(before);
      sent.set(id, { number, receipt });
    } catch (error) {
      if (isGone(error)) return;
      throw error;
    }
    await Bun.sleep(random.below(25));
  }
}

/** The item of a number: always the same bytes, so that no test stores them. */
function makeItem(number: number): Uint8Array {
  const random = createRandom(seed + number);
  const piece = random.bytes(1_000 + random.below(1_000));
  const isLarge = random.below(largeEvery) === 0;
  const data = new Uint8Array(isLarge ? 1_100_000 + random.below(200_000) : random.below(4_000));
  for (let at = 0; at < data.length; at += piece.length) data.set(piece.subarray(0, data.length - at), at);
  return createDataItem({ data, tags: [{ name: "Number", value: `${seed} ${number}` }] }, signer);
}

function idOf(bytes: Uint8Array): string {
  const checked = checkItem(bytes, "strict");
  if (checked.kind !== "item") throw new Error(checked.reason);
  return checked.header.id;
}

/** @returns The receipt as it was sent, but for what says where it was asked. */
async function send(uploads: string, bytes: Uint8Array): Promise<string> {
  const headers = { "content-type": "application/octet-stream" };
  const response = await fetch(`${uploads}/tx`, { method: "POST", body: new Uint8Array(bytes), headers });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  const { dataCaches: _, fastFinalityIndexes: __, ...receipt } = JSON.parse(text);
  return JSON.stringify(receipt);
}

/** Whether the program was killed while it was asked. */
function isGone(error: unknown): boolean {
  return error instanceof Error && "code" in error;
}

type StateRow = { state: string; items: number };

/** What the ledger tells of how far an item is, finer than the states of bundles. */
const moments = [
  "waiting",
  "filling",
  "planned",
  "prepared",
  "prepared, sent",
  "posted",
  "seeded",
  "seeded, in a block",
  "permanent",
] as const;

/** A few kills miss moments that are as short as the time between two transactions. */
const momentsMin = 6;

const statesSql =
  "SELECT state, SUM(items) AS items FROM (" +
  "SELECT 'waiting' AS state, COUNT(*) AS items FROM uploads WHERE bundle_id IS NULL AND failed_reason IS NULL " +
  "UNION ALL SELECT 'failed', COUNT(*) FROM uploads WHERE failed_reason IS NOT NULL " +
  "UNION ALL SELECT CASE WHEN state = 'prepared' AND sent_at IS NOT NULL THEN 'prepared, sent' " +
  "WHEN state = 'seeded' AND block_height IS NOT NULL THEN 'seeded, in a block' ELSE state END, item_count " +
  "FROM (SELECT * FROM bundles WHERE state <> 'dropped' ORDER BY id DESC LIMIT ?)" +
  ") WHERE items > 0 GROUP BY state";

/** Unfinished bundles are among the newest. */
const newestBundles = 20;
const allBundles = -1;

function statesIn(ledgerFile: string, bundles: number): StateRow[] {
  const db = openToRead(ledgerFile);
  try {
    return db.query<StateRow, [number]>(statesSql).all(bundles);
  } finally {
    db.close();
  }
}

function openToRead(ledgerFile: string): Database {
  const db = new Database(ledgerFile);
  db.run("PRAGMA busy_timeout = 5000");
  return db;
}

/** Until more items are in a state than the moment before, or it has taken too long. */
async function untilSeen(ledgerFile: string, moment: string): Promise<void> {
  const db = openToRead(ledgerFile);
  try {
    const query = db.query<StateRow, [number]>(statesSql);
    const count = () => query.all(newestBundles).find(({ state }) => state === moment)?.items ?? 0;
    const end = Date.now() + momentMsMax;
    for (let before = count(); Date.now() < end; ) {
      const now = count();
      if (now > before) return;
      before = now;
      await Bun.sleep(1);
    }
  } finally {
    db.close();
  }
}

async function untilSettled(ledgerFile: string): Promise<void> {
  await eventually(
    () => statesIn(ledgerFile, allBundles),
    (states) => states.every(({ state }) => state === "permanent"),
    120_000,
  );
}

async function expectSound(
  ledgerFile: string,
  acknowledged: readonly string[],
  chained: readonly Readonly<{ id: string }>[],
): Promise<void> {
  const onChain = chained.map(({ id }) => id);
  const database = await openPlace(ledgerFile);
  expect(await checkLedger(database)).toEqual([]);
  const uploads = await database.read((tx) =>
    tx.all<{ id: string; winc: bigint; payments: bigint }>(
      "SELECT u.id, u.winc, (SELECT COUNT(*) FROM reservations r WHERE r.item_id = u.id) AS payments FROM uploads u",
    ),
  );
  const balance = await database.read((tx) =>
    tx.get<{ balance: bigint }>("SELECT balance FROM accounts WHERE account = ?", `user:${account}`),
  );
  await database.close();
  const known = new Set(uploads.map(({ id }) => id));
  expect(acknowledged.filter((id) => !known.has(id))).toEqual([]);
  expect(onChain.toSorted()).toEqual([...known].sort());
  expect(new Set(onChain).size).toBe(onChain.length);
  expect(uploads.filter(({ winc, payments }) => winc === 0n || payments !== 1n)).toEqual([]);
  expect(balance?.balance).toBe(funds - uploads.reduce((sum, { winc }) => sum + winc, 0n));
}
