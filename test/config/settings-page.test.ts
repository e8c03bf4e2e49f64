/**
 * docs/settings.md and the table of settings.
 * @module
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { settingGroups, settings } from "../../src/config/settings.ts";
import { settingsPage, settingsPageFile } from "./settings-page.ts";

test("docs/settings.md is what `bun run docs:settings` writes", () => {
  expect(readFileSync(settingsPageFile, "utf8")).toBe(settingsPage());
});

test("every setting is in exactly one group", () => {
  const grouped = Object.values(settingGroups).flatMap((group) => Object.keys(group));
  expect(grouped).toEqual(Object.keys(settings));
});
