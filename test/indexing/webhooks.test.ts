/**
 * Webhooks over real sockets: what is reported, in which order, how often, with which signature, and with a bad target.
 * @module
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import type { Filter } from "../../src/arweave/filter.ts";
import type { Id } from "../../src/arweave/id.ts";
import { blocksPerWriteMax } from "../../src/indexing/follow.ts";
import { deliveryHeaders, openWebhooks, rejectionsMax, type Webhooks } from "../../src/indexing/webhooks.ts";
import { openHttp } from "../../src/lib/http-client.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openOutbox } from "../../src/store/outbox.ts";
import { post, rsa } from "../dev/devnet/support.ts";
import { createRecordingLog, type RecordingLog } from "../support/recording-log.ts";
import { signers } from "../support/signers.ts";
import { openStack } from "../support/stack.ts";
import { eventually } from "../support/until.ts";
import { openWebhookTarget, type WebhookTarget } from "../support/webhook-target.ts";

const always: Filter = { kind: "always" };
const secret = "secret of the test";
const hash = "B".repeat(64);

let folder: string;
let recorded: RecordingLog;
let target: WebhookTarget;
/** Height of the index's newest block. */
let tip: number;
/** Whether the disk has no space for announcements. */
let isFull: boolean;
/** Ids in the text of each block. */
let txs: readonly string[];
/** Characters of the bodies that were stored at once. */
let stored: number[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cairn-webhooks-"));
  recorded = createRecordingLog();
  tip = 0;
  isFull = false;
  [txs, stored] = [[], []];
  target = openWebhookTarget();
});
afterEach(async () => {
  await target.close();
  removeFolder(folder);
});

/** Webhooks over blocks that hold nothing, with short waits. */
function open(
  targets: readonly string[] = [target.url],
  responseMs = 20_000,
  times = { retryMs: 5, longestMs: 20, restMs: 50 },
): Webhooks {
  const { log } = recorded;
  const outbox = openOutbox(join(folder, "webhooks.sqlite"), targets, Date.now);
  const http = openHttp({ firstByteMs: responseMs, stallMs: responseMs, totalMs: responseMs });
  const webhooks = openWebhooks({
    targets,
    secret,
    outbox: {
      ...outbox,
      announce: (rows, height) => {
        if (isFull) throw new Error("database or disk is full");
        return outbox.announce(rows, height);
      },
      choose: (upTo, deliveries) => {
        stored.push(deliveries.reduce((sum, { body }) => sum + body.length, 0));
        return outbox.choose(upTo, deliveries);
      },
    },
    http,
    clock: Date.now,
    random: () => 0.5,
    indexFilter: { kind: "never" },
    blockFilter: always,
    reader: {
      row: () => undefined,
      locate: () => undefined,
      tip: () => ({ height: tip, hash: hash as never, timestamp: 1 }),
      transactionsOfBlock: () => [],
      blockText: (height) => ({
        text: JSON.stringify({ height, indep_hash: hash, previous_block: hash, timestamp: 9, txs }),
        checked: [],
        unchecked: [],
      }),
    },
    log,
    times,
  });
  return {
    ...webhooks,
    close: async () => {
      await webhooks.close();
      http.close();
      outbox.close();
    },
  };
}

const tell = (webhooks: Webhooks, ...heights: readonly number[]) => {
  for (const height of heights) webhooks.onBlock({ height, ids: [] });
};
const heightOf = ({ body }: WebhookTarget["attempts"][number]) => (body["data"] as Readonly<{ height: number }>).height;
const heights = (of = target) => of.attempts.map(heightOf);
const until = (count: number, of = target) =>
  eventually(
    async () => of.attempts.length,
    (now) => now >= count,
  );
const idle = (webhooks: Webhooks) =>
  eventually(
    async () => webhooks.waiting(),
    (now) => now === 0,
  );

describe("a target", () => {
  test("gets deliveries in order, each once, signed by Standard Webhooks", async () => {
    const webhooks = open();
    tell(webhooks, 1, 2, 3);
    await until(3);
    await idle(webhooks);
    expect(heights()).toEqual([1, 2, 3]);
    for (const { headers, text } of target.attempts) {
      const id = headers.get("webhook-id");
      const at = headers.get("webhook-timestamp");
      const expected = createHmac("sha256", secret).update(`${id}.${at}.${text}`).digest("base64");
      expect(headers.get("webhook-signature")).toBe(`v1,${expected}`);
      expect(headers.get("content-type")).toBe("application/json");
      expect(Math.abs(Number(at) - Date.now() / 1_000)).toBeLessThan(60);
    }
    expect(new Set(target.attempts.map(({ headers }) => headers.get("webhook-id"))).size).toBe(3);
    expect(target.attempts[0]?.body).toEqual({
      event: "block-indexed",
      data: { height: 1, indep_hash: hash, previous_block: hash, timestamp: 9, txs: [] },
    });
    await webhooks.close();
  });

  test("gets large deliveries as well: few of them are stored at once, so that nothing else waits", async () => {
    txs = Array.from({ length: 2_000 }, () => "A".repeat(43));
    const webhooks = open();
    isFull = true;
    tell(webhooks, ...Array.from({ length: 20 }, (_, at) => at + 1));
    isFull = false;
    tell(webhooks, 21);
    await until(21);
    await idle(webhooks);
    expect(heights()).toEqual(Array.from({ length: 21 }, (_, at) => at + 1));
    expect(Math.max(...stored)).toBeLessThan(256 * 2 ** 10 + 100_000);
    expect(stored.length).toBeGreaterThanOrEqual(6);
    await webhooks.close();
  });

  test("gets blocks that a full disk did not take once it has space, and the follower is not disturbed", async () => {
    const webhooks = open();
    isFull = true;
    tell(webhooks, 1, 2);
    expect(recorded.lines.filter(({ level }) => level === "error")).toHaveLength(2);
    isFull = false;
    tell(webhooks, 3);
    await until(3);
    await idle(webhooks);
    expect(heights()).toEqual([1, 2, 3]);
    await webhooks.close();
  });

  test.each([
    ["fails", [500, 503, 500]],
    ["is asked too much", [429, 429]],
    ["does not know us yet", [401, 404]],
    ["does not respond", ["hang"]],
  ] as const)(
    "that %s is notified again, under the same id, before it is notified anything else",
    async (_what, responses) => {
      target.responses.push(...responses);
      // Long enough for the deliveries with a response, which are counted.
      const webhooks = open([target.url], 2_000);
      tell(webhooks, 1, 2);
      await until(responses.length + 2);
      await idle(webhooks);
      expect(heights()).toEqual([...responses.map(() => 1), 1, 2]);
      const ids = target.attempts.map(({ headers }) => headers.get("webhook-id"));
      expect(new Set(ids.slice(0, -1)).size).toBe(1);
      await webhooks.close();
    },
  );

  test("that is unreachable delays no other target, and gets everything when it is back", async () => {
    const gone = openWebhookTarget();
    await gone.close();
    const webhooks = open([gone.url, target.url]);
    tell(webhooks, 1, 2);
    await eventually(
      async () => webhooks.waiting(),
      (count) => count === 2,
    );
    const back = openWebhookTarget(gone.port);
    await until(2, back);
    expect([heights(), heights(back)]).toEqual([
      [1, 2],
      [1, 2],
    ]);
    await webhooks.close();
    await back.close();
  });

  test("that fails is left to its rest, whatever else there is to tell", async () => {
    const failing = openWebhookTarget();
    failing.responses.push(...Array.from({ length: 50 }, () => 500));
    const hour = 3_600_000;
    const webhooks = open([failing.url, target.url], 20_000, { retryMs: hour, longestMs: hour, restMs: 50 });
    tell(webhooks, 1);
    await eventually(
      async () => recorded.lines.filter((line) => String(line["message"]).endsWith(" failed")).length,
      (count) => count === 1,
    );
    for (const height of [2, 3, 4, 5]) {
      tell(webhooks, height);
      await until(height);
    }
    expect([heights(failing), heights()]).toEqual([[1], [1, 2, 3, 4, 5]]);
    await webhooks.close();
    await failing.close();
  });

  test(`that rejects a delivery ${rejectionsMax} times is notified the next one, and the log says so`, async () => {
    target.responses.push(...Array.from({ length: rejectionsMax }, () => 422));
    const webhooks = open();
    tell(webhooks, 1, 2);
    await until(rejectionsMax + 1);
    expect(heights()).toEqual([...Array.from({ length: rejectionsMax }, () => 1), 2]);
    expect(recorded.lines).toContainEqual(
      expect.objectContaining({ message: expect.stringContaining("rejected a delivery repeatedly") }),
    );
    await webhooks.close();
  });

  test("cannot send us anywhere else", async () => {
    const inside = openWebhookTarget();
    target.responses.push({ location: inside.url }, { location: inside.url });
    const webhooks = open();
    tell(webhooks, 1);
    await until(3);
    await idle(webhooks);
    expect([heights(), inside.attempts]).toEqual([[1, 1, 1], []]);
    await webhooks.close();
    await inside.close();
  });

  test("that was unreachable when the program ended gets its deliveries from the next one", async () => {
    target.responses.push(...Array.from({ length: 50 }, () => 500));
    const before = open();
    tell(before, 1, 2);
    await until(1);
    await before.close();
    target.responses.length = 0;
    target.attempts.length = 0;
    tip = 2;
    const after = open();
    await until(2);
    await idle(after);
    // An attempt that was cut off at the end may still have arrived: at least once, and in order.
    expect([...new Set(heights())]).toEqual([1, 2]);
    await after.close();
  });
});

test("blocks that were indexed when the process ended, but not announced, are delivered at the next start", async () => {
  const before = open();
  tell(before, 1);
  await until(1);
  await idle(before);
  await before.close();
  tip = 3;
  const after = open();
  await until(3);
  expect(heights()).toEqual([1, 2, 3]);
  await after.close();
});

test("all blocks of the write that the process ended after are delivered at the next start, and none before", async () => {
  const before = open();
  tell(before, 100);
  await until(1);
  await idle(before);
  await before.close();
  for (const [newest, first] of [
    [100 + blocksPerWriteMax, 101],
    [1_000, 1_001 - blocksPerWriteMax],
  ] as const) {
    target.attempts.length = 0;
    tip = newest;
    const after = open();
    await until(blocksPerWriteMax);
    await idle(after);
    expect(heights()).toEqual(Array.from({ length: blocksPerWriteMax }, (_, index) => first + index));
    await after.close();
  }
});

test("a secret of Standard Webhooks is the bytes that it encodes", () => {
  const row = { number: 1, createdAt: 2, body: "{}" };
  const bytes = Buffer.from("key of bytes");
  const encoded = deliveryHeaders(row, 3, `whsec_${bytes.toString("base64")}`);
  expect(encoded).toEqual(deliveryHeaders(row, 3, "key of bytes"));
  expect(deliveryHeaders(row, 3, undefined)["webhook-signature"]).toBeUndefined();
  expect(deliveryHeaders(row, 4, "key of bytes")["webhook-signature"]).not.toBe(encoded["webhook-signature"]);
});

describe("the program", () => {
  const [, signer] = signers;
  const bundleTags = [
    { name: "Bundle-Format", value: "binary" },
    { name: "Bundle-Version", value: "2.0.0" },
  ];
  const tagged = (value: string) => [{ name: "Kind", value }];

  test("tells of blocks, transactions and data items that the filters choose", async () => {
    const filter = JSON.stringify({ tags: [{ name: "Kind", value: "wanted" }] });
    const stack = await openStack({
      WEBHOOK_TARGET_SERVERS: target.url,
      WEBHOOK_INDEX_FILTER: filter,
      WEBHOOK_BLOCK_FILTER: '{"always":true}',
      WEBHOOK_SECRET: secret,
    });
    if (signer === undefined) throw new Error("no signer");
    const items = ["wanted", "other"].map((kind) => createDataItem({ data: kind, tags: tagged(kind) }, signer));
    const wanted = await post(stack.devnet, rsa, { data: new Uint8Array(10), tags: tagged("wanted") });
    await post(stack.devnet, rsa, { data: new Uint8Array(11), tags: tagged("other") });
    const bundle = await post(stack.devnet, rsa, { data: writeBundle(items), tags: bundleTags });
    await stack.devnet.mine(2);
    await stack.settled();
    const count = async () => target.attempts.length;
    await eventually(count, (now) => now >= stack.devnet.height() + 3);
    const events = target.attempts.map(({ body }) => body);
    const dataOf = (event: string) => events.filter((each) => each["event"] === event).map((each) => each["data"]);
    expect(heights().filter((_, at) => events[at]?.["event"] === "block-indexed")).toEqual(
      Array.from({ length: stack.devnet.height() + 1 }, (_, height) => height),
    );
    expect(dataOf("tx-indexed")).toEqual([
      expect.objectContaining({
        id: wanted.id,
        owner_address: rsa.address,
        data_size: 10,
        tags: tagged("wanted"),
      }),
    ]);
    expect(dataOf("ans104-data-item-indexed")).toEqual([
      expect.objectContaining({ parent_id: bundle.id as Id, data_size: 6, tags: tagged("wanted") }),
    ]);
    await stack.close();
  }, 120_000);

  test("tells once of a transaction that an operator queued from below the first block, and of its items", async () => {
    const key = "key-of-this-test";
    if (signer === undefined) throw new Error("no signer");
    const item = createDataItem({ data: "within", tags: tagged("queued") }, signer);
    const stack = await openStack({
      START_HEIGHT: "25",
      ADMIN_API_KEY: key,
      WEBHOOK_TARGET_SERVERS: target.url,
      WEBHOOK_INDEX_FILTER: '{"always":true}',
    });
    const plain = await post(stack.devnet, rsa, { data: new Uint8Array(10), tags: tagged("queued") });
    const bundle = await post(stack.devnet, rsa, { data: writeBundle([item]), tags: bundleTags });
    await stack.devnet.mine(30);
    await stack.settled();
    const queue = async (path: string, id: Id) => {
      const response = await fetch(`${stack.gateway.url}/svc/admin/${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({ id }),
      });
      expect(response.status).toBe(200);
    };
    const events = () =>
      target.attempts
        .filter(({ body }) => body["event"] !== "block-indexed")
        .map(({ body: { event, data } }) => [event, Object(data)["id"], Object(data)["height"]]);
    const expected = [
      ["tx-indexed", plain.id, 1],
      ["tx-indexed", bundle.id, 1],
      ["ans104-data-item-indexed", expect.any(String), 1],
    ];
    await queue("queue-tx", plain.id);
    await eventually(
      async () => events().length,
      (now) => now >= 1,
    );
    await queue("queue-bundle", bundle.id);
    await eventually(
      async () => events().length,
      (now) => now >= 3,
    );
    // Known events are not new.
    await queue("queue-tx", plain.id);
    await stack.restart();
    await stack.devnet.mine(1);
    await stack.settled();
    const marker = await post(stack.devnet, rsa, { data: new Uint8Array(12) });
    await stack.devnet.mine(1);
    await stack.settled();
    await eventually(
      async () => events().length,
      (now) => now >= 4,
    );
    expect(events()).toEqual([...expected, ["tx-indexed", marker.id, stack.devnet.height()]]);
    await stack.close();
  }, 120_000);

  test("sends nothing unless configured", async () => {
    const stack = await openStack({ WEBHOOK_TARGET_SERVERS: target.url });
    await post(stack.devnet, rsa, { data: new Uint8Array(10) });
    await stack.devnet.mine(1);
    await stack.settled();
    await stack.close();
    expect(target.attempts).toEqual([]);
  }, 120_000);

  test.each(["WEBHOOK_INDEX_FILTER", "WEBHOOK_BLOCK_FILTER"])("an invalid %s is reported", async (name) => {
    await expect(openStack({ [name]: '{"sometimes":true}' })).rejects.toThrow(
      new RegExp(`Bad settings:\\n {2}${name}: `),
    );
  });
});
