/**
 * An operator's export of a running program: files of the final heights, in the folder of exports.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { readTable } from "../columnar/read-parquet.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";

let program: RunningProgram | undefined;
afterAll(() => program?.remove());

test("an export has the sample site's items, with their tags", async () => {
  program = await startDev();
  const { gateway, node, adminKey, sample } = program.line;
  await fetch(`${node}/mine/20`, { method: "POST" });
  const headers = { authorization: `Bearer ${adminKey}`, "content-type": "application/json" };
  const body = JSON.stringify({ outputDir: "all", startHeight: 0, endHeight: 1_000, maxFileRows: 0 });
  const started = await fetch(`${gateway}/svc/admin/export-parquet`, { method: "POST", headers, body });
  expect([started.status, await started.json()]).toEqual([200, { message: "Parquet export started" }]);
  const status = async () => (await fetch(`${gateway}/svc/admin/export-parquet/status`, { headers })).json();
  const ended = await eventually(status, (found) => found.status !== "running");
  expect(ended).toMatchObject({ status: "completed", outputDir: "all", startHeight: 0, endHeight: 1_000 });

  const folder = join(program.folder, "export", "all");
  const text = (value: unknown) => Buffer.from(value as Uint8Array);
  const ids = (await readTable(folder, "transactions")).map(({ id }) => text(id).toString("base64url"));
  expect(ids).toContain(sample.manifest);
  const tags = (await readTable(folder, "tags"))
    .filter(({ id }) => text(id).toString("base64url") === sample.manifest)
    .map((row) => [text(row["tag_name"]).toString(), text(row["tag_value"]).toString()]);
  expect(tags).toContainEqual(["Content-Type", "application/x.arweave-manifest+json"]);
}, 120_000);
