/**
 * How this program is typed where it was started: what is printed for people to copy must work for them.
 * @module
 */
import { delimiter, relative } from "node:path";

/** How the process was started. */
export type Started = Readonly<{
  /** The entry file; of a binary one that lies within it. */
  main: string;
  /** The runtime, or the binary. */
  execPath: string;
  cwd: string;
  /** Whether its user can type the runtime's name. */
  hasBun: boolean;
  /** Of the runtime. */
  bunVersion: string;
}>;

/** Folders that npx, npm and the runtime put into the path of what they run, and of nothing else. */
const passingFolder = /[/\\](?:_npx|node_modules)[/\\]|[/\\]bun-node-[^/\\]*$/;

/** How the running process was started. @param path - The `PATH` that it was given. */
export function startedAs(path: string): Started {
  const lasting = path.split(delimiter).filter((folder) => !passingFolder.test(folder));
  return {
    main: Bun.main,
    execPath: process.execPath,
    cwd: process.cwd(),
    hasBun: Bun.which("bun", { PATH: lasting.join(delimiter) }) !== null,
    bunVersion: Bun.version,
  };
}

/** The words before a command: the binary, or the runtime by the name under which its user has it. */
export function typedProgram({ main, execPath, cwd, hasBun, bunVersion }: Started): string {
  if (main.startsWith("/$bunfs/")) return execPath;
  return `${hasBun ? "bun" : `npx --yes bun@${bunVersion}`} ${relative(cwd, main)}`;
}
