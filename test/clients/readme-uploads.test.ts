/**
 * README's lines for the published SDK, as they are there but for the ports.
 * @module
 */
import { expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { readerFolder, readmeBlocks } from "../cli/readme-section.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { startDev } from "../support/program.ts";

describeWith(clientLibraries, "README's lines for the published SDK", () => {
  test("upload a folder that opens at once", async () => {
    const program = await startDev();
    const folder = readerFolder(program.folder);
    try {
      mkdirSync(join(folder, "site"));
      writeFileSync(join(folder, "site", "index.html"), "<h1>Hello</h1>");
      const { gateway, payment, upload } = program.line;
      const ports = { "3000": gateway, "3001": payment, "3002": upload };
      const code = Object.entries(ports).reduce(
        (text, [port, url]) => text.replaceAll(`http://localhost:${port}`, url),
        readmeBlocks("Upload and pay")[2] ?? "",
      );
      expect(code).toContain("uploadFolder");
      const app = join(folder, "app");
      mkdirSync(app);
      symlinkSync(resolve(import.meta.dir, "node_modules"), join(app, "node_modules"));
      writeFileSync(join(app, "upload.mjs"), code);
      const child = Bun.spawn([process.execPath, "upload.mjs"], {
        cwd: app,
        stdout: "pipe",
        stderr: "pipe",
      });
      const [out, err] = await Promise.all([child.stdout, child.stderr].map((stream) => new Response(stream).text()));
      expect([await child.exited, err]).toEqual([0, expect.any(String)]);
      const opened = await fetch((out ?? "").trim().split("\n").at(-1) ?? "");
      expect([opened.status, await opened.text()]).toEqual([200, "<h1>Hello</h1>"]);
    } finally {
      await program.remove();
      removeFolder(folder);
    }
  }, 120_000);
});
