/**
 * The sample site in a real browser: it opens on an origin of its own, shows its picture, plays its sound by ranges,
 * and its links lead on. GraphiQL runs a query without requests to other hosts.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { browser as browserNeed, openBrowser, openWatchedPage } from "./browser.ts";

describeWith(browserNeed, "in a browser", () => {
  let program: RunningProgram;
  let browser: Browser;
  let page: Page;
  let strangers: string[];
  let faults: string[];

  beforeAll(async () => {
    program = await startDev();
    browser = await openBrowser();
    ({ page, strangers, faults } = await openWatchedPage(browser));
  }, 120_000);

  afterAll(async () => {
    await browser?.close();
    await program?.remove();
  });

  test("the site opens on an origin of its own", async () => {
    await page.goto(`${program.line.gateway}/${program.line.sample.manifest}/`);
    expect(new URL(page.url()).hostname).toMatch(/^[a-z2-7]{52}\.localhost$/);
    expect(await page.title()).toBe("A cairn");
  });

  test("its picture and its style are there", async () => {
    const picture = page.locator("img");
    await picture.waitFor();
    expect(await picture.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(960);
    const radius = await picture.evaluate((image) => getComputedStyle(image).borderRadius);
    expect(radius).toBe("12px");
  });

  test("its sound can be moved to the middle: the browser asks for ranges and gets them", async () => {
    const ranges = page.waitForResponse((response) => response.status() === 206);
    const length = await page.locator("audio").evaluate(async (audio: HTMLAudioElement) => {
      audio.preload = "auto";
      if (audio.readyState < 1) await new Promise((resolve) => audio.addEventListener("loadedmetadata", resolve));
      audio.currentTime = audio.duration / 2;
      if (audio.seeking) await new Promise((resolve) => audio.addEventListener("seeked", resolve));
      return audio.duration;
    });
    expect(Math.round(length)).toBe(180);
    expect((await ranges).headers()["content-range"]).toMatch(/^bytes \d+-\d+\/15876044$/);
  });

  test("its links lead to items of nested bundles, and an unknown path to the fallback", async () => {
    await page.getByText("Note 1").click();
    await page.getByText("A note in a bundle within a bundle.").waitFor();
    await page.goto(new URL("/no/such/path", page.url()).href.replace("/no/", `/${program.line.sample.manifest}/no/`));
    expect(await page.title()).toBe("About this site");
  });

  test("GraphiQL runs a query", async () => {
    await page.goto(`${program.line.gateway}/graphql`);
    // The button is there before the two editors; until the page has taken note of them a click is lost.
    for (const place of [".graphiql-query-editor", ".result-window"])
      await page.locator(`${place} .CodeMirror`).waitFor();
    await page.evaluate(() => new Promise((resolve) => requestIdleCallback(resolve)));
    await page.getByRole("button", { name: /execute query/i }).click();
    await page.locator(".result-window").getByText('"transactions"').first().waitFor();
  });

  test("GraphiQL follows a subscription", async () => {
    const query = "subscription { blocks { kind node { height } } }";
    await page.goto(`${program.line.gateway}/graphql?${new URLSearchParams({ query })}`);
    for (const place of [".graphiql-query-editor", ".result-window"])
      await page.locator(`${place} .CodeMirror`).waitFor();
    await page.evaluate(() => new Promise((resolve) => requestIdleCallback(resolve)));
    const isSubscription = (data: string | null) => data?.includes("subscription {") === true;
    const subscribed = page.waitForResponse((response) => isSubscription(response.request().postData()));
    await page.getByRole("button", { name: /execute query/i }).click();
    expect((await subscribed).headers()["content-type"]).toContain("text/event-stream");
    await fetch(`${program.line.node}/mine`, { method: "POST" });
    await page.locator(".result-window").getByText('"MINED"').first().waitFor();
    await page.getByRole("button", { name: /stop/i }).click();
  });

  test("nothing was asked of another machine, and no script failed", () => {
    expect({ strangers, faults }).toEqual({ strangers: [], faults: [] });
  });
});
