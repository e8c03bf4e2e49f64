/**
 * The confirmation of a large upload: at a terminal, and nowhere else.
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { PassThrough } from "node:stream";
import { askYesNo } from "../../../src/cli/terminal.ts";
import { confirmUpload } from "../../../src/cli/upload/upload-plan.ts";
import { yieldToEventLoop } from "../../../src/lib/event-loop.ts";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { repositoryRoot } from "../../support/program.ts";
import { rsaKey } from "../../support/signers.ts";
import { openFakeUploadService } from "../upload-service.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-question-"));
const service = openFakeUploadService();
writeFileSync(join(folder, "key.json"), JSON.stringify(rsaKey));
mkdirSync(join(folder, "large"));
for (let file = 0; file <= 1_000; file += 1) writeFileSync(join(folder, "large", `${file}.txt`), `${file}`);
writeFileSync(join(folder, "small.txt"), "small");

afterAll(async () => {
  await service.close();
  removeFolder(folder);
});

/** Runs the command at a terminal of its own, and types when it asks. */
async function atTerminal(words: readonly string[], typed: string, path = "large") {
  let shown = "";
  let hasTyped = false;
  const decoder = new TextDecoder();
  const command = [process.execPath, resolve(repositoryRoot, "src/main.ts"), "upload", path, ...words];
  const child = Bun.spawn([...command, "--to", service.url, "--wallet", "key.json"], {
    cwd: folder,
    env: { ...process.env, XDG_STATE_HOME: join(folder, "state") },
    terminal: {
      cols: 120,
      data: (terminal, bytes) => {
        shown += decoder.decode(bytes, { stream: true });
        if (hasTyped || !shown.includes("[y/N]")) return;
        hasTyped = true;
        terminal.write(typed);
      },
    },
  });
  return { code: await child.exited, shown };
}

describe("W1: at a terminal", () => {
  const rejected = "not today";
  beforeEach(() => {
    service.forget();
    service.fail(({ method }) => (method === "POST" ? Response.json(rejected, { status: 403 }) : undefined));
  });
  const hasSent = () => service.asked.some(({ method }) => method === "POST");

  test.each([
    ["no", "n\r", "nothing was uploaded"],
    ["nothing", "\r", "nothing was uploaded"],
    ["an end of the input", "\x04", "nothing was uploaded"],
    ["yes", "yes\r", rejected],
    ["y", "y\r", rejected],
  ])(
    "more than 1,000 files need a confirmation, and %s is a response",
    async (_what, typed, says) => {
      const { shown, code } = await atTerminal([], typed);
      expect(shown).toMatch(/1001 files, [\d.]+ KiB will be public, and cannot be removed\. Upload\? \[y\/N\]/);
      expect([shown, code]).toEqual([expect.stringContaining(says), 1]);
      expect(hasSent()).toBe(says === rejected);
    },
    60_000,
  );

  test("Ctrl-C ends it", async () => {
    await atTerminal([], "\x03");
    expect(hasSent()).toBe(false);
  }, 60_000);

  test("--yes skips the confirmation", async () => {
    const { shown } = await atTerminal(["--yes"], "");
    expect(shown).not.toContain("[y/N]");
    expect(shown).toContain(rejected);
  }, 60_000);

  test.each([
    ["at UPLOAD_CONFIRM_WINC none", 100_000_000_000n, false],
    ["above it, with the price", 100_000_000_001n, true],
  ])(
    "a price needs a confirmation: %s",
    async (_what, winc, isAsked) => {
      service.price(winc);
      const { shown } = await atTerminal([], "n\r", "small.txt");
      expect(shown.includes("small.txt, 5 B, at most 100,000,000,001 winc  (0.1000 AR), will be public")).toBe(isAsked);
      expect([isAsked, hasSent()]).toEqual([isAsked, !isAsked]);
    },
    60_000,
  );
});

/** The line of JSON in the output of a terminal. */
const recordIn = (shown: string) => JSON.parse(/\{.*\}/.exec(shown)?.[0] ?? "");

describe("--dry-run", () => {
  test("sends nothing, signs nothing and prints the items with their headers and the price", async () => {
    service.forget();
    service.price(12n);
    const { shown, code } = await atTerminal(["--dry-run", "--json"], "");
    const line = recordIn(shown);
    expect([code, line.items, line.winc, line.files.length]).toEqual([0, 1_002, "12", 1_001]);
    expect(service.asked.map(({ method }) => method)).toEqual(["GET", "GET"]);
    expect(service.asked[1]?.path).toBe(`/price/arweave/${line.bytes}`);
  }, 60_000);

  test("counts as many bytes as the upload then has", async () => {
    service.forget();
    service.fail(() => undefined);
    const { shown } = await atTerminal(["--dry-run", "--json"], "", "small.txt");
    const planned = recordIn(shown);
    await atTerminal([], "", "small.txt");
    expect([...service.items.values()].map(({ length }) => length)).toEqual([planned.bytes]);
  }, 60_000);

  test("prints the same as text, and says that a service without prices states none", async () => {
    service.forget();
    service.price(undefined);
    const { shown } = await atTerminal(["--dry-run"], "");
    expect(shown).toContain("would upload 1001 files");
    expect(shown).toContain("the service states no price");
    expect(shown).toMatch(/sent +nothing/);
  }, 60_000);
});

describe("the confirmation of an upload", () => {
  const file = { file: "/x", path: "x", size: 1, changedAtMs: 0, device: 0, inode: 0 };
  const files = (count: number, size = 1) => Array.from({ length: count }, () => ({ ...file, size }));
  const max = 5n;
  const rows: [string, Parameters<typeof confirmUpload>[0], boolean, bigint?][] = [
    ["1,000 files", { kind: "folder", files: files(1_000), leftOut: [], isKey: false }, false],
    ["1,001 files", { kind: "folder", files: files(1_001), leftOut: [], isKey: false }, true],
    ["1 GiB", { kind: "file", files: files(1, 2 ** 30), leftOut: [], isKey: false }, false],
    ["two halves of more", { kind: "folder", files: files(2, 2 ** 29 + 1), leftOut: [], isKey: false }, true],
    ["a private key", { kind: "file", files: files(1), leftOut: [], isKey: true }, true],
    ["the price of the setting", { kind: "file", files: files(1), leftOut: [], isKey: false }, false, max],
    ["a higher price", { kind: "file", files: files(1), leftOut: [], isKey: false }, true, max + 1n],
  ];
  test.each(rows)("%s", async (_what, found, isAsked, winc) => {
    const ask = async (isTerminal: boolean, yes: boolean) => {
      const input = new PassThrough();
      const output = new PassThrough();
      input.end("n\n");
      const isMeant = await confirmUpload(found, { winc, wincUnconfirmedMax: max, yes }, { isTerminal, input, output });
      return [isMeant, String(output.read() ?? "").includes("[y/N]")];
    };
    expect(await ask(true, false)).toEqual([!isAsked, isAsked]);
    expect(await ask(true, true)).toEqual([true, false]);
    expect(await ask(false, false)).toEqual([true, false]);
  });

  test("a timeout means no", async () => {
    let shown = "";
    const output = new PassThrough().on("data", (piece) => {
      shown += String(piece);
    });
    const terminal = { isTerminal: true, input: new PassThrough(), output };
    expect(await askYesNo(terminal, "Upload?", 20)).toBe(false);
    await yieldToEventLoop();
    expect(shown).toBe("Upload? [y/N] \nno response in 1 s\n");
  });
});
