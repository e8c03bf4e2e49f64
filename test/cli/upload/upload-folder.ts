/**
 * A temporary folder and an upload service for the tests of a file; both end after the last test.
 * @module
 */
import { afterAll } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { openFakeUploadService } from "../upload-service.ts";

/** Opens both. @param name - Start of the folder's name. */
export function openUploadFolder(name: string) {
  const folder = mkdtempSync(join(tmpdir(), name));
  const service = openFakeUploadService();
  afterAll(async () => {
    await service.close();
    removeFolder(folder);
  });
  const write = (path: string, data: string | Uint8Array): string => {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, data);
    return file;
  };
  return { folder, service, write };
}
