/**
 * Blocks of items that the index does not have yet: what is in memory of the bundle around one is rejected as soon as
 * the bundle is read.
 * @module
 */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { post, rsa } from "../dev/devnet/support.ts";
import { announcementOf, bundleTags, makeItem, makeNested } from "../indexing/samples.ts";
import { adminKey, askAdmin, openStack } from "../support/stack.ts";
import { until } from "../support/until.ts";

const text = "what must not be seen";

test.each(["id", "hash"] as const)(
  "an item that is blocked by its %s before the index has it",
  async (kind) => {
    const never = '{"never":true}';
    const stack = await openStack({
      ADMIN_API_KEY: adminKey,
      ANS104_UNBUNDLE_FILTER: never,
      ANS104_INDEX_FILTER: never,
    });
    try {
      const [secret, beside] = [makeItem(text), makeItem("what may")];
      const [secretId, besideId] = [announcementOf(secret).id, announcementOf(beside).id];
      const bundle = await post(stack.devnet, rsa, {
        data: writeBundle([makeNested([secret]), beside]),
        tags: [...bundleTags],
      });
      await stack.devnet.mine(60); // so deep that a response is cached until something changes it
      await stack.settled();
      const { url, reader } = stack.gateway;
      const hash = createHash("sha256").update(text).digest("base64url");
      const rule = kind === "id" ? { id: secretId } : { hash };
      expect((await askAdmin(stack, "PUT", "block-data", rule)).status).toBe(200);
      const offset = (reader.weaveSpan(bundle.id)?.start ?? 0n) + 1n;
      const asks = [`/raw/${bundle.id}`, `/${bundle.id}`, `/chunk/${offset}`, `/chunk/${offset}/data`];
      const statuses = () =>
        Promise.all(
          asks.map(async (path) => {
            const response = await fetch(`${url}${path}`);
            await response.arrayBuffer();
            return response.status;
          }),
        );
      for (let round = 0; round < 2; round += 1) expect(await statuses()).toEqual([200, 200, 200, 200]);
      await askAdmin(stack, "POST", "queue-bundle", { id: bundle.id });
      await until(() => reader.locate(secretId) !== undefined, "the index has the item");
      expect(await statuses()).toEqual([451, 451, 451, 451]);
      expect((await fetch(`${url}/raw/${besideId}`)).status).toBe(200);
    } finally {
      await stack.close();
    }
  },
  120_000,
);
