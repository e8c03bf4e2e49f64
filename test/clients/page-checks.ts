/**
 * What every page has to fulfil in a browser: readable contrast, no overflow, focus that can be seen.
 * @module
 */
import type { Page } from "playwright-core";

export type Readability = Readonly<{
  /** Elements with a text of their own. */
  texts: number;
  /** The lowest contrast of a text, or of the hint in a field, with its background. */
  contrast: number;
  /** Pixels by which the page is wider than the window, or a table than its place. */
  overflow: number;
}>;

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
  const contrastOf = (element, pseudo) => {
    const [one, other] = [light(getComputedStyle(element, pseudo).color), light(behind(element))];
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  };
  const hints = [...document.querySelectorAll("[placeholder]")].map((each) => contrastOf(each, "::placeholder"));
  const contrasts = [...texts.map((each) => contrastOf(each)), ...hints];
  return {
    texts: texts.length,
    contrast: Math.min(...contrasts),
    overflow: Math.max(
      document.documentElement.scrollWidth - innerWidth,
      ...[...document.querySelectorAll(".table")].map((table) => table.scrollWidth - table.clientWidth),
    ),
  };
})()`;

/** Measures the page as it is now. */
export async function readabilityOf(page: Page): Promise<Readability> {
  return (await page.evaluate(measures)) as Readability;
}

/** Style of the outline of the focused element: "solid" where the focus can be seen. */
export async function focusOutline(page: Page): Promise<string> {
  return String(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle"));
}
