/**
 * Removes folders whose entries others may remove meanwhile.
 * @module
 */
import { existsSync, rmSync } from "node:fs";

/** Removals before the error of the last one is thrown. */
const attemptsMax = 100;

/**
 * Removes a folder and all that is in it, or a file; does nothing if there is none.
 *
 * Once the runtime meets an entry that another process or thread has just removed, it ends a removal with `force`
 * without an error, and leaves the rest (Bun 1.4.5, measured; Node removes all). So it is repeated until the folder is
 * gone.
 * @throws Error with the system's code when an entry cannot be removed.
 */
export function removeFolder(path: string): void {
  for (let left = attemptsMax; left > 0 && existsSync(path); left -= 1) rmSync(path, { recursive: true, force: true });
  if (existsSync(path)) rmSync(path, { recursive: true });
}
