/**
 * Large manifests as requests see them: read once however many ask, at most two at once, a bounded wait, and never once
 * the manifest itself may not leave.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import type { OpenContent } from "../../src/content/open-content.ts";
import { Failure } from "../../src/failures.ts";
import { createResolver } from "../../src/gateway/resolve.ts";
import type { Pool } from "../../src/threads/pool.ts";
import { inlineBuilder, openTestManifests, type TestManifestsOptions } from "../support/large-manifests.ts";
import { manifestText } from "../support/manifest-text.ts";
import { createMemoryContent } from "../support/memory-content.ts";
import { eventually } from "../support/until.ts";

const never = new AbortController().signal;
const contentType = "application/x.arweave-manifest+json";
const pathCount = 20_000;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Content, a resolver over it, and how often each manifest was read from its first byte. */
function openWorld(options: TestManifestsOptions = {}) {
  const content = createMemoryContent();
  const page = content.put("page", { body: new Uint8Array(1) });
  const large = openTestManifests(options);
  const reads = new Map<string, number>();
  const refused = new Set<string>();
  closing.push(large.close, content.close);
  const put = (name: string, text = manifestText(page, pathCount, name)) =>
    content.put(name, { body: text, contentType });
  const open = async (id: ReturnType<typeof put>): Promise<OpenContent> => {
    const found = await content.open(id, never);
    return {
      ...found,
      check: async () => {
        if (refused.has(id)) throw new Failure("blocked", { id });
      },
      read: (span, signal) => {
        reads.set(id, (reads.get(id) ?? 0) + 1);
        return found.read(span, signal);
      },
    };
  };
  const resolver = createResolver(large);
  const targetOf = async (id: ReturnType<typeof put>, path: string, signal = never) => {
    const found = await resolver.resolve(id, path, open, signal);
    return found.kind === "content" ? found.content.id : found.kind;
  };
  return { content, page, large, reads, refused, put, targetOf };
}

/** A builder that waits before each job until it is let go. */
function heldBuilder(): Readonly<{ builder: Pick<Pool, "run">; letGo: () => void; begun: () => number }> {
  const gate = Promise.withResolvers<void>();
  const inner = inlineBuilder();
  let begun = 0;
  return {
    letGo: gate.resolve,
    begun: () => begun,
    builder: {
      run: async (...parts) => {
        begun += 1;
        await gate.promise;
        return await inner.run(...parts);
      },
    },
  };
}

const codeOf = (error: unknown) => (error instanceof Failure ? error.code : String(error));

describe("M1: a large manifest", () => {
  test("is read once for all clients together, once for all that come later, and not again after a restart", async () => {
    const world = openWorld();
    const ids = ["a", "b", "c", "d", "e", "f"].map((name) => world.put(name));
    const asked = Array.from({ length: 80 }, async (_, at) => {
      const number = at % ids.length;
      const id = ids[number];
      return id === undefined ? undefined : await world.targetOf(id, `${"abcdef"[number]}/${at}.html`);
    });
    expect(new Set(await Promise.all(asked))).toEqual(new Set([world.page]));
    for (let round = 0; round < 3; round += 1)
      for (const [number, id] of ids.entries())
        expect(await world.targetOf(id, `${"abcdef"[number]}/${pathCount - 1}.html`)).toBe(world.page);
    expect([...world.reads.values()]).toEqual(ids.map(() => 1));

    const again = openTestManifests({ folder: world.large.folder });
    const first = ids[0];
    if (first === undefined) throw new Error("there are six");
    expect(await again.resolve(await world.content.open(first, never), "a/7.html", never)).toEqual({
      id: world.page,
      fallback: false,
    });
    await again.close();
    expect(world.content.openReads()).toBe(0);
  });

  test("is built while at most two are; a builder that is at work holds the others up, not those that have an index", async () => {
    const held = [heldBuilder(), heldBuilder()];
    const world = openWorld({ builders: held.map(({ builder }) => builder) });
    const ids = ["a", "b", "c"].map((name) => world.put(name));
    const waiting = ids.map((id) => world.targetOf(id, "none").catch(codeOf));
    await eventually(
      async () => held.map(({ begun }) => begun()),
      (begun) => begun.every((count) => count === 1),
    );
    expect(world.reads.size).toBe(2);
    for (const { letGo } of held) letGo();
    expect(await Promise.all(waiting)).toEqual(["not_found", "not_found", "not_found"]);
    expect(world.reads.size).toBe(3);
  });

  test("beyond those that may wait is refused, to be asked for again", async () => {
    const { builder, letGo } = heldBuilder();
    const world = openWorld({ builders: [builder] });
    const text = manifestText(world.page, pathCount);
    const ids = Array.from({ length: 40 }, (_, at) => world.put(`many ${at}`, text));
    const asked = ids.map((id) => world.targetOf(id, "p/1.html").catch(codeOf));
    expect(await Promise.race(asked)).toBe("busy");
    letGo();
    const outcomes = await Promise.all(asked);
    expect(outcomes.filter((outcome) => outcome === "busy").length).toBe(8);
    expect(outcomes.filter((outcome) => outcome === world.page).length).toBe(32);
  });

  test("that is blocked while its index is built leads nowhere, for those who wait for it too", async () => {
    const { builder, letGo, begun } = heldBuilder();
    const world = openWorld({ builders: [builder] });
    const id = world.put("blocked meanwhile");
    const asked = ["p/1.html", "p/2.html", "none"].map((path) => world.targetOf(id, path).catch(codeOf));
    await eventually(
      async () => begun(),
      (count) => count === 1,
    );
    world.refused.add(id);
    letGo();
    expect(await Promise.all(asked)).toEqual(["blocked", "blocked", "blocked"]);
  });

  test("that is blocked already is not read", async () => {
    const world = openWorld();
    const id = world.put("blocked before");
    world.refused.add(id);
    expect(await world.targetOf(id, "p/1.html").catch(codeOf)).toBe("blocked");
    expect(world.reads.size).toBe(0);
    world.refused.delete(id);
    expect(await world.targetOf(id, "blocked before/1.html")).toBe(world.page);
  });

  test("goes on being built when its clients have left", async () => {
    const { builder, letGo } = heldBuilder();
    const world = openWorld({ builders: [builder] });
    const id = world.put("left");
    const leaving = new AbortController();
    const asked = world.targetOf(id, "left/1.html", leaving.signal).catch(codeOf);
    await eventually(
      async () => world.reads.size,
      (size) => size === 1,
    );
    leaving.abort(new DOMException("left", "AbortError"));
    expect(await asked).toContain("AbortError");
    letGo();
    expect(await world.targetOf(id, "left/1.html")).toBe(world.page);
    expect(world.reads.get(id)).toBe(1);
  });

  test.each([
    ["large", pathCount],
    ["small", 10],
  ])(
    "that is %s and refused leads nowhere though it was read, and leads there again once it is not",
    async (_name, count) => {
      const world = openWorld();
      const id = world.put("refused", manifestText(world.page, count, "refused"));
      expect(await world.targetOf(id, "refused/1.html")).toBe(world.page);
      world.refused.add(id);
      expect(await world.targetOf(id, "refused/1.html").catch(codeOf)).toBe("blocked");
      world.refused.delete(id);
      expect(await world.targetOf(id, "refused/1.html")).toBe(world.page);
    },
  );

  test("that cannot be read is read once, whatever its size", async () => {
    const world = openWorld();
    const bad = world.put("bad", new Uint8Array(2 ** 21).fill(0x5b));
    for (let round = 0; round < 3; round += 1)
      expect(await world.targetOf(bad, "a").catch(codeOf)).toBe("not_found");
    expect(world.reads.get(bad)).toBe(1);
    expect(readdirSync(world.large.folder, { recursive: true }).length).toBe(2);
  });

  test("whose bytes cannot be had fails as they do, and is built when they can be", async () => {
    const world = openWorld();
    const body = manifestText(world.page, pathCount, "cut");
    const cut = world.content.put("cut", { body, contentType, breaksAt: 2 ** 20 });
    expect(await world.targetOf(cut, "cut/1.html").catch(codeOf)).toBe("source_failed");
    world.content.put("cut", { body, contentType });
    expect(await world.targetOf(cut, "cut/1.html")).toBe(world.page);
  });

  test("for which the disk has no room is answered busy, and later", async () => {
    const world = openWorld({ folder: "/proc/none" });
    expect(await world.targetOf(world.put("a"), "a/1.html").catch(codeOf)).toBe("busy");
  });
});
