/**
 * The explorer in a real browser: it finds what a text means, lists what arrives, leads from an item to its block, and
 * checks proofs by itself, also those that a gateway has changed. It is readable in light and dark, at every width, and
 * sends requests to its own origin only.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { post, rsa } from "../dev/devnet/support.ts";
import { bundleTags, makeFlawedBundle } from "../indexing/samples.ts";
import { describeWith } from "../support/helpers.ts";
import { eventually } from "../support/until.ts";
import { testItem } from "../support/upload.ts";
import { openUploadStack, sendItem, type UploadStack } from "../support/upload-stack.ts";
import { browser as browserNeed, openBrowser } from "./browser.ts";
import { focusOutline, readabilityOf } from "./page-checks.ts";

const text = "shown in the explorer";
/** A folder for pictures; none are taken without it. */
const pictures = process.env["EXPLORER_PICTURES"];

describeWith(browserNeed, "the explorer", () => {
  let stack: UploadStack;
  let chromium: Browser;
  let id: string;
  const complaints: string[] = [];
  const strangers: string[] = [];

  beforeAll(async () => {
    stack = await openUploadStack();
    const item = testItem(text, { tags: [{ name: "Content-Type", value: "text/plain" }] });
    ({ id } = item);
    await sendItem(stack.uploads, item.bytes);
    await eventually(
      async () => {
        await stack.devnet.mine(1);
        return (await fetch(`${stack.content}/svc/proof/${id}`)).json();
      },
      (proof) => typeof proof === "object" && proof !== null && "block" in proof && proof.block !== null,
      60_000,
    );
    chromium = await openBrowser();
  }, 180_000);
  afterAll(async () => {
    await chromium?.close();
    await stack?.close();
  });

  async function openPage(search = "", width = 1_440, colorScheme: "light" | "dark" = "light"): Promise<Page> {
    const page = await chromium.newPage({ viewport: { width, height: 900 }, colorScheme });
    page.on("request", (request) => {
      if (!request.url().startsWith(stack.content) && !request.url().startsWith("data:")) strangers.push(request.url());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !/status of 404|^Blocked script execution/.test(message.text()))
        complaints.push(message.text());
    });
    await page.goto(`${stack.content}/svc/explorer${search}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    return page;
  }

  async function find(page: Page, sought: string): Promise<string> {
    // The key that leads to the search types a slash within it.
    const isThere = await page.getByLabel("Search").evaluate((input) => input === input.ownerDocument.activeElement);
    if (!isThere) await page.keyboard.press("/");
    await page.keyboard.type(sought);
    await page.keyboard.press("Enter");
    await eventually(
      () => page.getByLabel("Search").inputValue(),
      (left) => left === "",
      30_000,
    );
    return new URL(page.url()).search;
  }

  test("shows the item that arrived, and a new block without a reload", async () => {
    const page = await openPage();
    const rows = page.getByRole("region", { name: "Transactions and data items" });
    await rows.getByRole("link", { name: id }).waitFor();
    await stack.devnet.mine(1);
    const blocks = page.getByRole("region", { name: "Blocks", exact: true });
    await blocks.getByRole("link", { name: String(stack.devnet.height()), exact: true }).waitFor({ timeout: 30_000 });
    await page.close();
  });

  test("finds by height, id, address, tag and hash, by keyboard alone", async () => {
    const page = await openPage();
    expect(await find(page, "1")).toBe("?block=1");
    await page.getByRole("heading", { name: "Block 1" }).waitFor();
    const hash = (await page.locator(".fields code").first().textContent()) ?? "";
    expect(await find(page, hash)).toBe(`?block=${hash}`);
    await page.getByRole("heading", { name: "Block 1" }).waitFor();
    expect(await find(page, id)).toBe(`?id=${id}`);
    await page.getByRole("heading", { name: "Data item" }).waitFor();
    const owner = (await page.locator(".fields a code").first().textContent()) ?? "";
    expect(await find(page, owner)).toBe(`?address=${owner}`);
    await page.getByRole("link", { name: id }).waitFor();
    expect(await find(page, "Content-Type=text/plain")).toBe("?tag=Content-Type%3Dtext%2Fplain");
    await page.getByRole("link", { name: id }).waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "Address", exact: true }).waitFor();
    await page.close();
  });

  test("suggests the tags of the newest rows that have the chosen tags", async () => {
    const page = await openPage("?tag=Content-Type%3Dtext%2Fplain");
    const suggested = (label: "Name" | "Value") =>
      page
        .locator("datalist")
        .nth(label === "Name" ? 0 : 1)
        .locator("option")
        .evaluateAll((options) => options.map((option) => option.getAttribute("value")));
    await eventually(
      () => suggested("Name"),
      (names) => names.length > 0,
      30_000,
    );
    expect(await suggested("Name")).toEqual(["Content-Type"]);
    expect(await suggested("Value")).toEqual([]);
    await page.getByLabel("Name", { exact: true }).fill("Content-Type");
    expect(await suggested("Value")).toEqual(["text/plain"]);
    await page.close();
  }, 60_000);

  test.each([
    ["no such thing", "?unknown=no+such+thing", "Nothing found"],
    ["999999999", "?block=999999999", "Block 999999999"],
    ["A".repeat(43), `?id=${"A".repeat(43)}`, "Not in the index"],
  ])("says of %j what is known, and leads on", async (sought, search, heading) => {
    const page = await openPage();
    expect(await find(page, sought)).toBe(search);
    await page.getByRole("heading", { name: heading }).waitFor();
    await page.getByRole("link", { name: "Latest blocks and transactions" }).click();
    await page.getByRole("heading", { name: "Explorer" }).waitFor();
    await page.close();
  });

  test("leads from the item through its bundle to the block, and shows the content as text", async () => {
    const page = await openPage(`?id=${id}`);
    await eventually(
      () => page.getByLabel("Text of the content").inputValue(),
      (shown) => shown === text,
      30_000,
    );
    const path = page.getByRole("region", { name: "Path" });
    await path.getByRole("link").nth(1).click();
    await page.getByRole("region", { name: "Items of this bundle" }).getByRole("link", { name: id }).waitFor();
    await page.goBack();
    await path.getByRole("link").first().click();
    await page.getByRole("heading", { name: /^Block \d+/ }).waitFor();
    await page.getByRole("link", { name: id }).waitFor();
    await page.close();
  });

  test("shows a page in a frame on request, and runs nothing of it", async () => {
    const html = '<h1>Framed</h1><script>document.querySelector("h1").textContent = "Run"</script>';
    const item = testItem(html, { tags: [{ name: "Content-Type", value: "text/html" }] });
    await sendItem(stack.uploads, item.bytes);
    const page = await openPage(`?id=${item.id}`);
    await eventually(
      () => page.getByLabel("Text of the content").inputValue(),
      (shown) => shown === html,
      30_000,
    );
    // Also while it waits for its bundle.
    await page.getByRole("heading", { name: "Data item", level: 1 }).waitFor();
    expect(await page.getByText("winston").count()).toBe(0);
    await page.getByRole("button", { name: "Show as a page" }).click();
    const heading = page.frameLocator("iframe").getByRole("heading");
    expect(await heading.textContent()).toBe("Framed");
    expect(await page.locator("iframe").getAttribute("sandbox")).toBe("");
    if (pictures !== undefined) await page.screenshot({ path: join(pictures, "framed.png"), fullPage: true });
    await page.getByRole("button", { name: "Show as text" }).click();
    await page.getByLabel("Text of the content").waitFor();
    await page.close();
  }, 60_000);

  test("keeps names, values and types of any length within the window", async () => {
    const long = "x".repeat(700);
    const tags = [
      { name: `App-${long}`, value: `<b>${long}` },
      { name: "Content-Type", value: `text/${long}` },
    ];
    const item = testItem("long", { tags });
    await sendItem(stack.uploads, item.bytes);
    for (const width of [390, 1_440])
      for (const search of [`?id=${item.id}`, `?tag=App-${long}%3D%3Cb%3E${long}`, "?", `?unknown=${long}`]) {
        const page = await openPage(search, width);
        await page.getByText("Reading …").first().waitFor({ state: "detached" });
        expect([search, width, (await readabilityOf(page)).overflow]).toEqual([search, width, 0]);
        await page.close();
      }
  }, 90_000);

  test("lists the invalid items of a bundle with their reasons, below the valid ones", async () => {
    const { data, valid, invalid } = makeFlawedBundle("in the explorer");
    const bundle = await post(stack.devnet, rsa, { data, tags: [...bundleTags] });
    await stack.devnet.mine(1);
    const page = await openPage();
    await eventually(
      async () => stack.gateway.reader.invalidItems(bundle.id, 0, 1)?.itemCount,
      (count) => count === 6,
      30_000,
    );
    await page.goto(`${stack.content}/svc/explorer?id=${bundle.id}`);
    const items = page.getByRole("region", { name: "Items of this bundle" });
    for (const item of valid) await items.getByRole("link", { name: item }).waitFor();
    const list = page.locator('section[aria-label="Invalid items"]');
    await list.getByText("Of the 6 entries of the bundle, these are not valid data items").waitFor();
    const rows = await list.locator("tbody tr").allTextContents();
    expect(rows.length).toBe(invalid.length);
    for (const [number, { index, id: invalidId, reason }] of invalid.entries()) {
      expect(rows[number]).toStartWith(`${index}${invalidId}`);
      expect(rows[number]).toContain(reason);
    }
    if (pictures !== undefined) await page.screenshot({ path: join(pictures, "invalid-items.png"), fullPage: true });
    for (const width of [390, 1_440]) {
      await page.setViewportSize({ width, height: 900 });
      const { contrast, overflow } = await readabilityOf(page);
      expect([contrast >= 4.5, overflow]).toEqual([true, 0]);
    }
    if (pictures !== undefined) {
      await page.setViewportSize({ width: 390, height: 900 });
      await page.screenshot({ path: join(pictures, "invalid-items-390.png"), fullPage: true });
    }
    await page.goto(`${stack.content}/svc/explorer?id=${bundle.id}&invalid=2`);
    await list.getByRole("link", { name: "First" }).waitFor();
    expect((await list.locator("tbody tr").allTextContents()).map((row) => row.charAt(0))).toEqual(["3", "4"]);
    await page.close();
  }, 90_000);

  const steps = (page: Page) =>
    page
      .locator(".proof li")
      .evaluateAll((all) => all.map((one) => `${one.querySelector("b")?.textContent} ${one.className}`));
  const checked = async (page: Page): Promise<string | null> => {
    await page.getByRole("button", { name: "Check the proof" }).click();
    const status = page.getByRole("region", { name: "Proof" }).getByRole("status");
    return await eventually(
      () => status.textContent(),
      (words) => words !== null && words !== "",
      30_000,
    );
  };

  test("checks the proof of the item, step by step", async () => {
    const page = await openPage(`?id=${id}`);
    expect(await checked(page)).toBe("These bytes are in the block, and signed by their owner.");
    expect(await steps(page)).toEqual([
      "○ Block trusted",
      "✓ Transaction checked",
      "✓ Chunks checked",
      "✓ Data item checked",
      "✓ Signature checked",
    ]);
    await page.close();
  });

  /** What the tests change of a proof. */
  type Changed = Readonly<{
    transaction: Readonly<{ place: object }>;
    items: readonly object[];
    signature: object;
    chunks: readonly object[];
  }>;

  /** Changes one character of a base64url text. */
  const flip = (value: string, at = 40) =>
    `${value.slice(0, at)}${value[at] === "A" ? "B" : "A"}${value.slice(at + 1)}`;

  /** Each yields an object of the proof and one of its texts. */
  const changes: readonly (readonly [
    what: string,
    step: string,
    of: (proof: Changed) => [object | undefined, string],
  ])[] = [
    ["the path to the transaction", "Transaction", ({ transaction }) => [transaction.place, "tx_path"]],
    ["the data root", "Transaction", ({ transaction }) => [transaction, "data_root"]],
    ["the path to a chunk", "Chunks", ({ chunks }) => [chunks[0], "data_path"]],
    ["the bytes of a chunk", "Chunks", ({ chunks }) => [chunks[0], "chunk"]],
    ["the header of the item", "Data item", ({ items }) => [items[0], "header"]],
    ["the signature", "Signature", ({ signature }) => [signature, "signature"]],
  ];

  test.each(changes)("finds that a gateway changed %s", async (_what, step, of) => {
    const page = await openPage(`?id=${id}`);
    await page.route(`**/svc/proof/${id}`, async (route) => {
      const response = await route.fetch();
      const proof = await response.json();
      const [part = {}, name] = of(proof);
      Reflect.set(part, name, flip(String(Reflect.get(part, name))));
      await route.fulfill({ response, json: proof });
    });
    expect(await checked(page)).toBe(`Not proven: the step "${step}" failed.`);
    expect((await steps(page)).at(-1)).toBe(`✗ ${step} failed`);
    await page.close();
  });

  test("finds that a gateway changed the content", async () => {
    const page = await openPage(`?id=${id}`);
    await page.route(`**/raw/${id}`, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: route.request().method() === "HEAD" ? "" : text.toUpperCase() });
    });
    expect(await checked(page)).toBe('Not proven: the step "Chunks" failed.');
    await page.close();
  });

  const looks = (["light", "dark"] as const).flatMap((colorScheme) =>
    [390, 1_920].map((width) => [colorScheme, width] as const),
  );
  test.each(looks)(
    "is readable in %s, %d pixels wide",
    async (colorScheme, width) => {
      for (const search of [
        "",
        "?blocks=",
        "?block=1",
        `?id=${id}`,
        "?tag=Content-Type%3Dtext%2Fplain",
        "?unknown=x",
      ]) {
        const page = await openPage(search, width, colorScheme);
        await page.getByText("Reading …").first().waitFor({ state: "detached" });
        if (search.startsWith("?id=")) await checked(page);
        const { texts, contrast, overflow } = await readabilityOf(page);
        expect({ search, isFull: texts > 5, isReadable: contrast >= 4.5, overflow }).toEqual({
          search,
          isFull: true,
          isReadable: true,
          overflow: 0,
        });
        await page.keyboard.press("/");
        await page.keyboard.press("Tab");
        expect(await focusOutline(page)).toBe("solid");
        await page.close();
      }
    },
    120_000,
  );

  test("sent no request to another origin, and the browser complained of nothing", () => {
    expect({ strangers, complaints }).toEqual({ strangers: [], complaints: [] });
  });
});
