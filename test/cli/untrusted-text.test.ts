/**
 * Text of other machines is escaped: no command prints control characters of it, and it never begins a new line.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openSqliteLedger } from "../../src/store/ledger/sqlite-ledger.ts";
import { user } from "../../src/store/ledger/transfers.ts";
import { rsaKey } from "../support/signers.ts";
import { runCairn } from "./command.ts";
import { fakeReceipt, openFakeUploadService } from "./upload-service.ts";

/** Sets the title, clears the screen, colours by an 8-bit control, reverses the reading order, begins lines. */
const evil = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\u2028\x7f\nforged line\r\nforged line\tforged";

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const obeyed = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;

const folder = mkdtempSync(join(tmpdir(), "cairn-untrusted-"));
const wallet = write("key.json", JSON.stringify(rsaKey));
const address = "A".repeat(43);
let response: (path: string) => Response = () => Response.json(evil, { status: 400 });
const liar = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: ({ url }) => response(new URL(url).pathname),
});
const url = `http://127.0.0.1:${liar.port}`;
const uploads = openFakeUploadService();

afterAll(async () => {
  await liar.stop(true);
  await uploads.close();
  removeFolder(folder);
});

function write(path: string, text: string | Uint8Array): string {
  const file = join(folder, path);
  writeFileSync(file, text);
  return file;
}

async function run(words: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const ran = await runCairn(words, {
    cwd: folder,
    environment: { XDG_STATE_HOME: join(folder, "state"), ...environment },
  });
  for (const text of [ran.out, ran.err]) {
    const lines = text.split("\n");
    expect(lines.filter((line) => obeyed.test(line))).toEqual([]);
    expect(lines.filter((line) => /^\s*forged line/.test(line))).toEqual([]);
  }
  return ran;
}

const json = (value: unknown, status = 200) => Response.json(value, { status });
const currencies = { limits: { usd: { minimumPaymentAmount: 1, maximumPaymentAmount: 10_000 }, [evil]: {} } };
const session =
  (page: string, winstonCreditAmount = "1") =>
  (path: string) => {
    if (path.endsWith("/currencies")) return json(currencies);
    if (path.endsWith("/balance")) return json({ winc: "1" });
    return json({ topUpQuote: { topUpQuoteId: evil, winstonCreditAmount }, paymentSession: { url: page } });
  };
const approval = {
  approvedWincAmount: "9",
  usedWincAmount: "1",
  approvedAddress: evil,
  payingAddress: evil,
  expirationDate: evil,
};
const balance = {
  winc: "5",
  effectiveBalance: "9",
  givenApprovals: [approval],
  receivedApprovals: [approval],
};
const balanceWords = ["balance", address, "--to", url];
const topUpWords = ["topup", "10", "usd", address, "--to", url, "--wait", "0"];
const uploadWords = () => ["upload", write("a.txt", "text"), "--to", url, "--wallet", wallet];
const verifyWords = ["verify", address, "--gateway", url];

const rows: [string, string[], (path: string) => Response, number][] = [
  ["an error as a JSON string", balanceWords, () => json(evil, 400), 1],
  ["an error as text", balanceWords, () => new Response(evil, { status: 400 }), 1],
  ["an error's message", balanceWords, () => json({ message: evil }, 403), 1],
  ["an error's other field", balanceWords, () => json({ error: evil }, 403), 1],
  ["want of credits", balanceWords, () => json({ needed: evil, available: [evil] }, 402), 1],
  ["approvals", balanceWords, (path) => (path.includes("price") ? json({ winc: "1" }) : json(balance)), 0],
  ["names of currencies", ["topup", "10", "eur", address, "--to", url], session(""), 2],
  ["an address of a checkout", topUpWords, session(`https://pay.test/\x1b[2J${evil}`), 0],
  ["an amount of a quote", topUpWords, session("https://pay.test/", evil), 1],
  ["a URL that is not a web page", topUpWords, session(`javascript:alert("${evil}")`), 1],
  ["no address", topUpWords, session(evil), 1],
  [
    "an error of a checkout",
    topUpWords,
    (path) => (path.includes("checkout") ? json(evil, 400) : session("")(path)),
    1,
  ],
  ["the information of an upload service", uploadWords(), () => json({ gateway: evil, uploadLimitBytes: 1 }), 1],
  ["an error of an upload service", uploadWords(), (path) => (path === "/info" ? json({}) : json(evil, 400)), 1],
  [
    "an invalid receipt",
    uploadWords(),
    (path) => {
      if (path === "/info") return json({ gateway: `http://${evil}` });
      return path.endsWith("/status") ? json(evil, 404) : json({ id: evil, version: evil });
    },
    1,
  ],
  ["an invalid proof", verifyWords, () => json({ id: evil, version: evil }), 1],
  ["an error of a gateway", verifyWords, () => new Response(evil, { status: 500 }), 1],
];

describe("a malicious service", () => {
  test.each(rows)(
    "with %s shows nothing that a terminal obeys",
    async (_what, words, text, code) => {
      response = text;
      expect((await run(words)).code).toBe(code);
      const asJson = await run([...words, "--json"]);
      expect(asJson.code).toBe(code);
      if (asJson.out !== "") expect(() => JSON.parse(asJson.out)).not.toThrow();
    },
    60_000,
  );

  test("JSON output escapes it", async () => {
    response = (path) => (path.includes("price") ? json({ winc: "1" }) : json(balance));
    const { out } = await run([...balanceWords, "--json"]);
    expect(JSON.parse(out).givenApprovals[0].approvedAddress).toBe(evil);
  });

  test("in a receipt, in the status of a part and in a temporary failure", async () => {
    const receipt = write("receipt.json", JSON.stringify(fakeReceipt(address, { id: evil, version: evil })));
    expect((await run(["receipt", "verify", receipt])).code).toBe(1);
    const item = { id: evil, receiptFault: evil };
    const uploaded = write("uploaded.json", JSON.stringify({ items: [item, { ...item, path: evil }] }));
    for (const more of [[], ["--json"]]) expect((await run(["receipt", "verify", uploaded, ...more])).code).toBe(1);
    const large = write("large.bin", new Uint8Array(11 * 2 ** 20));
    const words = ["upload", large, "--to", uploads.url, "--wallet", wallet];
    uploads.endAs({ status: evil, reason: evil, needed: evil, available: { evil } });
    expect((await run(words)).code).toBe(1);
    uploads.forget();
    uploads.fail(({ path }, times) => (path === "/info" && times === 1 ? json(evil, 503) : undefined));
    const { code, err } = await run(words);
    expect([code, err]).toEqual([0, expect.stringContaining("it responded 503")]);
  }, 60_000);

  test("in the names of its files", async () => {
    mkdirSync(join(folder, "names"));
    write("names/a\x1b[2Jb\nforged line.txt", "text");
    write("names/.\x1b[2J\nforged line", "text");
    for (const more of [[], ["--json"]]) {
      const { code } = await run(["upload", "names", "--to", uploads.url, "--wallet", wallet, ...more]);
      expect(code).toBe(0);
    }
  });
});

describe("text in a data folder", () => {
  test("is escaped by the ledger's check", async () => {
    const DATA_DIR = join(folder, "data");
    mkdirSync(DATA_DIR);
    const database = await openSqliteLedger({ path: join(DATA_DIR, "ledger.sqlite") });
    await database.write((tx) => tx.run("INSERT INTO accounts (account, balance) VALUES (?, 5)", user(evil)));
    await database.close();
    for (const more of [[], ["--json"]]) expect((await run(["ledger", "check", ...more], { DATA_DIR })).code).toBe(1);
  });

  test("is escaped by the doctor, with text of nodes", async () => {
    const DATA_DIR = join(folder, "examined");
    mkdirSync(DATA_DIR);
    response = () => new Response(evil, { status: 500 });
    for (const more of [[], ["--json"]]) await run(["doctor", ...more], { DATA_DIR, TRUSTED_NODE_URL: url });
  }, 60_000);
});
