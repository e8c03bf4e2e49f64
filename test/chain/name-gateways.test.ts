/**
 * Name lookups at trusted gateways over HTTP: valid responses and faults.
 * @module
 */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { openNameGateways } from "../../src/chain/name-gateways.ts";
import { type NameScript, openNameGateway } from "../support/name-gateway.ts";

const id = "U29tZSBpZCBvZiB0aGlydHktdHdvIGJ5dGVzISEhISE";
const first = openNameGateway();
const second = openNameGateway();
afterEach(() => {
  for (const gateway of [first, second]) {
    gateway.speak();
    gateway.scripts.clear();
    gateway.questions.length = 0;
  }
});
afterAll(async () => {
  await first.close();
  await second.close();
});

const never = new AbortController().signal;
const ask = async (templates: readonly string[], name = "name", hops = 0, timeoutMs = 5_000) => {
  const gateways = openNameGateways(templates, timeoutMs);
  try {
    const response = await gateways.ask(name, hops, never);
    return response.kind === "fault" ? `${response.kind}: ${response.reason}` : response;
  } finally {
    gateways.close();
  }
};
const resolved = (more: Readonly<Record<string, string>> = {}, status = 200): NameScript => ({
  status,
  headers: { "X-ArNS-Resolved-Id": id, ...more },
});

describe("a gateway's response", () => {
  const record = { id, ttlSeconds: 900 };
  const nonCanonical = `${id.slice(0, -1)}F`;
  test.each<readonly [string, NameScript, unknown]>([
    ["an id", resolved(), { kind: "resolved", record }],
    [
      "all there is to a name",
      resolved({
        "X-ArNS-TTL-Seconds": "60",
        "X-ArNS-Process-Id": "qNvAoz0TgcH7DMg8BCVn8jF32QH5L6T29VjHxhHqqGE",
        "X-ArNS-Record-Index": "3",
        "X-ArNS-Undername-Limit": "10",
      }),
      {
        kind: "resolved",
        record: {
          id,
          ttlSeconds: 60,
          processId: "qNvAoz0TgcH7DMg8BCVn8jF32QH5L6T29VjHxhHqqGE",
          index: 3,
          limit: 10,
        },
      },
    ],
    ["a time of nothing", resolved({ "X-ArNS-TTL-Seconds": "0" }), { kind: "resolved", record: { id, ttlSeconds: 1 } }],
    [
      "a time beyond a day",
      resolved({ "X-ArNS-TTL-Seconds": "999999999" }),
      { kind: "resolved", record: { id, ttlSeconds: 86_400 } },
    ],
    [
      "numbers that are none",
      resolved({
        "X-ArNS-TTL-Seconds": "-1",
        "X-ArNS-Record-Index": "1e3",
        "X-ArNS-Undername-Limit": "Infinity",
      }),
      { kind: "resolved", record },
    ],
    ["an invalid process id", resolved({ "X-ArNS-Process-Id": "a b; c" }), { kind: "resolved", record }],
    ["206", resolved({}, 206), { kind: "resolved", record }],
    ["an id that is not canonical", resolved({ "X-ArNS-Resolved-Id": nonCanonical }), "fault: wrong"],
    ["an id of another length", resolved({ "X-ArNS-Resolved-Id": "abc" }), "fault: wrong"],
    ["200 without an id", { status: 200 }, "fault: malformed"],
    ["404", { status: 404 }, { kind: "absent" }],
    ["410", { status: 410 }, { kind: "absent" }],
    ["404 with the headers of its own page", resolved({ "X-ArNS-Name": "unregistered_arns" }, 404), { kind: "absent" }],
    ["404 of content whose name is there", resolved({ "X-ArNS-Name": "Name" }, 404), { kind: "resolved", record }],
    ["502 of content whose name is there", resolved({ "X-ArNS-Name": "name" }, 502), { kind: "resolved", record }],
    ["502", resolved({}, 502), "fault: status"],
    ["429", { status: 429 }, "fault: status"],
    ["a redirect", { status: 302, headers: { Location: "http://169.254.169.254/" } }, "fault: status"],
    ["402", { status: 402 }, { kind: "over limit" }],
    [
      "402 with its reasons",
      resolved({ "X-ArNS-Name": "name", "X-ArNS-Record-Index": "11", "X-ArNS-Undername-Limit": "10" }, 402),
      { kind: "resolved", record: { id, ttlSeconds: 900, index: 11, limit: 10 } },
    ],
    ["451", { status: 451 }, { kind: "rejected" }],
    ["451 with an id", resolved({ "X-ArNS-Name": "name" }, 451), { kind: "rejected" }],
  ])("%s", async (_name, script, response) => {
    first.scripts.set("name", script);
    expect(await ask([first.template])).toEqual(response as never);
    expect(await ask([first.pathTemplate])).toEqual(response as never);
  });

  test("is requested by HEAD, at the name's host or at a resolver's path, with the hop count", async () => {
    await ask([first.template], "under_name", 1);
    await ask([first.pathTemplate], "under_name");
    const port = new URL(first.pathTemplate).port;
    expect(first.questions).toEqual([
      { method: "HEAD", host: `under_name.localhost:${port}`, path: "/", hops: "2" },
      { method: "HEAD", host: `127.0.0.1:${port}`, path: "/ar-io/resolver/under_name", hops: "1" },
    ]);
  });

  test("that does not arrive is a timeout", async () => {
    first.scripts.set("name", "silent");
    expect(await ask([first.template], "name", 0, 50)).toBe("fault: timeout");
  });

  test("of a port without a listener is a fault", async () => {
    const gone = openNameGateway();
    await gone.close();
    expect(await ask([gone.template])).toBe("fault: connect");
  });
});

describe("several gateways", () => {
  const both = [first.template, second.template];
  const here = { kind: "resolved", record: { id, ttlSeconds: 900 } } as const;
  test.each<readonly [string, NameScript, NameScript, unknown]>([
    ["the first has it", resolved(), { status: 500 }, here],
    ["the second has it", { status: 404 }, resolved(), here],
    ["the first has a fault", { status: 503 }, resolved(), here],
    ["the first is silent", "silent", resolved(), here],
    ["neither has it", { status: 404 }, { status: 404 }, { kind: "absent" }],
    ["one has it not, the other has a fault", { status: 404 }, { status: 503 }, "fault: status"],
    ["the other way about", { status: 503 }, { status: 404 }, "fault: status"],
    ["one rejects it", { status: 451 }, resolved(), { kind: "rejected" }],
  ])("%s", async (_name, one, two, response) => {
    first.scripts.set("name", one);
    second.scripts.set("name", two);
    expect(await ask(both, "name", 0, 2_000)).toEqual(response as never);
  });
});
