/**
 * The invalid items of a bundle at `/svc/invalid-items/{id}`: from a posted bundle to the pages of the list.
 * Source: docs/reference/gateway.md#invalid-items.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { post, rsa } from "../dev/devnet/support.ts";
import { bundleTags, makeFlawedBundle } from "../indexing/samples.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { eventually } from "../support/until.ts";

describe("invalid items", () => {
  const { data, valid, invalid } = makeFlawedBundle();
  let stack: Stack;
  let bundle: string;
  const read = async (path: string) => {
    const response = await fetch(`${stack.gateway.url}/svc/invalid-items/${path}`);
    return { status: response.status, body: await response.json() };
  };
  beforeAll(async () => {
    stack = await openStack();
    ({ id: bundle } = await post(stack.devnet, rsa, { data, tags: [...bundleTags] }));
    await stack.devnet.mine(1);
    await eventually(
      () => read(bundle),
      ({ body }) => body.itemCount === 6,
      30_000,
    );
  }, 60_000);
  afterAll(() => stack?.close());

  test("are listed with their reasons, while the valid ones are indexed", async () => {
    const { status, body } = await read(bundle);
    expect([status, body.id, body.invalidCount, body.next]).toEqual([200, bundle, 4, null]);
    expect(body.items.map(({ index, id }: Record<string, unknown>) => ({ index, id }))).toEqual(
      invalid.map(({ index, id }) => ({ index, id })),
    );
    for (const [number, { reason }] of invalid.entries()) expect(body.items[number].reason).toContain(reason);
    for (const id of valid) expect(stack.gateway.reader.locate(id)).toMatchObject({ verified: true });
  });

  test("are read page by page", async () => {
    const seen: number[] = [];
    let next: string | null = "";
    while (next !== null) {
      const { body } = await read(`${bundle}?limit=3${next === "" ? "" : `&after=${next}`}`);
      seen.push(...body.items.map(({ index }: Readonly<{ index: number }>) => index));
      next = body.next;
    }
    expect(seen).toEqual([1, 2, 3, 4]);
    expect((await read(`${bundle}?after=4`)).body).toMatchObject({ items: [], next: null, invalidCount: 4 });
  });

  test.each([
    ["an id that is not valid", () => "abc", 400],
    ["an id that the index does not have", () => "A".repeat(43), 404],
    ["an item that holds no bundle", () => valid[0] ?? "", 404],
    ["a limit of 0", () => `${bundle}?limit=0`, 400],
    ["a cursor without a number", () => `${bundle}?after=x`, 400],
  ])("rejected: %s", async (_, path, status) => {
    expect((await read(path())).status).toBe(status);
  });
});
