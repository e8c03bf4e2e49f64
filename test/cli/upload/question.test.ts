/**
 * The confirmation of a large upload: at a terminal, and nowhere else.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { PassThrough } from "node:stream";
import { askYesNo } from "../../../src/cli/terminal.ts";
import { confirmUpload } from "../../../src/cli/upload/upload.ts";
import { yieldToEventLoop } from "../../../src/lib/event-loop.ts";
import { repositoryRoot } from "../../support/program.ts";
import { rsaKey } from "../../support/signers.ts";
import { openFakeUploadService } from "../upload-service.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-question-"));
const service = openFakeUploadService();
writeFileSync(join(folder, "key.json"), JSON.stringify(rsaKey));
mkdirSync(join(folder, "large"));
writeFileSync(join(folder, "large", "a.bin"), "");
truncateSync(join(folder, "large", "a.bin"), 2 ** 30 + 1);

afterAll(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the command at a terminal of its own, and types when it asks. */
async function atTerminal(words: readonly string[], typed: string) {
  let shown = "";
  let hasTyped = false;
  const decoder = new TextDecoder();
  const command = [process.execPath, resolve(repositoryRoot, "src/main.ts"), "upload", "large", ...words];
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
  // The service takes less than that, so that nothing is sent when the response is yes.
  const tooLarge = "accepts at most 1.0 GiB";
  test.each([
    ["no", "n\r", 1, "nothing was uploaded"],
    ["nothing", "\r", 1, "nothing was uploaded"],
    ["an end of the input", "\x04", 1, "nothing was uploaded"],
    ["yes", "yes\r", 1, tooLarge],
    ["y", "y\r", 1, tooLarge],
  ])(
    "more than 1 GiB needs a confirmation, and %s is a response",
    async (_what, typed, code, says) => {
      const ran = await atTerminal([], typed);
      expect(ran.shown).toContain("1 file, 1.0 GiB will be public, and cannot be removed. Upload? [y/N]");
      expect(ran.shown).toContain(says);
      expect(ran.code).toBe(code);
      expect(service.asked.some(({ path }) => path === "/info")).toBe(says === tooLarge);
      service.forget();
    },
    60_000,
  );

  test("Ctrl-C ends it", async () => {
    const { shown } = await atTerminal([], "\x03");
    expect(shown).not.toContain(tooLarge);
    expect(service.asked).toEqual([]);
  }, 60_000);

  test("--yes skips the confirmation", async () => {
    const { shown } = await atTerminal(["--yes"], "");
    expect(shown).not.toContain("[y/N]");
    expect(shown).toContain(tooLarge);
  }, 60_000);
});

describe("the confirmation of an upload", () => {
  const file = { file: "/x", path: "x", size: 1, changedAtMs: 0, device: 0, inode: 0 };
  const files = (count: number, size = 1) => Array.from({ length: count }, () => ({ ...file, size }));
  const rows: [string, Parameters<typeof confirmUpload>[0], boolean][] = [
    ["1,000 files", { kind: "folder", files: files(1_000), leftOut: [], isKey: false }, false],
    ["1,001 files", { kind: "folder", files: files(1_001), leftOut: [], isKey: false }, true],
    ["1 GiB", { kind: "file", files: files(1, 2 ** 30), leftOut: [], isKey: false }, false],
    ["two halves of more", { kind: "folder", files: files(2, 2 ** 29 + 1), leftOut: [], isKey: false }, true],
    ["a private key", { kind: "file", files: files(1), leftOut: [], isKey: true }, true],
  ];
  test.each(rows)("%s", async (_what, found, isAsked) => {
    const ask = async (isTerminal: boolean, yes: boolean) => {
      const input = new PassThrough();
      const output = new PassThrough();
      input.end("n\n");
      const isMeant = await confirmUpload(found, yes, { isTerminal, input, output });
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
