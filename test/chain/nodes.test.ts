/**
 * Several sources: the order in which they are asked, who helps out, and what their responses amount to.
 * @module
 */
import { describe, expect, test } from "bun:test";
import type { NodeResponse } from "../../src/chain/node.ts";
import { askInOrder, createRanking, summarize } from "../../src/chain/nodes.ts";
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
