/**
 * A real browser: Debian's Chromium, driven by playwright-core from the clients' packages.
 * @module
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Browser } from "playwright-core";
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
