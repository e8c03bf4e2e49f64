/**
 * Proofs of the real chain: recorded blocks and transactions, followed from a recorded node.
 * @module
 */
import { afterAll, describe, expect } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { takeFolder } from "../../src/app/data-folder.ts";
import { openGateway } from "../../src/app/open-gateway.ts";
import { type Block, readBlock } from "../../src/arweave/block.ts";
import type { Id } from "../../src/arweave/id.ts";
import { verifyAtGateway } from "../../src/cli/verify-gateway.ts";
import { readConfig } from "../../src/config/config.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { openHttp } from "../../src/lib/http-client.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openRecordedChain } from "../chain/recorded-chain.ts";
import { testWith } from "../support/helpers.ts";
import { eventually } from "../support/until.ts";
import { vectors } from "../support/vectors.ts";

const http = openHttp({ firstByteMs: 20_000, stallMs: 20_000, totalMs: 20_000 });
afterAll(http.close);

/** Follows recorded blocks and verifies every transaction in them, believing the blocks' recorded hashes. */
async function outcomesOf(from: number, to: number) {
  const node = await openRecordedChain(to);
  const folder = mkdtempSync(join(tmpdir(), "cairn-recorded-"));
  const closers = createClosers(() => undefined);
  const settings = {
    DATA_DIR: folder,
    HOST: "127.0.0.1",
    GATEWAY_PORT: "0",
    START_HEIGHT: String(from),
    WORKER_THREADS: "1",
    QUERY_THREADS: "1",
    FOLLOW_INTERVAL_MS: "50",
    ENABLE_MEMPOOL_WATCHER: "false",
  };
  const { config } = readConfig(settings, "dev");
  const gateway = openGateway({
    config,
    folder: takeFolder(config, closers),
    nodeUrls: [node.url],
    rootHosts: [],
    log: silentLog,
    closers,
  });
  const verify = (id: Id, { hash }: Block) =>
    verifyAtGateway(
      { id, anchor: { kind: "hash", hash }, http, gateway: gateway.url, range: undefined },
      AbortSignal.timeout(20_000),
    );
  try {
    await eventually(
      async () => gateway.reader.tip()?.height,
      (height) => height === to,
    );
    const verifications = [];
    for (let height = from; height <= to; height += 1) {
      const block = readBlock(node.blockText(height));
      for (const id of block.txs) verifications.push(await verify(id, block));
    }
    return verifications;
  } finally {
    await closers.closeAll();
    await node.stop();
    removeFolder(folder);
  }
}

describe("proofs of the real chain", () => {
  testWith(
    vectors,
    "every transaction of the first two blocks of 2.0 is proven, of both formats",
    async () => {
      const verifications = await outcomesOf(422_250, 422_251);
      expect(verifications.map(({ outcome, fault }) => fault?.reason ?? outcome)).toEqual(Array(9).fill("proven"));
      expect(verifications.filter(({ size = 0 }) => size > 0).length).toBe(7);
    },
    120_000,
  );

  testWith(
    vectors,
    "transactions of blocks before 2.0 are signed, and the proof says why they cannot be placed",
    async () => {
      const verifications = await outcomesOf(235_200, 235_201);
      expect(verifications.map(({ outcome }) => outcome)).toEqual(Array(6).fill("signed"));
      for (const { open } of verifications) expect(open.join("\n")).toContain("is from before 2.0");
    },
    120_000,
  );
});
