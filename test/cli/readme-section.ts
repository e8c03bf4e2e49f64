/**
 * The commands of README, where they are run as a reader runs them: beside `cairn dev` and its data folder.
 * @module
 */
import { mkdtempSync, readFileSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { repositoryRoot } from "../support/program.ts";

/** The code blocks of a bold heading's section, in order. */
export function readmeBlocks(heading: string): string[] {
  const readme = readFileSync(resolve(repositoryRoot, "README.md"), "utf8");
  const section = readme.split(`**${heading}**`)[1]?.split(/^(?:\*\*[A-Z]|## )/m)[0] ?? "";
  return [...section.matchAll(/```\w*\n(.+?)\n```/gs)].map(([, code = ""]) => code);
}

/** A folder that looks like the repository to who types commands in it, with the data folder of a running program. */
export function readerFolder(dataFolder: string): string {
  const folder = mkdtempSync(join(tmpdir(), "cairn-reader-"));
  symlinkSync(join(repositoryRoot, "src"), join(folder, "src"));
  symlinkSync(dataFolder, join(folder, "data"));
  return folder;
}
