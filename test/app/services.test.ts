/**
 * `cairn upload`, `balance`, `topup` and `receipt verify` beside a running `cairn dev`, as its first lines say: what
 * is uploaded opens at once, what is paid is there, and the wallets begin with credits once.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { complaintsIn, runCairn } from "../cli/command.ts";
import { testAddress } from "../support/payment.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";

const wincAtStart = 100_000_000_000_000n;

let program: RunningProgram;
const folder = mkdtempSync(join(tmpdir(), "cairn-services-"));

beforeAll(async () => {
  program = await startDev();
}, 120_000);
afterAll(async () => {
  await program?.remove();
  removeFolder(folder);
});

/** Runs a command where the program's folder is the data folder, so that its wallet is found. */
function cairn(words: readonly string[], onText?: (text: string) => void) {
  const environment = { DATA_DIR: program.folder, XDG_STATE_HOME: join(folder, "state") };
  return runCairn(words, { environment, ...(onText === undefined ? {} : { onText }) });
}

async function balanceOf(...words: string[]): Promise<bigint> {
  const { out } = await cairn(["balance", ...words, "--to", program.line.payment, "--json"]);
  return BigInt(JSON.parse(out).winc);
}

test("the wallets begin with credits, also after a kill with the same ones", async () => {
  expect(program.line.wallets.map(({ credits }) => credits)).toEqual(
    program.line.wallets.map(() => wincAtStart.toString()),
  );
  for (const { account } of program.line.wallets) expect(await balanceOf(account)).toBe(wincAtStart);
  await program.kill();
  program = await startDev({ folder: program.folder });
  expect(await balanceOf()).toBe(wincAtStart);
  const { out, code } = await cairn(["balance", "--to", program.line.payment]);
  expect([code, out]).toEqual([0, expect.stringContaining("100,000,000,000,000 winc  (about ")]);
}, 120_000);

test("a folder opens at once at the address that upload prints, and is mined within seconds", async () => {
  const site = join(folder, "site");
  mkdirSync(join(site, "deep"), { recursive: true });
  writeFileSync(join(site, "index.html"), "<h1>Hello</h1>");
  writeFileSync(join(site, "deep", "page.html"), "<p>deep</p>");
  const { code, out, err } = await cairn(["upload", site, "--to", program.line.upload]);
  expect([code, complaintsIn(err)]).toEqual([0, ""]);
  const url = /open\s+(\S+)/.exec(out)?.[1] ?? "";
  expect(url).toStartWith(`${program.line.gateway}/`);
  const home = await fetch(url);
  expect([home.status, await home.text()]).toEqual([200, "<h1>Hello</h1>"]);
  expect(await (await fetch(`${url}deep/page.html`)).text()).toBe("<p>deep</p>");
  const id = /manifest\s+(\S+)/.exec(out)?.[1] ?? "";
  const status = await eventually(
    async () => (await fetch(`${program.line.upload}/tx/${id}/status`)).json(),
    (response) => response.status === "FINALIZED",
    30_000,
  );
  expect(status.bundleId).toMatch(/^[\w-]{43}$/);
  // As who types it: the program of this machine is asked.
  const environment = { GATEWAY_PORT: new URL(program.line.gateway).port };
  const verified = await runCairn(["verify", id], { environment });
  expect([verified.code, verified.out]).toEqual([0, expect.stringContaining(`proven: ${id}`)]);
}, 120_000);

test("a large file is paid for to the winc, and its receipt is valid", async () => {
  const before = await balanceOf();
  const file = join(folder, "large.bin");
  writeFileSync(file, randomBytes(20 * 2 ** 20));
  const { code, out } = await cairn(["upload", file, "--to", program.line.upload, "--json"]);
  expect(code).toBe(0);
  const { id, winc, items } = JSON.parse(out);
  const [{ receipt }] = items;
  const size = (await (await fetch(`${program.line.upload}/tx/${id}/offsets`)).json()).rawContentLength;
  const price = await (await fetch(`${program.line.upload}/price/${size}`)).text();
  expect([winc, receipt.winc]).toEqual([price, price]);
  expect(before - (await balanceOf())).toBe(BigInt(price));
  const file2 = join(folder, "receipt.json");
  writeFileSync(file2, JSON.stringify(receipt));
  const { addresses } = await (await fetch(`${program.line.upload}/info`)).json();
  const verified = await cairn(["receipt", "verify", file2, "--signer", addresses.arweave]);
  expect([verified.code, verified.out]).toEqual([0, expect.stringContaining(`item       ${id}`)]);
  const again = await cairn(["upload", file, "--to", program.line.upload, "--json"]);
  expect(JSON.parse(again.out)).toMatchObject({ id, winc: "0", items: [{ state: "there" }] });
  expect(before - (await balanceOf())).toBe(BigInt(price));
}, 120_000);

test("without credits an upload is rejected in words", async () => {
  const file = join(folder, "unpaid.bin");
  writeFileSync(file, randomBytes(17 * 2 ** 20));
  const wallet = join(folder, "key.txt");
  writeFileSync(wallet, "33".repeat(32));
  const { code, out, err } = await cairn(["upload", file, "--to", program.line.upload, "--wallet", wallet]);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain("not enough credits");
}, 120_000);

test("price prints winc, AR and currencies of a size, a file and a folder", async () => {
  const to = ["--to", program.line.payment];
  const { code, out, err } = await cairn(["price", "1GiB", ...to, "--json"]);
  expect([code, err]).toEqual([0, ""]);
  const price = JSON.parse(out);
  const rates = await (await fetch(`${program.line.payment}/v1/rates`)).json();
  expect(price).toMatchObject({ bytes: 2 ** 30, files: 1, winc: String(rates.winc), fiat: rates.fiat });
  expect((await cairn(["price", "1GiB", ...to])).out).toMatch(
    /^ {2}size {2}1\.0 GiB\n {2}price [\d,]+ winc {2}\(.* AR\)\n/,
  );
  const priced = join(folder, "priced");
  mkdirSync(priced);
  for (const name of ["a", "b"]) writeFileSync(join(priced, name), randomBytes(1_000_000));
  const [one, both] = [
    await cairn(["price", join(priced, "a"), ...to, "--json"]),
    await cairn(["price", priced, ...to]),
  ];
  expect(JSON.parse(one.out)).toMatchObject({ bytes: 1_000_000, files: 1 });
  expect(both.out).toContain("1.9 MiB in 2 files");
  const wrong = await cairn(["price", "10GB", ...to]);
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("expected a size such as 10GiB")]);
}, 120_000);

test("mine and mint control the development chain", async () => {
  const node = program.line.node;
  const heightOf = async () => (await (await fetch(`${node}/info`)).json()).height;
  const before = await heightOf();
  const mined = await cairn(["mine", "3", "--node", node]);
  expect([mined.code, mined.out]).toEqual([0, expect.stringMatching(/^3 blocks mined, height \d+\n$/)]);
  expect(await heightOf()).toBeGreaterThanOrEqual(before + 3);
  const address = `${"m".repeat(42)}A`;
  const minted = await cairn(["mint", address, "1.5AR", "--node", node]);
  expect([minted.code, minted.out]).toEqual([0, `${address} has 1.5000 AR (1500000000000 winston)\n`]);
  expect((await cairn(["mint", address, "7", "--node", node])).out).toContain("(1500000000007 winston)");
}, 120_000);

test.each([
  [["mine", "0"], "invalid value '0' for <count>: expected a whole number of blocks, 1 or more"],
  [["mint", "x", "1"], "invalid value 'x' for <address>"],
  [["mint", "A".repeat(43), "0AR"], "invalid value '0AR' for <amount>"],
  [["mint", "A".repeat(43), "1.5"], "invalid value '1.5' for <amount>"],
])("%p is a misuse", async (words, says) => {
  const { code, err } = await cairn(words);
  expect([code, err]).toEqual([2, expect.stringContaining(says)]);
});

test("topup prints a page, waits until it is paid, and the balance has it", async () => {
  const bob = testAddress("Bob");
  const to = ["--to", program.line.payment];
  const { code, out } = await cairn(["topup", "10.50", "USD", bob, ...to], (text) => payAt(pageIn(text)));
  const winc = BigInt((/buy ([\d,]+) winc/.exec(out)?.[1] ?? "0").replaceAll(",", ""));
  expect([code, out]).toEqual([0, expect.stringContaining("credited")]);
  expect(await balanceOf(bob)).toBe(winc);
  const record = JSON.parse((await cairn(["topup", "1500", "jpy", bob, "--wait", "0", "--json", ...to])).out);
  expect(record).toMatchObject({
    state: "open",
    address: bob,
    amount: "1500",
    currency: "jpy",
    winc: "1094285714286",
  });
  const late = await cairn(["topup", "10", "usd", bob, "--wait", "1", ...to]);
  expect([late.code, late.out]).toEqual([1, expect.stringContaining("no credits within 1 s")]);
}, 120_000);

test("topup waits for what it sold, whatever else is credited meanwhile", async () => {
  const eve = testAddress("Eve");
  const words = (amount: string) => ["topup", amount, "usd", eve, "--to", program.line.payment];
  const first = Promise.withResolvers<string>();
  const waiting = cairn(words("10"), (text) => {
    const url = pageIn(text);
    if (url !== undefined) first.resolve(url);
  });
  const url = await first.promise;
  // As printed by the start: one name for this machine everywhere.
  expect(url).toStartWith(`${program.line.sandbox}/c/pay/`);
  const other = await cairn(words("20"), (text) => payAt(pageIn(text)));
  expect([other.code, other.out]).toEqual([0, expect.stringContaining("credited  2,188,571,428,571 winc")]);
  payAt(url);
  const { code, out } = await waiting;
  const balance = await balanceOf(eve);
  expect([code, out]).toEqual([0, expect.stringContaining("credited  1,094,285,714,286 winc; the balance is")]);
  expect(balance).toBe(1_094_285_714_286n + 2_188_571_428_571n);
}, 60_000);

/** Of what topup has printed so far. */
function pageIn(text: string): string | undefined {
  return /pay here\s+(\S+)\n/.exec(text)?.[1];
}

const paidAt = new Set<string>();

/** Pays once, with the card that pays. */
function payAt(url: string | undefined): void {
  if (url === undefined || paidAt.has(url)) return;
  paidAt.add(url);
  const body = new URLSearchParams({ cardNumber: "4242424242424242" });
  void fetch(url, { method: "POST", body, redirect: "manual" });
}

test.each([
  [["balance", "unnamed"], 2, "invalid value 'unnamed' for <address>: expected a wallet address"],
  [
    ["balance", "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2B"],
    2,
    "with a valid checksum (the case of its characters is wrong)",
  ],
  [["balance", testAddress("Bob"), "--wallet", "x"], 2, "an address and --wallet exclude each other"],
  [["topup", "10", "xyz"], 2, "invalid value 'xyz' for <currency>: expected one of "],
  [["topup", "10.001", "usd"], 2, "at most 2 digits after the point"],
  [["topup", "10.5", "jpy"], 2, "invalid value '10.5' for <amount>: expected a whole number"],
  [["topup", "-1", "usd"], 2, "unknown option '-1' for 'cairn topup'"],
  [["topup", "10", "usd", "--wait", "x"], 2, "invalid value 'x' for --wait: expected a whole number of seconds"],
  [["topup", "1", "usd"], 2, "invalid value '1' for <amount>: expected 5.00 to 10000.00 usd"],
  [["topup", "9999999", "jpy"], 2, "invalid value '9999999' for <amount>: expected "],
])("%p is rejected with a message", async (words, code, says) => {
  const ran = await cairn([...words, "--to", program.line.payment]);
  expect([ran.code, ran.err]).toEqual([code, expect.stringContaining(says)]);
});

test("the doctor compares with the development chain only while it runs", async () => {
  const port = new URL(program.line.node).port;
  const doctor = (environment: Record<string, string>) =>
    runCairn(["doctor"], { environment: { DATA_DIR: program.folder, ...environment } });
  const beside = await doctor({ DEVNET_PORT: port });
  expect([beside.code, beside.out]).toEqual([0, expect.stringContaining("agrees at height")]);
  const elsewhere = await doctor({ DEVNET_PORT: "1" });
  expect([elsewhere.code, elsewhere.out]).toEqual([
    1,
    expect.stringContaining("FAULT chain: no response from http://127.0.0.1:1"),
  ]);
  expect(await program.stop()).toBe(0);
  const alone = await doctor({ DEVNET_PORT: port });
  expect([alone.code, alone.out]).toEqual([0, expect.stringContaining("is not running: not compared")]);
  program = await startDev({ folder: program.folder });
}, 120_000);

test("cairn ledger check finds no inconsistency", async () => {
  const { code, out } = await cairn(["ledger", "check"]);
  expect([code, out]).toEqual([0, expect.stringContaining("no inconsistency")]);
});
