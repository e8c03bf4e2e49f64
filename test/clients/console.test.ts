/**
 * The console in a real browser: it shows the values of the status record, asks before each change, forgets the key,
 * and is readable in light and dark, at every width, by keyboard. It sends requests to its own origin only.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { announcementOf } from "../indexing/samples.ts";
import { describeWith } from "../support/helpers.ts";
import { testAddress } from "../support/payment.ts";
import { eventually } from "../support/until.ts";
import { testItem } from "../support/upload.ts";
import { openUploadStack, sendItem, type UploadStack } from "../support/upload-stack.ts";
import { browser as browserNeed, openBrowser } from "./browser.ts";
import { focusOutline, readabilityOf } from "./page-checks.ts";

const key = "key-of-this-test";
/** A folder for pictures of each section; none are taken without it. */
const pictures = process.env["CONSOLE_PICTURES"];
const sections = ["Overview", "Charts", "Uploads", "Money", "Credits", "Sources", "Content", "Actions", "Log"] as const;

describeWith(browserNeed, "the console", () => {
  let stack: UploadStack;
  let chromium: Browser;
  const complaints: string[] = [];
  const strangers: string[] = [];

  beforeAll(async () => {
    stack = await openUploadStack({ environment: { ADMIN_API_KEY: key } });
    await stack.devnet.mine(3);
    chromium = await openBrowser();
  }, 180_000);
  afterAll(async () => {
    await chromium?.close();
    await stack?.close();
  });

  async function openPage(width = 1_440, colorScheme: "light" | "dark" = "light"): Promise<Page> {
    const page = await chromium.newPage({ viewport: { width, height: 900 }, colorScheme });
    page.on("request", (request) => {
      if (!request.url().startsWith(stack.content) && !request.url().startsWith("data:")) strangers.push(request.url());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => {
      // The browser reports the rejected keys and values of these tests, and a response that one of them loses.
      if (message.type() === "error" && !/status of 40[014]|ERR_FAILED/.test(message.text()))
        complaints.push(message.text());
    });
    await page.goto(`${stack.content}/svc/console`);
    await page.getByLabel("Admin key").waitFor();
    return page;
  }

  async function signIn(page: Page): Promise<void> {
    await page.getByLabel("Admin key").fill(key);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.locator("footer").waitFor();
  }

  async function show(page: Page, section: string): Promise<void> {
    await page.getByRole("link", { name: section, exact: true }).click();
    await page.getByRole("heading", { name: section, exact: true, level: 1 }).waitFor();
  }

  /** Confirms the question that the page asks. @returns The question. */
  async function confirm(page: Page, verb: string): Promise<string> {
    const dialog = page.getByRole("dialog");
    const question = await dialog.locator("p").first().innerText();
    await dialog.getByRole("button", { name: verb, exact: true }).click();
    await dialog.waitFor({ state: "detached" });
    return question;
  }

  const outcome = (page: Page) => page.getByRole("status").first().innerText();
  const shownValue = (page: Page, name: string) =>
    page.locator(".values div", { has: page.locator("dt", { hasText: new RegExp(`^${name}$`) }) }).locator("dd");

  test("a wrong key shows nothing, and says so", async () => {
    const page = await openPage();
    await page.getByLabel("Admin key").fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByText("The gateway did not accept this key.").waitFor();
    expect(await page.getByRole("navigation").count()).toBe(0);
    if (pictures !== undefined) await page.screenshot({ path: join(pictures, "Sign-in.png") });
    await page.close();
  });

  test("the values are those of the status record, and follow it", async () => {
    const page = await openPage();
    await signIn(page);
    await stack.devnet.mine(2);
    const height = String(stack.devnet.height());
    await eventually(
      () => shownValue(page, "Height").innerText(),
      (text) => text === height,
      30_000,
    );
    expect(await shownValue(page, "Blocks behind").innerText()).toBe("0");
    await show(page, "Uploads");
    await page.getByRole("region", { name: "Uploads by state" }).getByText("waiting").waitFor();
    await show(page, "Money");
    await page.getByText("Owed to clients").waitFor();
    await fetch(`${stack.content}/info`);
    await show(page, "Log");
    const requests = page.getByRole("region", { name: "Latest requests" });
    await requests.getByText("GET /info").first().waitFor();
    expect(await requests.getByText("/svc/admin/").count()).toBe(0);
    await page.close();
  });

  test("why a bundle waits is read in its row, and its next step can be made due", async () => {
    await sendItem(stack.uploads, testItem("shown in the console").bytes);
    const page = await openPage();
    await signIn(page);
    await show(page, "Uploads");
    // The devnet mines on request only: the bundle waits for a block.
    const row = page.getByRole("region", { name: "Unfinished bundles" }).locator("tbody tr").first();
    await row.getByText("A block that contains its transaction.").waitFor({ timeout: 60_000 });
    await row.getByRole("button", { name: /^Retry bundle/ }).click();
    expect(await confirm(page, "Retry")).toStartWith("Take the next step of bundle ");
    await eventually(
      () => outcome(page),
      (text) => text === "Bundle retried",
    );
    await page.close();
  }, 90_000);

  test("content is blocked and unblocked, each time after a question", async () => {
    const page = await openPage();
    await signIn(page);
    const id = "B".repeat(42) + "A";
    const blocked = async () => {
      const headers = { authorization: `Bearer ${key}` };
      const { blocks } = await (await fetch(`${stack.content}/svc/admin/blocks`, { headers })).json();
      return blocks.map(({ value, notes }: Record<string, unknown>) => [value, notes]);
    };
    await show(page, "Actions");
    const form = page.getByRole("form", { name: "Block content by id" });
    await form.getByLabel("Id").fill("abc");
    await form.getByRole("button").click();
    expect([await page.getByRole("dialog").count(), await form.locator("input:invalid").count()]).toEqual([0, 1]);
    await form.getByLabel("Id").fill(` ${id} `);
    await form.getByLabel("Notes (optional)").fill("a test");
    await form.getByRole("button").click();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await blocked()).toEqual([]);
    await form.getByRole("button").click();
    expect(await confirm(page, "Block")).toContain(id);
    expect(await blocked()).toEqual([[id, "a test"]]);
    await show(page, "Content");
    await page.getByRole("button", { name: `Unblock ${id}` }).click();
    await confirm(page, "Unblock");
    await page.getByText("Nothing is blocked.").waitFor();
    expect(await blocked()).toEqual([]);
    await page.close();
  }, 60_000);

  test("data items are queued by their headers, after a question; what is not JSON is not sent", async () => {
    const page = await openPage();
    await signIn(page);
    await show(page, "Actions");
    const first = testItem("queued in the console");
    const second = testItem("queued with another");
    const form = page.getByRole("form", { name: "Queue data items" });
    const headers = form.getByLabel("Headers, JSON");
    const queue = async (text: string) => {
      await headers.fill(text);
      await form.getByRole("button").click();
    };
    await queue("{ id: 1 }");
    expect(await page.getByRole("dialog").count()).toBe(0);
    expect(await form.locator("textarea:invalid").count()).toBe(1);

    const { reader } = stack.gateway;
    await queue(JSON.stringify(announcementOf(first.bytes), null, 2));
    expect(await confirm(page, "Queue")).toBe(`Queue data item ${first.id}?`);
    expect(await outcome(page)).toBe("Data item(s) queued");
    expect(reader.locate(first.id)).toMatchObject({ pending: true, verified: false });

    await queue(JSON.stringify([first, second].map(({ bytes }) => announcementOf(bytes))));
    expect(await confirm(page, "Queue")).toBe("Queue 2 data items?");
    expect(reader.locate(second.id)).toMatchObject({ pending: true });

    await queue("[{}]");
    await confirm(page, "Queue");
    await eventually(
      () => outcome(page),
      (text) => text === "400: Must provide array of data item headers",
    );
    await page.close();
  }, 60_000);

  test("what is owed is shown, and the statement of a month and the proof of an account are saved", async () => {
    const page = await openPage();
    await signIn(page);
    await show(page, "Credits");
    await page.getByText("Owed to clients", { exact: true }).waitFor();
    await page.getByText("SOLVENCY_PUBLISH_MS is not set: the program publishes no root.").waitFor();
    const save = async (title: string, label: string, value: string) => {
      const form = page.getByRole("form", { name: title });
      await form.getByLabel(label).fill(value);
      await form.getByRole("button").click();
      return form.getByRole("status");
    };
    const month = new Date().toISOString().slice(0, 7);
    const download = page.waitForEvent("download");
    const saved = await save("Statement of a month", "Month", month);
    const file = await download;
    expect(file.suggestedFilename()).toBe(`statement-${month}.csv`);
    expect(await Bun.file(await file.path()).text()).toStartWith("month,account,line,entries,winc\r\n");
    await saved.getByText(`Saved statement-${month}.csv.`).waitFor();
    const status = await save("Proof of an account", "Account", testAddress("console"));
    await status.getByText(/^404: /).waitFor();
    await page.close();
  }, 60_000);

  test("credits are granted and adjusted, a promo code is added and ended, each once and after a question", async () => {
    const page = await openPage();
    await signIn(page);
    await show(page, "Credits");
    const address = testAddress("console");
    const move = async (title: string, winc: string, verb: string) => {
      const form = page.getByRole("form", { name: title });
      await form.getByLabel("Account").fill(address);
      await form.getByLabel("Winc").fill(winc);
      await form.getByLabel("Operator").fill("olga");
      await form.getByLabel("Reason").fill("a test");
      await form.getByRole("button").click();
      return await confirm(page, verb);
    };
    const history = async () => {
      const headers = { authorization: `Bearer ${key}` };
      const url = `${stack.content}/svc/admin/accounts/${address}`;
      return (await (await fetch(url, { headers })).json()).history?.map((each: Record<string, unknown>) => [
        each["winc"],
        each["note"],
      ]);
    };
    expect(await move("Grant credits", "500", "Grant")).toBe(`Grant 500 winc to ${address}?`);
    expect(await outcome(page)).toBe("Done");
    expect(await move("Adjust an account", "-501", "Adjust")).toContain("-501");
    expect(await outcome(page)).toContain("500 winc: 501 winc cannot be taken");
    await move("Adjust an account", "-499", "Adjust");
    expect(await history()).toEqual([
      ["-499", "olga: a test"],
      ["500", "olga: a test"],
    ]);
    await page.getByRole("region", { name: "Accounts" }).getByText(address).waitFor();
    await page.getByLabel("History of an account").fill(address);
    await page.getByRole("button", { name: "Show" }).click();
    const movements = page.getByRole("region", { name: "History" });
    await movements.getByText("-499 winc").waitFor();
    expect(await shownValue(page, "Credits").textContent()).toBe("1 winc");
    await page.getByText("No payments.").waitFor();

    // The page after the newest 50 movements.
    for (let number = 0; number < 49; number += 1)
      await fetch(`${stack.content}/svc/admin/accounts/${address}/grant`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ winc: "1", operator: "olga", reason: "many", idempotencyKey: `many-${number}` }),
      });
    await show(page, "Overview");
    await show(page, "Credits");
    await page.getByRole("button", { name: `History of ${address}` }).click();
    await movements.getByText("many").first().waitFor();
    expect(await movements.getByText("500 winc", { exact: true }).count()).toBe(0);
    await page.getByRole("button", { name: "More" }).click();
    await movements.getByText("500 winc", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Back" }).click();
    await movements.getByText("-499 winc").waitFor();

    const form = page.getByRole("form", { name: "Add a promo code" });
    await form.getByLabel("Code").fill("CONSOLE");
    await form.getByLabel("Factor of the charge").fill("0.9");
    await form.getByLabel("Operator").fill("olga");
    await form.getByLabel("Reason").fill("a test");
    await form.getByRole("button").click();
    expect(await confirm(page, "Add")).toContain("CONSOLE");
    await page.getByRole("button", { name: "End CONSOLE" }).click();
    const end = page.getByRole("form", { name: "End the promo code CONSOLE" });
    await end.getByLabel("Operator").fill("olga");
    await end.getByLabel("Reason").fill("over");
    await end.getByRole("button").click();
    await confirm(page, "End");
    await page.getByRole("region", { name: "Promo codes" }).getByText("ended").waitFor();
    await page.close();
  }, 90_000);

  test("a grant whose response was lost is sent again from its question, and made once", async () => {
    const page = await openPage();
    await signIn(page);
    await show(page, "Credits");
    const address = testAddress("lost");
    const form = page.getByRole("form", { name: "Grant credits" });
    await form.getByLabel("Account").fill(address);
    await form.getByLabel("Winc").fill("700");
    await form.getByLabel("Operator").fill("olga");
    await form.getByLabel("Reason").fill("a test");
    await form.getByRole("button").click();
    let sent = 0;
    await page.route("**/grant", async (route) => {
      sent += 1;
      if (sent > 1) return await route.continue();
      await route.fetch();
      await route.abort();
    });
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Grant", exact: true }).click();
    await dialog.getByText("Sent again, it is not done twice.").waitFor();
    expect(await confirm(page, "Grant")).toBe(`Grant 700 winc to ${address}?`);
    expect([sent, await outcome(page)]).toEqual([2, "Done"]);
    const response = await fetch(`${stack.content}/svc/admin/accounts/${address}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect((await response.json()).history).toHaveLength(1);
    await page.close();
  }, 60_000);

  test("what the gateway rejects is shown with its reason", async () => {
    const page = await openPage();
    await signIn(page);
    await show(page, "Actions");
    const form = page.getByRole("form", { name: "Queue a transaction" });
    await form.getByLabel("Id").fill("B".repeat(43)); // of the form of an id, but of more than 32 bytes
    await form.getByRole("button").click();
    await confirm(page, "Queue");
    await eventually(
      () => outcome(page),
      (text) => text.startsWith("400: "),
    );
    await page.close();
  });

  test("the key is in no storage, and a reload forgets it", async () => {
    const page = await openPage();
    await signIn(page);
    const stored = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])";
    expect(await page.evaluate(stored)).not.toContain(key);
    await page.reload();
    await page.getByLabel("Admin key").waitFor();
    expect(await page.getByLabel("Admin key").inputValue()).toBe("");
    await page.close();
  });

  test("charts are read with the arrow keys", async () => {
    const page = await openPage();
    await signIn(page);
    await show(page, "Charts");
    const chart = page.getByRole("slider", { name: "Memory of the process, time" });
    await chart.waitFor({ timeout: 60_000 }); // two samples
    await chart.focus();
    await page.keyboard.press("Home");
    expect(await chart.getAttribute("aria-valuenow")).toBe("0");
    await page.keyboard.press("ArrowRight");
    expect(await chart.getAttribute("aria-valuenow")).toBe("1");
    expect(await chart.getAttribute("aria-valuetext")).toMatch(/resident \d+\.\d MiB/);
    await page.close();
  }, 90_000);

  test.each([
    ["light", 390],
    ["dark", 390],
    ["light", 1_440],
    ["dark", 1_440],
    ["light", 1_920],
  ] as const)(
    "readable in %s, %d pixels wide",
    async (colorScheme, width) => {
      const page = await openPage(width, colorScheme);
      const measured: unknown[] = [{ section: "Sign in", ...(await readabilityOf(page)) }];
      await signIn(page);
      for (const section of sections) {
        await show(page, section);
        measured.push({ section, ...(await readabilityOf(page)) });
        if (pictures === undefined) continue;
        mkdirSync(pictures, { recursive: true });
        await page.screenshot({ path: join(pictures, `${section}-${colorScheme}-${width}.png`), fullPage: true });
      }
      const faults = (measured as { section: string; texts: number; contrast: number; overflow: number }[]).filter(
        ({ texts, contrast, overflow }) => texts < 3 || contrast < 4.5 || overflow > 0,
      );
      expect(faults).toEqual([]);
      await page.keyboard.press("Tab");
      expect(await focusOutline(page)).toBe("solid");
      await page.close();
    },
    120_000,
  );

  test("no script failed, and nothing left the origin", () => {
    expect({ complaints, strangers }).toEqual({ complaints: [], strangers: [] });
  });
});
