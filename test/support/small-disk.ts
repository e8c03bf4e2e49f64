/**
 * A disk of a test's own, so small that it can be filled: whether one may be mounted, and filling it.
 * @module
 */
import { expect } from "bun:test";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";

/** Whether a disk may be mounted. */
export function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "cairn-mount-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], { stdio: "ignore" });
    execFileSync("umount", [folder]);
    return true;
  } catch {
    return false; // not root, or no such right: the test that needs it says so
  } finally {
    removeFolder(folder);
  }
}

/** Runs work with an empty disk of so many KiB at a folder. */
export async function withDisk(folder: string, kibibytes: number, work: () => Promise<void>): Promise<void> {
  mkdirSync(folder, { recursive: true });
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${kibibytes}k`, "tmpfs", folder]);
  try {
    await work();
  } finally {
    execFileSync("umount", [folder]);
  }
}

/** Gives a disk of {@link withDisk} more space than any test needs. */
export function enlargeDisk(folder: string): void {
  execFileSync("mount", ["-o", "remount,size=200m", folder]);
}

/** Writes until the disk is full, and closes the file. */
export async function fillUp(file: FileHandle): Promise<void> {
  try {
    for (;;) await file.write(new Uint8Array(4_096));
  } catch (error) {
    expect(error).toHaveProperty("code", "ENOSPC");
  } finally {
    await file.close();
  }
}
