/**
 * Paying in a real browser, with `cairn dev` alone: the sandbox's page takes a card, leads back, and the balance is
 * there; killed between the card and the credit, the program is exact when it comes back.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { describeWith } from "../support/helpers.ts";
import { testAddress } from "../support/payment.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";
import { browser as browserNeed, openBrowser, openWatchedPage } from "./browser.ts";

const alice = testAddress("Alice");
const bob = testAddress("Bob");

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
    page.on("console", (message) => {
      // The browser logs every response with an error status, also for a declined card.
      if (message.type() === "error" && !message.text().includes("402")) faults.push(message.text());
    });
  }, 120_000);

  afterAll(async () => {
    await browser?.close();
    await program?.remove();
  });

  async function topUp(address: string, query = "") {
    const response = await fetch(`${program.line.payment}/v1/top-up/checkout-session/${address}/usd/1000${query}`);
    expect(response.status).toBe(200);
    return await response.json();
  }

  async function balanceOf(address: string): Promise<string> {
    const response = await fetch(`${program.line.payment}/v1/balance?address=${address}`);
    if (response.status === 404) return "0";
    return (await response.json()).winc;
  }

  /** Waits until the balance is another than it was: a webhook is on its way. */
  const balanceAfter = (address: string, before: string) =>
    eventually(
      () => balanceOf(address),
      (balance) => balance !== before,
      60_000,
    );

  test("its home says what it is and which cards to try, and loads nothing from elsewhere", async () => {
    await page.goto(program.line.sandbox);
    expect(await page.locator("h1").textContent()).toBe("Sandbox");
    expect(await page.locator("li").allTextContents()).toContain("4000 0000 0000 0002 is declined");
    const width = await page.locator("main").evaluate((main) => getComputedStyle(main).borderTopStyle);
    expect([width, strangers]).toEqual(["solid", []]);
  });

  test("the page says what is bought and for how much, and loads nothing from elsewhere", async () => {
    const { paymentSession, topUpQuote } = await topUp(alice);
    await page.goto(paymentSession.url);
    expect(await page.locator(".amount").textContent()).toBe("10.00 USD");
    expect(await page.locator("h1").textContent()).toContain(alice);
    expect(topUpQuote.winstonCreditAmount).toMatch(/^\d+$/);
    expect(strangers).toEqual([]);
  });

  test("a declined card says why, and the next one pays, by keyboard alone", async () => {
    const { paymentSession, topUpQuote } = await topUp(alice);
    await page.goto(paymentSession.url);
    await page.getByLabel("Card number").fill("4000 0000 0000 0002");
    await page.getByRole("button", { name: "Pay 10.00 USD" }).click();
    expect(await page.getByRole("alert").textContent()).toBe("Your card was declined.");
    expect(await balanceOf(alice)).toBe("0");
    await page.getByLabel("Card number").fill("4242 4242 4242 4242");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/done?*");
    expect(new URL(page.url()).origin).toBe(new URL(program.line.payment).origin);
    expect(await page.locator("h1").textContent()).toMatch(/^(Waiting for your payment|Paid)$/);
    expect(await balanceAfter(alice, "0")).toBe(topUpQuote.winstonCreditAmount);
    // The page reloads itself until the payment is there.
    await page.getByRole("heading", { name: "Paid" }).waitFor({ timeout: 60_000 });
    const shown = await page.locator("main").textContent();
    for (const said of ["10.00 USD", alice, "The credits are on the account."]) expect(shown).toContain(said);
    const { CHECKOUT_SCREENSHOT } = process.env;
    if (CHECKOUT_SCREENSHOT !== undefined) await page.screenshot({ path: CHECKOUT_SCREENSHOT });
  });

  test("cancel leads to a page that says that nothing was paid", async () => {
    const { paymentSession } = await topUp(bob);
    await page.goto(paymentSession.url);
    await page.getByRole("link", { name: "Cancel and go back" }).click();
    await page.waitForURL("**/cancelled?*");
    expect(await page.locator("h1").textContent()).toBe("Nothing was paid");
    expect(await balanceOf(bob)).toBe("0");
  });

  test("coming back to a page that was paid leads on, and charges nothing", async () => {
    const before = await balanceOf(alice);
    const { paymentSession } = await topUp(alice);
    await page.goto(paymentSession.url);
    await page.getByRole("button", { name: "Pay 10.00 USD" }).click();
    await page.waitForURL("**/done?*");
    const after = await balanceAfter(alice, before);
    await page.goto(paymentSession.url);
    await page.waitForURL("**/done?*");
    await Bun.sleep(500); // time for a second charge, which must not happen
    expect(await balanceOf(alice)).toBe(after);
  });

  test("cancel leads to where the top-up says, and nothing is charged", async () => {
    const cancelUrl = `${program.line.payment}/done?given-up`;
    const { paymentSession } = await topUp(bob, `?cancelUrl=${encodeURIComponent(cancelUrl)}`);
    await page.goto(paymentSession.url);
    await page.getByRole("link", { name: "Cancel and go back" }).click();
    await page.waitForURL(cancelUrl);
    expect(await balanceOf(bob)).toBe("0");
  });

  test("killed between the card and the credit, the program is exact when it comes back", async () => {
    const { paymentSession, topUpQuote } = await topUp(bob);
    await page.goto(paymentSession.url);
    const pressed = page.getByRole("button", { name: "Pay 10.00 USD" }).click({ noWaitAfter: true });
    await page.waitForResponse((response) => response.status() === 303);
    await program.kill();
    await pressed;
    program = await startDev({ folder: program.folder });
    expect(await balanceAfter(bob, "0")).toBe(topUpQuote.winstonCreditAmount);
    await Bun.sleep(1_000); // time for a second credit, which must not happen
    expect(await balanceOf(bob)).toBe(topUpQuote.winstonCreditAmount);
    const check = Bun.spawnSync([process.execPath, "src/main.ts", "ledger", "check", "--json"], {
      env: { ...process.env, DATA_DIR: program.folder },
    });
    expect([check.exitCode, check.stdout.toString()]).toEqual([0, expect.any(String)]);
  }, 120_000);

  test("nothing was asked of strangers, and no page complained", () => {
    expect({ strangers, faults }).toEqual({ strangers: [], faults: [] });
  });
});
