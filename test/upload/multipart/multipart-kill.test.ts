/**
 * Uploads in parts, and a process that is killed between any two of its steps: parts that were acknowledged are there,
 * the item is charged once, its file is whole, and nothing else is left.
 *
 * Every step of four stories is counted, and in the end each was the last one of some process. KILLS says how many of
 * them a run takes, spread over all; SEED repeats it.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { user } from "../../../src/store/ledger/transfers.ts";
import { findUpload } from "../../../src/upload/upload-rows.ts";
import { openTestPayment, type TestPayment, testStart } from "../../support/payment.ts";
import { createRandom } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { eventually } from "../../support/until.ts";
import {
  createPartsClient,
  makeFolder,
  makeItem,
  type PartsClient,
  partFilesIn,
  type TestItem,
} from "./multipart-fixture.ts";

/** A process that starts may wait for a busy machine. Milliseconds. */
const patienceMs = 120_000;
const kills = Number(process.env["KILLS"] ?? 10);
const seed = newSeed();
const random = createRandom(seed);
const folder = makeFolder();
const childFile = resolve(import.meta.dir, "multipart-child.ts");
let payment: TestPayment;
let child: Child | undefined;

/** A process that takes uploads. */
type Child = Readonly<{
  client: PartsClient;
  /** @returns Steps that it has taken so far. */
  tell: (line: string) => Promise<number>;
  /** Lines that it has printed. */
  lines: string[];
  exited: Promise<number>;
  kill: () => void;
}>;

// Within a group: what it opened is closed before the databases are (test/support/ledger-databases.ts).
describe("N2: uploads in parts, killed", () => {
  beforeAll(async () => {
    payment = await openTestPayment();
  });

  afterAll(async () => {
    child?.kill();
    await child?.exited;
    expect(await checkLedger(payment.database)).toEqual([]);
    await payment.close();
    folder.remove();
  });

  async function startChild(): Promise<Child> {
    const process_ = Bun.spawn([process.execPath, childFile, payment.ledger.place, folder.path, String(testStart)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const lines: string[] = [];
    const isAlive = () => process_.exitCode === null && process_.signalCode === null;
    const seen = async (start: string, from: number) =>
      await eventually(
        async () => lines.slice(from).find((line) => line.startsWith(start)) ?? (isAlive() ? "" : "gone"),
        (line) => line !== "",
        patienceMs,
      );
    void readLines(process_.stdout, lines);
    const opened = await seen("open", 0);
    const port = Number(opened.split(" ")[1]);
    if (!Number.isInteger(port)) throw new Error(`the process did not open: ${lines.join(" | ")}`);
    return {
      client: createPartsClient(`http://127.0.0.1:${port}`),
      lines,
      exited: process_.exited,
      kill: () => process_.kill("SIGKILL"),
      tell: async (line) => {
        const from = lines.length;
        process_.stdin.write(`${line}\n`);
        await process_.stdin.flush();
        const did = await seen("did", from);
        if (did === "gone") throw new Error("the process is gone");
        return Number(did.split(" ")[2]);
      },
    };
  }

  async function readLines(stream: ReadableStream<Uint8Array>, lines: string[]): Promise<void> {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const bytes of stream) {
      const parts = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = parts.pop() ?? "";
      lines.push(...parts);
    }
  }

  /** The item of a story, and the responses so far. */
  type Story = {
    readonly item: TestItem;
    readonly spans: readonly (readonly [start: number, size: number])[];
    readonly later: boolean;
    id: string | undefined;
    readonly acknowledged: Set<string>;
    receipt: string | undefined;
  };

  let made = 0;

  function newStory(item?: TestItem): Story {
    made += 1;
    const data = random.bytes(20_000 + random.below(5_000));
    new DataView(data.buffer).setUint32(0, made);
    const whole = item ?? makeItem(data);
    const { length } = whole.bytes;
    const spans: [number, number][] = [
      [10_000, length - 10_000],
      [0, 6_000],
      [5_000, 7_000],
    ];
    return {
      item: whole,
      spans,
      later: random.chance(0.5),
      id: undefined,
      acknowledged: new Set(),
      receipt: undefined,
    };
  }

  /** Goes on with a story from what is known; throws when the process is gone. */
  async function goOn(story: Story, { client }: Child): Promise<void> {
    story.id ??= await client.create();
    const { id, item } = story;
    const status = await client.status(id);
    if (status["status"] !== "FINALIZED") {
      await checkListed(story, client, status["status"] === "ASSEMBLING");
      if (status["status"] === "ASSEMBLING")
        for (const [start, size] of story.spans) {
          if (story.acknowledged.has(`${start} ${size}`)) continue;
          const response = await client.put(id, start, item.bytes.subarray(start, start + size));
          expect(await response.text()).toBe("OK");
          story.acknowledged.add(`${start} ${size}`);
        }
      await client.finalize(id, story.later ? "finalize" : "-1");
    }
    const last = await eventually(
      () => client.status(id),
      (now) => now["status"] === "FINALIZED",
      patienceMs,
    );
    const receipt = JSON.stringify(last["receipt"]);
    if (story.receipt !== undefined) expect(receipt).toBe(story.receipt);
    story.receipt = receipt;
  }

  /** Whatever was acknowledged is in the list, for as long as there is one. */
  async function checkListed(story: Story, client: PartsClient, isOpen: boolean): Promise<void> {
    const { chunks } = await client.list(story.id ?? "");
    if (!isOpen && JSON.stringify(chunks) === JSON.stringify([[0, story.item.bytes.length]])) return;
    const listed = new Set((chunks as [number, number][]).map(([start, size]) => `${start} ${size}`));
    for (const part of story.acknowledged) expect(listed).toContain(part);
  }

  /** Tells a story to a process that is killed at a step. @returns Whether it came that far. */
  async function tellAndKill(story: Story, step: number): Promise<boolean> {
    child ??= await startChild();
    const first = child;
    await first.tell(`kill ${step}`);
    try {
      await goOn(story, first);
      await first.tell("kill Infinity");
      return false;
    } catch (error) {
      // The process was to be killed amid a response; a fault of the response itself is not that.
      if ((await Promise.race([first.exited, Bun.sleep(60_000)])) === undefined) throw error;
      child = await startChild();
      await goOn(story, child);
      return true;
    }
  }

  async function verify({ item, id }: Story, before: bigint): Promise<void> {
    const { database } = payment;
    const upload = await database.read((tx) => findUpload(tx, item.id));
    expect(upload?.bytes.size).toBe(item.bytes.length);
    expect(readFileSync(join(folder.path, upload?.bytes.file ?? "")).equals(item.bytes)).toBe(true);
    expect(before - (await payment.held(user(item.account)))).toBe(BigInt(item.bytes.length));
    if (upload?.bytes.file !== `parts/${id}`) expect(partFilesIn(folder.path)).not.toContain(id ?? "");
  }

  /** Steps of a story without an end. */
  async function countSteps(): Promise<number> {
    child ??= await startChild();
    const story = newStory();
    await payment.credit(story.item.account, 1_000_000n);
    const before = await child.tell("count");
    await goOn(story, child);
    return (await child.tell("count")) - before;
  }

  test(
    `${kills} processes are killed, each at another step; each item is charged once and whole`,
    async () => {
      const last = await countSteps();
      expect(last).toBeGreaterThan(20);
      let killed = 0;
      for (let index = 0; index < kills; index += 1) {
        const step = 1 + Math.floor((index * last) / kills);
        const story = newStory();
        await payment.credit(story.item.account, 1_000_000n);
        const before = await payment.held(user(story.item.account));
        if (await tellAndKill(story, step)) killed += 1;
        await verify(story, before);
        if (!random.chance(0.3)) continue;
        // The same item once more: nothing is charged, and no file is left, wherever that ends.
        const again = newStory(story.item);
        if (await tellAndKill(again, 1 + random.below(last))) killed += 1;
        expect(again.receipt).toBe(story.receipt);
        await verify(story, before);
        await eventually(filesAfterSweep, (files) => !files.includes(again.id ?? ""), patienceMs);
      }
      expect(killed).toBeGreaterThan(kills / 2);
      await onlyItemsAreLeft();
    },
    30_000 + kills * 10_000,
  );

  test("uploads whose time is over end with their files, wherever the process is killed", async () => {
    for (let step = 1; step <= 6; step += 1) {
      child ??= await startChild();
      const id = await child.client.create();
      expect((await child.client.put(id, 0, new Uint8Array(5_000))).status).toBe(200);
      await child.tell(`clock ${testStart + 86_400_000}`);
      await child.tell(`kill ${step}`);
      const sweeping = child;
      const isAlive = await sweeping.tell("sweep").then(
        () => true,
        () => false,
      );
      if (!isAlive) {
        child = await startChild();
        await child.tell(`clock ${testStart + 86_400_000}`);
        await child.tell("sweep");
      } else await child.tell("kill Infinity");
      const failure = await child.client.status(id).catch((error: unknown) => String(error));
      expect(failure).toContain("404");
      expect(partFilesIn(folder.path)).not.toContain(id);
      await child.tell(`clock ${testStart}`);
    }
    await onlyItemsAreLeft();
  }, 120_000);

  /** Tidying leaves a file that is in use. A finalization removes its file a moment after its status says `FINALIZED`. */
  async function filesAfterSweep(): Promise<string[]> {
    await child?.tell("sweep");
    return partFilesIn(folder.path);
  }

  async function onlyItemsAreLeft(): Promise<void> {
    const items = await payment.database.read((tx) =>
      tx.all<{ file: string }>("SELECT file FROM uploads WHERE file LIKE 'parts/%'"),
    );
    const expected = JSON.stringify(items.map(({ file }) => file).sort());
    const isExpected = (files: string[]) => JSON.stringify(files.map((file) => `parts/${file}`)) === expected;
    await eventually(filesAfterSweep, isExpected, patienceMs);
  }
});
