/**
 * What `cairn dev` prints: the admin key of its folder, the same at each start, and lines of responses only on request.
 * @module
 */
import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { runCairn } from "../cli/command.ts";
import { startDev } from "../support/program.ts";

const timeoutMs = 180_000;

test(
  "the key is that of the folder, and cairn status reads it; a response is a line with LOG_REQUESTS",
  async () => {
    const first = await startDev();
    const { gateway, adminKey } = first.line;
    try {
      const page = await fetch(`${gateway}/svc/console`);
      expect(page.status).toBe(200);
      expect((await fetch(`${gateway}/svc/admin/status`, authorized(adminKey))).status).toBe(200);
      const environment = { DATA_DIR: first.folder, GATEWAY_PORT: new URL(gateway).port };
      const { out, err } = await runCairn(["status", "--once"], { environment });
      expect([err, out.includes("requests")]).toEqual(["", true]);
      expect(await first.stop()).toBe(0);
      expect(first.errors()).not.toContain("request completed");
      expect(first.errors()).not.toContain(adminKey);
      expect(statSync(join(first.folder, "keys/admin-key")).mode & 0o777).toBe(0o600);

      const second = await startDev({ folder: first.folder, environment: { LOG_REQUESTS: "true" } });
      expect(second.line.adminKey).toBe(adminKey);
      await fetch(`${second.line.gateway}/info`);
      expect(await second.stop()).toBe(0);
      expect(second.errors()).toContain('"request completed"');
    } finally {
      await first.remove();
    }
  },
  timeoutMs,
);

function authorized(key: string): RequestInit {
  return { headers: { authorization: `Bearer ${key}` } };
}
