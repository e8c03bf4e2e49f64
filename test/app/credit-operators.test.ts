/**
 * The commands of credit operators beside a running `cairn dev`, and the routes of the admin API that they use.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dataFolderAt } from "../../src/app/data-folder.ts";
import { storedAdminKey } from "../../src/app/keys.ts";
import { runCairn } from "../cli/command.ts";
import type { ReferenceOperation, Schema } from "../spec/record-schemas.ts";
import { testAddress } from "../support/payment.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { closed, faultsOf } from "../support/schema.ts";
import { eventually } from "../support/until.ts";

const ada = testAddress("ada");
let program: RunningProgram;
let key: string;

beforeAll(async () => {
  program = await startDev();
  key = storedAdminKey(dataFolderAt(program.folder).keys) ?? "";
}, 120_000);
afterAll(() => program?.remove());

/** Runs a command on the machine of the program. */
async function cairn(...words: string[]) {
  const GATEWAY_PORT = new URL(program.line.gateway).port;
  return await runCairn(words, { environment: { DATA_DIR: program.folder, GATEWAY_PORT, USER: "olga" } });
}

async function admin(method: string, path: string, body?: unknown) {
  const response = await fetch(`${program.line.gateway}/svc/admin${path}`, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, value: await response.json() };
}

describe("cairn accounts", () => {
  test("grants, adjusts, shows and lists, by its own machine's key", async () => {
    const granted = await cairn("accounts", "grant", ada, "--winc", "1500", "--reason", "goodwill");
    expect([granted.code, granted.out]).toEqual([0, expect.stringContaining("balance      1,500 winc")]);
    expect(granted.err).toMatch(/^idempotency key [0-9a-f-]{36}$/m);
    const one = ["accounts", "adjust", ada, "--winc", "-500", "--reason", "paid twice", "--key", "fix-1", "--json"];
    const first = await cairn(...one);
    expect(JSON.parse(first.out)).toMatchObject({ winc: "-500", balance: "1000", operator: "olga" });
    expect((await cairn(...one)).out).toBe(first.out);
    const shown = await cairn("accounts", "show", ada);
    expect(shown.out).toContain("1,000 winc");
    expect(shown.out).toContain("-500 winc  adjustment  olga: paid twice  operator/fix-1");
    const listed = await cairn("accounts", "list", "--limit", "1", "--json");
    expect(JSON.parse(listed.out)).toMatchObject({ accounts: [{}], next: expect.any(String) });
  }, 60_000);

  test.each([
    [
      "another body with the key",
      1,
      "The idempotency key was used",
      ["--winc", "1", "--reason", "x", "--key", "fix-1"],
    ],
    ["more than there is", 1, "winc cannot be taken from it", ["--winc", "-9999999", "--reason", "x"]],
    ["no reason", 2, "--reason is missing", ["--winc", "1"]],
    ["no amount", 2, "--winc is missing", ["--reason", "x"]],
    ["no number", 2, "invalid", ["--winc", "1e3", "--reason", "x"]],
    ["zero", 2, "invalid", ["--winc", "0", "--reason", "x"]],
    ["a wrong key of the gateway", 1, "401", ["--winc", "1", "--reason", "x", "--admin-key", "wrong"]],
  ] as const)(
    "%s ends with a sentence",
    async (_, code, text, words) => {
      const run = await cairn("accounts", "adjust", ada, ...words);
      expect([run.code, run.out]).toEqual([code, ""]);
      expect(run.err).toContain(text);
    },
    60_000,
  );
});

describe("cairn payments", () => {
  test("lists and shows a payment by card, and refunds it through the provider, once", async () => {
    const eve = testAddress("eve");
    const opened = await cairn("topup", "10", "usd", eve, "--wait", "0", "--json", "--to", program.line.payment);
    const { url, winc } = JSON.parse(opened.out);
    const form = new URLSearchParams({ cardNumber: "4242 4242 4242 4242", expiry: "12 / 40", cvc: "123" });
    await fetch(url, { method: "POST", body: form, redirect: "manual" });
    const page = await eventually(
      async () => JSON.parse((await cairn("payments", "list", "--account", eve, "--json")).out),
      ({ payments }) => payments.length === 1,
      30_000,
    );
    const [{ id }] = page.payments;
    expect(page).toMatchObject({
      payments: [{ method: "card", account: eve, winc, amount: "1000", paid: "10.00 USD" }],
      next: null,
    });
    expect((await cairn("payments", "list")).out).toContain(`10.00 USD  ${winc.replace(/\B(?=(\d{3})+$)/g, ",")} winc`);
    await cairn("accounts", "adjust", eve, "--winc", "-7", "--reason", "spent");
    const shown = (await cairn("payments", "show", id)).out;
    expect(shown).toContain("card: 10.00 USD");
    expect(shown).toContain("pays back 10.00 USD, and takes back");
    expect(shown).toContain("; 7 winc of them are spent, and the account will owe");
    const words = ["payments", "refund", id, "--reason", "asked by mail", "--key", "refund-1", "--json"];
    const first = await cairn(...words);
    expect(JSON.parse(first.out)).toMatchObject({ id, winc, paid: "10.00 USD", spentWinc: "7", balance: "-7" });
    expect((await cairn(...words)).out).toBe(first.out);
    const again = await cairn("payments", "refund", id, "--reason", "again");
    expect([again.code, again.err]).toEqual([1, expect.stringContaining("none of its credits are left to take back")]);
    const { value } = await admin("GET", `/accounts/${eve}`);
    expect(value.history[0]).toMatchObject({ kind: "reversal", note: "olga: asked by mail (operator/refund-1)" });
  }, 60_000);

  test.each([
    ["an unknown payment", 1, "404", ["refund", "unknown", "--reason", "x"]],
    ["an unknown payment to show", 1, "404", ["show", "unknown"]],
    ["no payment", 2, "missing argument <id>", ["refund", "--reason", "x"]],
    ["another action", 2, "list, show, refund", ["delete"]],
  ] as const)(
    "%s ends with a sentence",
    async (_, code, text, words) => {
      const run = await cairn("payments", ...words);
      expect([run.code, run.out]).toEqual([code, ""]);
      expect(run.err).toContain(text);
    },
    60_000,
  );
});

describe("cairn promo", () => {
  test("adds a code that prices know at once, lists it, and ends it", async () => {
    const priced = async () => {
      const url = `${program.line.payment}/v1/price/usd/1000?promoCode=AUTUMN&destinationAddress=${ada}`;
      const response = await fetch(url);
      return response.status === 200 ? (await response.json()).actualPaymentAmount : response.status;
    };
    expect(await priced()).toBe(400);
    const added = await cairn("promo", "add", "Autumn", "--factor", "0.75", "--uses", "5", "--reason", "campaign");
    expect([added.code, added.out]).toEqual([0, expect.stringContaining("added      Autumn")]);
    expect(await priced()).toBe(750);
    expect((await cairn("promo", "list")).out).toMatch(/Autumn +active, multiply 0.75, used 0 of 5/);
    expect((await cairn("promo", "end", "autumn", "--reason", "over")).code).toBe(0);
    expect(await priced()).toBe(400);
    const again = await cairn("promo", "end", "autumn", "--reason", "over");
    expect([again.code, again.err]).toEqual([1, expect.stringContaining("has ended")]);
  }, 60_000);

  test.each([
    ["a factor of 1", ["add", "X", "--factor", "1", "--reason", "x"], "below 1"],
    ["no factor", ["add", "X", "--reason", "x"], "--factor"],
    ["no code", ["end", "--reason", "x"], "missing argument <code>"],
    ["no day", ["add", "X", "--factor", "0.5", "--ends", "soon", "--reason", "x"], "a day such as"],
  ] as const)("%s ends with a sentence", async (_, words, text) => {
    const run = await cairn("promo", ...words);
    expect([run.code, run.out]).toEqual([2, ""]);
    expect(run.err).toContain(text);
  });
});

describe("cairn solvency", () => {
  test("signs a root, publishes it, proves an account, and rejects a changed proof and another signer", async () => {
    const [root, proof] = ["root.json", "proof.json"].map((name) => join(program.folder, name));
    const wallet = join(program.folder, "devnet", "wallet-rsa.json");
    const words = ["solvency", "root", "--wallet", wallet, "--publish", "--to", program.line.upload, "-o", root ?? ""];
    const made = await cairn(...words);
    expect([made.code, made.out]).toEqual([0, ""]);
    const { id, winc, accounts, item } = JSON.parse(readFileSync(root ?? "", "utf8"));
    expect(made.err).toContain(`root ${id}: 0 winc to 0 accounts at `);
    expect(made.err).toEndWith(`; published at ${program.line.upload}\n`);
    const published = await fetch(`${program.line.gateway}/raw/${id}`);
    expect(await published.json()).toMatchObject({ winc, accounts });
    // The root is of some minutes ago: this program had no account then.
    expect([winc, accounts]).toEqual(["0", 0]);
    const none = await cairn("solvency", "prove", ada, "--root", root ?? "");
    expect([none.code, none.err]).toEqual([1, expect.stringContaining("had no credits at")]);
    const { address } = JSON.parse((await cairn("balance", "--json", "--to", program.line.payment)).out);
    const valid = await cairn("solvency", "verify", root ?? "", "--signer", address, "--json");
    expect(JSON.parse(valid.out)).toMatchObject({ valid: true, id, signer: address });
    const other = await cairn("solvency", "verify", root ?? "", "--signer", ada);
    expect([other.code, other.out]).toEqual([1, expect.stringContaining("signed by another wallet")]);
    writeFileSync(proof ?? "", JSON.stringify({ item, path: [], account: `user:${ada}`, winc: "1", index: 0 }));
    const changed = await cairn("solvency", "verify", proof ?? "");
    expect([changed.code, changed.out]).toEqual([1, expect.stringContaining("malformed")]);
  }, 60_000);

  test.each([
    ["another action", ["make"], "root, prove or verify"],
    ["no root", ["prove", ada], "--root is missing"],
    ["no file", ["verify", "missing.json"], "cannot be read"],
  ] as const)("%s ends with a sentence", async (_, words, text) => {
    const run = await cairn("solvency", ...words);
    expect([run.code, run.out]).toEqual([2, ""]);
    expect(run.err).toContain(text);
  });
});

describe("cairn statement", () => {
  test("prints this month beside the running program, and every account sums to its closing balance", async () => {
    const month = new Date().toISOString().slice(0, 7);
    const { out, code } = await cairn("statement", "--month", month);
    expect([code, out.split("\r\n")[0]]).toEqual([0, "month,account,line,entries,winc"]);
    const rows = out
      .trim()
      .split("\r\n")
      .slice(1)
      .map((line) => line.split(","));
    const sums = new Map<string, bigint>();
    for (const [, account = "", line, , winc = ""] of rows) {
      if (line === "closing" && account !== "all")
        expect([account, sums.get(account)]).toEqual([account, BigInt(winc)]);
      sums.set(account, (sums.get(account) ?? 0n) + BigInt(winc));
    }
    const { value } = await admin("GET", "/status");
    expect(rows).toContainEqual([month, "adjustment", "closing", "", `${-BigInt(value.ledger.adjustments)}`]);
    expect(rows.at(-1)).toEqual([month, "all", "closing", "", "0"]);
  }, 60_000);

  test.each([
    ["no month", [], "--month"],
    ["another word", ["--month", "november"], "a month such as 2026-11"],
    ["a later month", ["--month", "2099-01"], "a month that has begun"],
  ] as const)("%s ends with a sentence", async (_, words, text) => {
    const run = await cairn("statement", ...words);
    expect([run.code, run.out]).toEqual([2, ""]);
    expect(run.err).toContain(text);
  });
});

describe("the admin API of credits", () => {
  test.each([
    ["GET", "/accounts?limit=0", undefined, 400, "Malformed input"],
    ["GET", "/accounts/not-an-address", undefined, 400, "Invalid paying address!"],
    ["GET", `/accounts/${testAddress("Unknown")}`, undefined, 404, "User Not Found"],
    [
      "POST",
      `/accounts/${ada}/grant`,
      { winc: "-1", operator: "o", reason: "r", idempotencyKey: "k" },
      400,
      "Malformed input",
    ],
    [
      "POST",
      `/accounts/${ada}/grant`,
      { winc: "1", operator: "o", reason: "", idempotencyKey: "k" },
      400,
      "Malformed input",
    ],
    ["POST", `/accounts/${ada}/grant`, { winc: "1", operator: "o", reason: "r" }, 400, "Malformed input"],
    [
      "POST",
      `/accounts/${ada}/adjust`,
      { winc: "9".repeat(19), operator: "o", reason: "r", idempotencyKey: "k" },
      400,
      "Malformed input",
    ],
  ] as const)("%s %s is rejected", async (method, path, body, status, text) => {
    expect(await admin(method, path, body)).toEqual({ status, value: text });
  });

  test("is guarded, and each of its examples has the response that the reference shows", async () => {
    const { paths, components } = await (await fetch(`${program.line.gateway}/openapi.json`)).json();
    const ours = Object.entries<Record<string, ReferenceOperation>>(paths)
      .filter(([path]) => /^\/svc\/admin\/(accounts|payments?|statement|promos|solvency)/.test(path))
      .flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
      );
    expect(ours.length).toBeGreaterThan(3);
    for (const { path, method, operation } of ours) {
      const at = path.replace(/\{(\w+)\}/g, (_, name) => {
        return String(operation.parameters?.find((each) => each.name === name)?.example);
      });
      const needed = operation.parameters?.filter((each) => each.in === "query" && each.required) ?? [];
      const query = needed.map((each) => `${each.name}=${each.example}`).join("&");
      const url = `${program.line.gateway}${at}?${query}`;
      const [sent] = Object.values(operation.requestBody?.content ?? {});
      const body = sent === undefined ? {} : { body: JSON.stringify(sent.example) };
      const open = await fetch(url, { method: method.toUpperCase(), ...body });
      expect([path, open.status]).toEqual([path, 401]);
      const headers = { authorization: `Bearer ${key}` };
      const response = await fetch(url, { method: method.toUpperCase(), headers, ...body });
      const said = operation.responses[response.status];
      expect([path, method, said === undefined ? response.status : "described"]).toEqual([path, method, "described"]);
      const [[type = "", content] = []] = Object.entries<{ schema: Schema }>(said?.content ?? {});
      if (type !== "application/json" || content === undefined) continue;
      expect([path, faultsOf(await response.json(), closed(content.schema), closed(components.schemas))]).toEqual([
        path,
        [],
      ]);
    }
  }, 60_000);
});
