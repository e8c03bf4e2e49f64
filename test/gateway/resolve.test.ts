/**
 * Paths in manifests: what was read of one before it was checked does not outlive the checking.
 * @module
 */
import { expect, test } from "bun:test";
import { createResolver } from "../../src/gateway/resolve.ts";
import { openTestManifests } from "../support/large-manifests.ts";
import { createMemoryContent } from "../support/memory-content.ts";

const never = new AbortController().signal;
const contentType = "application/x.arweave-manifest+json";

test.each([
  ["small", 0],
  ["large", 2 ** 20],
])("a %s manifest that a gateway gave wrong is read anew once it is checked", async (name, padding) => {
  const content = createMemoryContent();
  const right = content.put("right", { body: new Uint8Array(1) });
  const wrong = content.put("wrong", { body: new Uint8Array(1) });
  const put = (target: string, verified: boolean) => {
    const text = JSON.stringify({
      manifest: "arweave/paths",
      version: "0.2.0",
      paths: { a: { id: target } },
    });
    const body = new TextEncoder().encode(text + " ".repeat(padding));
    return content.put(`${name} manifest`, { body, contentType, verified });
  };
  const large = openTestManifests();
  const resolver = createResolver(large);
  const targetOf = async (id: ReturnType<typeof put>) => {
    const found = await resolver.resolve(id, "a", content.open, never);
    return found.kind === "content" ? found.content.id : found.kind;
  };

  expect(await targetOf(put(wrong, false))).toBe(wrong);
  const id = put(right, true);
  expect(await targetOf(id)).toBe(right);
  expect(await targetOf(id)).toBe(right); // stored by now
  await large.close();
  await content.close();
});
