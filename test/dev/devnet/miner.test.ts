/**
 * Automatic mining.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import type { Devnet } from "../../../src/dev/devnet/devnet.ts";
import { type MiningMode, openMiner } from "../../../src/dev/devnet/mining.ts";
import { createLog } from "../../../src/lib/log.ts";
import { until } from "../../support/until.ts";
import { ecdsa, openTestDevnet, post, sign } from "./support.ts";

const opened: Devnet[] = [];

async function open(mining: MiningMode): Promise<Devnet> {
  const devnet = await openTestDevnet({ mining });
  opened.push(devnet);
  return devnet;
}

afterEach(() => {
  for (const devnet of opened.splice(0)) devnet.close();
});

describe("a chain", () => {
  test("mines arriving transactions, and no empty blocks", async () => {
    const devnet = await open("auto");
    await Bun.sleep(30); // time for a block, which must not be mined
    expect(devnet.height()).toBe(0);
    const { id } = await post(devnet, ecdsa);
    await until(() => devnet.transaction(id).kind === "mined");
    expect(devnet.height()).toBe(1);
  });

  test("puts transactions that arrive together into one block", async () => {
    const devnet = await open("auto");
    const texts = Array.from(
      { length: 20 },
      (_, index) => sign(devnet, ecdsa, { reward: 10n ** 9n + BigInt(index) }).text,
    );
    await Promise.all(texts.map((text) => devnet.postTransaction(text)));
    await until(() => devnet.pendingIds().length === 0);
    expect(devnet.height()).toBe(1);
  });

  test("accepts a batch with one anchor, one transaction after the other", async () => {
    const devnet = await open("auto");
    const lastTx = devnet.suggestedAnchor();
    for (let index = 0; index < 80; index += 1) {
      await post(devnet, ecdsa, { lastTx, reward: 10n ** 9n + BigInt(index) });
      await Bun.sleep(7); // each transaction arrives in its own block
    }
    await until(() => devnet.pendingIds().length === 0);
    expect(devnet.height()).toBeLessThan(50);
  });

  test("mines at an interval, also empty blocks", async () => {
    const devnet = await open({ intervalMs: 5 });
    await until(() => devnet.height() >= 3);
  });

  test("mines only on request in manual mode", async () => {
    const devnet = await open("manual");
    const { id } = await post(devnet, ecdsa);
    await Bun.sleep(30); // time for a block, which must not be mined
    expect([devnet.height(), devnet.transaction(id).kind]).toEqual([0, "pending"]);
  });

  test("stops when it is closed", async () => {
    let blocks = 0;
    for (const mode of ["auto", { intervalMs: 5 }] as const) {
      const mine = () => {
        blocks += 1;
        return 1;
      };
      const miner = openMiner(mode, { waiting: () => 1, mine, log: createLog(silence) });
      miner.close();
    }
    await Bun.sleep(30); // time for a block, which must not be mined
    expect(blocks).toBe(0);
  });

  test("logs a failure to create a block, and continues", async () => {
    const lines: string[] = [];
    let tries = 0;
    const mine = () => {
      tries += 1;
      throw new Error("disk full");
    };
    const log = createLog({ ...silence, write: (line) => void lines.push(line) });
    const miner = openMiner({ intervalMs: 5 }, { waiting: () => 1, mine, log });
    await until(() => tries >= 2);
    miner.close();
    expect(lines[0]).toContain("disk full");
  });
});

const silence = { level: "error", format: "json", clock: () => 0, write: () => undefined } as const;
