/**
 * What `cairn dev` prints: the admin key of its folder, the same at each start, and lines of responses only on request; on a
 * terminal, the status below them.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { createLiveText, type TerminalSize } from "../../src/cli/live-summary.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { runCairn } from "../cli/command.ts";
import { newFolder, programPorts, repositoryRoot, startDev } from "../support/program.ts";
import { eventually, until } from "../support/until.ts";

/** Erases all that is below the cursor. */
const erased = "\x1b[J";

const timeoutMs = 180_000;

test(
  "the key is that of the folder, and cairn status reads it; a response is a line with LOG_REQUESTS",
  async () => {
    const first = await startDev();
    const { gateway, adminKey } = first.line;
    try {
      const page = await fetch(`${gateway}/svc/console`);
      expect(page.status).toBe(200);
      expect((await fetch(`${gateway}/svc/admin/status`, authorized(adminKey))).status).toBe(200);
      const environment = { DATA_DIR: first.folder, GATEWAY_PORT: new URL(gateway).port };
      const { out, err } = await runCairn(["status", "--once"], { environment });
      expect([err, out.includes("requests")]).toEqual(["", true]);
      expect(await first.stop()).toBe(0);
      expect(first.errors()).not.toContain("request completed");
      expect(first.errors()).not.toContain(adminKey);
      expect(statSync(join(first.folder, "keys/admin-key")).mode & 0o777).toBe(0o600);

      const second = await startDev({ folder: first.folder, environment: { LOG_REQUESTS: "true" } });
      expect(second.line.adminKey).toBe(adminKey);
      await fetch(`${second.line.gateway}/info`);
      expect(await second.stop()).toBe(0);
      expect(second.errors()).toContain('"request completed"');
    } finally {
      await first.remove();
    }
  },
  timeoutMs,
);

test(
  "on a terminal the status follows the addresses, is replaced when it changes, and ends with the program",
  async () => {
    let shown = "";
    const decoder = new TextDecoder();
    const child = Bun.spawn(
      [process.execPath, resolve(repositoryRoot, "src/main.ts"), "dev", "--port", "0", "--ephemeral"],
      {
        env: { ...process.env, LOG_FORMAT: "json" },
        terminal: {
          cols: 100,
          rows: 60,
          data: (_, bytes) => {
            shown += decoder.decode(bytes, { stream: true });
          },
        },
      },
    );
    await eventually(
      async () => shown,
      (text) => text.includes("Try, in another terminal:") && /height \d+, at the tip[\s\S]*8 items/.test(text),
    );
    const [, mine = ""] = /POST (http:\S+\/mine)/.exec(shown) ?? [];
    const heightIn = (text: string) => Number(/.*height (\d+), at the tip/s.exec(text)?.[1]);
    const before = heightIn(shown);
    expect((await fetch(mine, { method: "POST" })).status).toBe(200);
    await eventually(
      async () => shown,
      // The rows before were erased.
      (text) => heightIn(text.slice(text.lastIndexOf(erased))) > before,
    );
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
    const last = shown.slice(shown.lastIndexOf(erased)).trimEnd().split("\n");
    expect([last[0]?.includes('"stopping"'), last.at(-1)?.includes("credits")]).toEqual([true, true]);
  },
  timeoutMs,
);

test(
  "a reader that closes its pipe before the addresses are printed leads to no error",
  async () => {
    const folder = newFolder();
    const ports = programPorts();
    const child = Bun.spawn([process.execPath, resolve(repositoryRoot, "src/main.ts"), "dev", "--json"], {
      env: { ...process.env, ...ports, DATA_DIR: folder, LOG_FORMAT: "json" },
      stderr: "pipe",
    });
    try {
      await child.stdout.cancel();
      const errors = new Response(child.stderr).text();
      const isReady = async () => (await fetch(`http://127.0.0.1:${ports["GATEWAY_PORT"]}/ready`)).ok;
      await until(() => isReady().catch(() => false));
      child.kill("SIGTERM");
      expect(await child.exited).toBe(0);
      expect(await errors).not.toContain('"level":"error"');
    } finally {
      child.kill("SIGKILL");
      removeFolder(folder);
    }
  },
  timeoutMs,
);

describe("text at the end of a terminal", () => {
  const opened = (size: ReturnType<TerminalSize>) => {
    const written: string[] = [];
    const live = createLiveText(
      (text) => written.push(text),
      () => size,
    );
    return { live, written };
  };

  test("is erased and written again, below each line; the same text is not written twice", () => {
    const { live, written } = opened({ columns: 80, rows: 10 });
    live.show("a\nb\n");
    live.show("a\nb\n");
    live.line("log\n");
    live.show("c\n");
    live.end();
    live.line("last\n");
    expect(written).toEqual(["a\nb\n", "\x1b[2A\x1b[Jlog\na\nb\n", "\x1b[2A\x1b[Jc\n", "last\n"]);
  });

  test("never wraps, and is never higher than the screen: such lines cannot be erased", () => {
    const { live, written } = opened({ columns: 4, rows: 3 });
    live.show("123\n1234\n12345\n");
    expect(written).toEqual(["123\n123\n"]);
  });
});

function authorized(key: string): RequestInit {
  return { headers: { authorization: `Bearer ${key}` } };
}
