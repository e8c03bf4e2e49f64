/**
 * A temporary folder, removed when the test ends.
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Makes an empty folder; `using` removes it with its contents. */
export function temporaryFolder(): Disposable & Readonly<{ path: string }> {
  const path = mkdtempSync(join(tmpdir(), "cairn-store-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
