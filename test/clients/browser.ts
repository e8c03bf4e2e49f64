/**
 * A real browser: Debian's Chromium, driven by playwright-core from the clients' packages.
 * @module
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import type { Need } from "../support/helpers.ts";

const executable = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));
const driver = resolve(import.meta.dir, "node_modules/playwright-core");

/** The browser and its driver. */
export const browser: Need = {
  there: executable !== undefined && existsSync(driver),
  what: "Debian's chromium, and playwright-core in test/clients",
};

/** Without them the browser asks its maker's servers at every start. */
const quiet = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Its first start on a machine reads a few hundred megabytes. */
const startTimeoutMs = 90_000;

/** Starts one without a window. @param more - Arguments beside the usual ones. */
export async function openBrowser(more: readonly string[] = []): Promise<Browser> {
  const { chromium } = await import(driver);
  return chromium.launch({ executablePath: executable, args: [...quiet, ...more], timeout: startTimeoutMs });
}

/** A page that records errors of scripts, and requests to other machines. */
export async function openWatchedPage(
  opened: Browser,
): Promise<Readonly<{ page: Page; strangers: string[]; faults: string[] }>> {
  const [strangers, faults]: [string[], string[]] = [[], []];
  const page = await opened.newPage();
  page.on("request", (request) => {
    const { hostname } = new URL(request.url());
    if (!["localhost", "127.0.0.1"].includes(hostname) && !hostname.endsWith(".localhost"))
      strangers.push(request.url());
  });
  page.on("pageerror", (error) => faults.push(String(error)));
  return { page, strangers, faults };
}
