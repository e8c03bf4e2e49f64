/**
 * Several sources: the order in which they are asked, who helps out, and what their responses amount to.
 * @module
 */
import { describe, expect, test } from "bun:test";
import type { Block } from "../../src/arweave/block.ts";
import { readId } from "../../src/arweave/id.ts";
import type { Node, NodeResponse } from "../../src/chain/node.ts";
import { askInOrder, createNodes, createRanking, summarize } from "../../src/chain/nodes.ts";
import { makeBlock } from "../../src/dev/devnet/block-making.ts";
import { minerWallet } from "../../src/dev/devnet/wallets.ts";
import { createChainQuestions } from "../../src/indexing/ask-chain.ts";
import { fetchBlock, indexedPrevious } from "../../src/indexing/fetch-block.ts";
import { askTransaction } from "../../src/indexing/fetch-transaction.ts";
import { createByteBudget } from "../../src/lib/byte-budget.ts";
import { writeJson } from "../../src/lib/json.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createSemaphore } from "../../src/lib/semaphore.ts";
import type { Pool, Workers } from "../../src/threads/pool.ts";
import { seeded } from "../content/content-harness.ts";

const none = new AbortController().signal;

describe("ranking", () => {
  function rankingAt(start: number) {
    let now = start;
    const ranking = createRanking(["a", "b", "c"], () => now, seeded(5));
    const firsts = (rounds: number) => {
      const counts = { a: 0, b: 0, c: 0 };
      for (let round = 0; round < rounds; round++) {
        const [first] = ranking.inOrder();
        if (first === "a" || first === "b" || first === "c") counts[first] += 1;
      }
      return counts;
    };
    return { ranking, firsts, pass: (ms: number) => (now += ms) };
  }

  test("equally good sources are ordered at random, and each order contains all of them", () => {
    const { ranking, firsts } = rankingAt(1_000);
    const { a, b, c } = firsts(3_000);
    for (const count of [a, b, c]) expect(count).toBeWithin(850, 1_150);
    expect(ranking.inOrder().sort()).toEqual(["a", "b", "c"]);
  });

  test("a faster source is asked first more often than a slower one", () => {
    const { ranking, firsts } = rankingAt(1_000);
    for (let times = 0; times < 30; times++) {
      ranking.noteResponse("a", 20);
      ranking.noteResponse("b", 600);
      ranking.noteResponse("c", 600);
    }
    const { a, b, c } = firsts(1_000);
    expect(a).toBeGreaterThan(700);
    expect(Math.min(b, c)).toBeGreaterThan(20);
  });

  test("a failing source is asked last, for a longer time after each failure, and recovers", () => {
    const { ranking, firsts, pass } = rankingAt(1_000);
    ranking.noteFault("a");
    expect(firsts(100).a).toBe(0);
    expect(ranking.inOrder().at(-1)).toBe("a");
    pass(600);
    expect(firsts(300).a).toBeGreaterThan(20);
    for (let times = 0; times < 20; times++) ranking.noteFault("a");
    pass(59_000);
    expect(firsts(100).a).toBe(0);
    pass(1_100);
    ranking.noteResponse("a", 100);
    expect(firsts(1_000).a).toBeGreaterThan(0);
  });

  test("a source that returned false data is asked last for minutes", () => {
    const { ranking, firsts, pass } = rankingAt(1_000);
    ranking.noteWrong("b");
    pass(299_000);
    expect(firsts(100).b).toBe(0);
    pass(2_000);
    expect(firsts(1_000).b).toBeGreaterThan(0);
    expect(ranking.sourceStatus("b").wrongs).toBe(1);
  });
});

test("a source that loses races is asked first less often, but is never excluded", () => {
  const ranking = createRanking(["silent", "good"], () => 0, seeded(7));
  let silentFirst = 0;
  for (let round = 0; round < 1_000; round++) {
    if (ranking.inOrder()[0] !== "silent") continue;
    silentFirst += 1;
    ranking.noteOutrun("silent");
  }
  expect(silentFirst).toBeWithin(5, 60);
});

describe("asking sources in order", () => {
  type Script = Readonly<{ ms: number; response: string }>;

  function run(scripts: Readonly<Record<string, Script>>, hedgeAfterMs: number, signal = none) {
    const asked: string[] = [];
    const stopped: string[] = [];
    const outrun: string[] = [];
    const result = askInOrder(
      {
        sources: Object.keys(scripts),
        ask: async (source, own) => {
          asked.push(source);
          own.addEventListener("abort", () => stopped.push(source));
          const script = scripts[source] ?? { ms: 0, response: "bad" };
          if (script.ms === Number.POSITIVE_INFINITY) {
            await new Promise((_, reject) => own.addEventListener("abort", () => reject(own.reason)));
          }
          await Bun.sleep(script.ms);
          if (script.response === "throw") throw new Error(`defect of ${source}`);
          return `${script.response} ${source}`;
        },
        isFinal: (response: string) => response.startsWith("good"),
        hedgeAfterMs: () => hedgeAfterMs,
        onOutrun: (source) => outrun.push(source),
      },
      signal,
    );
    return { result, asked, stopped, outrun };
  }

  const never = Number.POSITIVE_INFINITY;
  const long = 60_000;

  test("the first valid response ends the search; no other source is asked", async () => {
    const { result, asked } = run({ a: { ms: 0, response: "good" }, b: { ms: 0, response: "good" } }, long);
    expect(await result).toEqual({ final: "good a", others: [] });
    expect(asked).toEqual(["a"]);
  });

  test("after an invalid response the next source is asked at once", async () => {
    const { result } = run({ a: { ms: 0, response: "bad" }, b: { ms: 0, response: "good" } }, long);
    expect(await result).toEqual({ final: "good b", others: ["bad a"] });
  });

  test("when a source is slow the next is asked too, and the slow call is aborted when not needed", async () => {
    const { result, stopped, outrun } = run({ a: { ms: never, response: "good" }, b: { ms: 0, response: "good" } }, 5);
    expect((await result).final).toBe("good b");
    expect(stopped).toContain("a");
    expect(outrun).toEqual(["a"]);
  });

  test("the slow source may still win", async () => {
    const { result, outrun } = run({ a: { ms: 30, response: "good" }, b: { ms: never, response: "good" } }, 5);
    expect((await result).final).toBe("good a");
    expect(outrun).not.toContain("a");
  });

  test("when all responses are invalid, each source was asked once", async () => {
    const { result, asked } = run(
      { a: { ms: 10, response: "bad" }, b: { ms: 0, response: "bad" }, c: { ms: 0, response: "bad" } },
      2,
    );
    const { final, others } = await result;
    expect(final).toBeUndefined();
    expect([...others].sort()).toEqual(["bad a", "bad b", "bad c"]);
    expect(asked).toEqual(["a", "b", "c"]);
  });

  test("without sources there is not a valid response", async () => {
    expect(await run({}, 1).result).toEqual({ final: undefined, others: [] });
  });

  test("a defect is thrown; an aborted call rejects with the caller's reason", async () => {
    await expect(run({ a: { ms: 0, response: "throw" } }, long).result).rejects.toThrow("defect of a");
    const leaving = new AbortController();
    const { result, stopped } = run({ a: { ms: never, response: "good" } }, long, leaving.signal);
    leaving.abort("left");
    expect(await result.catch(String)).toBe("left");
    expect(stopped).toEqual(["a"]);
  });
});

describe("summarize", () => {
  const absent: NodeResponse<number> = { kind: "absent" };
  const pending: NodeResponse<number> = { kind: "pending" };
  const rejection: NodeResponse<number> = { kind: "rejected", status: 400, text: "Invalid hash." };
  const late: NodeResponse<number> = { kind: "fault", reason: "timeout", detail: "" };
  const broken: NodeResponse<number> = { kind: "fault", reason: "status", status: 500, detail: "" };

  test.each([
    ["all say it is absent", [absent, absent], absent],
    ["one source failed: the data may exist", [absent, broken], broken],
    ["a timeout is not reported when another fault exists", [late, broken], broken],
    ["only time-outs", [late, absent, late], late],
    ["one has it pending", [absent, broken, pending], pending],
    ["one rejects, one does not have it", [absent, rejection], rejection],
  ] as const)("%s", (_name, responses, summary) => {
    expect(summarize([...responses])).toEqual(summary);
  });

  test("no source was asked: a fault", () => {
    expect(summarize([]).kind).toBe("fault");
  });
});

describe("a question to nodes", () => {
  const ok = <Value>(value: Value) => ({ kind: "ok", value }) as const;
  const nodeOf = (url: string, calls: Partial<Node>) => ({ url, ...calls }) as unknown as Node;
  const nodesOf = (...all: Node[]) => createNodes(all, { clock: () => 0, random: seeded(3), log: silentLog });
  const id = readId("A".repeat(43));
  if (id === undefined) throw new Error("it is an id");

  test("does not note a response of a node that is left out because its transaction was invalid", async () => {
    let asked = 0;
    const relay = async () => {
      asked += 1;
      return ok({ status: 404, headers: new Headers(), body: new Uint8Array() });
    };
    const [out, other] = [nodeOf("out", { relay }), nodeOf("other", { relay })];
    const nodes = nodesOf(out, other);
    const before = nodes.sourceStatus().find(({ url }) => url === "out");
    const parts = { nodes, semaphore: createSemaphore(1, 1), random: () => 0 };
    const ask = (wrong: ReadonlySet<Node>) => askTransaction({ id, route: "tx", wrong }, parts, none);
    expect(await ask(new Set([out]))).toEqual({ kind: "absent", reason: "absent" });
    expect(nodes.sourceStatus().find(({ url }) => url === "out")).toEqual(before);
    expect(await ask(new Set([out, other]))).toEqual({ kind: "absent", reason: "no other node is left" });
    expect(asked).toBe(1);
  });

  test("does not note a response of a node that is left out because its block was invalid", async () => {
    const [out, other] = [
      nodeOf("out", { blockText: async () => ok("{}") }),
      nodeOf("other", { blockText: async () => ({ kind: "absent" }) }),
    ];
    const nodes = nodesOf(out, other);
    const pool = {} as unknown as Pool<Workers["verify"]>;
    const bytes = createByteBudget({ bytesMax: 1, clientBytesMax: 1, waitMsMax: 0 });
    const parts = { nodes, pool, bytes, semaphore: createSemaphore(1, 1), random: () => 0, log: silentLog };
    const previous = indexedPrevious(undefined);
    const more = { follows: undefined, onText: () => undefined, isMainNet: false, isPatienceOver: false };
    await expect(fetchBlock({ height: 5, previous, ...more }, parts, none)).rejects.toThrow();
    const { wrongs, successShare } = nodes.sourceStatus().find(({ url }) => url === "out") ?? {};
    expect([wrongs, successShare]).toEqual([1, 0.6]);
  });

  test("about a block takes no more bytes of its transactions than may be under way, and releases them", async () => {
    const ids = Array.from({ length: 6 }, (_, number) => `${number}`.repeat(42).concat("A"));
    const relay: Node["relay"] = async ({ hold }) => {
      await hold?.(40);
      return ok({ status: 200, headers: new Headers(), body: Buffer.from("{}") });
    };
    const blockText = async () => ok(writeJson({ ...first.fields, txs: ids }));
    const accepted = {
      kind: "accepted",
      rows: new ArrayBuffer(0),
      bundleCount: 0,
      data: [],
      checked: [],
      unchecked: [],
    };
    const pool = { run: async () => accepted } as unknown as Pool<Workers["verify"]>;
    const bytes = createByteBudget({ bytesMax: 150, clientBytesMax: 100, waitMsMax: 0 });
    const nodes = nodesOf(nodeOf("large", { relay, blockText }));
    const parts = { nodes, pool, bytes, semaphore: createSemaphore(2, 10), random: () => 0, log: silentLog };
    const more = { follows: undefined, onText: () => undefined, isMainNet: false };
    const question = { height: 0, previous: indexedPrevious(undefined), ...more };
    const { missing } = await fetchBlock({ ...question, isPatienceOver: true }, parts, none);
    expect(missing).toHaveLength(4);
    expect(missing[0]?.reason).toContain("too many bytes");
    expect(bytes.bytes()).toBe(0);
    await expect(fetchBlock({ ...question, isPatienceOver: false }, parts, none)).rejects.toThrow();
    expect(bytes.bytes()).toBe(0);
  });

  const blockAfter = (previous: Block | undefined): Block =>
    makeBlock(
      {
        previous,
        timestamp: 1_700_000_000,
        txs: [],
        txRoot: new Uint8Array(0),
        size: 0n,
        accountsRoot: new Uint8Array(32),
        endowment: 0n,
        reward: 0n,
        recall: undefined,
      },
      minerWallet("nodes"),
      "nodes",
    );
  const first = blockAfter(undefined);

  test.each([
    ["invalid", "{}"],
    ["not JSON", "gone"],
    ["of another height", writeJson(blockAfter(first).fields)],
  ])("about a hash goes on after a node whose block is %s, and distrusts it", async (_is, text) => {
    const nodes = nodesOf(
      nodeOf("bad", { blockText: async () => ok(text) }),
      nodeOf("good", { blockText: async () => ok(writeJson(first.fields)) }),
    );
    for (let times = 0; times < 8; times += 1)
      expect(await createChainQuestions(nodes).hashAt(0, none)).toBe(first.hash);
    expect(nodes.sourceStatus().map(({ wrongs }) => wrongs)).toEqual([1, 0]);
  });
});
