/**
 * A temporary folder, removed when the test ends.
 * @module
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";

/** Makes an empty folder; `using` removes it with its contents. */
export function temporaryFolder(): Disposable & Readonly<{ path: string }> {
  const path = mkdtempSync(join(tmpdir(), "cairn-store-"));
  return { path, [Symbol.dispose]: () => removeFolder(path) };
}
