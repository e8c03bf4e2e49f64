/**
 * SERVICES: a service that is left out opens no port, has no routes on the gateway, and sends no requests; what was
 * accepted before stays readable.
 * Source: docs/operating.md#services.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { readConfig } from "../../src/config/config.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";
import { testItem } from "../support/upload.ts";
import { openUploadStack, sendItem } from "../support/upload-stack.ts";

/** Counts requests. */
function openCounter(respond: (request: Request) => Response | Promise<Response>) {
  const paths: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      paths.push(new URL(request.url).pathname);
      return respond(request);
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, paths, close: () => server.stop(true) };
}

const cases = [
  { SERVICES: "gateway", services: [], asksPrice: false, asksFeed: false },
  { SERVICES: "gateway,upload", services: ["upload"], asksPrice: true, asksFeed: false },
  { SERVICES: "gateway,payment", services: ["payment"], asksPrice: true, asksFeed: true },
  { SERVICES: "upload,payment,gateway", services: ["upload", "payment"], asksPrice: true, asksFeed: true },
] as const;

describe.each(cases)("SERVICES=$SERVICES", ({ SERVICES, services, asksPrice, asksFeed }) => {
  test("opens the ports and routes of these services, and asks only for what they need", async () => {
    const feed = openCounter(() => new Response("{}"));
    let node: ReturnType<typeof openCounter> | undefined;
    const stack = await openUploadStack({
      environment: { SERVICES, PRICE_FEED_URL: feed.url },
      before: (url) => {
        node = openCounter((request) => {
          const { pathname, search } = new URL(request.url);
          return fetch(`${url}${pathname}${search}`, request);
        });
        return node.url;
      },
    });
    try {
      expect([...stack.gateway.serviceUrls.keys()].toSorted()).toEqual([...services].toSorted());
      for (const name of ["payment", "upload"] as const) {
        const { status } = await fetch(`${stack.content}/${name}/info`);
        expect([name, status]).toEqual([name, (services as readonly string[]).includes(name) ? 200 : 404]);
      }
      const isAsked = () => [node?.paths.some((path) => path.startsWith("/price/")), feed.paths.length > 0];
      await eventually(
        async () => isAsked(),
        ([price, feedPrice]) => price === asksPrice && feedPrice === asksFeed,
      );
      expect(isAsked()).toEqual([asksPrice, asksFeed]);
    } finally {
      await stack.close();
      feed.close();
      node?.close();
    }
  }, 60_000);
});

describe("a gateway whose uploads are switched off", () => {
  let folder = "";
  afterAll(() => removeFolder(folder));

  test("serves what was accepted before, and says that it is not posted", async () => {
    const environment = { UPLOAD_BUNDLE_WAIT_MS: "86400000" };
    const item = testItem("accepted before");
    const before = await startDev({ environment });
    folder = before.folder;
    await sendItem(before.line.upload, item.bytes);
    expect(await before.stop()).toBe(0);
    const after = await startDev({ folder, environment: { ...environment, SERVICES: "gateway" } });
    try {
      const { gateway, payment, upload, sandbox } = after.line;
      expect([payment, upload, sandbox]).toEqual([undefined, undefined, undefined] as unknown[] as string[]);
      expect(await (await fetch(`${gateway}/raw/${item.id}`)).text()).toBe("accepted before");
      expect(after.errors()).toContain("accepted uploads are not posted to the chain while SERVICES leaves out upload");
    } finally {
      await after.stop();
    }
  }, 120_000);
});

describe("rejected", () => {
  test.each([
    ["dev", "payment,upload", "SERVICES must include gateway under dev"],
    ["serve", ",", "SERVICES must name at least one of gateway, payment, upload"],
    ["serve", "gateway,graphql", "gateway, payment, upload"],
  ] as const)("%s with SERVICES=%s", (mode, SERVICES, reason) => {
    expect(readConfig({ SERVICES }, mode).complaints.join("\n")).toContain(reason);
  });

  test("a shared port, but not with a service that is left out", () => {
    const alone = { SERVICES: "payment", GATEWAY_PORT: "3001", PAYMENT_PORT: "3001" };
    expect(readConfig(alone, "serve").complaints).toEqual([]);
    const shared = { GATEWAY_PORT: "3001", PAYMENT_PORT: "3001" };
    expect(readConfig(shared, "serve").complaints.length).toBe(1);
    expect(readConfig({ ...shared, SERVICES: "gateway,upload" }, "serve").complaints).toEqual([]);
  });
});
