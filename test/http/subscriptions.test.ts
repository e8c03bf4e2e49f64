/**
 * GraphQL subscriptions over sockets: server-sent events at `/graphql`, by filters, with the selected fields, resumed by
 * a header or an argument, and rejected within the limits of queries.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { bundleOf, bundleTags, makeItem } from "../content/bundles.ts";
import { post, rsa, testBytes } from "../dev/devnet/support.ts";
import { type EventClient, followEvents } from "../support/event-reader.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { until } from "../support/until.ts";

let stack: Stack;
const settings = {
  EVENT_SUBSCRIBERS_MAX: "40",
  ENABLE_MEMPOOL_WATCHER: "true",
  ANS104_UNBUNDLE_FILTER: '{"always":true}',
  ANS104_INDEX_FILTER: '{"always":true}',
};
beforeAll(async () => {
  stack = await openStack(settings);
  await stack.devnet.mine(2);
  await stack.settled();
}, 60_000);
afterAll(() => stack.close());

const url = () => `${stack.gateway.url}/graphql`;
const tagged = (name: string) => [{ name: "App-Name", value: name }];
const follow = (query: string, variables: object = {}, lastEventId?: string) =>
  followEvents(url(), lastEventId, { query, variables });

/** The results of one root field. */
function resultsOf(client: EventClient, key: string): Record<string, unknown>[] {
  return client.events.flatMap(({ event, data }) => {
    const found = (data["data"] as Record<string, Record<string, unknown>> | undefined)?.[key];
    return event === "next" && found !== undefined ? [found] : [];
  });
}

const everyField = `
  subscription Rows($name: String!) {
    seen: transactions(tags: [{ name: "App-Name", values: [$name] }]) { __typename cursor kind reason node { ...fields } }
  }
  fragment fields on EventTransaction {
    __typename id recipient pending owner { address } data { size type } tags { name value }
    block { id height timestamp previous } bundledIn { id }
  }`;

describe("N8: a subscription", () => {
  test("has the selected fields of a transaction that becomes pending, then mined", async () => {
    const client = await follow(everyField, { name: "all" });
    expect(client.response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const other = await follow(everyField, { name: "other" });
    const tags = [...tagged("all"), { name: "Content-Type", value: 'text/"plain"' }];
    const sent = await post(stack.devnet, rsa, { data: testBytes(100), tags });
    await until(() => resultsOf(client, "seen").length === 1);
    await stack.devnet.mine(1);
    await until(() => resultsOf(client, "seen").length === 2);
    const node = {
      ...{ __typename: "EventTransaction", id: sent.id, recipient: "", owner: { address: rsa.address } },
      ...{ data: { size: "100", type: 'text/"plain"' }, tags, bundledIn: null },
    };
    const tip = stack.gateway.reader.tip();
    const block = stack.gateway.reader.block(tip?.height ?? 0);
    const { hash: id, height, timestamp, previous } = block ?? {};
    const ids = client.events.map((event) => event.id);
    const common = { __typename: "TransactionEvent", reason: null };
    expect(resultsOf(client, "seen")).toEqual([
      { ...common, cursor: ids[0] ?? "", kind: "PENDING", node: { ...node, block: null, pending: true } },
      {
        ...{ ...common, cursor: ids[1] ?? "", kind: "MINED" },
        node: { ...node, block: { id, height, timestamp, previous }, pending: false },
      },
    ]);
    expect(other.events).toEqual([]);
    await client.leave();
    await other.leave();
  }, 60_000);

  test("chooses the items of a bundle, transactions alone, and heights", async () => {
    const items = [makeItem(10), makeItem(20)];
    const sent = await post(stack.devnet, rsa, { data: bundleOf(items), tags: bundleTags });
    const height = stack.devnet.height() + 1;
    const rows =
      "subscription($in: [ID!], $block: BlockFilter) { transactions(bundledIn: $in, block: $block) { node { id } } }";
    const inBundle = await follow(rows, { in: [sent.id] });
    const onlyRoots = await follow(rows, { in: null, block: { min: height } });
    const never = await follow(rows, { in: ["short"] });
    const blocks = await follow(`subscription { blocks(height: { min: ${height + 1} }) { kind node { height id } } }`);
    await stack.devnet.mine(2);
    await until(() => inBundle.events.length === 2 && blocks.events.length === 1 && onlyRoots.events.length === 1);
    expect(resultsOf(inBundle, "transactions")).toEqual(items.map(({ id }) => ({ node: { id } })));
    expect(resultsOf(onlyRoots, "transactions")).toEqual([{ node: { id: sent.id } }]);
    const { hash } = stack.devnet.blockAt(height + 1) ?? {};
    expect(resultsOf(blocks, "blocks")).toEqual([{ kind: "MINED", node: { height: height + 1, id: hash } }]);
    expect(never.events).toEqual([]);
    for (const client of [inBundle, onlyRoots, never, blocks]) await client.leave();
  }, 60_000);

  test("goes on after a restart with what was missed, each once, by the header and by the argument", async () => {
    const query = "subscription($after: String) { blocks(after: $after) { cursor node { height } } }";
    const before = await follow(query);
    await until(() => before.lastId() !== "");
    await stack.devnet.mine(1);
    await until(() => before.events.length === 1);
    await stack.restart();
    await before.ended;
    const stopping = { message: "The gateway is stopping.", extensions: { code: "GATEWAY_STOPPING" } };
    expect(before.events.slice(1)).toMatchObject([
      { event: "next", data: { errors: [stopping] } },
      { event: "complete", data: {} },
    ]);
    await stack.devnet.mine(2);
    await stack.settled();
    const cursor = resultsOf(before, "blocks")[0]?.["cursor"];
    expect(cursor).toBe(before.lastId());
    // As EventSource does.
    const byHeader = await followEvents(`${url()}?${new URLSearchParams({ query })}`, before.lastId());
    const byArgument = await follow(query, { after: cursor });
    const byBoth = await follow(query, { after: "000000000000-1" }, before.lastId());
    await stack.devnet.mine(1);
    const height = stack.devnet.height();
    for (const client of [byHeader, byArgument, byBoth]) {
      await until(() => client.events.length === 3);
      const heights = resultsOf(client, "blocks").map(({ node }) => (node as { height: number }).height);
      expect(heights).toEqual([height - 2, height - 1, height]);
      await client.leave();
    }
  }, 60_000);

  test("with a cursor of another index gets one RESET with the reason", async () => {
    const query = 'subscription { blocks(after: "000000000000-1") { kind node { id } reason } }';
    const client = await follow(query);
    await until(() => client.events.length === 1);
    const reason = "The cursor is not in the journal: it is too old, or of another index.";
    expect(resultsOf(client, "blocks")).toEqual([{ kind: "RESET", node: null, reason }]);
    await client.leave();
  });

  test.each([
    ["an invalid cursor", 'subscription { blocks(after: "5") { kind } }', "Invalid event cursor"],
    ["too many owners", `subscription { transactions(owners: ["${'x","'.repeat(101)}"]) { kind } }`, "at most 100"],
    ["a field twice", "subscription { blocks { kind a: node { id } b: node { id } } }", 'selects "node" twice'],
    ["a nested field twice", "subscription { transactions { node { tags { a: name name } } } }", '"name" twice'],
    ["two root fields", "subscription { blocks { kind } b: blocks { kind } }", "must select only one top level field"],
    ["introspection", "subscription { __typename }", "must not select an introspection top level field"],
    ["no field at all", "subscription { blocks @skip(if: true) { kind } }", "selects one field"],
    ["fields of pages", "subscription { transactions { edges { cursor } } }", 'Cannot query field "edges"'],
    ["too many fields", `subscription { blocks { ${"kind ".repeat(1_001)} } }`, "at most 1000 is allowed"],
    ["a cycle of fragments", "subscription { ...a } fragment a on Subscription { ...a }", "Cannot spread fragment"],
  ])("of %s ends with the reason", async (_name, query, message) => {
    const client = await follow(query);
    await client.ended;
    expect([client.response.status, client.events.map(({ event }) => event)]).toEqual([200, ["next", "complete"]]);
    expect(JSON.stringify(client.events[0]?.data["errors"])).toContain(JSON.stringify(message).slice(1, -1));
    expect(client.events[0]?.data).not.toHaveProperty("data");
  });

  test("needs a client that accepts a stream; a query may have one", async () => {
    const ask = (query: string, accept: string) =>
      fetch(url(), {
        method: "POST",
        body: JSON.stringify({ query }),
        headers: { "Content-Type": "application/json", Accept: accept },
      });
    const rejected = await ask("subscription { blocks { kind } }", "application/json");
    expect([rejected.status, await rejected.text()]).toEqual([406, expect.stringContaining("text/event-stream")]);
    const any = await ask("subscription { blocks { kind } }", "*/*");
    expect(any.headers.get("content-type")).toContain("text/event-stream");
    await any.body?.cancel();
    const both = await ask("{ __typename }", "text/event-stream, application/json");
    expect(await both.text()).toBe('{"data":{"__typename":"Query"}}');
    const streamed = await ask("{ __typename }", "text/event-stream");
    expect(await streamed.text()).toBe(
      'event: next\ndata: {"data":{"__typename":"Query"}}\n\nevent: complete\ndata:\n\n',
    );
    const bad = await fetch(url(), { method: "POST", body: "{", headers: { Accept: "text/event-stream" } });
    expect([bad.status, bad.headers.get("content-type")]).toEqual([415, "application/json; charset=utf-8"]);
  });

  test("with a bad Last-Event-ID is 400", async () => {
    const client = await follow("subscription { blocks { kind } }", {}, "x");
    expect(client.response.status).toBe(400);
  });

  test("is not begun by HEAD, which gets the headers of its stream", async () => {
    const asked = new URLSearchParams({ query: "subscription { blocks { kind } }" });
    const headers = { Accept: "text/event-stream" };
    const heads = Array.from({ length: 5 }, () => fetch(`${url()}?${asked}`, { method: "HEAD", headers }));
    for (const head of await Promise.all(heads)) {
      expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
      expect(head.headers.get("cache-control")).toBe("no-store");
    }
    const client = await follow("subscription { blocks { kind } }");
    expect(client.response.status).toBe(200);
    await client.leave();
  });

  test("counts as a client of live events, bounded for one address", async () => {
    const query = "subscription { blocks { kind } }";
    const clients = await Promise.all(Array.from({ length: 4 }, () => follow(query)));
    expect(clients.map(({ response }) => response.status)).toEqual([200, 200, 200, 200]);
    const more = await follow(query);
    expect([more.response.status, more.response.headers.has("retry-after")]).toEqual([503, true]);
    for (const client of clients) await client.leave();
  });

  test("ends with the reason where there are no live events", async () => {
    await stack.restart({ EVENT_SUBSCRIBERS_MAX: "0" });
    const client = await follow("subscription { blocks { kind } }");
    await client.ended;
    expect(client.events[0]?.data).toEqual({ errors: [{ message: "This gateway has no live events." }] });
    await stack.restart();
  }, 60_000);
});
