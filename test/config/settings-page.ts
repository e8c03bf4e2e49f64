/**
 * Generator of docs/settings.md from the table of settings: `bun run docs:settings`.
 * @module
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeSetting } from "../../src/config/config.ts";
import { type SettingName, settingGroups } from "../../src/config/settings.ts";

export const settingsPageFile = join(import.meta.dir, "../../docs/settings.md");

/** The settings that most operators change. */
const firstNames = [
  "DATA_DIR",
  "HOST",
  "GATEWAY_PORT",
  "TRUSTED_NODE_URL",
  "START_HEIGHT",
  "ANS104_UNBUNDLE_FILTER",
  "ANS104_INDEX_FILTER",
  "CACHE_BYTES_MAX",
  "ADMIN_API_KEY",
  "WALLET_FILE",
] as const satisfies readonly SettingName[];

const introduction = `# Settings

Settings are read from environment variables or a \`.env\` file in the working directory. \`cairn config\` prints the settings
in force, and exits with 2 when a value is invalid. An empty value counts as unset. A size is a number of bytes, or such as
\`512KiB\`, \`10GiB\` or \`1.5TiB\`. Defaults of \`cairn dev\` are marked \`dev\`.

This page is generated from src/config/settings.ts by \`bun run docs:settings\`.
`;

/** The page as Markdown. */
export function settingsPage(): string {
  const groups = Object.entries(settingGroups).map(([title, group]) =>
    // Object.keys widens the names of the group to strings.
    section(title, Object.keys(group) as SettingName[]),
  );
  return [introduction, section("The ten settings to know first", firstNames), ...groups].join("\n");
}

function section(title: string, names: readonly SettingName[]): string {
  const rows = names.map((name) => {
    const { unit, usual, effect } = describeSetting(name);
    return `| \`${name}\` | ${unit} | ${usual} | ${effect} |`;
  });
  return `## ${title}\n\n| Setting | Unit | Default | Effect |\n|---|---|---|---|\n${rows.join("\n")}\n`;
}

if (import.meta.main) writeFileSync(settingsPageFile, settingsPage());
