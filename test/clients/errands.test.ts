/**
 * Three errands of new users, done in the pages alone from the front page on: the proof of an item, the reason why a
 * bundle waits, the refund of a payment. Their acts and durations are printed.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { testItem } from "../support/upload.ts";
import { browser as browserNeed, openBrowser } from "./browser.ts";

describeWith(browserNeed, "an errand in the pages", () => {
  let program: RunningProgram;
  let chromium: Browser;
  let id = "";

  beforeAll(async () => {
    // Blocks are mined on request: what is uploaded waits.
    program = await startDev({ environment: { DEVNET_MINING: "manual" } });
    chromium = await openBrowser();
    const item = testItem("an errand");
    id = item.id;
    expect((await fetch(`${program.line.upload}/v1/tx`, { method: "POST", body: item.bytes })).status).toBe(200);
  }, 180_000);
  afterAll(async () => {
    await chromium?.close();
    await program?.remove();
  });

  /** Opens the front page; `act` counts what a user does: a click, a text and its Enter. */
  async function begin(name: string) {
    const page = await chromium.newPage({ viewport: { width: 1_280, height: 900 } });
    await page.goto(program.line.gateway);
    const startedAt = performance.now();
    let acts = 0;
    const act = async (done: Promise<unknown>) => {
      acts += 1;
      await done;
    };
    const end = async () => {
      console.log(`${name}: ${acts} acts, ${((performance.now() - startedAt) / 1_000).toFixed(1)} s of waiting`);
      await page.close();
    };
    return { page, act, end };
  }

  const door = (page: Page, name: string) => page.getByRole("link", { name: new RegExp(`^${name}`) }).click();

  async function openConsole(page: Page, act: (done: Promise<unknown>) => Promise<void>): Promise<void> {
    await act(door(page, "Operate"));
    await act(page.getByLabel("Admin key").fill(program.line.adminKey));
    await page.keyboard.press("Enter");
  }

  test("why a bundle waits", async () => {
    const { page, act, end } = await begin("why a bundle waits");
    await openConsole(page, act);
    await act(page.getByRole("link", { name: "Uploads", exact: true }).click());
    const rows = page.getByRole("region", { name: "Unfinished bundles" });
    await rows.getByText("A block that contains its transaction.").first().waitFor({ timeout: 60_000 });
    await end();
  }, 120_000);

  test("the proof of an item", async () => {
    await fetch(`${program.line.node}/mine`, { method: "POST" });
    const { page, act, end } = await begin("the proof of an item");
    await act(door(page, "Explore"));
    await act(page.getByRole("searchbox").fill(id));
    await page.keyboard.press("Enter");
    const check = page.getByRole("button", { name: "Check the proof" });
    await check.waitFor({ timeout: 60_000 });
    await act(check.click());
    await page.getByText("These bytes are in the block, and signed by their owner.").waitFor({ timeout: 60_000 });
    await end();
  }, 120_000);

  test("the refund of a payment, which takes its credits back", async () => {
    const { page, act, end } = await begin("the refund of a payment, with the payment");
    await act(door(page, "Credits"));
    await act(page.getByRole("button", { name: "Test wallet" }).click());
    await act(page.getByRole("button", { name: "Pay 25.00 USD" }).click());
    await page.waitForURL(`${program.line.sandbox}/**`);
    await act(page.getByRole("button", { name: "Pay 25.00 USD" }).click());
    await page.getByRole("heading", { name: "Paid" }).waitFor({ timeout: 60_000 });
    await page.goto(program.line.gateway);
    await openConsole(page, act);
    await act(page.getByRole("link", { name: "Credits", exact: true }).click());
    await act(page.getByRole("button", { name: /^Refund / }).click());
    const form = page.getByRole("form", { name: "Refund a payment" });
    await act(form.getByLabel("Operator").fill("ada"));
    await act(form.getByLabel("Reason").fill("bought by mistake"));
    await act(form.getByRole("button", { name: "Refund" }).click());
    const dialog = page.getByRole("dialog");
    const question = await dialog.locator("p").textContent();
    expect(question).toContain("Refund 25.00 USD of payment");
    expect(question).toContain("None of them are spent.");
    await act(dialog.getByRole("button", { name: "Refund", exact: true }).click());
    await dialog.waitFor({ state: "detached" });
    const row = page.getByRole("region", { name: "Payments" }).locator("tbody tr").first();
    // All of its credits are withheld, and it is not offered again.
    await row.getByRole("button").waitFor({ state: "detached" });
    const [paid, withheld] = [
      await row.locator("td").nth(3).textContent(),
      await row.locator("td").nth(4).textContent(),
    ];
    expect(withheld).toBe(paid);
    await end();
  }, 120_000);
});
