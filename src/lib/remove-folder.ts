/**
 * Removes folders whose entries others may remove meanwhile.
 * @module
 */
import { lstatSync, rmSync } from "node:fs";

/** Attempts that leave something without an error, before one throws what it meets. */
const attemptsMax = 100;

/**
 * Removes a folder and all that is in it, or a file or link; does nothing if there is none.
 *
 * Once the runtime meets an entry that another process or thread has just removed, it ends a removal with `force`
 * without an error, and leaves the rest (Bun 1.4.5, measured; Node removes all). So it is repeated until the folder is
 * gone.
 * @throws Error with the system's code when an entry cannot be removed.
 */
export function removeFolder(path: string): void {
  for (let attempt = 1; attempt <= attemptsMax && isThere(path); attempt += 1)
    rmSync(path, { recursive: true, force: attempt < attemptsMax });
}

/** Whether there is an entry at a path: itself, not what a link leads to. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
