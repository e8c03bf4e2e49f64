/**
 * How this program is typed where it was started: what is printed for people to copy must work for them.
 * @module
 */
import { relative, sep } from "node:path";

/** How the process was started. */
export type Started = Readonly<{
  /** The entry file; of a binary one that lies within it. */
  main: string;
  /** The runtime, or the binary. */
  execPath: string;
  cwd: string;
  /** Of the runtime. */
  bunVersion: string;
}>;

/** Where npm puts what npx runs: it is in the path of that run alone. */
const npxFolder = `${sep}_npx${sep}`;

/** How the running process was started. */
export function startedAs(): Started {
  return {
    main: Bun.main,
    execPath: process.execPath,
    cwd: process.cwd(),
    bunVersion: Bun.version,
  };
}

/** The words before a command: the binary, or the runtime by the name under which its user has it. */
export function typedProgram({ main, execPath, cwd, bunVersion }: Started): string {
  if (main.startsWith("/$bunfs/")) return execPath;
  const bun = execPath.includes(npxFolder) ? `npx --yes bun@${bunVersion}` : "bun";
  return `${bun} ${relative(cwd, main)}`;
}
