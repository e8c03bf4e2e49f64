/**
 * Durability of the chain: over a restart, and over a kill of its process.
 * @module
 */
import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readBlock } from "../../../src/arweave/block.ts";
import { verifyBlock } from "../../../src/arweave/block-check.ts";
import { readTransaction, treeRootOf } from "../../../src/arweave/transaction.ts";
import { type Devnet, openDevnet } from "../../../src/dev/devnet/devnet.ts";
import { Failure } from "../../../src/failures.ts";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { until } from "../../support/until.ts";
import {
  chunkPosts,
  createTestClock,
  ecdsa,
  openTestDevnet,
  post,
  rsa,
  sign,
  statedOf,
  stranger,
  testBytes,
} from "./support.ts";

const folders: string[] = [];

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "cairn-devnet-"));
  folders.push(folder);
  return folder;
}

afterEach(() => {
  for (const folder of folders.splice(0)) removeFolder(folder);
});

describe("a chain in a folder", () => {
  test("is the same after a restart: blocks, chunks, accounts, pending and rejected transactions", async () => {
    const dir = makeFolder();
    const data = testBytes(600_000);
    const before = await openTestDevnet({ dir });
    const { id } = await post(before, rsa, { stated: statedOf(data) });
    for (const body of chunkPosts(data)) before.postChunk(body);
    await before.mine(2);
    before.mint(stranger.address, 5n);
    const waiting = await post(before, ecdsa);
    await before.postTransaction(cheap(before).text);
    const expected = statusesOf(before, id);
    before.close();

    const after = await openTestDevnet({ dir });
    expect(statusesOf(after, id)).toEqual(expected);
    expect(after.pendingIds()).toEqual([waiting.id]);
    expect(after.transaction(cheap(after).id)).toMatchObject({ kind: "rejected" });
    expect((await after.mine(1)).txs).toEqual([waiting.id]);
    after.close();
  });

  test("mines transactions that were pending when it stopped", async () => {
    const dir = makeFolder();
    const before = await openTestDevnet({ dir });
    const { id } = await post(before, ecdsa);
    before.close();
    const after = await openTestDevnet({ dir, mining: "auto" });
    await until(() => after.transaction(id).kind === "mined");
    after.close();
  });

  test("with another seed is rejected", async () => {
    const dir = makeFolder();
    (await openTestDevnet({ dir })).close();
    await expect(openTestDevnet({ dir, seed: "other" })).rejects.toThrow("Malformed input");
    (await openTestDevnet({ dir })).close(); // what was rejected holds nothing
  });

  test("that is not a chain is rejected as such, and not as used by another process", async () => {
    const dir = makeFolder();
    writeFileSync(join(dir, "devnet.sqlite"), "not a database".repeat(1_000));
    await expect(openTestDevnet({ dir })).rejects.toThrow("file is not a database");
  });

  test("with the tables of an unreleased build is rejected with advice", async () => {
    const dir = makeFolder();
    (await openTestDevnet({ dir })).close();
    const db = new Database(join(dir, "devnet.sqlite"));
    db.run("UPDATE schema_fingerprint SET fingerprint = 'other'");
    db.close();
    const error = await openTestDevnet({ dir }).catch((thrown: unknown) => thrown);
    const reason = error instanceof Failure ? error.context["reason"] : error;
    expect(reason).toMatch(/^devnet\.sqlite cannot be opened: an unreleased build of this program/);
  });

  test("with an invalid wallet file is rejected, and works again without it", async () => {
    const dir = makeFolder();
    const file = join(dir, "wallet-rsa.json");
    writeFileSync(file, "[]");
    const options = { dir, seed: "own", clock: createTestClock(), mining: "manual" } as const;
    await expect(openDevnet(options)).rejects.toThrow("Malformed input");
    rmSync(file);
    (await openDevnet(options)).close();
  }, 120_000);

  test("belongs to one process at a time", async () => {
    const dir = makeFolder();
    const devnet = await openTestDevnet({ dir });
    await expect(openTestDevnet({ dir })).rejects.toThrow("Service busy");
    devnet.close();
    (await openTestDevnet({ dir })).close();
  });

  test("creates its wallets once: RSA of 4,096 bits and ECDSA, funded, readable only by their owner", async () => {
    const dir = makeFolder();
    const options = { dir, seed: "own", clock: createTestClock(), mining: "manual" } as const;
    const before = await openDevnet(options);
    const [first, second] = before.wallets;
    expect(before.wallets.map(({ name, type }) => [name, type])).toEqual([
      ["rsa", "rsa"],
      ["ecdsa", "ecdsa"],
    ]);
    expect(String(first?.jwk["n"]).length).toBe(683);
    for (const { address, file = "" } of before.wallets) {
      expect(before.account(address)?.balance).toBe(10n ** 18n);
      expect(statSync(file).mode & 0o777).toBe(0o600);
    }
    before.close();
    const after = await openDevnet(options);
    expect(after.wallets).toEqual(before.wallets);
    after.close();
    const elsewhere = await openDevnet({ ...options, dir: undefined });
    const [otherRsa, sameEcdsa] = elsewhere.wallets;
    expect([otherRsa?.address === first?.address, sameEcdsa?.address === second?.address]).toEqual([false, true]);
    elsewhere.close();
  }, 120_000);

  test("is consistent after a kill at any moment, and has everything that it acknowledged", async () => {
    const dir = makeFolder();
    const acknowledged: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      const child = Bun.spawn(
        ["bun", Bun.fileURLToPath(new URL("./busy-chain.ts", import.meta.url)), dir, `${round}`],
        {
          stdout: "pipe",
          stderr: "inherit",
        },
      );
      const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      // Killed after a different number of acknowledgements each time, wherever that is.
      while (text.split("\n").length < 12 + round * 7) {
        const { done, value } = await lines.read();
        if (done) throw new Error("the busy chain ended by itself");
        text += value;
      }
      child.kill("SIGKILL");
      await child.exited;
      acknowledged.push(...text.split("\n").slice(0, -1));
      expect(integrityOf(dir)).toBe("ok");
    }
    const devnet = await openTestDevnet({ dir });
    for (const line of acknowledged) {
      const [kind, what = "", more = ""] = line.split(" ");
      if (kind === "block") expect(devnet.blockOf(what)?.height).toBe(Number(more));
      if (kind === "transaction") expect(devnet.transaction(what).kind).toMatch(/^(mined|pending)$/);
      if (kind === "chunk") expect(devnet.chunkOf(what, Number(more))?.chunk.length).toBeGreaterThan(0);
    }
    expect(acknowledged.length).toBeGreaterThan(40);
    verifyChain(devnet);
    expect(readdirSync(dir).toSorted()).toContain("devnet.sqlite");
    devnet.close();
  }, 120_000);
});

function cheap(devnet: Devnet) {
  return sign(devnet, rsa, { reward: 1n, lastTx: "" });
}

function statusesOf(devnet: Devnet, id: string) {
  return {
    tip: devnet.tipHash(),
    anchor: devnet.suggestedAnchor(),
    chunk: devnet.chunkAt(262_145 + 300_000),
    transaction: devnet.transaction(id),
    balances: [rsa, ecdsa, stranger].map(({ address }) => devnet.account(address)),
  };
}

function integrityOf(dir: string): string {
  const database = new Database(join(dir, "devnet.sqlite"));
  const row = database.query<{ integrity_check: string }, []>("PRAGMA integrity_check").get();
  database.close();
  return row?.integrity_check ?? "";
}

function verifyChain(devnet: Devnet): void {
  for (let height = 0; height <= devnet.height(); height += 1) {
    const block = readBlock(devnet.blockAt(height)?.text ?? "");
    const placed = block.txs.map((id) => {
      const found = devnet.transaction(id);
      if (found.kind !== "mined") throw new Error(`${id} of block ${height} is ${found.kind}`);
      const transaction = readTransaction(found.transaction.text);
      return { ...transaction, dataRoot: treeRootOf(transaction) };
    });
    const previous = height === 0 ? undefined : readBlock(devnet.blockAt(height - 1)?.text ?? "");
    expect(verifyBlock(block, placed, previous)).toMatchObject({ kind: "accepted" });
  }
}
