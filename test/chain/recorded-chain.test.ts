/**
 * Reading the real chain through a node: texts unchanged, places that its own roots prove, chunks and bodies checked.
 * @module
 */
import { afterEach, describe, expect } from "bun:test";
import { isId } from "../../src/arweave/id.ts";
import { readTransaction, treeRootOf } from "../../src/arweave/transaction.ts";
import { createChunks } from "../../src/chain/chunks.ts";
import { openNode } from "../../src/chain/node.ts";
import { createNodes } from "../../src/chain/nodes.ts";
import { Failure } from "../../src/failures.ts";
import { decodeBase64url } from "../../src/lib/base64url.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLog } from "../../src/lib/log.ts";
import { isSame, joined, locatedOf, openHarness, seeded } from "../content/content-harness.ts";
import { testWith } from "../support/helpers.ts";
import { vectors } from "../support/vectors.ts";
import { checkChunkAtOnce } from "./data-node.ts";
import { openRecordedChain, type RecordedChain, recordedRanges } from "./recorded-chain.ts";

const none = new AbortController().signal;
const closers: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function chainAt(tip: number): Promise<RecordedChain> {
  const chain = await openRecordedChain(tip);
  closers.push(chain.stop);
  return chain;
}

function nodesOf(chain: RecordedChain) {
  const node = openNode(chain.url, { firstByteMs: 2_000, stallMs: 2_000, totalMs: 5_000 });
  closers.push(node.close);
  return createNodes([node], { clock: systemClock, random: seeded(1), log: silentLog });
}

/** Named by its block, and not among the records: for everyone who follows it a missing transaction. */
const absent = new Map([[42, ["fgZVZzLOTwdVdeqnPZrbHmtx2MXfyjqNc6xOrt6wOMk"]]]);

describe("the recorded chain", () => {
  testWith(vectors, "has every block and transaction of its ranges, and its texts arrive unchanged", async () => {
    const chain = await chainAt(893_174);
    const [node] = nodesOf(chain).all;
    if (node === undefined) throw new Error("a chain has a node");
    for (const [from, to] of recordedRanges) {
      for (let height = from; height <= to; height++) {
        const response = await node.blockText(height, none);
        expect(response).toEqual({ kind: "ok", value: chain.blockText(height) });
        const named: string[] = JSON.parse(chain.blockText(height)).txs;
        expect(named.filter((id) => !chain.idsOf(height).includes(id))).toEqual(absent.get(height) ?? []);
      }
    }
    for (const id of chain.idsOf(235_201)) {
      const response = await node.txJson(id, none);
      expect(response.kind === "ok" && new TextDecoder().decode(response.value)).toBe(chain.txText(id) ?? "");
    }
  });

  testWith(vectors, "responds as a node does where there is nothing", async () => {
    const chain = await chainAt(50);
    const [node] = nodesOf(chain).all;
    const [id = ""] = chain.idsOf(34);
    expect(await node?.height(none)).toEqual({ kind: "ok", value: 50 });
    expect(await node?.blockText(51, none)).toEqual({ kind: "absent" });
    expect((await node?.txJson(id, none))?.kind).toBe("ok");
    expect((await node?.txStatus(id, none))?.kind).toBe("ok");
    expect(await node?.txOffset(id, none)).toEqual({ kind: "absent" }); // its block has no root that proves a place
    chain.missing.add(id);
    expect(await node?.txJson(id, none)).toEqual({ kind: "absent" });
    chain.missing.clear();
    chain.pending.add(id);
    expect(await node?.txJson(id, none)).toEqual({ kind: "pending" });
    expect(await node?.pendingIds(none)).toEqual({ kind: "ok", value: [id] });
    expect(await node?.txStatus(id, none)).toEqual({ kind: "pending" });
    expect(await node?.txData(id, none)).toEqual({ kind: "pending" });
  });

  testWith(
    vectors,
    "block 422251: each transaction's data by chunks at its place in the weave, and by its body",
    async () => {
      const chain = await chainAt(422_251);
      const harness = openHarness({
        nodeUrls: [chain.url],
        timeouts: { firstByteMs: 5_000, stallMs: 5_000, totalMs: 9_000 },
      });
      closers.push(harness.close);
      let bytes = 0;
      for (const id of chain.idsOf(422_251)) {
        const tx = readTransaction(chain.txText(id) ?? "");
        const data = decodeBase64url(tx.data) ?? new Uint8Array(0);
        const span = { start: 0, end: data.length };
        const byBody = { id: tx.id, dataRoot: "", size: data.length };
        harness.index.set(tx.id, locatedOf(tx.id, byBody));
        const body = await harness.content.open(tx.id, none);
        expect(isSame(await joined(body.read(span, none)), data)).toBe(true);
        expect(body.verified).toBe(true);

        const byChunks = { id: tx.id, dataRoot: treeRootOf(tx), size: data.length };
        harness.index.set(tx.id, locatedOf(tx.id, byChunks)); // its weave place is asked of the node
        const chunks = await harness.content.open(tx.id, none);
        expect(isSame(await joined(chunks.read(span, none)), data)).toBe(true);
        bytes += data.length;
      }
      expect(bytes).toBe(2_871_414); // block_size
    },
  );

  testWith(vectors, "a wrong signature, a wrong byte of data or a wrong id makes no body of format 1", async () => {
    const chain = await chainAt(422_251);
    const harness = openHarness({ nodeUrls: [chain.url] });
    closers.push(harness.close);
    const [id = "", other = ""] = chain.idsOf(422_251);
    if (!isId(id)) throw new Error("an id is one");
    const tx = readTransaction(chain.txText(id) ?? "");
    harness.index.set(id, locatedOf(id, { id, dataRoot: "", size: tx.dataSize }));
    const opened = await harness.content.open(id, none);
    const text = chain.txText(id) ?? "";
    const at = text.indexOf(tx.data) + 1_000;
    const wrongData = `${text.slice(0, at)}${text[at] === "A" ? "B" : "A"}${text.slice(at + 1)}`;
    const wrongSignature = text.replace(tx.signature.slice(0, 8), "AAAAAAAA");
    for (const body of [wrongData, wrongSignature, chain.txText(other) ?? "", text.slice(0, -10), "{}"]) {
      chain.setFault(() => ({ kind: "response", response: { status: 200, body } }));
      const error = await opened.bytes({ start: 0, end: 10 }, none).catch((reason: unknown) => reason);
      expect(error instanceof Failure && error.code).toBe("source_failed");
    }
    chain.setFault(() => undefined);
    expect(await opened.bytes({ start: 0, end: 10 }, none)).toHaveLength(10);
  });

  testWith(
    vectors,
    "real chunks of the years 2.5 and 2.7 are proven at their places; a wrong bit in them is not",
    async () => {
      const chain = await chainAt(893_174);
      const nodes = nodesOf(chain);
      const chunks = createChunks(nodes, nodes, checkChunkAtOnce);
      const rows = [
        ["wRq6f05oRupfTW_M5dcYBtwK5P8rSNYu20vC6D_o-M4", 256_000, 51_530_681_327_862n, 256_000],
        ["QsB3Rr6C66f1QYRfXV_DXllCOTx2J_Eo2RLOr_egtx8", 11_879_200, 351_531_360_100_598n - 262_143n, 262_144],
      ] as const;
      for (const [dataRoot, size, weaveStart, end] of rows) {
        const data = {
          id: readTransaction(chain.txText(chain.idsOf(34)[0] ?? "") ?? "").id,
          dataRoot,
          size,
          weaveStart,
        };
        const at = end - 1;
        const offset = weaveStart + BigInt(at) + 1n;
        const recorded = dataRoot.startsWith("w") ? 51_530_681_327_863n : offset;
        const position = Number(recorded - weaveStart - 1n);
        const proven = await chunks.fetch(data, position, none);
        expect([proven.start, proven.end, proven.bytes.length]).toEqual([0, end, end]);
        chain.setFault(() => ({ kind: "flip", at: -100_000 }));
        const error = await chunks.fetch(data, position, none).catch((reason: unknown) => reason);
        expect(error instanceof Failure && error.code).toBe("source_failed");
        chain.setFault(() => undefined);
      }
    },
  );
});
