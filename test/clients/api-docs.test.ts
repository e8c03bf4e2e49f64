/**
 * The page of the API reference in a real browser: it draws the document, sends an example, and sends requests only to
 * this server.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { describeWith } from "../support/helpers.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { browser, openBrowser } from "./browser.ts";

/** Longest wait for a part of the page. Milliseconds. */
const timeout = 60_000;

describeWith(browser, "/api-docs", () => {
  let stack: Stack;
  let chromium: Browser;

  beforeAll(async () => {
    stack = await openStack();
    chromium = await openBrowser();
  }, 120_000);
  afterAll(async () => {
    await chromium?.close();
    await stack?.close();
  });

  test("shows the document and sends an example, without a request to anyone else or a complaint", async () => {
    const page = await chromium.newPage();
    const elsewhere: string[] = [];
    const complaints: string[] = [];
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(stack.gateway.url) && !url.startsWith("data:")) elsewhere.push(url);
    });
    page.on("console", (message) => {
      if (message.type() === "error") complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    await page.goto(`${stack.gateway.url}/api-docs`);
    await page.getByText("Cairn gateway").first().waitFor({ timeout });
    const operation = page.locator("#operations-Information-getSvcInfo");
    await operation.locator(".opblock-summary").click({ timeout });
    await operation.getByRole("button", { name: "Try it out" }).click({ timeout });
    await operation.getByRole("button", { name: "Execute" }).click({ timeout });
    await operation.locator(".live-responses-table").getByText("supportedManifestVersions").waitFor({ timeout });
    expect({ elsewhere, complaints }).toEqual({ elsewhere: [], complaints: [] });
    await page.close();
  }, 120_000);

  test("is dark where the system is, and follows it", async () => {
    const page = await chromium.newPage({ colorScheme: "dark" });
    await page.goto(`${stack.gateway.url}/api-docs`);
    await page.getByText("Cairn gateway").first().waitFor({ timeout });
    const lightness = async () => {
      const color = String(await page.evaluate("getComputedStyle(document.documentElement).backgroundColor"));
      return Math.max(0, ...(color.match(/\d+/g) ?? []).slice(0, 3).map(Number));
    };
    expect(await lightness()).toBeLessThan(64);
    await page.emulateMedia({ colorScheme: "light" });
    await page.locator("html:not(.dark-mode)").waitFor({ timeout });
    await page.close();
  }, 120_000);
});
