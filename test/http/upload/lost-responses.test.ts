/**
 * Lost responses: a client that sends its request again, here or to another program with the same ledger, gets the
 * first response, and nothing is executed or charged twice.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { openTestPayment, type TestPayment } from "../../support/payment.ts";
import { eventually } from "../../support/until.ts";
import {
  createPartsClient,
  type MultipartFixture,
  makeFolder,
  makeItem,
  openMultipartFixture,
  type PartsClient,
  partFilesIn,
  type TestItem,
} from "../../upload/multipart/multipart-fixture.ts";

const folders = [makeFolder(), makeFolder()] as const;
let payment: TestPayment;
let here: MultipartFixture;
let elsewhere: MultipartFixture;
let client: PartsClient;
let other: PartsClient;

// Within a group: what it opened is closed before the databases are (test/support/ledger-databases.ts).
describe("a response that is lost", () => {
  beforeAll(async () => {
    payment = await openTestPayment();
    const { database, clock, makeId } = payment;
    const common = { database, clock: clock.now, makeId };
    here = await openMultipartFixture({ ...common, folder: folders[0].path });
    const store = "22222222-2222-4222-8222-222222222222";
    elsewhere = await openMultipartFixture({ ...common, folder: folders[1].path, store });
    client = createPartsClient(`${here.server.url}/v1`);
    other = createPartsClient(`${elsewhere.server.url}/v1`);
  });

  afterAll(async () => {
    await here.close();
    await elsewhere.close();
    expect(await checkLedger(payment.database)).toEqual([]);
    await payment.close();
    for (const folder of folders) folder.remove();
  });

  let made = 0;

  async function newItem(): Promise<TestItem> {
    made += 1;
    const item = makeItem(new Uint8Array(200_000).fill(made));
    await payment.credit(item.account, BigInt(item.bytes.length));
    return item;
  }

  /** Sends a request, and goes when it has had an effect. */
  async function sendAndGo(path: string, body: Uint8Array, hasBegun: () => Promise<boolean>): Promise<void> {
    const { port } = here.server;
    const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data: () => undefined } });
    const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n`;
    socket.write(head);
    for (let at = 0; at < body.length; await Bun.sleep(1)) at += socket.write(body.subarray(at));
    await eventually(hasBegun, (begun) => begun);
    socket.terminate();
  }

  test.each(["-1", "finalize"] as const)("of …/%s is the same receipt when it is requested again", async (how) => {
    const item = await newItem();
    const id = await client.create();
    await client.put(id, 0, item.bytes);
    await sendAndGo(`/chunks/arweave/${id}/${how}`, new Uint8Array(0), async () => {
      const { status } = await client.status(id);
      return status !== "ASSEMBLING";
    });
    const receipt = await (await client.finalize(id)).json();
    expect(receipt).toMatchObject({ id: item.id, winc: String(item.bytes.length) });
    for (const each of ["-1", "finalize"] as const) {
      const again = await client.finalize(id, each);
      expect([again.status, await again.json()]).toEqual([200, receipt]);
    }
    expect((await payment.credits.balance(item.account))?.winc).toBe(0n);
    expect(here.announced.filter((id) => id === item.id)).toEqual([item.id]);
  });

  test("of a part is the same when the part comes again, and it is listed once", async () => {
    const item = await newItem();
    const id = await client.create();
    await sendAndGo(`/chunks/arweave/${id}/0`, item.bytes, async () => {
      const { chunks } = await client.list(id);
      return Array.isArray(chunks) && chunks.length === 1;
    });
    expect(await (await client.put(id, 0, item.bytes)).text()).toBe("OK");
    expect((await client.list(id))["chunks"]).toEqual([[0, item.bytes.length]]);
    expect((await client.finalize(id)).status).toBe(200);
  });

  test("is returned to another request once the item is stored; before that, the request gets Retry-After", async () => {
    const item = await newItem();
    const id = await client.create();
    await client.put(id, 0, item.bytes);
    const early = await other.finalize(id);
    expect([early.status, await early.json(), early.headers.get("retry-after")]).toEqual([503, "Service busy", "5"]);
    expect((await other.put(id, 0, item.bytes)).status).toBe(503);
    expect((await other.list(id))["chunks"]).toEqual([[0, item.bytes.length]]);
    const [receipt, ...rest] = await Promise.all([
      client.finalize(id).then((response) => response.text()),
      ...Array.from({ length: 10 }, () => other.finalize(id).then(async (response) => await response.text())),
    ]);
    for (const text of rest) expect(['"Service busy"', receipt]).toContain(text);
    expect(await (await other.finalize(id)).text()).toBe(receipt ?? "");
    expect(await other.status(id)).toMatchObject({ status: "FINALIZED" });
    expect((await payment.credits.balance(item.account))?.winc).toBe(0n);
    expect(partFilesIn(folders[1].path)).toEqual([]);
  });
});
