/**
 * Makes docs/images/start.png: the text that `cairn dev` prints, beside the gateway's front page in a browser.
 * Run: `bun test/clients/screenshot.ts`. It needs ports 3000 to 3003 and 1984, and the packages of test/clients.
 * @module
 */
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { repositoryRoot } from "../support/program.ts";
import { openBrowser } from "./browser.ts";

const file = resolve(repositoryRoot, "docs/images/start.png");
const size = { width: 1560, height: 620 };
const siteWidth = 640;
/** The page is shown smaller, so that all of its doors are there. */
const zoom = 0.625;

/** The temporary folder and its key are of this run only; a picture shows neither. */
function withoutRun(text: string, folder: string): string {
  const key = /admin key\s+(\S+)/.exec(text)?.[1] ?? "";
  return text
    .replaceAll(`${folder}/data`, "data")
    .replaceAll(key, "(in data/keys/admin-key)")
    .replaceAll(/bun \S*src\/main\.ts/g, "bun src/main.ts")
    .split("\n")
    .filter((line) => !line.startsWith("{"))
    .join("\n")
    .trimEnd();
}

function page(text: string, site: string): string {
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<!doctype html><style>
    body { margin: 0; display: flex; height: ${size.height}px; background: #d9dde2; }
    pre { flex: 1; margin: 16px; padding: 20px; border-radius: 10px; overflow: hidden; white-space: pre-wrap;
      overflow-wrap: anywhere; background: #14181d; color: #dfe5ec; font: 12px/1.6 monospace; }
    img { width: ${siteWidth}px; height: ${size.height - 32}px; margin: 16px 16px 16px 0; border-radius: 10px; }
  </style><pre>$ bun run start\n${escaped}</pre><img src="${site}">`;
}

const folder = mkdtempSync(join(tmpdir(), "cairn-screenshot-"));
const program = Bun.spawn([process.execPath, resolve(repositoryRoot, "src/main.ts"), "dev"], {
  cwd: folder,
  stdout: "pipe",
  stderr: "ignore",
});
const browser = await openBrowser();
try {
  let text = "";
  for await (const part of program.stdout) {
    text += new TextDecoder().decode(part);
    if (text.includes("balance\n")) break;
  }
  const gateway = /gateway\s+(\S+)/.exec(text)?.[1] ?? "";
  const site = await browser.newPage({
    viewport: { width: siteWidth / zoom, height: Math.round((size.height - 32) / zoom) },
  });
  await site.goto(gateway, { waitUntil: "networkidle" });
  const picture = (await site.screenshot()).toString("base64");
  const whole = await browser.newPage({ viewport: size });
  await whole.setContent(page(withoutRun(text, folder), `data:image/png;base64,${picture}`));
  mkdirSync(dirname(file), { recursive: true });
  await whole.screenshot({ path: file, type: "png" });
} finally {
  await browser.close();
  program.kill();
  await program.exited;
  removeFolder(folder);
}
