/**
 * The page of an account in a real browser, beside `cairn dev`: a wallet signs in, sees its credits and its history, and
 * buys more with a simulated card after it has seen the price. It is readable in light and dark, at every width, and
 * sends requests to its own origin only.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, Locator, Page } from "playwright-core";
import { signTransaction } from "../../src/arweave/transaction-sign.ts";
import { readWallet } from "../../src/arweave/wallet.ts";
import { sha256 } from "../../src/lib/hash.ts";
import type { JsonObject } from "../../src/lib/json.ts";
import { describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { rsaKeys } from "../support/rsa-keys.ts";
import { arweaveWallet } from "../support/signed-headers.ts";
import { eventually } from "../support/until.ts";
import { browser as browserNeed, openBrowser } from "./browser.ts";
import { focusOutline, readabilityOf } from "./page-checks.ts";

/** The parts of the page, as its address names them. */
const parts = ["buy", "tokens", "gift", "shared", "history"] as const;

describeWith(browserNeed, "the page of an account", () => {
  let program: RunningProgram;
  let chromium: Browser;
  const complaints: string[] = [];
  const strangers: string[] = [];
  /** Responses with an error status, which the browser logs: an account that never had credits is not known. */
  const expected = ["status of 404"];

  beforeAll(async () => {
    program = await startDev();
    chromium = await openBrowser();
  }, 180_000);
  afterAll(async () => {
    await chromium?.close();
    await program?.remove();
  });

  async function openPage(width = 1_280, colorScheme: "light" | "dark" = "light"): Promise<Page> {
    const page = await chromium.newPage({ viewport: { width, height: 900 }, colorScheme });
    page.on("request", (request) => {
      // The checkout and the pages that it leads back to are of other ports.
      const isOfPage = page.url().startsWith(`${program.line.gateway}/`) && !request.isNavigationRequest();
      const isOwn = request.url().startsWith(program.line.gateway) || request.url().startsWith("data:");
      if (isOfPage && !isOwn) strangers.push(request.url());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => {
      const isExpected = expected.some((text) => message.text().includes(text));
      if (message.type() === "error" && !isExpected) complaints.push(message.text());
    });
    return page;
  }

  async function open(page: Page, part = ""): Promise<Page> {
    await page.goto(`${program.line.gateway}/svc/account${part}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    return page;
  }

  async function signIn(page: Page, name = "Test wallet"): Promise<void> {
    await page.getByRole("button", { name }).click();
    await page.getByRole("button", { name: "Sign out" }).waitFor();
  }

  /** The credits that the page shows, winc. */
  async function shownWinc(page: Page): Promise<bigint> {
    const text = (await page.getByRole("status").first().locator("small").textContent()) ?? "";
    return BigInt((/([\d,]+) winc/.exec(text)?.[1] ?? "0").replaceAll(",", ""));
  }

  const untilWinc = (page: Page, isWanted: (winc: bigint) => boolean) =>
    eventually(() => shownWinc(page), isWanted, 60_000);

  test("is a door of the front page", async () => {
    const page = await openPage();
    await page.goto(program.line.gateway);
    await page.getByRole("link", { name: /^Credits/ }).click();
    await page.getByRole("heading", { name: "Credits", level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/svc/account");
    await page.close();
  }, 60_000);

  test("sells credits to the test wallet for a simulated card, after the price was shown", async () => {
    const page = await open(await openPage());
    await signIn(page);
    const before = await untilWinc(page, (winc) => winc > 0n);
    await page.getByLabel("Amount in USD").fill("12.50");
    await page.getByText("2.92 USD").waitFor(); // the fee
    const price = await (await fetch(`${program.line.payment}/v1/price/usd/1250`)).json();
    await page.getByRole("button", { name: "Pay 12.50 USD" }).click();
    await page.waitForURL(`${program.line.sandbox}/**`);
    expect(await page.locator(".amount").textContent()).toBe("12.50 USD");
    await page.getByRole("button", { name: "Pay 12.50 USD" }).click();
    await page.getByRole("heading", { name: "Paid" }).waitFor({ timeout: 60_000 });
    // The tab is still signed in.
    await page.getByRole("link", { name: "Show the account" }).click();
    await page.getByRole("link", { name: "History" }).click();
    expect(await untilWinc(page, (winc) => winc !== before && winc > 0n)).toBe(before + BigInt(price.winc));
    const first = page.getByRole("row").nth(1);
    await first.getByText("Bought by card").waitFor();
    await page.close();
  }, 120_000);

  test("lets the explorer show the credits at the address of the signed-in wallet, and at no other", async () => {
    const page = await open(await openPage());
    await signIn(page);
    await untilWinc(page, (winc) => winc > 0n);
    const address = (await page.locator("code").first().textContent()) ?? "";
    await page.goto(`${program.line.gateway}/svc/explorer?address=${address}`);
    await page.getByText("Your credits").waitFor();
    await page.goto(`${program.line.gateway}/svc/explorer?address=${"A".repeat(43)}`);
    await page.getByText("The index has no such transaction or item.").waitFor();
    expect(await page.getByText("Your credits").count()).toBe(0);
    await page.close();
  }, 60_000);

  test("leads back from a cancelled checkout, which charged nothing", async () => {
    const page = await open(await openPage());
    await signIn(page);
    const before = await untilWinc(page, (winc) => winc > 0n);
    await page.getByRole("button", { name: "Pay 25.00 USD" }).click();
    await page.getByRole("link", { name: "Cancel and go back" }).click();
    await page.getByRole("heading", { name: "Nothing was paid" }).waitFor();
    await page.getByRole("link", { name: "choose an amount" }).click();
    await page.getByRole("button", { name: "Pay 25.00 USD" }).waitFor();
    expect(await shownWinc(page)).toBe(before);
    await page.close();
  }, 60_000);

  test("redeems a gift, once, by its code or its link", async () => {
    const response = await fetch(
      `${program.line.payment}/v1/top-up/checkout-session/gift/usd/1000?destinationAddressType=gift`,
    );
    const { giftId, giftUrl, paymentSession } = await response.json();
    const page = await openPage();
    await page.goto(paymentSession.url);
    await page.getByRole("button", { name: "Pay 10.00 USD" }).click();
    await page.getByRole("heading", { name: "Paid" }).waitFor({ timeout: 60_000 });
    await open(page, "#gift");
    await signIn(page);
    const before = await untilWinc(page, (winc) => winc > 0n);
    const field = page.getByLabel("Code or link of the gift");
    await field.fill("not a gift");
    await page.getByRole("button", { name: "Redeem" }).click();
    await page.getByText("This is not the code or the link of a gift.").waitFor();
    await field.fill(giftUrl);
    await page.getByRole("button", { name: "Redeem" }).click();
    await page.getByText("You got 1.09429 credits.").waitFor();
    await untilWinc(page, (winc) => winc === before + 1_094_285_714_286n);
    await field.fill(giftId);
    // The browser logs the response with an error status.
    expected.push("status of 400");
    await page.getByRole("button", { name: "Redeem" }).click();
    await page.getByText("Gift has already been redeemed!").waitFor();
    await page.close();
  }, 120_000);

  test("reads the history again on request after a failed read", async () => {
    const page = await open(await openPage(), "#history");
    const reads = /account\/history\?limit=25/;
    await page.route(reads, (route) => route.fulfill({ status: 404, body: "away" }));
    await signIn(page);
    await page.getByText("The history cannot be read").waitFor();
    await page.unroute(reads);
    await page.getByRole("button", { name: "Read again" }).click();
    await page.getByRole("table").waitFor();
    expect(await page.getByText("The history cannot be read").count()).toBe(0);
    await page.close();
  }, 60_000);

  test("shows the history page after page", async () => {
    const { gateway, adminKey, wallets } = program.line;
    const rows = 30;
    const grant = async (row: number) => {
      const granted = await fetch(`${gateway}/svc/admin/accounts/${wallets[0]?.address}/grant`, {
        method: "POST",
        headers: { Authorization: `Bearer ${adminKey}`, "Content-Type": "application/json" },
        body: JSON.stringify({ winc: String(row), operator: "ada", reason: "a test", idempotencyKey: `page-${row}` }),
      });
      expect(granted.status).toBe(200);
    };
    for (let row = 1; row <= rows; row += 1) await grant(row);
    const page = await open(await openPage(), "#history");
    await signIn(page);
    const earlier = page.getByRole("button", { name: "Earlier" });
    await earlier.waitFor();
    // The heading, and a page of rows.
    expect(await page.getByRole("row").count()).toBe(26);
    await earlier.click();
    await eventually(
      () => page.getByRole("row").count(),
      (count) => count > rows,
    );
    const given = await page.getByText("Given by the operator").count();
    expect(given).toBeGreaterThan(rows);
    // What comes while pages are shown is put before them.
    await grant(rows + 1);
    await eventually(
      () => page.getByText("Given by the operator").count(),
      (count) => count === given + 1,
    );
    await page.close();
  }, 60_000);

  test("tells credits that a won dispute returned from those that a refund took", async () => {
    const page = await open(await openPage(), "#history");
    const entry = { kind: "reversal", date: "2026-01-02T03:04:05.000Z", changeId: null };
    await page.route(/account\/history\?limit=25/, (route) =>
      route.fulfill({
        json: {
          entries: [
            { ...entry, id: "b", winc: "2000000000000" },
            { ...entry, id: "a", winc: "-2000000000000" },
          ],
          cursor: null,
        },
      }),
    );
    await signIn(page);
    const rows = page.getByRole("row");
    await rows.nth(2).waitFor();
    const kinds = await Promise.all([1, 2].map((row) => rows.nth(row).getByRole("cell").nth(1).textContent()));
    expect(kinds).toEqual(["Dispute won, or refund failed: returned", "Payment refunded or undone: taken back"]);
    await page.close();
  }, 60_000);

  test("shows the reason and no 0 while the payment service is away", async () => {
    const page = await open(await openPage());
    await page.route("**/payment/v1/account/balance?**", (route) => route.fulfill({ status: 404, json: "Not Found" }));
    await signIn(page);
    await page.getByText("Not Found").waitFor();
    expect(await page.getByRole("status").count()).toBe(0);
    await page.close();
  }, 60_000);

  test("says when a session has ended", async () => {
    const page = await open(await openPage());
    await signIn(page);
    await page.evaluate(`{
      const session = JSON.parse(sessionStorage.getItem("cairn-account"));
      sessionStorage.setItem("cairn-account", JSON.stringify({ ...session, token: "Bearer ended" }));
    }`);
    expected.push("status of 403");
    await open(page, "?again#history");
    await page.getByText("The session has ended. Sign out, and sign in again.").waitFor();
    await page.close();
  }, 60_000);

  test("shows approvals with what is left of them", async () => {
    const page = await openPage();
    const approval = {
      approvalDataItemId: "A".repeat(43),
      approvedWincAmount: "3000000000000",
      usedWincAmount: "1000000000000",
    };
    await page.route("**/payment/v1/account/balance?**", (route) =>
      route.fulfill({
        json: {
          ...{ winc: "5", effectiveBalance: "2000000000005" },
          givenApprovals: [{ ...approval, approvedAddress: "B".repeat(43), payingAddress: "P".repeat(43) }],
          receivedApprovals: [
            {
              ...approval,
              ...{ approvedAddress: "P".repeat(43), payingAddress: "C".repeat(43) },
              expirationDate: "2100-01-02T03:04:05.000Z",
            },
          ],
        },
      }),
    );
    await open(page, "#shared");
    await signIn(page);
    const [given, received] = [page.getByRole("row").nth(1), page.getByRole("row").nth(3)];
    await given.waitFor();
    expect(await given.getByRole("cell").allTextContents()).toEqual(["B".repeat(43), "2", "3", "no end"]);
    const [from, left, of, until] = await received.getByRole("cell").allTextContents();
    expect([from, left, of]).toEqual(["C".repeat(43), "2", "3"]);
    expect(until).toContain("2100");
    await page.getByText("Shared with you").waitFor();
    await page.close();
  }, 60_000);

  test("sells credits for tokens: price, QR code, and the report of a transfer that credits the account", async () => {
    const page = await open(await openPage(), "#tokens");
    await signIn(page);
    const { addresses } = await (await fetch(`${program.line.payment}/v1/info`)).json();
    await page.getByLabel("Amount in AR").fill("0.5");
    await page.getByRole("img", { name: `QR code: arweave:${addresses.native}?amount=0.5` }).waitFor();
    const { winc } = await (await fetch(`${program.line.payment}/v1/price/native/500000000000`)).json();
    await page.getByText(`${Number(winc) / 1e12} credits`).waitFor();
    const before = await untilWinc(page, (shown) => shown > 0n);
    await page.getByLabel("Transaction id").fill("N".repeat(43));
    await page.getByRole("button", { name: "Report" }).click();
    await page.getByText("Transaction ID not found!").waitFor();

    await page.getByLabel("Transaction id").fill(await transferOf(addresses.native, "500000000000"));
    await page.getByRole("button", { name: "Report" }).click();
    await page.getByText(/^(Found\. .* when enough blocks confirm it|Credited: .*)\.$/).waitFor();
    const mine = () => fetch(`${program.line.node}/mine`, { method: "POST" });
    await eventually(
      async () => {
        await mine();
        return await shownWinc(page);
      },
      (shown) => shown === before + BigInt(winc),
      60_000,
    );
    await page.close();
  }, 120_000);

  test("rejects an amount beyond the limits, and says which are valid", async () => {
    const page = await open(await openPage());
    await signIn(page);
    for (const [amount, reason] of [
      ["1.00", "Enter an amount from"],
      ["ten", "Enter an amount, such as 10.00."],
      ["10.001", "Enter an amount, such as 10.00."],
    ] as const) {
      await page.getByLabel("Amount in USD").fill(amount);
      await page.getByText(reason).waitFor();
      expect(await page.getByRole("button", { name: /^Pay/ }).count()).toBe(0);
    }
    await page.getByLabel("Currency").selectOption("jpy");
    await page.getByRole("button", { name: /^Pay \d+ JPY$/ }).waitFor();
    await page.close();
  }, 60_000);

  test("signs in with the wallet of the browser, also without an account, and signs out", async () => {
    const page = await openPage();
    const wallet = arweaveWallet(rsaKeys.other, 32);
    // Wallets sign the hash of the message.
    await page.exposeFunction("signInTest", (bytes: number[]) =>
      Array.from(wallet.sign(sha256(Uint8Array.from(bytes)))),
    );
    // As on a page of another machine over http.
    await page.addInitScript("delete Crypto.prototype.randomUUID");
    await page.addInitScript(`window.arweaveWallet = {
      connect: async () => {},
      getActiveAddress: async () => "${wallet.address}",
      getActivePublicKey: async () => "${wallet.publicKey}",
      signMessage: async (message) => Uint8Array.from(await window.signInTest(Array.from(message))),
    }`);
    await open(page, "#history");
    await signIn(page, "Browser wallet");
    await page.getByText("Nothing has moved yet.").waitFor();
    expect(await shownWinc(page)).toBe(0n);
    await page.reload();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Browser wallet" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Browser wallet" }).waitFor();
    await page.close();
  }, 60_000);

  test.each(['new Error("the user said no")', '"the user said no"'])(
    "says why a wallet rejects: %s",
    async (reason) => {
      const page = await openPage();
      await page.addInitScript(`window.arweaveWallet = { connect: async () => { throw ${reason}; } }`);
      await open(page);
      await page.getByRole("button", { name: "Browser wallet" }).click();
      await page.getByText("The wallet was not connected: the user said no").waitFor();
      await page.close();
    },
    60_000,
  );

  /** Sends tokens of the test wallet. @returns The transaction's id. */
  async function transferOf(target: string, quantity: string): Promise<string> {
    const { node, wallets } = program.line;
    const lastTx = await (await fetch(`${node}/tx_anchor`)).text();
    const reward = BigInt(await (await fetch(`${node}/price/0/${target}`)).text()) * 2n;
    const unsigned = { format: 2, lastTx, target, quantity: BigInt(quantity), reward } as const;
    const transaction = signTransaction(unsigned, readWallet(wallets[0]?.jwk as JsonObject));
    const headers = { "Content-Type": "application/json" };
    const posted = await fetch(`${node}/tx`, { method: "POST", headers, body: transaction.text });
    expect(posted.status).toBe(200);
    return transaction.id;
  }

  /** What shows that a part has read its values. */
  function contentOf(page: Page, part: (typeof parts)[number]): Locator {
    if (part === "buy") return page.getByRole("button", { name: /^Pay/ });
    if (part === "tokens") return page.getByRole("img", { name: /^QR code/ });
    if (part === "gift") return page.getByRole("button", { name: "Redeem" });
    if (part === "shared") return page.getByText("You share with others");
    return page.getByRole("table");
  }

  test.each((["light", "dark"] as const).flatMap((scheme) => [390, 1_920].map((width) => [scheme, width] as const)))(
    "is readable: %s, %d pixels wide",
    async (scheme, width) => {
      const page = await open(await openPage(width, scheme));
      await signIn(page);
      await untilWinc(page, (winc) => winc > 0n);
      for (const part of parts) {
        await open(page, `#${part}`);
        await page.getByRole("navigation", { name: "Account" }).locator("[aria-current]").waitFor();
        await contentOf(page, part).first().waitFor();
        const { texts, contrast, overflow } = await readabilityOf(page);
        expect(texts).toBeGreaterThan(10);
        expect(contrast).toBeGreaterThanOrEqual(4.5);
        expect(overflow).toBeLessThanOrEqual(0);
        await page.keyboard.press("Tab");
        expect(await focusOutline(page)).toBe("solid");
      }
      await page.close();
    },
    60_000,
  );

  test.each((["light", "dark"] as const).flatMap((scheme) => [390, 1_920].map((width) => [scheme, width] as const)))(
    "is readable on the pages after a checkout: %s, %d pixels wide",
    async (scheme, width) => {
      const { payment } = program.line;
      const topUp = await fetch(`${payment}/v1/top-up/checkout-session/${"B".repeat(43)}/usd/1000`);
      const { topUpQuote, paymentSession } = await topUp.json();
      const query = `topUpQuoteId=${topUpQuote.topUpQuoteId}`;
      const page = await openPage(width, scheme);
      const check = async (heading: string) => {
        await page.getByRole("heading", { name: heading }).waitFor({ timeout: 60_000 });
        const { contrast, overflow } = await readabilityOf(page);
        expect([heading, contrast >= 4.5, overflow <= 0]).toEqual([heading, true, true]);
        await page.keyboard.press("Tab");
        expect(await focusOutline(page)).toBe("solid");
      };
      await page.goto(`${payment}/v1/cancelled?${query}`);
      await check("Nothing was paid");
      await page.goto(`${payment}/v1/done?${query}&reload=60`);
      await check("Waiting for your payment");
      await page.goto(paymentSession.url);
      await page.getByRole("button", { name: "Pay 10.00 USD" }).click();
      await check("Paid");
      await page.close();
    },
    60_000,
  );

  test("has sent requests to its own origin only, and the browser had nothing to complain about", () => {
    expect({ strangers, complaints }).toEqual({ strangers: [], complaints: [] });
  });
});
