/**
 * A new user's way, with `cairn dev` alone: price, card, balance, a folder that opens at once, blocks, GraphQL, proof;
 * with the program killed on the way, between the receipts and the chain and in the middle of an upload. In the end
 * every winc is where the receipts say.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash, generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { runCairn } from "../cli/command.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { programPorts, type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";
import { browser as browserNeed, openBrowser } from "./browser.ts";
import { isSigned, type WireReceipt } from "./receipt-check.ts";
import { openAnonymousTurbo, openTurbo, type TurboKey } from "./turbo.ts";
import { openUploadFront } from "./upload-front.ts";

const needs = { there: browserNeed.there && clientLibraries.there, what: browserNeed.what };

/** Larger than what is free under `dev`, so that it is paid for. */
const picture = randomBytes(17 * 2 ** 20);
const site: Readonly<Record<string, string | Uint8Array>> = {
  "index.html": `<title>Mine</title><link rel="stylesheet" href="style.css"><h1>Hello</h1><a href="about/">About</a>`,
  "about/index.html": "<title>About</title><p>About me</p>",
  "404.html": "<title>Lost</title>",
  "style.css": "h1 { color: rgb(0, 128, 128) }",
  "raw/picture.bin": picture,
};

describeWith(needs, "a new user", () => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-new-user-"));
  const keyFile = join(folder, "my-key.json");
  let ports: Record<string, string>;
  let program: RunningProgram;
  let browser: Browser;
  let page: Page;
  let me: TurboKey;
  /** What every receipt says that was charged. */
  const receipts: WireReceipt[] = [];
  let bought = 0n;
  let siteId = "";
  /** Requests that left for another place than this machine, and whatever a page complained of. */
  const strangers: string[] = [];
  const faults: string[] = [];

  beforeAll(async () => {
    for (const [path, data] of Object.entries(site)) {
      mkdirSync(dirname(join(folder, "site", path)), { recursive: true });
      writeFileSync(join(folder, "site", path), data);
    }
    // A key without credits.
    const ownKey = generateKeyPairSync("rsa", { modulusLength: 4_096 }).privateKey.export({ format: "jwk" });
    writeFileSync(keyFile, JSON.stringify(ownKey));
    const address = createHash("sha256")
      .update(Buffer.from(ownKey.n ?? "", "base64url"))
      .digest("base64url");
    me = { token: "arweave", privateKey: ownKey, address, winc: 0n };
    ports = programPorts();
    program = await startDev({ ports });
    browser = await openBrowser();
    page = await browser.newPage();
    page.on("request", (request) => {
      const { hostname } = new URL(request.url());
      if (!/(^|\.)localhost$|^127\.0\.0\.1$/.test(hostname)) strangers.push(request.url());
    });
    page.on("pageerror", (error) => faults.push(String(error)));
  }, 120_000);

  afterAll(async () => {
    await browser?.close();
    await program?.remove();
    removeFolder(folder);
  });

  async function killAndStart(): Promise<void> {
    await program.kill();
    program = await startDev({ ports, folder: program.folder });
  }

  async function balance(): Promise<bigint> {
    return BigInt((await (await openTurbo(program, me)).getBalance()).winc);
  }

  const spent = () => receipts.reduce((sum, { winc }) => sum + BigInt(winc), 0n);

  test("asks for the price, and pays on the sandbox's page", async () => {
    const { USD } = await import("@ardrive/turbo-sdk");
    const turbo = await openTurbo(program, me);
    const [cost] = await turbo.getUploadCosts({ bytes: [picture.length] });
    const quote = await turbo.getWincForFiat({ amount: USD(10) });
    expect(BigInt(quote.winc)).toBeGreaterThan(BigInt(cost?.winc ?? 0));
    expect(await balance()).toBe(0n);
    const session = await turbo.createCheckoutSession({ amount: USD(10), owner: me.address });
    await page.goto(session.url ?? "");
    await page.getByRole("button", { name: "Pay 10.00 USD" }).click();
    await page.waitForURL("**/done?*");
    bought = BigInt(session.winc);
    expect(bought).toBe(BigInt(quote.winc));
    await eventually(balance, (winc) => winc === bought);
  }, 120_000);

  test("uploads a folder, the program dies at once, and nothing is lost", async () => {
    const turbo = await openTurbo(program, me);
    const { fileResponses, manifestResponse, errors } = await turbo.uploadFolder({
      folderPath: join(folder, "site"),
      maxConcurrentUploads: 4,
      dataItemOpts: { tags: [{ name: "App-Name", value: "My-Site" }] },
    });
    await killAndStart();
    expect(errors).toBeUndefined();
    receipts.push(...[...fileResponses, manifestResponse].map((response) => response as unknown as WireReceipt));
    expect(receipts.length).toBe(Object.keys(site).length + 1);
    for (const receipt of receipts) expect(isSigned(receipt)).toBe(true);
    siteId = manifestResponse?.id ?? "";
    expect(spent()).toBeGreaterThan(0n);
    expect(await balance()).toBe(bought - spent());
  }, 180_000);

  test("opens it in the browser", async () => {
    await page.goto(`${program.line.gateway}/${siteId}/`);
    expect(await page.title()).toBe("Mine");
    const colour = await page.locator("h1").evaluate((heading) => getComputedStyle(heading).color);
    expect(colour).toBe("rgb(0, 128, 128)");
    await page.getByRole("link", { name: "About" }).click();
    await page.waitForURL("**/about/");
    expect(await page.title()).toBe("About");
    await page.goto(`${program.line.gateway}/${siteId}/no/such/page`);
    expect(await page.title()).toBe("Lost");
    const bytes = await (await fetch(`${program.line.gateway}/${siteId}/raw/picture.bin`)).bytes();
    expect(Buffer.compare(bytes, picture)).toBe(0);
  }, 120_000);

  test("sees it mined, finds it by GraphQL, and proves each item", async () => {
    const query = `{ transactions(tags: [{ name: "App-Name", values: ["My-Site"] }], owners: ["${me.address}"], first: 100) {
      edges { node { id bundledIn { id } block { id height } } } } }`;
    const found = async () => {
      const reply = await fetch(`${program.line.gateway}/graphql`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ query }),
      });
      const { data } = await reply.json();
      return data.transactions.edges.map(({ node }: { node: FoundItem }) => node) as FoundItem[];
    };
    const areAllMined = (nodes: FoundItem[]) =>
      nodes.length === receipts.length && nodes.every(({ block }) => block !== null);
    const items = await eventually(found, areAllMined, 60_000);
    expect(items.map(({ id }) => id).sort()).toEqual(receipts.map(({ id }) => id).sort());
    for (const { id, block } of items) {
      const words = ["verify", id, "--gateway", program.line.gateway, "--block-hash", block?.id ?? ""];
      const { code, out } = await runCairn(words);
      expect([code, out]).toEqual([0, expect.stringContaining("proven")]);
      const { status, bundleId } = await (await fetch(`${program.line.upload}/tx/${id}/status`)).json();
      expect(bundleId).toBe(items.find((item) => item.id === id)?.bundledIn?.id);
      expect(["CONFIRMED", "FINALIZED"]).toContain(status);
    }
  }, 120_000);

  test("goes on from the command line through a kill in the middle of an upload", async () => {
    const many = join(folder, "many");
    mkdirSync(many);
    for (let file = 0; file < 60; file += 1) writeFileSync(join(many, `${file}.bin`), randomBytes(200_000));
    writeFileSync(join(many, "large.bin"), randomBytes(24 * 2 ** 20));
    const before = await balance();
    // One item is taken and known, others are taken without the command's knowledge, most are not there yet.
    const front = openUploadFront(() => program.line.upload, 1);
    const words = ["upload", many, "--wallet", keyFile, "--to", front.url, "--json"];
    const running = runCairn(words, { environment: { XDG_STATE_HOME: join(folder, "state") } });
    await front.untilHeld(running);
    await program.kill();
    front.down();
    program = await startDev({ ports, folder: program.folder });
    front.up();
    const { code, out, err } = await running;
    expect([code, err]).toEqual([0, expect.stringContaining("retry in")]);
    const report = JSON.parse(out);
    expect(report.items.length).toBe(61);
    expect(before - (await balance())).toBe(BigInt(report.winc));
    const again = JSON.parse((await runCairn(words)).out);
    expect(again).toMatchObject({ id: report.id, winc: "0" });
    expect(new Set(again.items.map(({ state }: { state: string }) => state))).toEqual(new Set(["there"]));
    expect(before - (await balance())).toBe(BigInt(report.winc));
    await front.close();
  }, 180_000);

  test("and finds everything exact", async () => {
    expect((await (await openAnonymousTurbo(program)).getBalance(me.address)).winc).toBe((await balance()).toString());
    const { payments } = await (await openTurbo(program, me)).getPaymentHistory();
    expect(payments.map(({ wincCredited }) => wincCredited)).toEqual([bought.toString()]);
    const check = await runCairn(["ledger", "check"], { environment: { DATA_DIR: program.folder } });
    expect([check.code, check.out]).toEqual([0, expect.stringContaining("no inconsistency")]);
    expect({ strangers, faults }).toEqual({ strangers: [], faults: [] });
  });
});

type FoundItem = Readonly<{
  id: string;
  bundledIn: Readonly<{ id: string }> | null;
  block: Readonly<{ id: string; height: number }> | null;
}>;
