/**
 * The page for uploads in a real browser, beside `cairn dev`: a file and a folder are priced before anything is sent,
 * signed by the test wallet or by the wallet of the browser, sent, readable at once, and followed until they are
 * permanent. It is readable in light and dark, at every width, and sends requests to its own origin only.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { createArweaveSigner } from "../../src/arweave/signers/arweave.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";
import { browser as browserNeed, openBrowser } from "./browser.ts";
import { focusOutline, readabilityOf } from "./page-checks.ts";

/** Not free, so that the page has a price. */
const environment = { FREE_UPLOAD_BYTES: "0" };

describeWith(browserNeed, "the page for uploads", () => {
  let program: RunningProgram;
  let chromium: Browser;
  const files = mkdtempSync(join(tmpdir(), "cairn-files-"));
  const complaints: string[] = [];
  const strangers: string[] = [];

  beforeAll(async () => {
    program = await startDev({ environment });
    chromium = await openBrowser();
    writeFileSync(join(files, "note.txt"), "a note for ever");
    mkdirSync(join(files, "site/pages"), { recursive: true });
    writeFileSync(join(files, "site/index.html"), "<h1>from a folder</h1>");
    writeFileSync(join(files, "site/pages/more.txt"), "more");
  }, 180_000);
  afterAll(async () => {
    await chromium?.close();
    await program?.remove();
    removeFolder(files);
  });

  async function openPage(width = 1_280, colorScheme: "light" | "dark" = "light"): Promise<Page> {
    const page = await chromium.newPage({ viewport: { width, height: 900 }, colorScheme });
    page.on("request", (request) => {
      const isOwn = request.url().startsWith(program.line.gateway) || request.url().startsWith("data:");
      if (!isOwn) strangers.push(request.url());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => {
      // An account without credits is not known to the payment service.
      if (message.type() === "error" && !message.text().includes("status of 404")) complaints.push(message.text());
    });
    return page;
  }

  async function open(page: Page): Promise<Page> {
    await page.goto(`${program.line.gateway}/svc/upload`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    return page;
  }

  const posts = (page: Page) => {
    const sent: string[] = [];
    page.on("request", (request) => {
      if (request.method() === "POST") sent.push(new URL(request.url()).pathname);
    });
    return sent;
  };

  /** The address of the content that the page links when all is sent. */
  async function linkOf(page: Page): Promise<string> {
    const result = page.getByRole("region", { name: "Result" });
    await result.waitFor({ timeout: 60_000 });
    return (await result.getByRole("link").first().getAttribute("href")) ?? "";
  }

  test("is the door of the front page", async () => {
    const page = await openPage();
    await page.goto(program.line.gateway);
    await page.getByRole("link", { name: "Upload" }).click();
    await page.getByRole("heading", { name: "Upload", level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/svc/upload");
    await page.close();
  }, 60_000);

  test("sends a file after its price was shown, and follows it until it is permanent", async () => {
    const page = await open(await openPage());
    const sent = posts(page);
    await page.getByLabel("Files").last().setInputFiles(join(files, "note.txt"));
    await page.getByRole("button", { name: "Test wallet" }).click();
    await page.getByRole("region", { name: "Payment" }).getByText("100", { exact: true }).waitFor();
    const button = page.getByRole("button", { name: /^Upload for .* credits$/ });
    await button.waitFor();
    expect(sent).toEqual([]);
    await button.click();
    const link = await linkOf(page);
    expect(sent).toEqual(["/upload/v1/tx"]);
    const response = await fetch(link);
    expect([response.headers.get("content-type"), await response.text()]).toEqual([
      "text/plain; charset=utf-8",
      "a note for ever",
    ]);
    const mine = () => fetch(`${program.line.node}/mine`, { method: "POST" });
    await eventually(
      async () => {
        await mine();
        return await page.getByRole("status").textContent();
      },
      (text) => text === "Permanent",
      60_000,
    );
    expect(await page.getByRole("link", { name: "Save the receipt" }).getAttribute("href")).toContain("signature");
    await page.close();
  }, 120_000);

  test("sends a folder with its manifest", async () => {
    const page = await open(await openPage());
    const sent = posts(page);
    await page.getByLabel("Folder").setInputFiles(join(files, "site"));
    await page.getByRole("button", { name: "Test wallet" }).click();
    await page.getByRole("button", { name: /^Upload for/ }).click();
    const link = await linkOf(page);
    expect(sent).toEqual(["/upload/v1/tx", "/upload/v1/tx", "/upload/v1/tx"]);
    expect(await (await fetch(link)).text()).toBe("<h1>from a folder</h1>");
    expect(await (await fetch(`${link}pages/more.txt`)).text()).toBe("more");
    await page.close();
  }, 120_000);

  test("continues a folder whose connection was lost: what was signed is not signed again, as another item", async () => {
    const page = await openPage();
    let signatures = 0;
    await addWallet(page, program.line.wallets[0]?.address ?? "", () => {
      signatures += 1;
    });
    await open(page);
    const before = complaints.length;
    const sent = posts(page);
    let count = 0;
    await page.route("**/upload/v1/tx", async (route) => {
      count += 1;
      if (count === 2) await route.abort("connectionreset");
      else await route.continue();
    });
    await page.getByLabel("Folder").setInputFiles(join(files, "site"));
    await page.getByRole("button", { name: "Browser wallet" }).click();
    await page.getByRole("button", { name: /^Upload for/ }).click();
    await page.getByText("The connection was lost. Upload again: it continues.").waitFor();
    await page.getByRole("button", { name: /^Upload for/ }).click();
    const link = await linkOf(page);
    // The first file, the second one twice, and the manifest.
    expect([sent, signatures]).toEqual([Array(4).fill("/upload/v1/tx"), 3]);
    expect(await (await fetch(`${link}pages/more.txt`)).text()).toBe("more");
    await page.close();
    // The browser itself reports the lost connection.
    expect(complaints.splice(before)).toEqual([expect.stringContaining("ERR_CONNECTION_RESET")]);
  }, 120_000);

  /** A wallet as its extension puts it into the page; the test holds its key. */
  async function addWallet(page: Page, address: string, onSign = () => {}): Promise<void> {
    const { jwk } = program.line.wallets[0] ?? {};
    const signer = createArweaveSigner(jwk as JsonWebKey);
    await page.exposeFunction("signInTest", (text: string, tags: { name: string; value: string }[]) => {
      onSign();
      return Array.from(createDataItem({ data: text, tags }, signer));
    });
    await page.addInitScript(`window.arweaveWallet = {
      connect: async () => {},
      getActiveAddress: async () => "${address}",
      signDataItem: async ({ data, tags }) =>
        Uint8Array.from(await window.signInTest(new TextDecoder().decode(data), tags)).buffer,
    }`);
  }

  test("sends what the wallet of the browser has signed", async () => {
    const page = await openPage();
    await addWallet(page, program.line.wallets[0]?.address ?? "");
    await open(page);
    await page.getByLabel("Files").last().setInputFiles(join(files, "site/index.html"));
    await page.getByRole("button", { name: "Browser wallet" }).click();
    await page.getByRole("button", { name: /^Upload for/ }).click();
    expect(await (await fetch(await linkOf(page))).text()).toBe("<h1>from a folder</h1>");
    await page.close();
  }, 60_000);

  test("sends nothing of a wallet without enough credits", async () => {
    const page = await openPage();
    await addWallet(page, "B".repeat(43));
    await open(page);
    await page.getByLabel("Files").last().setInputFiles(join(files, "note.txt"));
    await page.getByRole("button", { name: "Browser wallet" }).click();
    await page.getByText("There are not enough credits").waitFor();
    expect(await page.getByRole("button", { name: /^Upload/ }).isDisabled()).toBe(true);
    await page.getByRole("link", { name: "Buy some" }).click();
    await page.getByRole("heading", { name: "Credits", level: 1 }).waitFor();
    await page.close();
  }, 60_000);

  test("says why a wallet was not connected, and why a file was rejected", async () => {
    const page = await openPage();
    await page.addInitScript(
      `window.arweaveWallet = { connect: async () => { throw new Error("the user said no"); } }`,
    );
    await open(page);
    await page.getByLabel("Files").last().setInputFiles(join(files, "note.txt"));
    await page.getByRole("button", { name: "Browser wallet" }).click();
    await page.getByText("The wallet was not connected: the user said no").waitFor();
    await page.route("**/upload/v1/tx", (route) => route.fulfill({ status: 200, json: { error: "no" } }));
    await page.getByRole("button", { name: "Test wallet" }).click();
    await page.getByRole("button", { name: /^Upload for/ }).click();
    await page.getByText("The upload service responded with status 200: no").waitFor();
    await page.getByRole("button", { name: /^Upload for/ }).waitFor();
    await page.close();
  }, 60_000);

  test.each((["light", "dark"] as const).flatMap((scheme) => [390, 1_920].map((width) => [scheme, width] as const)))(
    "is readable: %s, %d pixels wide",
    async (scheme, width) => {
      const page = await open(await openPage(width, scheme));
      await page.getByLabel("Folder").setInputFiles(join(files, "site"));
      await page.getByRole("button", { name: "Test wallet" }).click();
      await page.getByRole("button", { name: /^Upload for/ }).waitFor();
      const { texts, contrast, overflow } = await readabilityOf(page);
      expect(texts).toBeGreaterThan(10);
      expect(contrast).toBeGreaterThanOrEqual(4.5);
      expect(overflow).toBeLessThanOrEqual(0);
      await page.keyboard.press("Tab");
      expect(await focusOutline(page)).toBe("solid");
      await page.getByRole("button", { name: /^Upload for/ }).click();
      await linkOf(page);
      const after = await readabilityOf(page);
      expect(after.contrast).toBeGreaterThanOrEqual(4.5);
      expect(after.overflow).toBeLessThanOrEqual(0);
      await page.close();
    },
    60_000,
  );

  test("has sent requests to its own origin only, and the browser had nothing to complain about", () => {
    expect({ strangers, complaints }).toEqual({ strangers: [], complaints: [] });
  });
});
