/**
 * Whether tests may mount a disk of their own, so small that it can be filled.
 * @module
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Tries it. */
export function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "cairn-mount-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], { stdio: "ignore" });
    execFileSync("umount", [folder]);
    return true;
  } catch {
    return false; // not root, or no such right: the test that needs it says so
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
