/**
 * Items whose tags have empty names or values: taken, served, indexed and found, uploaded and in bundles of others.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeBundle } from "../../../src/arweave/bundle.ts";
import { readItemHeader } from "../../../src/arweave/data-item.ts";
import type { Tag } from "../../../src/arweave/tags.ts";
import { post, rsa } from "../../dev/devnet/support.ts";
import { bundleTags, makeItem } from "../../indexing/samples.ts";
import { eventually } from "../../support/until.ts";
import { openUploadStack, sendItem, type UploadStack, untilFinalized } from "../../support/upload-stack.ts";

let stack: UploadStack;
beforeAll(async () => {
  stack = await openUploadStack();
}, 60_000);
afterAll(() => stack.close());

const tags: readonly Tag[] = [
  { name: "", value: "a value without a name" },
  { name: "a name without a value", value: "" },
  { name: "", value: "" },
  { name: "Content-Type", value: "" },
];
const idOf = (item: Uint8Array): string => {
  const read = readItemHeader(item, "strict");
  if (read.kind !== "header") throw new Error(JSON.stringify(read));
  return read.header.id;
};

/** Ids and tags of what has a tag. */
async function found(name: string, values: readonly string[], more = "") {
  const query = `query ($name: String!, $values: [String!]!) {
    transactions(tags: [{ name: $name, values: $values }] ${more}) { edges { node { id tags { name value } } } }
  }`;
  const response = await fetch(`${stack.content}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query, variables: { name, values } }),
  });
  const { data } = await response.json();
  return data.transactions.edges.map(({ node }: { node: unknown }) => node);
}

async function expectFound(id: string): Promise<void> {
  for (const { name, value } of tags) {
    const rows = await found(name, ["other", value], `ids: ["${id}"]`);
    expect([name, value, rows]).toEqual([name, value, [{ id, tags }]]);
  }
  expect(await found("", ["other"])).toEqual([]);
  expect(await found("a name without a value", ["x"])).toEqual([]);
  const response = await fetch(`${stack.content}/raw/${id}`);
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/octet-stream"]);
}

test("an upload is taken and found, before and after its block", async () => {
  const item = makeItem("uploaded", { tags });
  const { id } = await sendItem(stack.uploads, item);
  expect(id).toBe(idOf(item));
  await eventually(
    () => found("", [""]),
    (rows) => rows.length > 0,
  );
  await expectFound(id);
  await untilFinalized(stack, id);
  await eventually(
    async () => stack.gateway.reader.row(id as never)?.block,
    (block) => block !== undefined,
  );
  await expectFound(id);
}, 60_000);

test("an item of another bundle is valid", async () => {
  const item = makeItem("of a bundle", { tags });
  const bundle = await post(stack.devnet, rsa, { data: writeBundle([item]), tags: [...bundleTags] });
  await stack.devnet.mine(1);
  await eventually(
    async () => stack.gateway.reader.bundleStatus(bundle.id),
    (status) => status?.matchedDataItemCount === 1,
  );
  expect(stack.gateway.reader.invalidItems(bundle.id, 0, 10)?.items).toEqual([]);
  await expectFound(idOf(item));
}, 60_000);
