/**
 * Large manifests as requests see them: read once however many ask, at most two at once, a bounded wait, and never once
 * the manifest itself may not leave.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import type { OpenContent } from "../../src/content/opened-content.ts";
import { Failure } from "../../src/failures.ts";
import { createResolver } from "../../src/gateway/resolve.ts";
import {
  inlineBuilder,
  type ManifestBuilder,
  openTestManifests,
  type TestManifestsOptions,
} from "../support/large-manifests.ts";
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
function openFixture(options: TestManifestsOptions = {}) {
  const content = createMemoryContent();
  const page = content.put("page", { body: new Uint8Array(1) });
  const large = openTestManifests(options);
  const reads = new Map<string, number>();
  const blocked = new Set<string>();
  closing.push(large.close, content.close);
  const put = (name: string, text = manifestText(page, pathCount, name)) =>
    content.put(name, { body: text, contentType });
  const open = async (id: ReturnType<typeof put>): Promise<OpenContent> => {
    const found = await content.open(id, never);
    return {
      ...found,
      check: async () => {
        if (blocked.has(id)) throw new Failure("blocked", { id });
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
  return { content, page, large, reads, blocked, put, targetOf };
}

/** A builder that waits before each job until `release` is called. */
function heldBuilder(): Readonly<{ builder: ManifestBuilder; release: () => void; begun: () => number }> {
  const released = Promise.withResolvers<void>();
  const inner = inlineBuilder();
  let begun = 0;
  return {
    release: released.resolve,
    begun: () => begun,
    builder: {
      run: async (name, job, options) => {
        begun += 1;
        await released.promise;
        return await inner.run(name, job, options);
      },
    },
  };
}

const codeOf = (error: unknown) => (error instanceof Failure ? error.code : String(error));

describe("M1: a large manifest", () => {
  test("is read once for all concurrent clients, not again for later ones, and not again after a restart", async () => {
    const fixture = openFixture();
    const ids = ["a", "b", "c", "d", "e", "f"].map((name) => fixture.put(name));
    const asked = Array.from({ length: 80 }, async (_, at) => {
      const number = at % ids.length;
      const id = ids[number];
      return id === undefined ? undefined : await fixture.targetOf(id, `${"abcdef"[number]}/${at}.html`);
    });
    expect(new Set(await Promise.all(asked))).toEqual(new Set([fixture.page]));
    for (let round = 0; round < 3; round += 1)
      for (const [number, id] of ids.entries())
        expect(await fixture.targetOf(id, `${"abcdef"[number]}/${pathCount - 1}.html`)).toBe(fixture.page);
    expect([...fixture.reads.values()]).toEqual(ids.map(() => 1));

    const again = openTestManifests({ folder: fixture.large.folder });
    const first = ids[0];
    if (first === undefined) throw new Error("there are six");
    expect(await again.resolve(await fixture.content.open(first, never), "a/7.html", never)).toEqual({
      id: fixture.page,
      fallback: false,
    });
    await again.close();
    expect(fixture.content.openReads()).toBe(0);
  });

  test("is built with at most two at a time; a running build delays other builds, not manifests with an index", async () => {
    const held = [heldBuilder(), heldBuilder()];
    const fixture = openFixture({ builders: held.map(({ builder }) => builder) });
    const ids = ["a", "b", "c"].map((name) => fixture.put(name));
    const waiting = ids.map((id) => fixture.targetOf(id, "none").catch(codeOf));
    await eventually(
      async () => held.map(({ begun }) => begun()),
      (begun) => begun.every((count) => count === 1),
    );
    expect(fixture.reads.size).toBe(2);
    for (const { release } of held) release();
    expect(await Promise.all(waiting)).toEqual(["not_found", "not_found", "not_found"]);
    expect(fixture.reads.size).toBe(3);
  });

  test("beyond the queue limit is rejected, to be requested again", async () => {
    const { builder, release } = heldBuilder();
    const fixture = openFixture({ builders: [builder] });
    const text = manifestText(fixture.page, pathCount);
    const ids = Array.from({ length: 40 }, (_, at) => fixture.put(`many ${at}`, text));
    const asked = ids.map((id) => fixture.targetOf(id, "p/1.html").catch(codeOf));
    expect(await Promise.race(asked)).toBe("busy");
    release();
    const outcomes = await Promise.all(asked);
    expect(outcomes.filter((outcome) => outcome === "busy").length).toBe(8);
    expect(outcomes.filter((outcome) => outcome === fixture.page).length).toBe(32);
  });

  test("that is blocked during its build is not served, to waiting clients neither", async () => {
    const { builder, release, begun } = heldBuilder();
    const fixture = openFixture({ builders: [builder] });
    const id = fixture.put("blocked meanwhile");
    const asked = ["p/1.html", "p/2.html", "none"].map((path) => fixture.targetOf(id, path).catch(codeOf));
    await eventually(
      async () => begun(),
      (count) => count === 1,
    );
    fixture.blocked.add(id);
    release();
    expect(await Promise.all(asked)).toEqual(["blocked", "blocked", "blocked"]);
  });

  test("that is blocked already is not read", async () => {
    const fixture = openFixture();
    const id = fixture.put("blocked before");
    fixture.blocked.add(id);
    expect(await fixture.targetOf(id, "p/1.html").catch(codeOf)).toBe("blocked");
    expect(fixture.reads.size).toBe(0);
    fixture.blocked.delete(id);
    expect(await fixture.targetOf(id, "blocked before/1.html")).toBe(fixture.page);
  });

  test("is built to the end when its clients have left", async () => {
    const { builder, release } = heldBuilder();
    const fixture = openFixture({ builders: [builder] });
    const id = fixture.put("left");
    const leaving = new AbortController();
    const asked = fixture.targetOf(id, "left/1.html", leaving.signal).catch(codeOf);
    await eventually(
      async () => fixture.reads.size,
      (size) => size === 1,
    );
    leaving.abort(new DOMException("left", "AbortError"));
    expect(await asked).toContain("AbortError");
    release();
    expect(await fixture.targetOf(id, "left/1.html")).toBe(fixture.page);
    expect(fixture.reads.get(id)).toBe(1);
  });

  test.each([
    ["large", pathCount],
    ["small", 10],
  ])(
    "that is %s and rejected leads nowhere though it was read, and leads there again once it is not",
    async (_name, count) => {
      const fixture = openFixture();
      const id = fixture.put("blocked", manifestText(fixture.page, count, "blocked"));
      expect(await fixture.targetOf(id, "blocked/1.html")).toBe(fixture.page);
      fixture.blocked.add(id);
      expect(await fixture.targetOf(id, "blocked/1.html").catch(codeOf)).toBe("blocked");
      fixture.blocked.delete(id);
      expect(await fixture.targetOf(id, "blocked/1.html")).toBe(fixture.page);
    },
  );

  test("that cannot be read is read once, whatever its size", async () => {
    const fixture = openFixture();
    const bad = fixture.put("bad", new Uint8Array(2 ** 21).fill(0x5b));
    for (let round = 0; round < 3; round += 1) expect(await fixture.targetOf(bad, "a").catch(codeOf)).toBe("not_found");
    expect(fixture.reads.get(bad)).toBe(1);
    expect(readdirSync(fixture.large.folder, { recursive: true }).length).toBe(2);
  });

  test("whose bytes are unavailable fails with their error, and is built when they are available", async () => {
    const fixture = openFixture();
    const body = manifestText(fixture.page, pathCount, "cut");
    const cut = fixture.content.put("cut", { body, contentType, breaksAt: 2 ** 20 });
    expect(await fixture.targetOf(cut, "cut/1.html").catch(codeOf)).toBe("source_failed");
    fixture.content.put("cut", { body, contentType });
    expect(await fixture.targetOf(cut, "cut/1.html")).toBe(fixture.page);
  });

  test("without space on the disk is rejected as busy, with a retry time", async () => {
    const fixture = openFixture({ folder: "/proc/none" });
    expect(await fixture.targetOf(fixture.put("a"), "a/1.html").catch(codeOf)).toBe("busy");
  });
});
