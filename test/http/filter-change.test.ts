/**
 * Filters that change between two runs, and bundles that an operator has evaluated again by height.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { readItemHeader } from "../../src/arweave/data-item.ts";
import type { Id } from "../../src/arweave/id.ts";
import { post, rsa } from "../dev/devnet/support.ts";
import { bundleTags, makeItem } from "../indexing/samples.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { until } from "../support/until.ts";

const key = "key-of-this-test";
const opened: Stack[] = [];
afterEach(async () => {
  for (const stack of opened.splice(0)) await stack.close();
});

async function ask(stack: Stack, method: string, path: string, body?: unknown) {
  const response = await fetch(`${stack.gateway.adminUrl ?? stack.gateway.url}/svc/admin/${path}`, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

const tagged = (value: string) => [{ name: "Kind", value }];
const kind = (value: string): string => JSON.stringify({ tags: [{ name: "Kind", value }] });
const idOf = (item: Uint8Array): Id => {
  const read = readItemHeader(item, "strict");
  if (read.kind !== "header") throw new Error("the test's item is an item");
  return read.header.id;
};

/** Two bundles of two items each, a block each: one of kind a with items of kinds a and b, one of kind b. */
async function openWith(environment: Readonly<Record<string, string>>) {
  const stack = await openStack({ ADMIN_API_KEY: key, ...environment });
  opened.push(stack);
  const ids: Id[] = [];
  const bundles: Id[] = [];
  for (const name of ["a", "b"]) {
    const items = [makeItem(`${name} 1`, { tags: tagged("a") }), makeItem(`${name} 2`, { tags: tagged("b") })];
    const tags = [...bundleTags, ...tagged(name)];
    bundles.push((await post(stack.devnet, rsa, { data: writeBundle(items), tags })).id);
    ids.push(...items.map(idOf));
    await stack.devnet.mine(1);
  }
  await stack.settled();
  const found = () => ids.map((id) => (stack.gateway.reader.placeOf(id) === undefined ? "-" : "x")).join("");
  /** Until all that is known to be there was evaluated: a pass over no bundle ends after filters were compared. */
  const evaluated = async () => {
    await ask(stack, "POST", "queue-bundles", { startHeight: 1_000, endHeight: 1_000 });
    await until(() => stack.gateway.reader.bundlePasses().length === 0, "no pass is under way");
    await stack.settled();
  };
  /** How often each bundle was unbundled. */
  const attempts = () => bundles.map((id) => stack.gateway.reader.bundleStatus(id)?.importAttemptCount ?? 0);
  return { stack, found, evaluated, attempts };
}

const always = '{"always":true}';
const never = '{"never":true}';

describe("filters that change", () => {
  test.each([
    ["skipped bundles", { ANS104_UNBUNDLE_FILTER: never }, "----", { ANS104_UNBUNDLE_FILTER: kind("b") }, "--xx"],
    ["all bundles", { ANS104_UNBUNDLE_FILTER: kind("a") }, "xx--", { ANS104_UNBUNDLE_FILTER: always }, "xxxx"],
    ["items", { ANS104_INDEX_FILTER: kind("a") }, "x-x-", { ANS104_INDEX_FILTER: always }, "xxxx"],
    ["other items", { ANS104_INDEX_FILTER: kind("a") }, "x-x-", { ANS104_INDEX_FILTER: kind("b") }, "xxxx"],
    ["fewer items, which takes none away", {}, "xxxx", { ANS104_INDEX_FILTER: kind("a") }, "xxxx"],
  ])(
    "apply to older bundles after a restart: %s",
    async (_name, first, before, second, after) => {
      const { stack, found, evaluated } = await openWith(first);
      expect(found()).toBe(before);
      await stack.restart(second);
      await evaluated();
      expect(found()).toBe(after);
      const { body } = await ask(stack, "GET", "debug");
      expect(body.db).toMatchObject({ bundlePasses: [], errors: [], counts: { queuedBundles: 0 } });
      expect(stack.gateway.reader.integrity()).toEqual([]);
    },
    60_000,
  );

  test("are compared once: the same filters again evaluate nothing", async () => {
    const { stack, evaluated, attempts } = await openWith({ ANS104_INDEX_FILTER: kind("a") });
    expect(attempts()).toEqual([1, 1]);
    await stack.restart({ ANS104_INDEX_FILTER: always });
    await evaluated();
    expect(attempts()).toEqual([2, 2]);
    for (let count = 0; count < 2; count += 1) {
      await stack.restart({ ANS104_INDEX_FILTER: always });
      await evaluated();
    }
    expect(attempts()).toEqual([2, 2]);
  }, 60_000);

  test("leave older bundles alone where FILTER_CHANGE_REPROCESS=false, until an operator asks for heights", async () => {
    const { stack, found, evaluated } = await openWith({ ANS104_UNBUNDLE_FILTER: never });
    await stack.restart({ ANS104_UNBUNDLE_FILTER: always, FILTER_CHANGE_REPROCESS: "false" });
    await evaluated();
    expect(found()).toBe("----");
    const queued = { status: 200, body: { message: "Bundles queued" } };
    expect(await ask(stack, "POST", "queue-bundles", { startHeight: 2, endHeight: 1_000 })).toEqual(queued);
    await evaluated();
    expect(found()).toBe("--xx");
    expect(await ask(stack, "POST", "queue-bundles", { startHeight: 0, endHeight: 1 })).toEqual(queued);
    await evaluated();
    expect(found()).toBe("xxxx");
  }, 60_000);
});

describe("queue-bundles", () => {
  test("evaluates by the filters in force, or bypasses them, newest first, also after a restart", async () => {
    const filters = { ANS104_UNBUNDLE_FILTER: kind("a"), ANS104_INDEX_FILTER: kind("a") };
    const { stack, found, evaluated } = await openWith(filters);
    expect(found()).toBe("x---");
    const all = { startHeight: 0, endHeight: Number.MAX_SAFE_INTEGER };
    await ask(stack, "POST", "queue-bundles", all);
    await evaluated();
    expect(found()).toBe("x---");
    await ask(stack, "POST", "queue-bundles", { ...all, bypassFilter: true });
    await stack.restart();
    await until(() => found() === "xxxx", "all is indexed");
    await evaluated();
  }, 60_000);

  test("is rejected in the words of the other routes", async () => {
    const { stack } = await openWith({ ANS104_UNBUNDLE_FILTER: never });
    const start = "Invalid startHeight - must be a positive integer";
    const end = "Invalid endHeight - must be a positive integer greater than or equal to startHeight";
    const rows: readonly (readonly [unknown, unknown])[] = [
      [{}, start],
      [{ startHeight: -1, endHeight: 2 }, start],
      [{ startHeight: "1", endHeight: 2 }, start],
      [{ startHeight: 1 }, end],
      [{ startHeight: 2, endHeight: 1 }, end],
      [{ startHeight: 1, endHeight: 1.5 }, end],
      [{ startHeight: 1, endHeight: 1, bypassFilter: "yes" }, "'bypassFilter' must be a boolean"],
      ["{", "Malformed JSON body"],
    ];
    for (const [body, message] of rows)
      expect([body, await ask(stack, "POST", "queue-bundles", body)]).toEqual([body, { status: 400, body: message }]);
    const response = await fetch(`${stack.gateway.url}/ar-io/admin/queue-bundles`, { method: "POST" });
    expect(response.status).toBe(401);
  }, 60_000);
});
