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

/** In the page: the lowest contrast of a text with its background, and whether anything is wider than the window. */
const measures = `(() => {
  const channels = (color) => color.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (color) => {
    const [r, g, b] = channels(color).map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const isClear = (color) => color === "transparent" || color === "rgba(0, 0, 0, 0)";
  const behind = (element) => {
    const color = getComputedStyle(element).backgroundColor;
    return isClear(color) && element.parentElement ? behind(element.parentElement) : color;
  };
  const texts = [...document.querySelectorAll("body *")].filter((element) =>
    [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== ""),
  );
  const contrasts = texts.map((element) => {
    const [one, other] = [light(getComputedStyle(element).color), light(behind(element))];
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  });
  return {
    texts: texts.length,
    contrast: Math.min(...contrasts),
    overflow: document.documentElement.scrollWidth - innerWidth,
  };
})()`;

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
      const { texts, contrast, overflow } = (await page.evaluate(measures)) as Record<string, number>;
      expect(texts).toBeGreaterThan(3);
      expect(contrast).toBeGreaterThanOrEqual(4.5);
      expect(overflow).toBeLessThanOrEqual(0);
      await page.keyboard.press("Tab");
      const focused = "getComputedStyle(document.activeElement).outlineStyle";
      expect(await page.evaluate(focused)).toBe("solid");
      await page.close();
    },
    120_000,
  );
});
