/**
 * The pages without scripts, in a real browser: readable in light and dark, at every width, by keyboard, and they send
 * requests to no one.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { describeWith } from "../support/helpers.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { browser, openBrowser } from "./browser.ts";
import { focusOutline, readabilityOf } from "./page-checks.ts";

describeWith(browser, "pages", () => {
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

  const paths = ["/", "/no-such-path", `/${"A".repeat(43)}`];
  const cases = paths.flatMap((path) =>
    (["light", "dark"] as const).flatMap((colorScheme) =>
      [390, 1_920].map((width) => [path, colorScheme, width] as const),
    ),
  );

  test.each(cases)(
    "%s, %s, %d pixels wide",
    async (path, colorScheme, width) => {
      const page = await chromium.newPage({ viewport: { width, height: 800 }, colorScheme });
      const requests: string[] = [];
      const complaints: string[] = [];
      page.on("request", (request) => requests.push(request.url()));
      page.on("pageerror", (error) => complaints.push(error.message));
      page.on("console", (message) => {
        // The browser reports the status of the page itself.
        if (message.type() === "error" && !message.text().includes("status of 404")) complaints.push(message.text());
      });
      const url = `${stack.gateway.url}${path}`;
      await page.goto(url);
      expect({ requests: requests.filter((each) => !each.startsWith("data:")), complaints }).toEqual({
        requests: [url],
        complaints: [],
      });
      const { texts, contrast, overflow } = await readabilityOf(page);
      expect(texts).toBeGreaterThan(3);
      expect(contrast).toBeGreaterThanOrEqual(4.5);
      expect(overflow).toBeLessThanOrEqual(0);
      await page.keyboard.press("Tab");
      expect(await focusOutline(page)).toBe("solid");
      await page.close();
    },
    120_000,
  );
});
